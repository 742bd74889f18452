"""Claims of every kind, audited by counts: kept promises pass, broken ones do not, bounds hold."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_dp import audit
from pytest_dp.auditors import held_out
from pytest_dp.evidence import region
from pytest_dp.evidence.counts import Counts, classical, sharp
from pytest_dp.privacy import GaussianDP, guarantee

ALPHA, AUDITS = 0.2, 120
"""So large an alpha tells best: twice what is allowed passes one of 27 such tests."""


def of_noise(sigma):
    """What Gaussian noise keeps, exactly, if one record changes the sum by 1, as keywords."""
    mu = GaussianDP(1 / sigma)
    return {
        "delta": {"eps": 0.5, "delta": mu.delta_at(0.5)},
        "mu": {"mu": mu.mu},
        "rho": {"rho": 0.5 / sigma**2},
        "rdp": {"rdp": (2.0, 1 / sigma**2)},
        "profile": {"profile": mu.delta_at},
    }


SIGMA = 1.25
KEPT = {name: guarantee(keywords) for name, keywords in of_noise(SIGMA).items()}
EXACT = [name for name in KEPT if name != "profile"]


pytestmark = pytest.mark.usefixtures("_without_blame")


# Audits at the boundary of the claim, by their counts


def misses(claim, prove, tested):
    """How often a bound is above the claim, which is kept exactly."""
    context = SimpleNamespace(alpha=ALPHA, guarantee=claim)
    found = [held_out.bounds(context, each, prove)[0] for each in tested]
    return sum(bound.lower > claim.claimed for bound in found)


def counted(c1, c2, n1, n2, both=None):
    return Counts(int(c1), n1, int(c2), n2, (int(c1), int(c2)), min(n1, n2), both)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prove", "name"),
    [
        *((sharp, name) for name in ("rho", "delta")),
        (classical, "mu"),
        *(pytest.param(sharp, name, marks=pytest.mark.nightly) for name in ("mu", "rdp")),
        *(pytest.param(classical, name, marks=pytest.mark.nightly) for name in EXACT),
    ],
    ids=lambda it: it if isinstance(it, str) else it.__name__,
)
def test_no_more_than_alpha_of_audits_at_the_claim_are_wrong(name, prove, monkeypatch):
    """Where an event of chance 0.3 uses up all that the claim allows; beside it a readable one."""
    monkeypatch.setattr(region, "NODES", 50)  # wider cells, as valid and much quicker
    claim, audits, n = KEPT[name], AUDITS, 5_000
    rng = np.random.default_rng(23)
    p2 = np.array([0.3, 0.1])
    hits1, hits2 = (rng.binomial(n, p, (audits, 2)) for p in (claim.largest_probability(p2), p2))
    tested = [
        held_out.Tested(*(counted(c1, c2, n, n) for c1, c2 in zip(one, two, strict=True)))
        for one, two in zip(hits1, hits2, strict=True)
    ]
    if prove is classical:  # which StatDP asks of one event
        tested = [replace(each, attack=None) for each in tested]
    wrong = misses(claim, prove, tested)
    assert wrong <= ALPHA * audits + 3 * math.sqrt(ALPHA * audits)
    # Or a mistake in the level would not be seen; half of alpha is for the other direction.
    assert wrong >= (0.1 if prove is classical else 0.15) * ALPHA * audits


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rho", "delta"])
def test_no_more_than_alpha_of_audits_of_pairs_are_wrong(name, monkeypatch):
    monkeypatch.setattr(region, "NODES", 50)
    claim, audits, n, p2 = KEPT[name], AUDITS, 5_000, 0.3
    p1 = float(claim.largest_probability(p2))
    together = np.random.default_rng(29).multinomial(n, [p2, p1 - p2, 0, 1 - p1], audits)
    tested = [
        held_out.Tested(counted(both + only1, both, n, n, int(both)), None, share=0.98)
        for both, only1, _, _ in together
    ]
    wrong = misses(claim, sharp, tested)
    assert wrong <= ALPHA * audits + 3 * math.sqrt(ALPHA * audits)


# mechanisms


def mechanism(sigma):
    def noisy_sum(d, rng, size):
        return sum(d) + rng.normal(scale=sigma, size=size)

    return noisy_sum


def audited(mechanism, keywords, **more):
    common = {"pairs": [([1], [0])], "vectorized": True, "max_samples": 40_000, "n_jobs": 1}
    return audit(mechanism, **keywords, **common, **more)


METHODS = [
    {"method": "statdp"},
    {"method": "dpsniper"},
    {"method": "dpsniper", "coupled": False},
    {"method": "dpsniper", "c": 0.2},
]


COVERED = [(name, how) for name in KEPT for how in METHODS[:2]]
COVERED += [("mu", METHODS[2]), ("delta", METHODS[2]), ("rho", METHODS[3]), ("rdp", METHODS[3])]


@pytest.mark.parametrize(
    ("name", "how"),
    COVERED,
    ids=lambda it: it if isinstance(it, str) else "-".join(map(str, it.values())),
)
def test_half_of_the_noise_is_caught_and_all_of_it_passes(name, how):
    claim = KEPT[name]
    keywords = of_noise(SIGMA)[name]
    kept = audited(mechanism(SIGMA), keywords, seed=1, **how)
    assert not kept.violated
    assert kept.lower <= claim.claimed
    assert kept.p_value > kept.alpha
    assert kept.resolution > claim.claimed
    broken = audited(mechanism(SIGMA / 2), keywords, seed=1, **how)
    assert broken.violated
    assert broken.p_value <= broken.alpha
    truth = guarantee(of_noise(SIGMA / 2)[name])
    if name in ("mu", "rho", "rdp"):
        assert claim.claimed < broken.lower < truth.claimed
    example = broken.counterexample
    assert example.lower > claim.claimed
    assert example.counts[0] > example.counts[1]
    if name == "delta":
        assert claim.delta < example.delta_lower < GaussianDP(2 / SIGMA).delta_at(0.5)
    else:
        assert example.delta_lower is None


@pytest.mark.parametrize("how", METHODS[:3], ids=lambda how: "-".join(map(str, how.values())))
def test_a_leak_beside_much_noise_breaks_delta_alone(how):
    """One run in 50 tells the record: within ε at no price, beside δ = 0.05 allowed."""

    def leaky(d, rng, size):
        out = sum(d) + rng.normal(scale=20.0, size=size)
        return np.where(rng.random(size) < 0.02, 1_000.0 * d[0], out)

    assert not audited(leaky, {"eps": 0.5, "delta": 0.05}, seed=3, **how).violated
    broken = audited(leaky, {"eps": 0.5, "delta": 0.005}, seed=3, **how)
    assert broken.violated
    assert broken.lower > 0.5
    assert 0.005 < broken.counterexample.delta_lower < 0.02
