import math

import numpy as np
import pytest
from scipy.special import logsumexp

from pytest_dp.auditors.budget import agree_with_verdict
from pytest_dp.privacy import ApproximateDP, GaussianDP
from pytest_dp.statistics.event_bets import FRACTIONS, event_growth, payoffs
from pytest_dp.statistics.ledger import RUNGS, BetRecord, Ledger
from pytest_dp.statistics.soft_bets import MIN_LOSS, soft_attack_sizes

pytestmark = pytest.mark.slow


def ledger_of(eps, delta=0.0, alpha=0.0):
    return Ledger(ApproximateDP(eps, delta), alpha)


def joint_of(pairs, width):
    joint = np.zeros((width, width))
    for a, b in pairs:
        joint[a, b] += 1
    return joint


def random_joint(seed, width=4, runs=300):
    rng = np.random.default_rng(seed)
    return rng.multinomial(runs, rng.dirichlet(np.ones(width * width))).reshape(width, width)


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.0), (1.0, 0.0), (3.0, 0.01)])
def test_payoffs_are_those_of_the_claim(eps, delta):
    s = [(1, 1), (1, 0), (0, 1), (0, 0)]
    expected = [x - math.exp(eps) * y - delta for x, y in s]
    assert payoffs(eps, delta) == pytest.approx(expected)


@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.0), (1.0, 1e-3)])
def test_all_wealth_is_spread_out(eps, delta):
    ledger = Ledger(ApproximateDP(eps, delta))
    record = BetRecord([random_joint(0).astype(float), random_joint(9, 2)])
    portfolio = ledger.stake(record, cash=5.0)
    for r in range(len(RUNGS)):
        everything = np.concatenate(
            [portfolio.hard[r].ravel(), portfolio.soft[r].ravel(), [portfolio.cash[r]]]
        )
        assert logsumexp(everything) == pytest.approx(0.0)
    assert (portfolio.soft.size > 0) == (delta > 0)  # events are all that is bet on under pure eps
    for paid in (portfolio.attacks.paid1, portfolio.attacks.paid2):
        assert -math.exp(eps) <= paid.min(initial=0) <= paid.max(initial=0) <= 1


def test_wealth_is_the_product_of_all_factors():
    """Against formula (2), one factor after the other, for the bets in the portfolio."""
    eps, delta = 1.0, 0.001
    ledger = ledger_of(eps, delta)
    record = BetRecord([random_joint(3).astype(float)])
    portfolio = ledger.stake(record, cash=2.0)
    bets = len(FRACTIONS)
    one_way, both_ways = (
        portfolio.hard[-1, : 6 * bets].reshape(6, bets),
        portfolio.hard[-1, 6 * bets :],
    )
    both_ways = both_ways.reshape(6, len(FRACTIONS))
    batch = [(3, 0), (2, 2), (0, 3), (3, 3), (1, 0), (3, 1)]
    wealth = math.exp(portfolio.cash[-1])
    bet_on = portfolio.attacks
    attacks = list(zip(bet_on.paid1[-1].T, bet_on.paid2[-1].T, bet_on.r[-1], strict=True))
    stakes = FRACTIONS / (math.exp(eps) + delta)
    for f, stake in enumerate(stakes):

        def product(attack, rarer, stake=stake):
            pays = [attack(x, y) - math.exp(eps) * rarer(x, y) - delta for x, y in batch]
            return math.prod(1 + stake * pay for pay in pays)

        for k in (1, 2, 3):
            up = product(lambda x, y, k=k: x >= k, lambda x, y, k=k: y >= k)
            down = product(lambda x, y, k=k: y < k, lambda x, y, k=k: x < k)
            wealth += math.exp(one_way[k - 1, f]) * up
            wealth += math.exp(one_way[k + 2, f]) * down
        for row, (j, k) in enumerate(((1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3))):
            pays = [
                (x >= k) - math.exp(eps) * (y >= k) + (y < j) - math.exp(eps) * (x < j) - 2 * delta
                for x, y in batch
            ]
            both = math.prod(1 + stake / 2 * pay for pay in pays)
            wealth += math.exp(both_ways[row, f]) * both
        for k, (one, two, r) in enumerate(attacks):
            pays = [one[x] + two[y] - r for x, y in batch]
            odds = FRACTIONS[f] / max(-one.min() - two.min(), MIN_LOSS)
            share = odds / (1 + odds * r)
            assert share * (r - one.min() - two.min()) < 1
            wealth += math.exp(portfolio.soft[-1, k, f]) * math.prod(
                1 + share * pay for pay in pays
            )
    ledger.settle(portfolio, [joint_of(batch, 4).astype(int)])
    assert math.exp(ledger.log_e_value) == pytest.approx(wealth)


