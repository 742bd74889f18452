"""What bets win on average against any law that a claim allows, computed: no seed, no repetition.

A batch multiplies what is staked on a bet with a product over its pairs of outputs, which are
independent of each other: no bet wins on average if none of them wins on one pair. That is linear
in the joint law of a pair, so that the worst law follows from a linear program; weights of its
dual prove that no law is worse. The portfolio, which comes of the record, may be any: Hypothesis
looks for a bad one.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from scipy.special import logsumexp

from benchmarks.attaining import leaky
from pytest_dp.privacy import ApproximateDP, GaussianDP, Guarantee, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.losses import NEGLIGIBLE_TAIL
from pytest_dp.statistics.ledger import RUNGS, BetRecord, Ledger

pytestmark = pytest.mark.canary

ROUNDING = 1e-9
"""Linear programs are solved to 1e-10, and their largest entries here are below ten."""
CLAIM = len(RUNGS) - 1


BINS = st.integers(2, 4)


@st.composite
def records(draw, bins=BINS):
    width = draw(bins)
    counts = st.integers(0, 3) | st.integers(0, 400)
    joint = draw(arrays(float, (width, width), elements=counts))
    joint[0, 1] += 1  # bets are never made before something was seen
    scores = draw(arrays(float, width, elements=st.floats(-3, 3)))
    return BetRecord([joint], scores=np.sort(scores))


def wealth_after_a_pair(ledger: Ledger, record: BetRecord, rung: int = CLAIM) -> np.ndarray:
    """What 1 becomes, for each pair of bins that may come next."""
    ledger.log_wealth[:] = ledger.highest[:] = 0
    portfolio, width = ledger.stake(record, 1.0), len(record.joint[0])
    found = np.empty((width, width))
    for cell in itertools.product(range(width), repeat=2):
        batch = np.zeros((width, width), int)
        batch[cell] = 1
        ledger.log_wealth[:] = 0
        ledger.settle(portfolio, [batch])
        found[cell] = math.exp(ledger.log_wealth[rung])
    return found


def most(gains: np.ndarray, rows: np.ndarray, limits: np.ndarray, total: float = 1.0) -> float:
    """At least the largest `gains @ law` of laws with `rows @ law <= limits`, and hardly more.

    What is returned is proved by the weights of the dual, whatever the solver did: `gains` is at
    most `weights @ rows` plus a constant.
    """
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    solved = linprog(
        -gains, A_ub=rows, b_ub=limits, A_eq=np.ones((1, len(gains))), b_eq=[total], options=tight
    )
    assert solved.status == 0
    weights = np.maximum(-solved.ineqlin.marginals, 0)
    bound = float(weights @ limits + total * (gains - weights @ rows).max())
    assert bound == pytest.approx(-solved.fun, abs=1e-7)
    return bound


def events(width: int) -> np.ndarray:
    """Every set of bins but none and all."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=width)))[1:-1]


def worst_of_all_laws(wealth: np.ndarray, eps: float, delta: float) -> float:
    """The largest mean among all joint laws whose marginals are (eps, delta)-close."""
    width = len(wealth)
    first, second = (
        np.array([np.repeat(s, width) for s in events(width)]),
        np.array([np.tile(s, width) for s in events(width)]),
    )
    price = math.exp(eps)
    rows = np.concatenate([first - price * second, second - price * first])
    return most(wealth.ravel(), rows, np.full(len(rows), delta))


STICKS = [(0.0, 0.05), (1.0, 0.0), (1.0, 0.05)]
FEW = settings(max_examples=15)


