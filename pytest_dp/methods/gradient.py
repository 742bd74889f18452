"""Search by gradients: neighbours with an output that is much likelier on one than on the other.

Each restart takes random neighbours, and a set of outputs that comes on one of them: each number
with noise has to be on one side of a threshold, which is moved as well. With all draws fixed and
comparisons smoothed (`pytest_dp.methods.smooth`), the loss is a smooth function of the inputs. The
inputs move along its gradient until the loss grows no more. Then the output with the largest loss
there takes the place of the first, and comparisons become sharper. The loss at the end of a restart
is estimated by other draws, without smoothing.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018, Sections 4 to 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from pytest_dp.basics.arrays import Floats
from pytest_dp.data import is_real
from pytest_dp.methods.families import PairFamily, Side
from pytest_dp.methods.smooth import HARD, STEEPNESS, Key, Output, Smoothed, Smoothing, Weighed
from pytest_dp.pairs import Pair
from pytest_dp.proposers.interesting_values import constants_of
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA, paired_log_ratio

DRAWS = 2_000
"""Draws of a smoothed run. More take longer; fewer: gradients are noise."""
LAST_DRAWS = 4_000
"""Draws by which the end of a climb is judged. More take longer; fewer: chance chooses."""
KNOWN_PARTS = 64
"""Multiple of its error at which a loss is exact. Larger: slower; smaller: chance chooses."""
STARTS = 3
"""Places at which a climb may start. More take longer; fewer: climbs end on low hills."""
REACH = 8
"""Spreads of the noise that an optimisation may cover. More: coarse steps; less: slower."""
MAX_CENTRES = 8
"""Constants of the code to start at, at most. More: each more rarely; fewer miss the leak."""
MAX_OUTPUTS = 6
"""Numbers of an output with a threshold, at most. More take longer; fewer miss the leak."""
MIN_GAIN = 1.25
"""Ratio of losses at which another output is taken. Larger: gains are lost; smaller: chance."""
MIN_LOSS = 1e-3
"""Loss in nats that counts as none. Larger: small losses are lost; smaller: chance is followed."""
MIN_PROBABILITY = 1e-30
"""Probability that counts, at least: of 0 there is no logarithm."""

MIN_SHARE = 0.01
"""The least probability of an output on the input where it is likelier. Given by the paper."""
SHARPER = (STEEPNESS, STEEPNESS**2)
"""Steepness of comparisons, one optimisation after the other."""
MAX_DRAWS = 2**17
"""Draws of an estimate, at most. Derived: probabilities of 1 % are then known to 3 %."""
EXACTNESS = 0.01
"""Nats within which a climb ends. Larger: climbs end early; smaller: they take longer."""
STEP = 1e-6
"""Of finite differences. Derived: floats resolve 1e-16, so that slopes are known to 1e-10."""
OPTIMISED = 50
"""Steps of an optimisation. Given by the paper on DP-Finder."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundOutput:
    """A pair of inputs, and an output (a set of outputs) that is likelier on one of them."""

    family: PairFamily
    vector: Floats
    """The numbers of both inputs, as the family reads them."""
    output: Output
    thresholds: Floats
    """Thresholds of the output's numbers."""
    forward: bool
    """Whether the output is likelier on D than on D'."""
    loss: float
    """Log ratio of both probabilities in nats, by the draws that the search may be fitted to."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """The input on which the output is likelier, and the other input."""
        d1, d2 = self.family.sides
        return (d1, d2) if self.forward else (d2, d1)

    @property
    def pair(self) -> Pair | None:
        """The inputs, the likelier one as D; None if they are no neighbours once rounded."""
        pair = self.family.pair(self.vector)
        return pair if pair is None or self.forward else pair.reverse()


class Gradients:
    """A search by restarts on one mechanism, whose comparisons are smoothed.

    `family_of` draws a random family of neighbours. `centres` are numbers, such as constants of the
    code, around which inputs start. Outputs have at least the probability `least` on one input.
    Raises CannotCopy if the mechanism cannot be copied; methods raise CannotInstrument if arrays
    cannot stand for its numbers, and OutOfTime.
    """

    def __init__(
        self,
        call: Call,
        family_of: Callable[[np.random.Generator], PairFamily],
        centres: Sequence[float],
        seed: int,
        deadline: Deadline,
        least: float = MIN_SHARE,
    ) -> None:
        self._call, self._family_of, self._centres = call, family_of, [0.0, *centres]
        self._seed, self._deadline, self._least = seed, deadline, least
        self._runs = Smoothed(call, Smoothing(DRAWS, seed), deadline)

    def run_restart(self, number: int) -> FoundOutput | None:
        """Run from a random start to a local optimum of the loss; None without a likely output."""
        found = self.find_start(number)
        for steepness in SHARPER:
            if found is not None:
                with self._steepness(steepness):
                    found = self._optimise(self._measure(found))
                    rng = np.random.default_rng(self._seed)
                    other = self._best_output(found.family, found.vector, rng)
                    if other and other.loss > MIN_GAIN * max(found.loss, MIN_LOSS):
                        found = other
        return found

    def find_start(self, number: int) -> FoundOutput | None:
        """Run `STARTS` random neighbours, and return those with the largest loss, or None."""
        rng = np.random.default_rng((self._seed, number))
        starts = [
            start for start in (self._draw_start(rng) for _ in range(STARTS)) if start is not None
        ]
        return max(starts, key=lambda start: start.loss, default=None)

    def _draw_start(self, rng: np.random.Generator) -> FoundOutput | None:
        """Run random neighbours; return their best output, or None if none is likely enough."""
        family, runs = self._family_of(rng), self._runs
        if not runs.smoothing.spread:
            runs.weigh_outputs(family.sides[0], family.draw_vector(rng, 0.0, 1.0)[None, :])
        reach = runs.smoothing.spread or 1.0
        vector = family.draw_vector(rng, float(rng.choice(self._centres)), reach)
        return self._best_output(family, vector, rng)

    def _best_output(
        self, family: PairFamily, vector: Floats, rng: np.random.Generator
    ) -> FoundOutput | None:
        """Run the neighbours of a vector, and return the output with the largest loss.

        None if no path of the code is likely enough. The loss is 0 if no output has probability
        `least`.
        """
        outputs = self._likely_outputs(family, vector, rng)
        if not outputs:
            return None
        asked = [(output, thresholds[None, :]) for output, thresholds in outputs]
        chances = (self._runs.chances(side, vector[None, :], asked) for side in family.sides)
        p, q = (_log_means(chance)[:, 0] for chance in chances)
        losses = np.where(np.maximum(p, q) >= math.log(self._least), np.abs(p - q), 0.0)
        best = int(np.argmax(losses))
        forward = bool(p[best] >= q[best])
        return FoundOutput(family, vector, *outputs[best], forward, float(losses[best]))

    def _likely_outputs(
        self, family: PairFamily, vector: Floats, rng: np.random.Generator
    ) -> list[tuple[Output, Floats]]:
        """Run both inputs, and return the outputs that have probability `least` on one of them."""
        found: dict[Key, tuple[Output, Floats]] = {}
        with self._steepness(HARD):
            for side in family.sides:
                found |= choose_outputs(
                    self._runs.weigh_outputs(side, vector[None, :]), self._least, rng
                )
        return list(found.values())

    @contextmanager
    def _steepness(self, steepness: float) -> Iterator[None]:
        """Set the steepness of comparisons within the block."""
        smoothing = self._runs.smoothing
        before, smoothing.steepness = smoothing.steepness, steepness
        try:
            yield
        finally:
            smoothing.steepness = before

    def estimate(self, found: FoundOutput) -> tuple[float, float]:
        """Run fresh draws, and return the loss of an output in nats with its approximate error.

        Both inputs get the same draws, without smoothing: four times as many until the error is
        small, at most `MAX_DRAWS`. (NaN, infinity) if the output is too rare; the loss is infinite
        if the output came on one input only.
        """
        family, draws = found.family, LAST_DRAWS
        vector = np.where(family.whole, np.rint(found.vector), found.vector)
        found = replace(found, vector=vector)
        while True:
            runs = Smoothed(self._call, Smoothing(draws, self._seed + draws, HARD), self._deadline)
            loss, error = self._count_loss(found, runs)
            is_known = 0 < error <= max(2 * MIN_LOSS, loss / KNOWN_PARTS)
            if draws >= MAX_DRAWS or is_known or loss == math.inf:
                return loss, error
            draws *= 4

    def _count_loss(self, found: FoundOutput, runs: Smoothed) -> tuple[float, float]:
        """Run both inputs without smoothing; return the loss of an output and its error, in nats.

        (NaN, infinity) if the output is too rare on the input where it should be likelier.
        """
        asked = [(found.output, found.thresholds[None, :])]
        p, q = (runs.chances(side, found.vector[None, :], asked) for side in found.sides)
        c1, c2, both = (round(float(share.sum())) for share in (p, q, p * q))
        if c1 < self._least / 2 * runs.smoothing.draws:
            return math.nan, math.inf
        return paired_log_ratio(c1, c2, both, SHOWN_ALPHA)

    def _log_probabilities(self, found: FoundOutput, points: Floats) -> tuple[Floats, Floats]:
        """Run the inputs; return log probabilities of the output on its likelier and other input.

        `points` has a row for each pair: the vector, then the thresholds.
        """
        vectors, thresholds = np.split(points, [len(found.vector)], axis=1)
        asked = [(found.output, thresholds)]
        p, q = (_log_means(self._runs.chances(side, vectors, asked))[0] for side in found.sides)
        return p, q

    def _measure(self, found: FoundOutput) -> FoundOutput:
        """Run the inputs, and return a copy of `found` with its loss at the present steepness."""
        (p,), (q,) = self._log_probabilities(found, _join_numbers(found)[None, :])
        return replace(found, loss=p - q)

    def _optimise(self, found: FoundOutput) -> FoundOutput:
        """Run the mechanism to climb; return a local optimum of the smoothed loss, or the start.

        The optimum counts only if its loss without smoothing is not clearly smaller.
        """
        units, bounds = self._units(found), self._bounds(found)
        low, high = bounds / units
        start = np.clip(_join_numbers(found) / units, low, high)
        low, high = np.maximum(low, start - REACH), np.minimum(high, start + REACH)
        best = climb_ratio(
            lambda x: self._log_probabilities(found, x * units), start, low, high, self._least
        )
        vector, thresholds = np.split(best * units, [len(found.vector)])
        moved = self._measure(replace(found, vector=vector, thresholds=thresholds))
        with self._steepness(HARD):
            counted = [self._count_loss(one, self._runs) for one in (found, moved)]
        (before, _), (after, error) = counted
        comes = not math.isnan(after) and not after + error < before
        return moved if moved.loss > found.loss and comes else found

    def _units(self, found: FoundOutput) -> Floats:
        """Return the units in which numbers move: 1 for moves between D and D', else the noise."""
        spread, family = self._runs.smoothing.spread or 1.0, found.family
        widths = np.minimum(family.high - family.low, spread)
        of_inputs = np.where(family.steps, 1.0, np.where(widths > 0, widths, 1.0))
        return np.concatenate([of_inputs, np.full(len(found.thresholds), spread)])

    def _bounds(self, found: FoundOutput) -> Floats:
        """Return the bounds of all numbers and thresholds, shape (2, numbers + thresholds)."""
        ends = np.full(len(found.thresholds), np.inf)
        family = found.family
        return np.stack([np.concatenate([family.low, -ends]), np.concatenate([family.high, ends])])


