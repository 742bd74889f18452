"""How pytest shows a failure of ours, without an audit."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from results import BROKEN

from pytest_dp import RenyiDP
from pytest_dp.auditors.result import PrivacyViolation
from pytest_dp.claim import Claim, Promise
from pytest_dp.plugin.failure import represent
from pytest_dp.privacy import guarantee
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
    result = replace(BROKEN, claim=Claim(Promise(guarantee(claim))))
    error = PrivacyViolation(violation(result), result)
    shown = represent(error, SimpleNamespace(rootpath=tmp_path), tmp_path / "stats.py", 5)
    place = shown.reprtraceback.reprentries[0].reprfileloc
    assert (place.path, place.message) == ("stats.py", f"PrivacyViolation: {last}")