def test_wealth_stays_finite_far_beyond_what_floats_hold():
    ledger = ledger_of(1.0)
    record = BetRecord([np.array([[1.0, 0.0], [50.0, 1.0]])])
    batch = np.array([[0, 0], [100_000, 0]])
    for _ in range(3):
        ledger.settle(ledger.stake(record, 1.0), [batch])
        record = record.with_batch([batch])
    assert 5_000 < ledger.log_e_value < math.inf
    assert ledger.p_value == 0.0
    for _ in range(3):
        ledger.settle(ledger.stake(record, 1.0), [batch.T])
        record = record.with_batch([batch.T])
    assert math.isfinite(ledger.log_e_value)
    assert ledger.p_value == 0.0  # what was shown stays shown


def test_the_bound_stops_at_the_first_rung_that_stands():
    ledger = ledger_of(2.0, alpha=1e-6)
    ledger.highest[:] = [20, 20, 20, 3, 20, 20, 0, 0, 0, 0, 0, 0]
    assert ledger.lower == pytest.approx(2.0 * RUNGS[2])
    assert ledger.p_value == 1.0
    assert not ledger.is_refuted
    ledger.highest[:] = 14
    assert ledger.lower == 2.0
    assert ledger.p_value == pytest.approx(math.exp(-14))
    assert ledger.is_refuted


@pytest.mark.parametrize("alpha", [0.05, 1e-6])
@pytest.mark.parametrize("share", [1.0, 0.95])
def test_rounding_does_not_make_the_verdict_and_the_p_value_disagree(alpha, share):
    ledger = ledger_of(1.0, alpha=share * alpha)
    edge = -math.log(share * alpha)
    for wealth in (edge, math.nextafter(edge, 0)):
        ledger.highest[:] = wealth
        assert ledger.is_refuted == (wealth == edge) == (ledger.lower == 1.0)
        p_value = agree_with_verdict(ledger.p_value / share, alpha, violated=ledger.is_refuted)
        assert ledger.is_refuted == (p_value <= alpha)
        assert p_value == pytest.approx(alpha)


@pytest.mark.parametrize("eps", [0.1, 1.0])
def test_the_soft_attack_is_the_formula_where_probabilities_are_known(eps):
    ratio = np.exp([-2.0, -eps / 2, eps / 2, 1.5 * eps, 2.0 + eps])
    p = ratio / (1 + ratio)
    expected = np.maximum(p - math.exp(eps) * (1 - p), 0) / (p + math.exp(2 * eps) * (1 - p))
    assert soft_attack_sizes(np.log(ratio), np.array([math.exp(eps)]))[0] == pytest.approx(
        expected / expected.max(), abs=1e-6
    )


@pytest.mark.parametrize("claim", [ApproximateDP(1.0), ApproximateDP(0.5, 0.1), GaussianDP(0.5)])
def test_the_growth_of_an_event_is_that_of_the_best_bet_on_it(claim):
    """By brute force over stakes, on as many independent outputs; the ledger has fewer of them."""
    rng, runs = np.random.default_rng(1), 500
    stakes = np.linspace(0.002, 0.98, 500)
    for c1, c2 in rng.integers(0, runs + 1, (40, 2)):
        p, q = c1 / runs, c2 / runs
        cells = np.array([p * q, p * (1 - q), (1 - p) * q, (1 - p) * (1 - q)])
        best = 0.0
        for eps, delta in claim.hockey_sticks:
            pays = payoffs(eps, delta)[:, None] / (math.exp(eps) + delta)
            best = max(best, (cells @ np.log1p(pays * stakes)).max())
        (found,) = event_growth([c1], [c2], runs, claim.hockey_sticks)
        assert 0.95 * runs * best - 0.3 < found < 1.001 * runs * best + 0.01
        if p <= claim.largest_probability(q):
            assert found == 0.0
