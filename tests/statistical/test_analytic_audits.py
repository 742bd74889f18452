"""Audits of mechanisms whose loss has a closed form: it is told where real runs bear it out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_dp import audit
from pytest_dp.auditors.known import known_of
from pytest_dp.privacy import gdp_to_eps
from pytest_dp.report.record import Record
from pytest_dp.report.text import estimated


def laplace(x, rng):
    return x + rng.laplace()


def half_the_noise(x, rng):
    return x + rng.laplace(scale=0.5)


def gaussian(x, rng):
    return x + rng.normal(size=2)


def other_when_traced(x, rng):
    noise = rng.laplace()
    return x + (noise if type(noise) is float else 2 * noise)


def nothing_when_traced(x, rng):
    noise = rng.laplace()
    return x + (noise if type(noise) is float else 0.0)


def refused(x, rng):
    return x + rng.laplace() * rng.laplace()


def audited(mechanism, **claim):
    return audit(mechanism, pairs=[(0, 1)], seed=1, max_samples=20_000, **claim)


def test_a_pass_with_its_loss():
    result = audited(laplace, eps=1.0)
    assert result.verdict == "no violation"
    assert (result.estimate.value, result.estimate.mode) == (pytest.approx(1.0), "analytic")
    assert estimated(Record.of(result)) == "analytic on these pairs: eps = 1.000000"


def test_a_violation_with_its_loss():
    result = audited(half_the_noise, eps=1.0)
    assert result.violated
    assert result.estimate.value == pytest.approx(2.0)
    assert result.lower < 2.0


@pytest.mark.parametrize("mechanism", [other_when_traced, nothing_when_traced])
def test_what_real_runs_do_not_bear_out_is_not_told(mechanism):
    result = audited(mechanism, eps=1.0)
    assert result.verdict == "no violation"
    assert result.estimate is None


def test_other_notions():
    mu = math.sqrt(2)
    assert audited(gaussian, mu=mu).estimate.value == pytest.approx(mu)
    assert audited(gaussian, rho=1.0).estimate.value == pytest.approx(1.0)
    eps = gdp_to_eps(mu, 1e-3)
    found = audited(gaussian, eps=1.05 * eps, delta=1e-3).estimate
    assert found.value == pytest.approx(eps, rel=1e-6)


def raises_when_traced(x, rng, size):
    noisy = x + rng.laplace(size=size)
    return np.arange(3.0)[(noisy > 0).astype(np.int8).view(np.int8)]


def test_what_only_a_traced_run_raises_is_no_error():
    result = audited(raises_when_traced, eps=1.0, vectorized="size")
    assert result.verdict == "no violation"


def test_what_is_refused_is_not_told():
    assert audited(refused, eps=1.0).estimate is None


def test_a_loss_above_the_claim_that_is_not_confirmed_is_not_told():
    result = audited(laplace, eps=0.98)
    assert result.verdict == "no violation"
    assert result.estimate is None


def test_proposals_are_for_the_bets_to_confirm(monkeypatch):
    found = []

    def kept(context):
        found.append((context, known_of(context)))
        return found[-1][1]

    monkeypatch.setattr("pytest_dp.auditors.sequential.known_of", kept)
    audited(half_the_noise, eps=1.0)
    audited(laplace, eps=1.0)
    (context, broken), (_, kept_claim) = found
    proposal = broken.proposal(0, context.guarantee, 1e-6, math.inf)
    # P(x < 0) = 1/2 against exp(-2)/2, the largest excess over e times it
    p, q = 0.5, 0.5 * math.exp(-2)
    excess = p - math.e * q
    edge = excess / math.sqrt(p * (1 - p) + math.e**2 * q * (1 - q))
    assert proposal.edge > 0.9 * edge
    assert kept_claim.proposal(0, context.guarantee, 1e-6, math.inf) is None
    assert np.isfinite(proposal.needed)
