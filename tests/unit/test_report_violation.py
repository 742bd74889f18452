"""What users see of a result: exact texts and widths."""

from __future__ import annotations

import math
from dataclasses import replace

from results import BROKEN, COUNT, FOUND, VIOLATION

from pytest_dp import DPSniper
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.privacy import ApproximateDP
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import short_finding
from pytest_dp.report.violation import headline, violation
from pytest_dp.results.outcome import Risk

STATDP = replace(BROKEN, method="statdp", p_value=2.7e-212, e_value=None, bet_samples=None)


SURE = "99.9999 % confidence"


def shown(**changed):
    return replace(BROKEN, counterexample=replace(FOUND, **changed))


LEAKY = Claim(Promise(ApproximateDP(1.0, 1e-6)))
AT_THE_CLAIM = replace(STATDP, claim=Claim(Promise(ApproximateDP(20.0))), lower=20.0)
SHELL = 'a.py::f[eps=1.0-mode="$HOME"]'


def command_of(text):
    """What is to be pasted into a shell."""
    return " ".join(
        text.partition("\nReproduce:")[2]
        .partition("\nEvidence:")[0]
        .partition("\nAs a test:")[0]
        .split()
    )


def test_violation_exactly():
    assert violation(BROKEN) == VIOLATION


def test_auditors_without_bets_show_the_samples_in_their_place():
    fixed = VIOLATION.replace("e-value 4e9 (1,840 samples)", "184,000 samples")
    fixed = fixed.replace("8f2c", "8f2c --dp-method=statdp")
    assert violation(STATDP) == fixed.replace("Reproduce:  pytest", "Reproduce:\n  pytest")


WEAK = replace(
    BROKEN,
    lower=1.0,
    counterexample=replace(
        FOUND,
        counts=(13, 0),
        runs=(13, 13),
        lower=0.0,
        eps_clopper_pearson=-math.inf,
        p_value=0.17,
        bet_counts=(72, 10),
        bet_runs=(80, 80),
        diagnosis=(),
    ),
)


def test_an_output_of_one_side_is_said_in_place_of_a_bound_that_shows_nothing():
    for fresh, bets, shown in [
        ((13, 0), (72, 0), "S comes on D only"),
        ((0, 0), (72, 0), "S comes on D only"),
        ((13, 0), (72, 10), "eps > 1.0"),
        ((0, 0), (0, 0), "eps > 1.0"),
    ]:
        found = replace(WEAK.counterexample, counts=fresh, bet_counts=bets)
        weak = replace(WEAK, counterexample=found)
        assert headline(weak) == f"claimed eps = 1.0, but {shown} ({SURE})"
        assert headline(replace(weak, lower=1.5)).startswith("claimed eps = 1.0, but eps >= 1.50 ")
        row = Record.of(weak, COUNT, "shop/stats.py", 8)
        assert short_finding(row) == shown


def test_where_fresh_runs_are_few_the_bets_come_first_in_words():
    assert violation(WEAK).splitlines() == [
        "claimed eps = 1.0, but eps > 1.0 (99.9999 % confidence)",
        "",
        "  D  = [0]",
        "  D' = []                     (one record removed)",
        "  S  = {output >= 1.0}",
        "",
        "  In 160 runs, outputs in S came 7.20 times as often on D as on D'; 2.72 is",
        "  allowed. Bets against eps = 1.0, each made before the runs that decided",
        "  it, multiplied their stake by 4e9.",
        "  In fresh runs of the mechanism M, too few to refute the claim by",
        "  themselves:",
        "  Pr[M(D)  in S]  13/13 = 1",
        "  Pr[M(D') in S]   0/13 = 0",
        "",
        'Reproduce:  pytest "shop/stats.py::noisy_count[eps=1.0]" --dp-seed=8f2c',
        "As a test:  pairs=[([0], [])]",
        "Evidence: e-value 4e9 (1,840 samples)",
    ]


def test_no_refutation_stands_beside_a_bound_that_takes_it_back():
    for runs in [0, 13]:
        for bound in [-math.inf, 0.9]:
            found = replace(WEAK.counterexample, counts=(runs, 0), runs=(runs, runs), lower=bound)
            weak = replace(WEAK, counterexample=found)
            for text in (
                violation(weak),
                Record.of(weak, COUNT, "shop/stats.py", 8).witness.text,
            ):
                said = " ".join(text.split())
                assert "eps >=" not in said
                assert "at least" not in said
                assert "DP-Sniper" not in said
                assert "p-value" not in said
                assert "outputs in S came 7.20 times as often on D" in said
                assert ("raise max_samples or max_seconds" in said) == (runs == 0)


