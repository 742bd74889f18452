"""When an audit of a claim that stands may end, and what it then says that it would have caught."""

from __future__ import annotations

import math

import boundary
import pytest
from boundary import COUNTS

from benchmarks.resolution import untraced
from pytest_dp import Sequential, audit, queries, values
from pytest_dp.basics import clocks

LAPLACE = untraced(boundary.laplace)

# A loss that is known ends an audit before its margin.
pytestmark = pytest.mark.usefixtures("_without_blame", "_by_samples")


def audited(scale, seed=1, **more):
    common = {"eps": 1.0, **COUNTS, "vectorized": "size", "n_jobs": 1, "seed": seed}
    return audit(LAPLACE, params={"scale": scale}, **{**common, **more})


@pytest.mark.canary
@pytest.mark.parametrize(
    ("scale", "coupled"), [(1.0, True), (1.0, False), (5.0, False), (50.0, True)]
)
def test_a_claim_that_stands_ends_at_its_margin(scale, coupled):
    result = audited(scale, method=Sequential(coupled=coupled))
    assert result.samples < 100_000
    assert math.isinf(result.resolution) == (scale > 1.0)
    if scale == 50.0 and result.blind:  # nothing tells the inputs apart, which is no pass
        assert result.verdict == "inconclusive"
        return
    assert result.verdict == "no violation"
    if scale == 1.0:
        assert 1.0 < result.resolution <= 1.25
        assert any("stopped at the margin" in note for note in result.notes)
    else:  # nothing comes near the claim
        assert 1 / scale <= result.far_below < 1 / 3
        assert result.strength == "weak"


def test_a_wider_margin_ends_sooner_and_none_uses_all():
    samples = [
        audited(1.0, margin=margin, method=Sequential(coupled=False)).samples
        for margin in (2.0, 1.1)
    ]
    assert samples[0] < samples[1] < 400_000
    whole = audited(1.0, margin=None, max_samples=150_000)
    assert 0.9 * 150_000 < whole.samples <= 150_000  # some are kept to show a violation
    assert not any("margin" in note for note in whole.notes)


@pytest.mark.slow
@pytest.mark.parametrize(("margin", "audits"), [(1.25, 1), (2.0, 3)])
def test_a_loss_at_the_margin_is_not_missed_for_stopping(margin, audits):
    """A loss of 1.25 times the claim or twice it, which is what the audit says it would catch.

    Were only 0.8 of them caught instead of 0.95, one of six such tests would not notice.
    """
    caught = [
        audited(1 / margin, seed, margin=margin, method=Sequential(coupled=coupled)).violated
        for coupled in (True, False)
        for seed in range(audits)
    ]
    assert all(caught)


def test_no_pair_starves():
    """Of twenty pairs only the last loses anything; it is looked at before an audit ends."""

    def leaks(d, rng, size):
        return (d == 20) + rng.laplace(scale=1 / 1.3, size=size)

    pairs = [(k, k + 1) for k in range(20)]
    common = {"eps": 1.0, "pairs": pairs, "vectorized": "size", "n_jobs": 1}
    assert audit(leaks, **common, seed=0).violated


def hashed(value, seed, places=8):
    """A hash of nobody's library (FNV-1a): those of libraries are read."""
    mark = 2_166_136_261
    for byte in f"{seed}:{value}".encode():
        mark = (mark ^ byte) * 16_777_619 % 2**32
    return mark % places


def local_hashing(value, rng):
    """Twice the claim: the seed of a hash, and the value's hash, or another one."""
    seed = int(rng.integers(2**32))
    other = rng.integers(7) + hashed(value, seed) + 1
    kept = rng.random() < math.exp(2) / (math.exp(2) + 7)
    return seed, int(hashed(value, seed) if kept else other % 8)


def is_theirs(output):
    return [hashed(value, output[0]) == output[1] for value in ("red", "green")]


LOCAL = {"eps": 1.0, "inputs": values(["red", "green"]), "max_samples": 5_000, "n_jobs": 1}


HOW = [{}, {"method": "dpsniper"}, {"method": "statdp"}]


@pytest.mark.canary
@pytest.mark.parametrize("how", HOW)
def test_blind_where_nothing_tells_inputs_apart(how):
    result = audit(local_hashing, **LOCAL, **how, seed=1)
    assert (result.verdict, result.strength) == ("inconclusive", "blind")
    assert "features=" in result.reason
    assert math.isinf(result.resolution)
    assert not any("would have been caught" in note for note in result.notes)


@pytest.mark.nightly
@pytest.mark.parametrize("how", HOW[:2])
def test_features_make_it_see(how):
    claim = {**LOCAL, "max_samples": 10_000, **how, "seed": 1}
    assert audit(local_hashing, **claim, features=is_theirs).violated
    useless = audit(local_hashing, **claim, features=lambda _: 0.0)
    assert useless.blind


@pytest.mark.parametrize(
    ("scale", "common"),
    [
        (1.0, {"eps": 1.0}),
        (8.0, {"eps": 1.0, "method": Sequential(coupled=False)}),  # far below its claim
        (1.0, {"rho": 0.5, "method": Sequential(coupled=False)}),
        (
            100.0,
            {"eps": 0.01, "method": Sequential(coupled=False), "max_samples": 4_000},
        ),  # too few samples to tell
        (1.0, {"eps": 1.0, "method": "statdp"}),
        (math.inf, {"eps": 1.0}),  # the same outputs with the same random numbers
    ],
)
def test_not_blind(scale, common):
    def noisy(answers, rng, size):
        answer = 0 if math.isinf(scale) else answers[0]
        return answer + rng.laplace(scale=min(scale, 1e3), size=size)

    common = {"max_samples": 40_000, **common}
    result = audit(noisy, inputs=queries(1), vectorized="size", **common, seed=1, n_jobs=1)
    assert not result.violated
    assert result.strength != "blind"
    assert not any("no event that was tried" in note for note in result.notes)


def test_an_audit_that_time_stops_says_what_it_would_have_caught(monkeypatch):
    """By a clock that each run moves on."""
    now = [0.0]
    monkeypatch.setattr(clocks, "seconds", lambda: now[0])
    monkeypatch.setattr(clocks, "process_seconds", lambda: now[0])

    def slow(records, rng, size):
        now[0] += 1e-4 * size
        return LAPLACE(records, scale=1.0, rng=rng, size=size)

    def caught(**limits):
        common = {**COUNTS, "vectorized": "size", "n_jobs": 1, "seed": 1, "margin": None}
        return audit(slow, eps=1.0, **common, **limits)

    few, late = caught(max_samples=2_000), caught(max_seconds=2.0, max_samples=10**9)
    assert {few.verdict, late.verdict} == {"no violation"}
    assert few.samples <= 2_000 < 10_000 < late.samples < 40_000
    assert 1.0 < late.resolution < few.resolution < math.inf
