"""Bounds from guesses about coins: what they prove of a mechanism that was run once.

Each of m canaries is in the data or not by a fair coin of its own. From the one output, r of the
coins are guessed and the others left open. Which ones may depend on the output in any way, how many
must not. Under (eps, delta) with one record more or less, the largest chance of v right guesses is
``f + m delta f (1 - f) / (v b)``, where f is the chance of a binomial of r with
``1 / (1 + exp(-eps))`` to reach v, and b that it is v: some mechanism attains it. Of a promise of
several such pairs, such as mu, it is at most the least of these. The proof is in
``docs/proofs/one-run.md``. Of several runs, each with new coins, the chance holds given all of
those before: what bets of each pay is multiplied.

Source of the game, and of a bound that is larger for many right guesses: Steinke, Nasr, Jagielski,
"Privacy Auditing with One (1) Training Run", NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.basics.bisection import bracket, first_where
from pytest_dp.privacy import Guarantee
from pytest_dp.privacy.guarantees import LARGEST_EPS, HockeyStick
from pytest_dp.privacy.losses import logs_of_coins
from pytest_dp.statistics.regression import expit, logit

NEARLY_NOTHING = 1e-6
"""Share of a claim that counts as nothing. Larger: small losses are not shown; smaller: it takes
longer."""
MIN_DELTA = 1e-12
"""Delta at which the largest loss is taken. Larger: losses beyond are left out; smaller: steps are
coarser."""
LOSS_STEPS = 24
"""Losses at which a guarantee is taken apart. More are sharper; fewer are quicker."""
SIMULATED_RUNS = 128
"""Runs that are simulated to see what would be found. More are more exact; fewer are quicker."""
CACHE_SIZE = 256
"""Tails that are kept. More take memory; fewer are computed again."""
MAX_CANARIES = 20_000
"""Canaries that are thought of. More: advice takes longer; fewer: there is none."""
CAUTION = 1.5
"""Standard errors by which shares of right guesses count as less. More: less is expected to be
found; fewer: luck is."""
CLEAR_ERRORS = 3.0
"""Standard errors of guesses that chance does not explain. More: fewer guesses are asked for;
fewer: chance decides."""
TIMES = (1.25, 2.0, 8)
"""Multiples of the claim that are bet on. More share the stake; fewer miss the true one."""
MAX_TIMES = 2.0
"""Multiple of the claim up to which a bound is looked for. Larger: it is coarser; smaller: large
losses are not shown."""
TESTED_LOSSES = 64
"""Losses that are tested for a bound. More are finer; fewer are quicker."""
LOSS_ERROR = 1e-3
"""Relative error of a bound. Larger: it is less exact; smaller: it takes longer."""


Sticks = tuple[HockeyStick, ...]
"""Pairs of eps and delta that are promised, all of them."""


def sticks_of(guarantee: Guarantee) -> Sticks:
    """The pairs of a promise that are looked at: itself, or a few dozen of a curve."""
    if guarantee.eps is not None:
        return (HockeyStick(guarantee.eps, guarantee.delta),)
    furthest = guarantee.eps_at(MIN_DELTA)
    eps = np.linspace(
        0.0, furthest if math.isfinite(furthest) else LARGEST_EPS, LOSS_STEPS
    ).tolist()
    deltas = ((at, guarantee.delta_at(at)) for at in eps)
    return tuple(HockeyStick(at, delta) for at, delta in deltas if delta < 1)


@lru_cache(maxsize=CACHE_SIZE)
def tails(guesses: int, canaries: int, sticks: Sticks) -> Floats:
    """The largest chance of at least v right guesses, for v = 0, ..., `guesses`; never rises.

    Of one pair of eps and delta it is attained, unless delta is so large that it is above 1
    somewhere; of several it is the least of what each allows.
    """
    reached: Floats = np.exp(_log_tails(guesses, canaries, sticks))
    reached.flags.writeable = False
    return reached


@lru_cache(maxsize=CACHE_SIZE)
def _log_tails(guesses: int, canaries: int, sticks: Sticks) -> Floats:
    """Their logarithms: what is too small for floats is not 0, which would refute and pay all."""
    reached = np.zeros(guesses + 1)
    for eps, delta in sticks:
        one = logs_of_coins(eps, guesses)
        above = np.logaddexp.accumulate(one[::-1])[::-1]
        allowed = above[1:]
        if delta:
            below = np.logaddexp.accumulate(one)[:-1]
            more = above[1:] + below - one[1:] - np.log(np.arange(1, guesses + 1))
            allowed = np.logaddexp(allowed, math.log(canaries * delta) + more)
        reached[1:] = np.minimum(reached[1:], allowed)
    falling: Floats = np.minimum.accumulate(reached)
    falling.flags.writeable = False
    return falling


def lower(correct: int, guesses: int, canaries: int, guarantee: Guarantee, alpha: float) -> float:
    """Lower confidence bound on a guarantee's parameter; 0.0 if nothing is shown.

    Of eps it is at the delta of the guarantee, in nats.
    """

    def stands(value: float) -> bool:
        at = sticks_of(guarantee.at(value))
        return bool(tails(guesses, canaries, at)[correct] > alpha)

    low, high = 0.0, guarantee.claimed
    if stands(NEARLY_NOTHING * high):
        return 0.0
    while not stands(high):
        low, high = high, 2 * high
        if high > LARGEST_EPS:
            return low
    return bracket(stands, low, high, relative=LOSS_ERROR)[0]


def to_refute(guesses: int, canaries: int, sticks: Sticks, alpha: float) -> int | None:
    """How many guesses that are right refute a claim; None if all of them are too few."""
    reached = tails(guesses, canaries, sticks)
    if reached[-1] > alpha:
        return None
    return first_where(lambda v: bool(reached[v] <= alpha), 0, guesses)


def fewest(sticks: Sticks, alpha: float) -> int | None:
    """The fewest canaries by which a mechanism that hides nothing is refuted; None if none are."""

    def enough(canaries: int) -> bool:
        return bool(tails(most(canaries), canaries, sticks)[-1] <= alpha)

    at_most = 1
    while not enough(at_most):
        at_most *= 2
        if at_most > MAX_CANARIES:
            return None
    return first_where(enough, 1, at_most)


def plan_guesses(canaries: int, sticks: Sticks, alpha: float) -> tuple[int, int]:
    """Choose how many are guessed in, and out, before anything is run.

    Few guesses are right more often, and many show more. If scores are normal, the geometric mean
    of the fewest that can refute the claim and of the most that there are finds nearly the least
    violation: 1.1 times it at most, for losses of 0.5 to 4 and 100 to 5,000 canaries.
    """
    at_most = most(canaries)

    def can_refute(guesses: int) -> bool:
        return bool(tails(guesses, canaries, sticks)[-1] <= alpha)

    least = first_where(can_refute, 1, at_most)  # all of them where none can
    return halves(round(math.sqrt(least * at_most)))


def rights(ranked: Bools, guesses: Sequence[tuple[int, int]]) -> list[int]:
    """How many guesses are right, of canaries in the order of their scores: who of them is in."""
    last = len(ranked)
    return [int(np.sum(ranked[last - k :]) + out - np.sum(ranked[:out])) for k, out in guesses]


def above(right: Ints, guesses: int, canaries: int, sticks: Sticks) -> float:
    """How many times the log odds of a guess were those that the claim allows; 1 if no more.

    `right` is how many of the guesses of each run were right. The claim allows as many as where
    each chance of `tails` is attained: of eps alone, the log odds are eps.
    """
    most = min(float(np.sum(tails(guesses, canaries, sticks)[1:])), guesses - 0.5) / guesses
    return max(float(logit(_share(right, guesses)) / logit(most)), 1.0) if most > 0.5 else 1.0


def _share(right: Ints, guesses: int | Ints) -> Floats:
    """The share of right guesses, over all runs; neither none nor all of them."""
    return np.asarray((np.sum(right, axis=0) + 1) / (len(right) * guesses + 2))


def simulate_right_guesses(
    right: Ints, guesses: Sequence[tuple[int, int]], times: float, seed: int
) -> Ints:
    """Simulate numbers of right guesses of other audits, given `right` of this one.

    Shapes: `right` has (runs, guesses), the result (audits, runs, guesses).

    In those the log odds of each guess are so many `times` those that were seen, as if noise were
    that much smaller: guesses with normal scores gain more, others no less (approximate).
    """
    total = np.array([sum(both) for both in guesses])
    runs = len(right) * total
    shares = _share(right, total)
    if len(total) > 1:  # the luckiest of several is what would win
        shares -= CAUTION * np.sqrt(shares * (1 - shares) / runs)
        shares = np.maximum(shares, 1 / (runs + 2))
    odds = expit(times * logit(shares))
    rng = np.random.default_rng(seed)
    return rng.binomial(total, odds, size=(SIMULATED_RUNS, *right.shape))


def most(canaries: int) -> int:
    """How many canaries may be guessed half by half: coins rarely leave fewer in, or out."""
    return max(canaries - math.ceil(CLEAR_ERRORS * math.sqrt(canaries)), 1)


def halves(guesses: int) -> tuple[int, int]:
    """Guesses of both kinds."""
    return guesses - guesses // 2, guesses // 2


@dataclass(frozen=True, slots=True)
class Bet:
    """On how many of so many guesses are right: as likely as of guesses with another loss."""

    guesses: tuple[int, int]
    times: float
    """How much larger that loss is than the one of which half as many runs reach as many."""

    def log_pays(self, canaries: int, sticks: Sticks) -> Floats:
        """Log of what it pays for v right guesses, at most 1 in the mean under the claim.

        It is a likelihood ratio to the law that reaches each v as often as is allowed, made to
        rise: such a payment has its largest mean under that law.
        """
        r = sum(self.guesses)
        reached = _log_tails(r, canaries, sticks)
        with np.errstate(divide="ignore"):
            worst = reached + np.log(-np.expm1(np.diff(reached, append=-np.inf)))
        middle = float(np.clip(np.sum(np.exp(reached) > 0.5) - 0.5, 1, r - 0.5)) / r
        allowed = math.log(middle) - math.log1p(-middle)
        ratio = logs_of_coins(allowed + (self.times - 1) * max(allowed, 1.0), r) - worst
        rising = np.minimum.accumulate(ratio[::-1])[::-1]
        pays: Floats = rising - np.logaddexp.reduce(rising + worst)
        return pays


def bets(canaries: int) -> list[Bet]:
    """Bets on many guesses and on few, on losses little above the claim and far above."""
    sizes = [most(canaries)]
    while sizes[-1] >= 4 * 2:
        sizes.append(sizes[-1] // 4)
    return [Bet(halves(r), times) for r in sizes if r >= 2 for times in TIMES]


def log_e_value(right: Ints, placed: Sequence[Bet], canaries: int, sticks: Sticks) -> Floats:
    """Log of the evidence of all runs: `right` has shape (..., runs, bets).

    The stake is divided evenly at the start, and each part stays with its bet.
    """
    gains = [
        np.sum(bet.log_pays(canaries, sticks)[right[..., at]], axis=-1)
        for at, bet in enumerate(placed)
    ]
    total: Floats = np.logaddexp.reduce(gains, axis=0) - math.log(len(placed))
    return total


def lower_of_runs(right: Ints, canaries: int, guarantee: Guarantee, alpha: float) -> float:
    """Lower confidence bound on a guarantee's parameter from several runs.

    It is the last of a few values, up to twice the claim and more, such that all up to it are
    refuted.
    """
    placed, claimed, shown = bets(canaries), guarantee.claimed, 0.0
    few = np.linspace(0.0, MAX_TIMES * claimed + min(claimed, 1.0), TESTED_LOSSES)[1:]
    for tested in sorted({claimed, *few.tolist()}):
        sticks = sticks_of(guarantee.at(tested))
        if log_e_value(right, placed, canaries, sticks) < -math.log(alpha):
            break
        shown = tested
    return shown


def runs_needed(canaries: int, sticks: Sticks, alpha: float) -> float:
    """How many runs refute a mechanism that hides nothing; infinite if none do."""
    gains = [float(bet.log_pays(canaries, sticks)[-1]) for bet in bets(canaries)]
    if not gains or max(gains) <= 0:
        return math.inf
    return math.ceil((math.log(len(gains)) - math.log(alpha)) / max(gains))
