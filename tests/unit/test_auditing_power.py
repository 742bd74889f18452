import math

import numpy as np
import pytest

from pytest_dp.auditing.power import largest_loss, power_of, tilt
from pytest_dp.privacy import ApproximateDP, GaussianDP
from pytest_dp.statistics.ledger import Ledger, Record

ALPHA = 1e-6


def response(eps):
    """Randomised response: probabilities of both answers on D."""
    return np.array([1, math.exp(eps)]) / (1 + math.exp(eps))


def independent(eps, pairs):
    p = response(eps)
    return pairs * np.outer(p, p[::-1])


def coupled(eps, pairs):
    """Both inputs share their coins: the answers are as often the same as can be."""
    p, q = response(eps), response(eps)[::-1]
    return pairs * np.array([[p[0], 0.0], [q[0] - p[0], q[1]]])


@pytest.mark.parametrize("joint", [independent, coupled])
@pytest.mark.parametrize("times", [1.0, 1.7, 4.0])
def test_less_noise_of_two_answers_is_known_exactly(joint, times):
    """With half the noise, randomised response loses twice as much: the closed form."""
    found = tilt(joint(0.3, 1e6), times)
    assert found == pytest.approx(joint(0.3 * times, 1e6), rel=1e-3, abs=20)


@pytest.mark.parametrize("times", [1.5, 3.0])
def test_less_noise_of_an_exponential_family_is_known_exactly(times):
    """Of outputs whose log ratio is their value, around what lies halfway between both inputs."""
    values = np.linspace(-2, 2, 9)
    middle = np.exp(-(values**2))

    def law(distance):
        weights = middle * np.exp(distance * values / 2)
        return weights / weights.sum()

    found = tilt(1e7 * np.outer(law(0.4), law(-0.4)), times)
    expected = 1e7 * np.outer(law(0.4 * times), law(-0.4 * times))
    assert found.sum(1) == pytest.approx(expected.sum(1), rel=1e-3)
    assert found == pytest.approx(expected, rel=5e-3, abs=10)


def audits_that_catch(loss, pairs, audits, seed):
    """How many audits of independent answers refute a claim of 1, bet by bet."""
    caught = 0
    for k in range(audits):
        rng = np.random.default_rng([seed, k])
        ledger, record, drawn = Ledger(ApproximateDP(1.0), ALPHA), None, 0
        while drawn < pairs and not ledger.refuted:
            size = min(max(12, drawn // 3), pairs - drawn)
            law = independent(loss, 1.0).ravel()
            batch = [rng.multinomial(size, law).reshape(2, 2)]
            if record is not None:
                ledger.settle(ledger.stake(record, 1.0), batch)
            record = Record(batch) if record is None else record.with_batch(batch)
            drawn += size
        caught += ledger.refuted
    return caught


def test_what_is_said_to_be_caught_is_caught():
    """By audits bet by bet, at the loss that is said, and well below it."""
    pairs = 4_000
    record = Record([independent(0.9, pairs)])
    said = power_of([record], Ledger(ApproximateDP(1.0), ALPHA)).detects_from
    assert 1.1 < said < 1.5
    assert audits_that_catch(said, pairs, 30, seed=1) >= 27
    assert audits_that_catch(1 + (said - 1) / 2, pairs, 10, seed=2) <= 5


def test_more_outputs_catch_smaller_losses():
    ledger = Ledger(ApproximateDP(1.0), ALPHA)
    found = [power_of([Record([independent(0.9, n)])], ledger) for n in (1e3, 1e4, 1e5)]
    limits = [power.detects_from for power in found]
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] > 1.0
    assert [power.noise_caught for power in found] == pytest.approx(limits)


def test_nothing_is_caught_where_nothing_was_drawn():
    power = power_of([], Ledger(ApproximateDP(1.0), ALPHA))
    assert power.detects_from == power.noise_caught == math.inf
    few = power_of([Record([independent(0.9, 10)])], Ledger(ApproximateDP(1.0), ALPHA))
    assert few.detects_from == math.inf


@pytest.mark.parametrize("claim", [ApproximateDP(1.0), GaussianDP(1.0)])
def test_a_true_loss_is_seldom_ruled_out(claim):
    """Of 200 records of randomised response, against a bound of two standard errors."""
    rng, loss, missed = np.random.default_rng(1), 0.8, 0
    truth = claim.shown_by(*response(loss)[::-1])
    for _ in range(200):
        joint = rng.multinomial(500, independent(loss, 1.0).ravel()).reshape(2, 2)
        missed += largest_loss(Record([joint.astype(float)]), claim) < truth
    assert missed <= 10
    exact = largest_loss(Record([independent(loss, 1e8)]), claim)
    assert exact == pytest.approx(truth, rel=1e-3)