def choose_outputs(
    outcomes: Sequence[Weighed], least: float, rng: np.random.Generator
) -> dict[Key, tuple[Output, Floats]]:
    """Return sets of outputs with probability `least` or more, each with its thresholds, by key.

    Thresholds are averages of numbers. At most `MAX_OUTPUTS` random numbers have a threshold, each
    on a random side.
    """
    found: dict[Key, tuple[Output, Floats]] = {}
    for outcome in outcomes:
        if outcome.weights.mean() >= least:
            count = len(outcome.numbers)
            signs = np.zeros(count, int)
            some = rng.permutation(count)[:MAX_OUTPUTS]
            signs[some] = rng.choice([-1, 1], len(some))
            averages = [number.average(outcome.weights) for number in outcome.numbers]
            thresholds = np.array(averages)[signs != 0]
            found[outcome.key] = Output(outcome.key, tuple(signs.tolist())), thresholds
    return found


def _log_means(chances: Floats) -> Floats:
    """Return log probabilities from chances of shape (outputs, vectors, draws), floored."""
    logs: Floats = np.log(np.maximum(chances.mean(axis=-1), MIN_PROBABILITY))
    return logs


def _join_numbers(found: FoundOutput) -> Floats:
    """Return the numbers of both inputs, followed by the thresholds."""
    return np.concatenate([found.vector, found.thresholds])


