"""The new betting loop behind its switch: the same verdicts as the loop that it will replace."""

import numpy as np
import pytest

from pytest_dp import Sequential, audit
from pytest_dp.auditors import beside


def noisy(answer, scale, rng, size):
    return answer + rng.laplace(scale=scale, size=size)


def gaussian(answer, scale, rng, size):
    return answer + rng.normal(scale=scale, size=size)


def histogram(answers, scale, rng, size):
    return np.asarray(answers) + rng.laplace(scale=scale, size=(size, len(answers)))


CLAIMS = {
    "eps": (noisy, {"eps": 1.0}, 1.0),
    "eps, several numbers": (histogram, {"eps": 1.0}, 1.0),
    "eps and delta": (gaussian, {"eps": 1.0, "delta": 1e-5}, 3.7306),
    "mu": (gaussian, {"mu": 1.0}, 1.0),
    "rho": (gaussian, {"rho": 0.5}, 1.0),
}


@pytest.fixture
def play(monkeypatch):
    monkeypatch.setenv(beside.SWITCH, "yes")

    def audited(name, share, coupled, most):
        mechanism, claim, scale = CLAIMS[name]
        inputs = [([0, 0, 0], [1, 0, 0])] if mechanism is histogram else [(0.0, 1.0), (0.0, 0.5)]
        return audit(
            mechanism,
            params={"scale": share * scale},
            pairs=inputs,
            vectorized="size",
            method=Sequential(coupled=coupled),
            max_samples=most,
            margin=None,
            seed=5,
            n_jobs=1,
            **claim,
        )

    return audited


@pytest.mark.parametrize("coupled", [True, False], ids=["coupled", "independent"])
@pytest.mark.parametrize("name", CLAIMS)
def test_too_little_noise_is_refuted_and_enough_noise_is_not(play, name, coupled):
    broken, kept = play(name, 0.25, coupled, 20_000), play(name, 1.0, coupled, 4_000)
    assert (broken.verdict, kept.verdict) == ("violated", "no violation")
    assert broken.lower >= broken.claim.promise.guarantee.claimed > kept.lower


def test_the_switch_is_off_by_default(monkeypatch):
    monkeypatch.delenv(beside.SWITCH, raising=False)
    assert not beside.is_asked_for()
