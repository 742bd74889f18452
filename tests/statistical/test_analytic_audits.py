"""Audits of mechanisms whose loss has a closed form: it is told where real runs bear it out."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp import PrivacyProfile, RenyiDP, audit
from pytest_dp.privacy import gdp_to_delta
from pytest_dp.report.record import Record
from pytest_dp.report.summary_table import known_loss_text


def laplace(x, rng):
    return x + rng.laplace()


def audited(mechanism, **claim):
    return audit(mechanism, pairs=[(0, 1)], seed=1, max_samples=20_000, **claim)


def test_a_pass_with_its_loss():
    result = audited(laplace, eps=1.0)
    assert result.verdict == "no violation"
    assert (result.estimate.value, result.estimate.mode) == (pytest.approx(1.0), "aligned")
    assert result.strength == "aligned"
    said = known_loss_text(Record.of(result))
    assert said.startswith("aligned on these pairs: eps <= 1.000000 (200 replays)")
    assert result.samples < 500


PROMISES = {
    "pure": {"eps": 1.0},
    "approximately concentrated": {"rho": 0.5, "delta": 1e-6},
    "renyi": {"guarantee": RenyiDP({2: 1.0, 8: 4.0})},
    "profile": {"guarantee": PrivacyProfile(lambda eps: gdp_to_delta(1.0, eps))},
}


@pytest.mark.usefixtures("_without_blame")
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_a_dropped_clip_violates_every_promise(promise):
    def unclipped(vectors, rng):
        return np.sum(np.reshape(vectors, (-1, 3)), axis=0) + rng.normal(size=3)

    for norm in (51.0, 1e6):
        pairs = [([[norm / 3**0.5] * 3], [])]
        result = audit(unclipped, pairs=pairs, seed=1, max_samples=4_000, **promise)
        assert result.violated