def test_a_violation_without_fresh_runs_still_shows_its_evidence():
    notes = ("cut off after max_seconds=60, with 1,840 of 400,000 samples",)
    bare = replace(BROKEN, lower=1.0, counterexample=None, notes=notes)
    assert violation(bare).splitlines() == [
        "claimed eps = 1.0, but eps > 1.0 (99.9999 % confidence)",
        "",
        "  No effort was left for a counterexample: raise max_samples or max_seconds.",
        "",
        "Note: cut off after max_seconds=60, with 1,840 of 400,000 samples",
        'Reproduce:  pytest "shop/stats.py::noisy_count[eps=1.0]" --dp-seed=8f2c',
        "Evidence: e-value 4e9 (1,840 samples)",
    ]
    Record.of(bare, COUNT, "shop/stats.py", 8)


def test_the_command_carries_what_the_claim_does_not_say():
    here = replace(BROKEN, method="dpsniper", alpha=0.01, max_samples=20_000)
    assert "--dp-method" not in violation(replace(here, method="sequential"))
    command = command_of(violation(here))
    assert command.endswith("--dp-method=dpsniper --dp-alpha=0.01 --dp-max-samples=20000")
    assert " --dp-max-seconds=5" in violation(replace(here, max_seconds=5.0))
    assert "--dp-max-seconds" not in violation(replace(here, max_seconds=60.0))
    betting = replace(here, method="sequential")
    assert "--dp-margin" not in violation(replace(betting, margin=1.25))
    assert "--dp-margin=1.5" in violation(replace(betting, method="membership", margin=1.5))
    assert "--dp-margin=none" in violation(replace(betting, margin=1.0))
    assert "--dp-margin" not in violation(replace(here, margin=1.5))
    claimed = replace(
        here,
        claim=Claim(
            Promise(ApproximateDP(1.0)),
            effort={"method": DPSniper(), "alpha": 0.01, "max_samples": 20_000},
        ),
    )
    assert command_of(violation(claimed)).endswith("--dp-seed=8f2c")


def test_a_leak_is_told_in_delta_too_and_fits():
    claim = Claim(Promise(ApproximateDP(1.0, 1e-6)))
    found = replace(
        FOUND,
        counts=(303, 0),
        runs=(32_873, 119_727),
        intervals=((0.0068, 0.012), (0.0, 1.3e-4)),
        lower=3.96,
        delta_lower=0.00651,
    )
    lines = violation(replace(BROKEN, claim=claim, lower=3.96, counterexample=found)).splitlines()
    assert lines[:2] == [
        "claimed eps = 1.0, delta = 1e-06, but eps >= 3.96",
        "  (99.9999 % confidence)",
    ]
    assert [line for line in lines if " in S] " in line] == [
        "  Pr[M(D)  in S]  303/32,873 = 0.0092   at least 0.0068",
        "  Pr[M(D') in S]   0/119,727 = 0        at most  1.3e-04",
    ]
    assert "With eps = 1.0, delta is at least 0.0065; with delta = 1e-06, eps >= 3.96." in lines
    assert max(map(len, lines)) <= 76


def test_what_is_said_now_and_then():
    for result, said in [
        (AT_THE_CLAIM, "eps > 20.0"),
        (shown(eps_clopper_pearson=-math.inf), "DP-Sniper bound none"),
        (shown(diagnosis=()), "The line of code that leaks was not found."),
        (replace(shown(p_value=1.1e-11), claim=LEAKY), ", p-value < 1e-09, "),  # at any level below
        (replace(BROKEN, name="noisy_count"), "Reproduce: audit(..., seed=0x8f2c) As"),
        (replace(BROKEN, name=SHELL), "Reproduce: pytest 'a.py::f[eps=1.0-mode=\"$HOME\"]' --dp-"),
    ]:
        assert said in " ".join(violation(result).split())


def test_of_games_only_the_records_that_break_the_claim_are_listed():
    told = Risk("record 1", "{'age': 40}", 0.9, (0.8, 0.97), 0.7, 1e-9, 60, 60)
    kept = replace(told, record="record 2", lower=0.0, p_value=4e-7)  # of three, not below alpha

    def shown(*risks):
        return " ".join(violation(replace(BROKEN, risks=risks, counterexample=None)).split())

    text = shown(kept, told, kept)
    assert "record 1 = {'age': 40} AUC 0.900 in 60 pairs of runs" in text
    assert "record 2" not in text
    assert "Tried as well, and not seen to break the claim: 2 other records." in text
    assert "Tried as well" not in shown(told)
    assert "... and 2 more records that break it" in shown(*[told] * 10)
    assert "To fix it: give each single record less weight" in text
    assert "noise" not in text