@pytest.mark.parametrize(("eps", "delta"), STICKS)
def test_no_joint_law_that_the_claim_allows_wins(eps, delta):
    claim = ApproximateDP(eps, delta)
    ledger = Ledger(claim)

    @FEW
    @given(records(), st.sampled_from([CLAIM, CLAIM // 2]))
    def check(record, rung):
        wealth = wealth_after_a_pair(ledger, record, rung)
        ((at, excess),) = claim.times(float(RUNGS[rung])).hockey_sticks
        assert worst_of_all_laws(wealth, at, excess) <= 1 + ROUNDING

    check()


@pytest.mark.parametrize(("eps", "delta"), STICKS[1:])
def test_bets_that_expect_too_little_would_win(eps, delta):
    """The tests above can fail: bets against 0.9 of what the claim allows."""
    ledger = Ledger(ApproximateDP(0.9 * eps, 0.9 * delta))
    record = BetRecord([np.array([[40.0, 0.0], [400.0, 40.0]])], scores=np.array([0.0, 1.0]))
    wealth = wealth_after_a_pair(ledger, record)
    assert worst_of_all_laws(wealth, 0.9 * eps, 0.9 * delta) <= 1 + ROUNDING
    assert worst_of_all_laws(wealth, eps, delta) > 1 + 1e-3


# --- beyond hockey sticks: along the boundary ---


def divergence(p, q, order):
    with np.errstate(divide="ignore", invalid="ignore"):
        if order == 1:
            return float(np.where(p > 0, p * np.log(p / q), 0).sum())
        return math.log(float(np.where(p > 0, p**order * q ** (1 - order), 0).sum())) / (order - 1)


def gaussian_excess(p, q, mu):
    sets = events(len(p))
    norm = scipy.stats.norm
    return float(np.max(sets @ p - norm.cdf(norm.ppf(np.clip(sets @ q, 0, 1)) + mu)))


def concentrated_excess(p, q, rho):
    """A little more than that of the worst order: 1e-4 of rho is for orders in between."""
    ratios, orders = np.log(p / q), np.exp(np.linspace(0, 6, 400))[1:]
    sums = logsumexp(np.outer(orders - 1, ratios), axis=1, b=p)
    return max(float((sums / (orders - 1) / orders).max()), float(p @ ratios)) - rho * (1 - 1e-4)


def renyi_excess(p, q, order, bound):
    return divergence(p, q, order) - bound


BEYOND = {
    "mu": (GaussianDP(0.4), lambda p, q: gaussian_excess(p, q, 0.4)),
    "rho and delta": (
        ZeroConcentratedDP(0.08, delta=0.05),
        lambda p, q: concentrated_excess(p, q, 0.08),
    ),
    "small order": (RenyiDP(((1.5, 0.3),)), lambda p, q: renyi_excess(p, q, 1.5, 0.3)),
    "large order": (RenyiDP(((8.0, 0.4),)), lambda p, q: renyi_excess(p, q, 8.0, 0.4)),
}


def leaking(p, q, delta):
    """The same laws, but for a leak of probability delta."""
    return leaky((p, q), delta) if delta else (p, q)


def law(width):
    return arrays(float, width, elements=st.floats(0.02, 1)).map(lambda w: w / w.sum())


def at_the_boundary(q, towards, excess):
    """The last law on the way from `q` that keeps the claim beside it, in both directions."""
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        p = (1 - middle) * q + middle * towards
        keeps = max(excess(p, q), excess(q, p)) <= 0
        low, high = (middle, high) if keeps else (low, middle)
    return (1 - low) * q + low * towards


def worst_coupling(wealth: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    """The largest mean among all joint laws with these marginals."""
    width = len(p)
    rows = [np.repeat(one, width) for one in np.eye(width)]
    rows += [np.tile(one, width) for one in np.eye(width)]
    solved = linprog(-wealth.ravel(), A_eq=np.array(rows), b_eq=np.concatenate([p, q]))
    assert solved.status == 0
    return -solved.fun


@pytest.mark.parametrize("name", BEYOND)
def test_no_law_at_the_boundary_of_another_claim_wins(name):
    claim: Guarantee = BEYOND[name][0]
    ledger, excess = Ledger(claim), BEYOND[name][1]

    @FEW
    @given(st.data(), st.integers(2, 4))
    def check(data, width):
        q, towards = data.draw(law(width)), data.draw(law(width))
        p, q = leaking(at_the_boundary(q, towards, excess), q, claim.delta)
        width = len(p)
        for one, other in ((p, q), (q, p)):
            together = data.draw(records(bins=st.just(width)))
            mean = worst_coupling(wealth_after_a_pair(ledger, together), one, other)
            assert mean <= 1 + ROUNDING

    check()


@pytest.mark.parametrize("name", BEYOND)
def test_what_is_at_the_boundary_is_near_what_wins(name):
    """The test above can fail: bets that take what is allowed for 0.6 of it win."""
    claim, excess = BEYOND[name]
    ledger = Ledger(claim.times(0.6))
    q = np.array([0.7, 0.3])
    p, q = leaking(at_the_boundary(q, np.array([0.01, 0.99]), excess), q, claim.delta)
    odds = (p + NEGLIGIBLE_TAIL) / (q + NEGLIGIBLE_TAIL)
    record = BetRecord([1e4 * np.outer(p, q)], scores=np.log(odds))
    assert p @ wealth_after_a_pair(ledger, record) @ q > 1 + 1e-3


# --- a whole game, bet by bet ---


def chance_to_cross(ledger: Ledger, law: np.ndarray, left: int, bet) -> float:
    """Probability that wealth ever reaches 1 / alpha, summed over all that may come."""
    cells = [cell for cell in itertools.product(range(2), repeat=2) if law[cell] > 0]
    scores = np.array([0.0, 1.0])

    def crosses(joint, log_wealth, left):
        if log_wealth[-1] >= ledger.enough:
            return 1.0
        if left == 0:
            return 0.0
        chance = 0.0
        for cell in cells:
            batch = np.zeros((2, 2), int)
            batch[cell] = 1
            ledger.log_wealth = log_wealth.copy()
            ledger.settle(bet(ledger, BetRecord([joint], scores), batch), [batch])
            chance += law[cell] * crosses(joint + batch, ledger.log_wealth, left - 1)
        return chance

    first_look = np.array([[3.0, 0.0], [6.0, 3.0]])
    return crosses(first_look, np.zeros(len(RUNGS)), left)


def before(ledger, record, batch):
    return ledger.stake(record, 1.0)


def after(ledger, record, batch):
    """The mistake: the batch is known when it is bet on."""
    return ledger.stake(BetRecord([50.0 * batch], record.scores), 1.0)


def response(eps):
    """Randomised response: probabilities to tell the truth, on D and on D'."""
    return np.array([1, math.exp(eps)]) / (1 + math.exp(eps))


def coupled(p, q):
    """The law of a pair that comes of the same uniform number."""
    return np.array([[p[0], 0.0], [q[0] - p[0], q[1]]])


EPS, CROSSING = 0.1, 0.5
TRUE = response(EPS)


@pytest.mark.parametrize(
    ("law", "bets"),
    [
        pytest.param(coupled(TRUE, TRUE[::-1]), 7, id="coupled"),
        pytest.param(np.outer(TRUE, TRUE[::-1]), 6, id="independent"),
    ],
)
def test_wealth_crosses_with_chance_alpha_at_most(law, bets):
    assert law.sum() == pytest.approx(1)
    ledger = Ledger(ApproximateDP(EPS, 0.0), CROSSING)
    chance = chance_to_cross(ledger, law, bets, before)
    assert 0.01 < chance <= CROSSING


def test_bets_that_know_the_batch_would_cross_more_often():
    """The test above can fail: here is the mistake that it guards against."""
    ledger = Ledger(ApproximateDP(EPS, 0.0), CROSSING)
    assert chance_to_cross(ledger, np.outer(TRUE, TRUE[::-1]), 6, after) > CROSSING
