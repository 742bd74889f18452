"""Numbers as users see them, and results by themselves: `repr`, `str` and reasons."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from results import BROKEN, FOUND, PASSED, Event

from pytest_dp import PrivacyProfile, audit
from pytest_dp.report import numbers
from pytest_dp.results.outcome import as_json_value, from_json_value


def test_numbers():
    for text, expected in [
        (numbers.format_count(10_012), "10,012"),
        (numbers.format_claimed(1e-3), "0.001"),
        (numbers.format_claimed(math.log(2)), "0.693147"),
        (numbers.format_confidence(1e-6), "99.9999 %"),
        (numbers.format_confidence(0.05), "95 %"),
        (numbers.format_confidence(1.234e-3), "99.87 %"),
        (numbers.format_confidence(1e-20), "> 99.9999999 %"),
        (numbers.format_seconds(0.012), "12 ms"),
        (numbers.format_seconds(59.97), "1 min"),
        (numbers.format_seconds(125.3), "2 min 5 s"),
        (numbers.format_seconds(3_725), "1 h 2 min"),
        (numbers.format_seconds(125.3, compact=True), "125 s"),
        (numbers.format_p_value(2.7e-212), "3e-212"),
        (numbers.format_p_value(0.0), "< 1e-300"),
        (numbers.format_p_value(9.1e-7), "1e-06"),
        (numbers.format_p_value(0.0499), "0.05"),
        (numbers.format_e_value(4.29e9), "4e9"),
        (numbers.format_e_value(508.9), "508"),
        (numbers.format_e_value(2.39e-7), "2.3e-07"),
        (numbers.format_e_value(0.0), "0"),
        (numbers.format_e_value(math.inf), "> 1e300"),
        (numbers.format_seed(0x8F2C), "8f2c"),
        (numbers.format_ratio(math.inf), "infinite"),
        (numbers.format_exp_ratio(20), "4.85e8"),
        (numbers.format_exp_ratio(800.0), "e^800.0"),
        (numbers.format_lower(math.inf), "infinity"),
        (numbers.format_upper(math.inf), "infinity"),
    ]:
        assert text == expected


def test_probabilities_round_to_the_honest_side():
    for p, nearest, down, up in [
        (0.0, "0", "0", "0"),
        (1.0, "1", "1", "1"),
        (0.5006, "0.501", "0.500", "0.501"),
        (0.00124, "0.0012", "0.0012", "0.0013"),
        (9.96e-6, "1.0e-05", "9.9e-06", "1.0e-05"),
        (0.99962, "0.99962", "0.99962", "0.99962"),
        (0.9999999999, "0.999999", "0.999999", "1"),
    ]:
        shown = [numbers.format_probability(p, side) for side in ("nearest", "down", "up")]
        assert shown == [nearest, down, up]


def test_bounds_on_eps_round_to_the_honest_side():
    for eps, down, up in [
        (1.8999, "1.89", "1.90"),
        (0.00189999, "0.00189", "0.00190"),
        (0.0, "0", "0"),
        (-0.3, "0", "0"),
    ]:
        assert (numbers.format_lower(eps), numbers.format_upper(eps)) == (down, up)


def test_a_proven_bound_reads_above_the_claim_and_never_above_itself():
    for excess in [1e-12, 1e-6, 1e-3, 0.1, 3.0]:
        for eps in [1e-5, 1e-3, 0.1234567890123, math.log(2), 1.0, 20.0, 1234.5]:
            bound = eps * (1 + excess)
            claim, text = (
                float(t.replace(",", "")) for t in numbers.format_claim_and_bound(eps, bound)
            )
            assert claim < text <= bound


def test_units_are_the_same_everywhere():
    assert numbers.parameter_text("eps", "1.7") == "eps = 1.7"
    assert numbers.parameter_text("scale", "3.68", ">=") == "loss >= 3.68 times the claim"
    curve = PrivacyProfile(lambda eps: 0.0, name="a curve")
    for sign in (">=", "="):
        text = numbers.parameter_text(curve.parameter, "3.68", sign)
        assert curve.write_comparison(sign, "3.68") == text


LARGE = replace(
    FOUND,
    d1=np.eye(100),
    d2=["record " * 50] * 1_000,
    event=Event("output in {" + "1, " * 5_000 + "}"),
    examples=((np.eye(50),) * 3, (np.eye(50),) * 3),
)
MANY = tuple(f"{word} note, which is long: {'more of it, ' * 30}" for word in "abcdefgh")


def test_the_repr_fits_a_screen():
    for result in [
        BROKEN,
        PASSED,
        replace(BROKEN, counterexample=LARGE, notes=MANY),
        replace(PASSED, verdict="inconclusive", hindrances=MANY[:1], notes=MANY),
        replace(PASSED, resolution=math.inf, e_value=None, bet_samples=None),
    ]:
        lines = repr(result).splitlines()
        assert len(lines) <= 30
        assert max(map(len, lines)) <= 80
        assert lines[0] == "AuditResult("
        assert f"  verdict={result.verdict!r}," in lines
        assert "\n" not in str(result)


def test_seconds_of_an_audit_that_was_too_slow_are_in_plain_digits():
    for seconds, written in [(0.62, "0.62 s"), (60.3, "60 s"), (7_249.0, "7200 s")]:
        slow = replace(PASSED, verdict="inconclusive", seconds=seconds, max_seconds=seconds)
        assert f" runs in {written} are too few" in slow.reason


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"max_samples": 30}, "max_samples=30 is too few: raise it"),
        ({"max_seconds": 0.2, "slow": True}, "raise max_seconds"),
        ({"constant": True, "max_samples": 500}, "missing noise, a fixed seed or a cache?"),
        (
            {"pairs": [([1] * k, []) for k in range(1, 40)], "max_samples": 200},
            "name the pairs that matter with pairs=",
        ),
    ],
)
@pytest.mark.parametrize("method", ["sequential", "statdp"])
def test_why_an_audit_could_tell_nothing_and_what_to_do(given, reason, method):
    import time

    slow, constant = given.get("slow"), given.get("constant")

    def count(d, rng):
        if slow:
            time.sleep(0.02)
        return 0 if constant else len(d) + rng.gamma(1) - rng.gamma(1)

    effort = {name: value for name, value in given.items() if name not in ("slow", "constant")}
    effort.setdefault("pairs", [([1], [])])
    result = audit(count, eps=1.0, method=method, seed=1, n_jobs=1, **effort)
    assert result.verdict == "inconclusive"
    assert reason in result.reason
    assert "  " not in " ".join((result.reason, *result.notes))


@dataclass(frozen=True)
class Numbers:
    some: tuple[float, ...]
    one: float
    maybe: float | None = None


def test_numbers_return_from_json_as_they_were():
    for number in [0.5, -0.0, math.nan, math.inf, -math.inf]:
        numbers = Numbers((number, 1.0), number)
        text = json.dumps(as_json_value(numbers), allow_nan=False)
        assert repr(from_json_value(Numbers, json.loads(text))) == repr(numbers)
