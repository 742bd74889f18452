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
"""Share of a claim that counts as nothing. Larger: small losses are not shown; smaller: slower."""
MIN_DELTA = 1e-12
"""Delta at which the largest loss is taken. Larger leaves out losses; smaller: coarser steps."""
LOSS_STEPS = 24
"""Losses at which a curve is sampled. More are sharper; fewer are quicker."""
CACHE_SIZE = 256
"""Tails in the cache. More take memory; fewer are computed again."""
CLEAR_ERRORS = 3.0
"""Standard errors of guesses that chance does not explain. More: fewer guesses; fewer: chance
decides."""
MAX_RUNS = 10_000
"""Runs that advice considers. More take longer; fewer: no advice."""
ROUNDING = 1e-9
"""Relative error of a chance over several runs, to the safe side. Larger is never invalid."""
LOSS_ERROR = 1e-3
"""Relative error of a bound. Larger: it is less exact; smaller: it takes longer."""

FRACTIONS = np.array([0.9999, *(0.98 * 0.5 ** np.arange(6)), 0.0])
"""Stakes, as shares of the largest stake. All of it wins most where one side is always above; zero
keeps what an attack loses while it learns. By hand, as for events."""
PRIOR = 1 / np.arange(1.0, len(FRACTIONS) + 1)
"""Prior of the fractions, falling from the largest, as for attacks in `ledger`."""
AREAS = np.arange(1, 200) / 200
"""Areas that are bet against besides the claim: the bounds are among these. By hand."""
CROSSED = 8
"""Pairings of a batch that are averaged, at most. More take time in proportion."""


Sticks = tuple[HockeyStick, ...]
"""Pairs of eps and delta, all of which are promised."""


def sticks_of(guarantee: Guarantee) -> Sticks:
    """Return the (eps, delta) of a guarantee: its own, or `LOSS_STEPS` points of its curve."""
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
    """Return the largest chance of at least v right guesses, for v from 0 on, shape (total + 1,).

    Each of `runs` runs has `guesses` guesses. The chance never rises with v. In one run, one pair
    of eps and delta attains it, unless delta makes it exceed 1; several pairs allow at most the
    least chance of each. The array is cached and read-only.
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
    """Return the logarithms of `tail_chances` for one run, read-only.

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

    `correct` guesses of all `runs` are right. For eps, at the delta of the guarantee, in nats. At
    most `LARGEST_EPS`.
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
    """Return how many right guesses refute a claim at `alpha`; None if all are too few."""
    reached = tail_chances(guesses, canaries, sticks, runs)
    if reached[-1] > alpha:
        return None
    return first_where(lambda v: bool(reached[v] <= alpha), 0, len(reached) - 1)


def plan_guesses(canaries: int, sticks: Sticks, alpha: float) -> tuple[int, int]:
    """Return how many canaries to guess in, and how many out, before anything is run.

    Few guesses are right more often, and many prove more: the total is the geometric mean of the
    fewest that can refute the claim and the most that there are. For normal scores it finds nearly
    the least violation: 1.1 times it at most, for losses of 0.5 to 4 and 100 to 5,000 canaries.
    """
    at_most = max_guesses(canaries)

    def can_refute(guesses: int) -> bool:
        return bool(tail_chances(guesses, canaries, sticks)[-1] <= alpha)

    least = first_where(can_refute, 1, at_most)  # all of them where none can
    return split_guesses(round(math.sqrt(least * at_most)))


def count_right(ranked: Bools, guesses: tuple[int, int]) -> int:
    """Return how many guesses are right.

    `ranked` says which canaries were in, by rising scores. The first of `guesses` is how many at
    the top are guessed in, the second how many at the bottom are guessed out.
    """
    inside, outside = guesses
    return int(np.sum(ranked[len(ranked) - inside :]) + outside - np.sum(ranked[:outside]))


