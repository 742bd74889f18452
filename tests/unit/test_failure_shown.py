"""What fails in pytest, and how it shows a failure of ours, without an audit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from results import BROKEN, COUNT, PASSED

from pytest_dp import RenyiDP
from pytest_dp.auditors.result import PrivacyViolation
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.plugin.check import _too_little
from pytest_dp.plugin.failure import represent
from pytest_dp.privacy import read_guarantee
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import total
from pytest_dp.report.violation import violation


@pytest.mark.parametrize(
    ("claim", "last"),
    [
        ({"eps": 1.0}, "claimed eps = 1.0, but eps >= 1.89"),
        ({"eps": 1.0, "delta": 1e-6}, "claimed eps = 1.0, delta = 1e-06, but eps >= 1.89"),
        (
            {"guarantee": RenyiDP({8: 0.5})},
            "claimed eps = 0.5 at order 8, but eps >= 1.89 at order 8",
        ),
    ],
)
def test_the_last_line_has_all_but_the_confidence(claim, last, tmp_path):
    result = replace(BROKEN, claim=Claim(Promise(read_guarantee(claim))))
    error = PrivacyViolation(violation(result), result)
    shown = represent(error, SimpleNamespace(rootpath=tmp_path), tmp_path / "stats.py", 5)
    place = shown.reprtraceback.reprentries[0].reprfileloc
    assert (place.path, place.message) == ("stats.py", f"PrivacyViolation: {last}")


RISING = ("inconclusive", "weak", "fair", "strong", "aligned", "exact")


def test_a_pass_below_the_floor_of_its_claim_is_red():
    for strength in RISING[1:]:
        for at_least in RISING:
            passed = SimpleNamespace(
                verdict="no violation",
                strength=strength,
                unreached=(),
                far_below=None,
                not_exact="hash",
            )
            passed.stopped_early = False
            said = _too_little(passed, at_least)
            is_red = RISING.index(strength) < RISING.index(at_least)
            assert (
                f"The pass is {strength}, and at_least={at_least!r} is asked for" in said
            ) is is_red
            assert ("a loss that is computed" in said) is (
                is_red and at_least in ("aligned", "exact")
            )
            assert _too_little(SimpleNamespace(verdict="violated", strength=""), at_least) == ""
            counted = total(
                [replace(Record.of(PASSED, COUNT, "shop/stats.py", 8), too_little=said)]
            )
            assert ("1 less than asked for" in counted) is is_red
            assert ("no violation found" in counted) is not is_red
