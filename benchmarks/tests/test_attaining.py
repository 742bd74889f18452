"""The mechanisms of eight kinds of claim: each loses what it claims, and not more."""

import math

import numpy as np
import pytest

from benchmarks.attaining import KINDS, drawn, gaussian
from benchmarks.type_one_kinds import chance, known, row, trial
from pytest_dp.privacy.regions import renyi
from pytest_dp.privacy.stated import read_guarantee

LAWS = [name for name, kind in KINDS.items() if kind.mechanism is drawn]


@pytest.mark.parametrize("name", KINDS)
def test_what_attains_a_claim_needs_all_of_it(name):
    kind, claimed = KINDS[name], read_guarantee(KINDS[name].claim).claimed
    assert kind.true(kind.at) == pytest.approx(claimed, rel=1e-4)
    assert kind.true(kind.at) <= claimed * (1 + 1e-9)
    assert kind.true(kind.above) >= max(1.4 * claimed, 0.1)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("which", ["at", "above"])
def test_its_outputs_follow_its_law(name, which):
    law = getattr(KINDS[name], which)
    runs = 20_000
    for given, probabilities in ((1, law[0]), (0, law[1])):
        assert probabilities.sum() == pytest.approx(1, abs=1e-9)
        outputs = drawn(given, law, np.random.default_rng(given), runs)
        below = np.cumsum(np.bincount(outputs, minlength=len(probabilities)) / runs)
        assert np.abs(below - np.cumsum(probabilities)).max() < 2 / math.sqrt(runs)


@pytest.mark.parametrize("name", LAWS)
def test_divergences_that_the_claim_bounds_are_no_larger(name):
    """Summed up over the outputs, in both directions; coins by the closed form as well."""
    kind = KINDS[name]
    p, q = kind.at
    for order, bound in read_guarantee(kind.claim).divergences:
        for one, two in ((p, q), (q, p)):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.log(one / two)
                terms = ratio if order == 1 else np.expm1((order - 1) * ratio)
            total = float(np.sum(np.where(one > 0, one * terms, 0.0)))
            value = total if order == 1 else math.log1p(total) / (order - 1)
            assert value <= bound * (1 + 1e-9)
            if len(p) == 2:
                assert value == pytest.approx(float(renyi(one[1], two[1], order)), rel=1e-9)


def test_gaussian_noise_is_as_far_apart_as_said():
    one, two = (gaussian(which, 0.5, np.random.default_rng(1), 1_000) for which in (1, 0))
    assert one - two == pytest.approx(0.5)
    assert two.std() == pytest.approx(1, abs=0.1)


def test_blocks_are_kept_and_judged(tmp_path):
    assert known(None) == known(tmp_path / "none") == []
    (tmp_path / "log").write_text('{"kind": "mu"}\n{"kind": "rho"}\n')
    assert [one["kind"] for one in known(tmp_path / "log")] == ["mu", "rho"]
    sums = {"audits": 1_000, "rejected": 10, "above": 100, "caught": 90, "too high": 1}
    assert chance(sums) == pytest.approx(0.5427, abs=1e-3)  # of 10 or more by a binomial
    assert chance({**sums, "rejected": 0}) == 1
    assert row(sums) == ["10 of 1,000", "0.54", "90 of 100", "1 of 100"]


def test_one_audit_of_each_side():
    kind = KINDS["rdp of order 8"]
    assert not trial("rdp of order 8", kind.at, True, 0)[0]
    violated, lower = trial("rdp of order 8", kind.above, True, 0)
    assert violated
    assert 0.4 < lower <= kind.true(kind.above)