def odds_above_claim(share: float, guesses: int, canaries: int, sticks: Sticks) -> float:
    """Return the log odds of a share of right guesses over the log odds that the claim allows.

    The claim allows the mean of the law that `tail_chances` gives. At least 1.0, and 1.0 if the
    claim allows at most half of the guesses.
    """
    most = min(float(np.sum(tail_chances(guesses, canaries, sticks)[1:])), guesses - 0.5) / guesses
    return max(float(logit(share) / logit(most)), 1.0) if most > 0.5 else 1.0


def is_found(share: float, times: float, total: int, needed: int, power: float) -> bool:
    """Return whether `needed` of `total` guesses are right with probability `power` (approximate).

    The log odds of a right guess are `times` those of `share`, as if noise were that much smaller.
    """
    return bool(bdtrc(needed - 1.0, total, float(expit(times * logit(share)))) >= power)


def max_guesses(canaries: int) -> int:
    """Return how many canaries can be guessed, half in and half out, that coins seldom prevent."""
    return max(canaries - math.ceil(CLEAR_ERRORS * math.sqrt(canaries)), 1)


def split_guesses(guesses: int) -> tuple[int, int]:
    """Return how many of the guesses are made in, and how many out."""
    return guesses - guesses // 2, guesses // 2


def runs_needed(guesses: int, canaries: int, sticks: Sticks, alpha: float) -> float:
    """Return how many runs, sharing `alpha`, refute a claim if all guesses are right.

    Infinite for `MAX_RUNS` or more.
    """
    one, level = float(_log_tails(guesses, canaries, sticks)[-1]), math.log(alpha)
    return next((n for n in range(1, MAX_RUNS) if n * one <= level - math.log(n)), math.inf)


class AreaBets:
    """A ledger of bets against areas under the ROC curve, on a grid with `claimed` in it.

    For each area there are bets that the true area is at most that, and bets that it is at least
    that.
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
        """Append a batch of scores, with and without the record; add its earnings to wealth."""
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
        """Move half of the wealth to the first spread over all fractions, for another score."""
        fresh = self.log_wealth[..., None] + np.log(PRIOR / PRIOR.sum())
        self._stakes = np.logaddexp(self._stakes, fresh) - math.log(2)

    def lower(self, alpha: float) -> float:
        """Return an area that some attack reaches, with confidence ``1 - alpha``; else 0.0."""
        return self._bound(0, alpha)

    def upper(self, alpha: float) -> float:
        """Return an upper confidence bound on the area, valid for a score that stays; else 1.0."""
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
        """The p-value of the claim, valid at any time; at most 1."""
        return math.exp(-float(self.highest[0, self.claim]))


def count_pairings(inside: Floats, outside: Floats) -> Ints:
    """Return how many pairs are won, tied and lost in each pairing of a batch, (pairings, 3).

    At most `CROSSED` pairings, by shifts of one side against the other.
    """
    n = len(inside)
    shifts = np.unique(np.linspace(0, n - 1, min(n, CROSSED)).astype(int))
    other = outside[(np.arange(n) + shifts[:, None]) % n]
    won, lost = (inside > other).sum(axis=1), (inside < other).sum(axis=1)
    return np.stack([won, n - won - lost, lost], axis=1)


def estimate_area(inside: Floats, outside: Floats) -> tuple[float, float]:
    """Return the area under the ROC curve of some scores, and its standard error (approximate).

    DeLong, DeLong, Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver
    Operating Characteristic Curves", Biometrics 1988. If all or no pairs are won, the error with
    one more pair of either kind; 0.5 for fewer than two scores on a side.
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

    Infinite if there is none. Counts the cost of not knowing the best fraction.
    """
    enough = -math.log(alpha) + math.log(PRIOR.sum() * 2)
    areas = np.linspace(claimed, 1.0, 1_001)[1:]
    cautious = areas - 1.645 * np.sqrt(areas * (1 - areas) / max(pairs, 1))
    cautious = np.clip(cautious, claimed, 1 - 1e-12)
    gain = cautious * np.log(cautious / claimed)
    gain += (1 - cautious) * np.log((1 - cautious) / (1 - claimed))
    caught = np.flatnonzero(pairs * gain >= enough)
    return float(areas[caught[0]]) if len(caught) else math.inf
