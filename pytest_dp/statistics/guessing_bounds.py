"""Bounds from games of membership: from guesses about coins, and from areas under the ROC curve.

*Guesses.* Each of m canaries is in the data or not by a fair coin of its own. From the one output,
r of the coins are guessed and the others left open. Which ones may depend on the output in any way,
how many must not. Under (eps, delta) with one record more or less, the largest chance of v right
guesses is ``f + m delta f (1 - f) / (v b)``, where f is the chance of a binomial of r with
``1 / (1 + exp(-eps))`` to reach v, and b that it is v: some mechanism attains it. Of a promise of
several such pairs, such as mu, it is at most the least of these. Of several runs, each with new
coins, the chance holds given all of those before: their right guesses are added up.
``docs/proofs/one-run.md`` has the proof. Source of the game, and of a bound that is larger for many
right guesses: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.

*Areas.* The area is how often a score with the record is above one without it, ties counting half.
A pair of scores, one with the record and one without, pays ``1{in > out} + 1/2 1{tie} - a``, whose
mean is at most 0 for any score that was chosen before, if no attack has an area above a. So what is
staked on it, times ``1 + f / a * pay``, stays small however one bets, at any time. All ways to pair
up the scores of a batch by turning one side against the other are as good; their average pays.
Wealth is spread over fractions f, as in `pytest_dp.statistics.ledger`; where another score is bet
on, half of it is spread anew. Bets against each of many areas, from both sides, make a confidence
sequence. Only `area_resolution` and the error of `estimate_area` are approximate. Source:
Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import bdtrc

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.basics.bisection import bracket, first_where
from pytest_dp.privacy import Guarantee
from pytest_dp.privacy.guarantees import LARGEST_EPS, HockeyStick
from pytest_dp.privacy.losses import logs_of_coins
from pytest_dp.statistics.soft_bets import expit, logit

NEARLY_NOTHING = 1e-6
"""Share of a claim that counts as nothing. Larger: small losses are not shown; smaller: it takes
longer."""
MIN_DELTA = 1e-12
"""Delta at which the largest loss is taken. Larger: losses beyond are left out; smaller: steps are
coarser."""
LOSS_STEPS = 24
"""Losses at which a guarantee is taken apart. More are sharper; fewer are quicker."""
CACHE_SIZE = 256
"""Tails that are kept. More take memory; fewer are computed again."""
CLEAR_ERRORS = 3.0
"""Standard errors of guesses that chance does not explain. More: fewer guesses are asked for;
fewer: chance decides."""
MAX_RUNS = 10_000
"""Runs that are thought of. More: advice takes longer; fewer: there is none."""
ROUNDING = 1e-9
"""Relative error of a chance over several runs, to the safe side. Larger is never invalid."""
LOSS_ERROR = 1e-3
"""Relative error of a bound. Larger: it is less exact; smaller: it takes longer."""

FRACTIONS = np.array([0.9999, *(0.98 * 0.5 ** np.arange(6)), 0.0])
"""What can be staked, as shares of the largest stake. All of it wins most where one side is always
above; nothing keeps what an attack that has yet to learn would lose. By hand, as those of events.
"""
PRIOR = 1 / np.arange(1.0, len(FRACTIONS) + 1)
"""Falling from the largest, as of attacks in `betting`."""
AREAS = np.arange(1, 200) / 200
"""Areas that are bet against beside the claim: the bounds are some of these. By hand."""
CROSSED = 8
"""Ways to pair up a batch that are averaged over, at most. More take time in proportion."""


Sticks = tuple[HockeyStick, ...]
"""Pairs of eps and delta that are promised, all of them."""


def sticks_of(guarantee: Guarantee) -> Sticks:
    """Return the (eps, delta) of a guarantee: its own, or `LOSS_STEPS` points of a curve."""
    if guarantee.eps is not None:
        return (HockeyStick(guarantee.eps, guarantee.delta),)
    furthest = guarantee.eps_at(MIN_DELTA)
    eps = np.linspace(
        0.0, furthest if math.isfinite(furthest) else LARGEST_EPS, LOSS_STEPS
    ).tolist()
    deltas = ((at, guarantee.delta_at(at)) for at in eps)
    return tuple(HockeyStick(at, delta) for at, delta in deltas if delta < 1)


@lru_cache(maxsize=CACHE_SIZE)
def tail_chances(guesses: int, canaries: int, sticks: Sticks, runs: int = 1) -> Floats:
    """Return the largest chance of at least v right guesses, for v from 0 on; never rising.

    Each of the `runs` runs has `guesses` guesses. In one run, one pair of eps and delta attains the
    chance, unless delta is so large that it is above 1 somewhere. For several pairs, it is the
    least chance that any of them allows.
    """
    reached: Floats = np.exp(_log_tails(guesses, canaries, sticks))
    if runs > 1:
        law = total = reached - np.append(reached[1:], 0.0)
        for _ in range(runs - 1):
            total = np.convolve(total, law)
        reached = np.minimum(total[::-1].cumsum()[::-1] * (1 + ROUNDING), 1.0)
    reached.flags.writeable = False
    return reached


@lru_cache(maxsize=CACHE_SIZE)
def _log_tails(guesses: int, canaries: int, sticks: Sticks) -> Floats:
    """Return the logarithms of `tail_chances` for one run.

    As floats, tiny chances would be 0: they would refute every claim and win every bet.
    """
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


def lower_bound(
    correct: int, guesses: int, canaries: int, guarantee: Guarantee, alpha: float, runs: int = 1
) -> float:
    """Return the lower confidence bound on a guarantee's parameter; 0.0 if nothing is shown.

    `correct` guesses of all `runs` are right. Of eps it is at the delta of the guarantee, in nats.
    """

    def stands(value: float) -> bool:
        at = sticks_of(guarantee.at(value))
        return bool(tail_chances(guesses, canaries, at, runs)[correct] > alpha)

    low, high = 0.0, guarantee.claimed
    if stands(NEARLY_NOTHING * high):
        return 0.0
    while not stands(high):
        low, high = high, 2 * high
        if high > LARGEST_EPS:
            return low
    return bracket(stands, low, high, relative=LOSS_ERROR)[0]


def fewest_right_guesses(
    guesses: int, canaries: int, sticks: Sticks, alpha: float, runs: int = 1
) -> int | None:
    """Return how many right guesses refute a claim; None if all of them are too few."""
    reached = tail_chances(guesses, canaries, sticks, runs)
    if reached[-1] > alpha:
        return None
    return first_where(lambda v: bool(reached[v] <= alpha), 0, len(reached) - 1)


def plan_guesses(canaries: int, sticks: Sticks, alpha: float) -> tuple[int, int]:
    """Return how many canaries to guess in, and how many out, before anything is run.

    Few guesses are right more often, and many show more. If scores are normal, the geometric mean
    of the fewest that can refute the claim and of the most that there are finds nearly the least
    violation: 1.1 times it at most, for losses of 0.5 to 4 and 100 to 5,000 canaries.
    """
    at_most = max_guesses(canaries)

    def can_refute(guesses: int) -> bool:
        return bool(tail_chances(guesses, canaries, sticks)[-1] <= alpha)

    least = first_where(can_refute, 1, at_most)  # all of them where none can
    return split_guesses(round(math.sqrt(least * at_most)))


def count_right(ranked: Bools, guesses: tuple[int, int]) -> int:
    """Return how many guesses are right.

    `ranked` says which canaries were in, by rising scores; `guesses` are how many are guessed in,
    from the top, and out, from the bottom.
    """
    inside, outside = guesses
    return int(np.sum(ranked[len(ranked) - inside :]) + outside - np.sum(ranked[:outside]))


def odds_above_claim(share: float, guesses: int, canaries: int, sticks: Sticks) -> float:
    """Return the log odds of a share of right guesses over the log odds that the claim allows.

    The claim allows the mean of the law that `tail_chances` gives, at most `guesses - 0.5` right
    guesses. 1.0 if the ratio is smaller, or if the claim allows at most half of the guesses.
    """
    most = min(float(np.sum(tail_chances(guesses, canaries, sticks)[1:])), guesses - 0.5) / guesses
    return max(float(logit(share) / logit(most)), 1.0) if most > 0.5 else 1.0


def is_found(share: float, times: float, total: int, needed: int, power: float) -> bool:
    """Return whether at least `needed` of `total` guesses are right, with this power (approximate).

    The log odds of each guess are `times` those of `share`, as if noise were that much smaller:
    guesses with normal scores gain more, others no less.
    """
    return bool(bdtrc(needed - 1.0, total, float(expit(times * logit(share)))) >= power)


def max_guesses(canaries: int) -> int:
    """Return how many canaries can be guessed, half in and half out; coins rarely leave fewer."""
    return max(canaries - math.ceil(CLEAR_ERRORS * math.sqrt(canaries)), 1)


def split_guesses(guesses: int) -> tuple[int, int]:
    """Return how many guesses are made in, and how many out."""
    return guesses - guesses // 2, guesses // 2


def runs_needed(guesses: int, canaries: int, sticks: Sticks, alpha: float) -> float:
    """Return how many runs, which share `alpha`, refute a claim if all guesses are right.

    Infinite beyond `MAX_RUNS`.
    """
    one, level = float(_log_tails(guesses, canaries, sticks)[-1]), math.log(alpha)
    return next((n for n in range(1, MAX_RUNS) if n * one <= level - math.log(n)), math.inf)


class AreaBets:
    """The wealth of bets against areas under the ROC curve, on a grid with `claimed` in it.

    For each area there are bets that it is at most that, and bets that it is at least that.
    """

    def __init__(self, claimed: float = 0.5) -> None:
        self.areas = np.union1d(AREAS, [claimed])
        self.claim = int(np.searchsorted(self.areas, claimed))
        steps = FRACTIONS / self.areas[:, None]
        pays = np.array([1.0, 0.5, 0.0]) - self.areas[:, None]
        self._growth = np.log1p(steps[..., None] * pays[:, None])
        self._stakes = np.tile(np.log(PRIOR / PRIOR.sum()), (2, len(self.areas), 1))
        self.highest = np.zeros((2, len(self.areas)))
        """Log wealth against areas of at most each, and at least each (from the other end)."""
        self.log_wealth = np.zeros((2, len(self.areas)))
        self.counts = np.zeros(3, np.int64)
        """Pairs that were won, tied and lost, in the order in which they came."""
        self.scores: tuple[list[Floats], list[Floats]] = ([], [])

    @property
    def pairs(self) -> int:
        """The number of pairs of scores that were bet on."""
        return int(self.counts.sum())

    def settle(self, inside: Floats, outside: Floats) -> None:
        """Add what a batch of scores earns, with and without the record, shape (n,) each."""
        turned = count_pairings(inside, outside)
        self.counts += turned[0]
        for side, counts in enumerate((turned, turned[:, ::-1])):
            grown = np.tensordot(counts, self._growth, axes=(1, 2))
            self._stakes[side] += np.logaddexp.reduce(grown, axis=0) - math.log(len(grown))
            self.log_wealth[side] = np.logaddexp.reduce(self._stakes[side], axis=-1)
        self.highest = np.maximum(self.highest, self.log_wealth)
        for known, new in zip(self.scores, (inside, outside), strict=True):
            known.append(new)

    def begin_anew(self) -> None:
        """Spread half of the wealth over all fractions as at first, for another score."""
        fresh = self.log_wealth[..., None] + np.log(PRIOR / PRIOR.sum())
        self._stakes = np.logaddexp(self._stakes, fresh) - math.log(2)

    def lower(self, alpha: float) -> float:
        """Return an area that some attack reaches, with confidence ``1 - alpha`` at any time."""
        return self._bound(0, alpha)

    def upper(self, alpha: float) -> float:
        """Return an upper confidence bound on the area, for a score that stays the same."""
        return 1 - self._bound(1, alpha)

    def _bound(self, side: int, alpha: float) -> float:
        """Return the largest area up to which one side is refuted throughout; 0.0 if none is."""
        refuted = np.cumprod(self.highest[side] >= -math.log(alpha)).astype(bool)
        return float(self.areas[refuted].max(initial=0.0))

    def fewest_pairs_to_refute(self, alpha: float) -> int:
        """Return how many more pairs refute the claim if all of them are won; at least 1."""
        left = -math.log(alpha) - self.log_e_value
        return max(math.ceil(left / -math.log(self.areas[self.claim])), 1)

    @property
    def log_e_value(self) -> float:
        """The log wealth against the claim, in nats."""
        return float(self.log_wealth[0, self.claim])

    @property
    def p_value(self) -> float:
        """The p-value of the claim, valid at any time."""
        return math.exp(-float(self.highest[0, self.claim]))


def count_pairings(inside: Floats, outside: Floats) -> Ints:
    """Return how many pairs are won, tied and lost, shape (ways, 3).

    For each of up to `CROSSED` ways to pair up the scores of a batch.
    """
    n = len(inside)
    shifts = np.unique(np.linspace(0, n - 1, min(n, CROSSED)).astype(int))
    other = outside[(np.arange(n) + shifts[:, None]) % n]
    won, lost = (inside > other).sum(axis=1), (inside < other).sum(axis=1)
    return np.stack([won, n - won - lost, lost], axis=1)


def estimate_area(inside: Floats, outside: Floats) -> tuple[float, float]:
    """Return the area under the ROC curve of some scores, and its standard error.

    DeLong, DeLong, Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver
    Operating Characteristic Curves", Biometrics 1988. Where all or no pairs are won, of which it
    knows no error, that of one more pair of either kind.
    """
    above = np.sign(inside[:, None] - outside) / 2 + 0.5
    mean, n, m = float(above.mean()), len(inside), len(outside)
    if n < 2 or m < 2:
        return mean, 0.5
    variance = above.mean(axis=1).var(ddof=1) / n + above.mean(axis=0).var(ddof=1) / m
    shrunk = (min(n, m) * mean + 1) / (min(n, m) + 2)
    least = shrunk * (1 - shrunk) / (min(n, m) + 3) if variance == 0 and mean != 0.5 else 0.0
    return mean, math.sqrt(max(float(variance), least))


def area_resolution(claimed: float, pairs: int, alpha: float) -> float:
    """Return the smallest area at which `pairs` refute the claim with 95 % power (approximate).

    By wins and losses, with the cost of not knowing the fraction. Infinite if there is none.
    """
    enough = -math.log(alpha) + math.log(PRIOR.sum() * 2)
    areas = np.linspace(claimed, 1.0, 1_001)[1:]
    cautious = areas - 1.645 * np.sqrt(areas * (1 - areas) / max(pairs, 1))
    cautious = np.clip(cautious, claimed, 1 - 1e-12)
    gain = cautious * np.log(cautious / claimed)
    gain += (1 - cautious) * np.log((1 - cautious) / (1 - claimed))
    caught = np.flatnonzero(pairs * gain >= enough)
    return float(areas[caught[0]]) if len(caught) else math.inf