def make_gradients(
    families: Callable[[np.random.Generator], PairFamily],
    call: Call,
    seed: int,
    deadline: Deadline,
    least: float = MIN_SHARE,
) -> Gradients:
    """Return a search that starts around the constants of the code; raises CannotCopy."""
    values = constants_of(call.mechanism, call.params)
    centres = [float(value) for value in values if is_real(value)]
    return Gradients(call, families, centres[:MAX_CENTRES], seed, deadline, least)


Logs = Callable[[Floats], tuple[Floats, Floats]]
"""From points, one in each row, to the logarithms of two probabilities at each."""


def climb_ratio(logs: Logs, start: Floats, low: Floats, high: Floats, least: float) -> Floats:
    """Return a point near a local maximum of the ratio of two probabilities.

    The first probability stays at `least` or more, to within `EXACTNESS`. `logs` is called with
    rows of points. By sequential quadratic programming (SLSQP), with finite differences.
    """
    last: dict[bytes, tuple[float, Floats, float, Floats]] = {}

    def at(x: Floats) -> tuple[float, Floats, float, Floats]:
        """Return both logarithms, each with its gradient."""
        if x.tobytes() not in last:
            inside = np.clip(x, low, high)
            steps = np.where(inside + STEP <= high, STEP, -STEP)
            p, q = logs(np.vstack([inside, inside + np.diag(steps)]))
            last.clear()
            last[x.tobytes()] = p[0], (p[1:] - p[0]) / steps, q[0], (q[1:] - q[0]) / steps
        return last[x.tobytes()]

    _, slope_p, _, slope_q = at(start)
    steepest = float(np.abs(slope_p - slope_q).max()) or 1.0  # so that first steps are of size 1
    likely: Any = {
        "type": "ineq",
        "fun": lambda x: at(x)[0] - math.log(least),
        "jac": lambda x: at(x)[1],
    }
    optimise: Any = minimize  # whose types do not take gradients of arrays
    found = optimise(
        lambda x: float(at(x)[2] - at(x)[0]) / steepest,
        start,
        jac=lambda x: (at(x)[3] - at(x)[1]) / steepest,
        method="SLSQP",
        bounds=list(zip(low, high, strict=True)),
        constraints=[likely],
        options={"maxiter": OPTIMISED, "ftol": EXACTNESS},
    )
    end: Floats = np.clip(found.x, low, high)
    return end
