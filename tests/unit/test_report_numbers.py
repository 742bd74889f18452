"""Numbers as users see them: exact texts and rounding directions."""

from __future__ import annotations

import math

from pytest_dp import PrivacyProfile
from pytest_dp.report import numbers


def test_numbers():
    for text, expected in [
        (numbers.format_count(10_012), "10,012"),
        (numbers.short_count(999), "999"),
        (numbers.short_count(1_840), "1.8k"),
        (numbers.short_count(9_960), "10k"),
        (numbers.short_count(184_000), "184k"),
        (numbers.short_count(999_900), "1.0M"),
        (numbers.short_count(2_400_000), "2.4M"),
        (numbers.claimed_number(1), "1.0"),
        (numbers.claimed_number(1e-3), "0.001"),
        (numbers.claimed_number(20), "20.0"),
        (numbers.claimed_number(math.log(2)), "0.693147"),
        (numbers.confidence(1e-6), "99.9999 %"),
        (numbers.confidence(0.05), "95 %"),
        (numbers.confidence(0.01), "99 %"),
        (numbers.confidence(0.5), "50 %"),
        (numbers.confidence(1.234e-3), "99.87 %"),
        (numbers.confidence(1e-20), "> 99.9999999 %"),
        (numbers.format_seconds(0.012), "12 ms"),
        (numbers.format_seconds(0.83), "0.8 s"),
        (numbers.format_seconds(59.94), "59.9 s"),
        (numbers.format_seconds(59.97), "1 min"),
        (numbers.format_seconds(125.3), "2 min 5 s"),
        (numbers.format_seconds(3_725), "1 h 2 min"),
        (numbers.format_seconds(125.3, compact=True), "125 s"),
        (numbers.format_p_value(2.7e-212), "3e-212"),
        (numbers.format_p_value(0.0), "< 1e-300"),
        (numbers.format_p_value(9.1e-7), "1e-06"),
        (numbers.format_p_value(0.0499), "0.05"),
        (numbers.format_p_value(0.31), "0.31"),
        (numbers.format_p_value(1.0), "1"),
        (numbers.format_e_value(4.29e9), "4e9"),
        (numbers.format_e_value(7_450_000.0), "7e6"),
        (numbers.format_e_value(508.9), "508"),
        (numbers.format_e_value(0.654), "0.65"),
        (numbers.format_e_value(2.39e-7), "2.3e-07"),
        (numbers.format_e_value(0.0), "0"),
        (numbers.format_e_value(9.9e299), "9e299"),
        (numbers.format_e_value(math.exp(700)), "> 1e300"),
        (numbers.format_e_value(math.inf), "> 1e300"),
        (numbers.seed(0x8F2C), "8f2c"),
        (numbers.ratio(math.inf), "infinite"),
        (numbers.ratio_of(0.001), "1.0010"),
        (numbers.ratio_of(20), "4.85e8"),
        (numbers.ratio_of(800.0), "e^800.0"),
        (numbers.format_lower(math.inf), "infinity"),
        (numbers.format_upper(math.inf), "infinity"),
    ]:
        assert text == expected


def test_probabilities_round_to_the_honest_side():
    for p, nearest, down, up in [
        (0.0, "0", "0", "0"),
        (1.0, "1", "1", "1"),
        (0.5006, "0.501", "0.500", "0.501"),
        (0.0123, "0.012", "0.012", "0.013"),
        (0.00124, "0.0012", "0.0012", "0.0013"),
        (1.24e-5, "1.2e-05", "1.2e-05", "1.3e-05"),
        (9.96e-6, "1.0e-05", "9.9e-06", "1.0e-05"),
        (0.99962, "0.99962", "0.99962", "0.99962"),
        (0.9999999999, "0.999999", "0.999999", "1"),
    ]:
        shown = [numbers.format_probability(p, side) for side in ("nearest", "down", "up")]
        assert shown == [nearest, down, up]


def test_bounds_on_eps_round_to_the_honest_side():
    for eps, down, up in [
        (1.89, "1.89", "1.89"),
        (1.8999, "1.89", "1.90"),
        (0.00189999, "0.00189", "0.00190"),
        (12.3456, "12.3", "12.4"),
        (20.0, "20.0", "20.0"),
        (1.2345e-5, "1.23e-05", "1.24e-05"),
        (0.0, "0", "0"),
        (-0.3, "0", "0"),
    ]:
        assert (numbers.format_lower(eps), numbers.format_upper(eps)) == (down, up)


def test_a_proven_bound_reads_above_the_claim_and_never_above_itself():
    for excess in [1e-12, 1e-6, 1e-3, 0.1, 3.0]:
        for eps in [1e-5, 1e-3, 0.1234567890123, math.log(2), 1.0, 20.0, 1234.5]:
            bound = eps * (1 + excess)
            claim, text = (float(t.replace(",", "")) for t in numbers.claim_and_bound(eps, bound))
            assert claim < text <= bound


def test_the_proven_ratio_reads_above_the_allowed_one():
    for excess in [1e-4, 1e-2, 0.5]:
        for eps in [1e-3, 0.1, 1.0, 20.0]:
            pair = numbers.allowed_and_proven(eps, eps * (1 + excess))
            allowed, proven = (float(t.replace(",", "")) for t in pair)
            assert allowed < proven <= math.exp(eps * (1 + excess))


# Headline


def test_units_are_the_same_everywhere():
    assert numbers.value("eps", "1.7") == "eps = 1.7"
    assert numbers.value("scale", "3.68", ">=") == "loss >= 3.68 times the claim"
    assert numbers.not_ruled_out(1.7, "eps") == "eps up to 1.70 is not ruled out"
    assert (
        numbers.not_ruled_out(1.7, "scale") == "a loss up to 1.70 times the claim is not ruled out"
    )
    assert numbers.not_ruled_out(None, "scale") == "no loss is ruled out"
    curve = PrivacyProfile(lambda eps: 0.0, name="a curve")
    assert curve.at_least("3.68") == numbers.value(curve.parameter, "3.68", ">=")
    assert curve.equal("3.68") == numbers.value(curve.parameter, "3.68")
