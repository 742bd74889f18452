"""The benchmark that patches constants: wherever they are looked up, and never too late."""

from __future__ import annotations

import pytest

import pytest_dp.estimating
from benchmarks.ablation import all_patched
from benchmarks.ablation_suites import SUITES
from pytest_dp.attacks import additive
from pytest_dp.auditors import stopping


def test_a_constant_is_patched_wherever_it_is_imported():
    here, there = vars(pytest_dp.estimating), vars(stopping)
    with all_patched("limits.NO_LOSS=was / 2 & attacks.additive.POOLING=7"):
        assert here["NO_LOSS"] == there["NO_LOSS"] == 1e-3 / 2
        assert vars(additive)["POOLING"] == 7
    assert here["NO_LOSS"] == there["NO_LOSS"] == 1e-3
    assert vars(additive)["POOLING"] == 2


def test_methods_can_be_patched():
    with all_patched("attacks.additive._Fit._sharpness=lambda fit: 7"):
        assert additive._Fit._sharpness(None) == 7  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        additive._Fit._sharpness(None)  # type: ignore[arg-type]


def test_what_other_constants_are_made_of_cannot_be():
    patched = all_patched("statistics.event_bets.FRACTIONS=was[:1]")
    with pytest.raises(ValueError, match="uses FRACTIONS when it is imported"), patched:
        pass


def test_a_trial_ends_once_the_claim_is_refuted():
    trial = SUITES["known"]()["Gaussian, coupled"]
    assert 100 < trial.run(0) < 10_000 < trial.most
