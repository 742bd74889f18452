"""Search by gradients: neighbours on which an output is as much likelier on one as can be.

Each restart takes random neighbours, and an output that comes on one of them. Of an output with
noise in its numbers, each number has to be on one side of a threshold, which is moved as well. With
all draws fixed and comparisons smoothed (`pytest_dp.methods.smooth`), the loss is a smooth function
of the inputs, which go along its gradient until nothing gains any more; then the output that tells
most there takes the place of the first, and comparisons become sharper. What a restart ends with
is estimated by other draws, and comparisons as they are.

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
from pytest_dp.claiming.claim import Promise
from pytest_dp.data import is_real
from pytest_dp.methods.families import PairFamily, Side, families_of
from pytest_dp.methods.smooth import HARD, STEEPNESS, Key, Output, Smoothed, Smoothing, outputs_of
from pytest_dp.pairs import Pair
from pytest_dp.proposers.by_movement import Clock
from pytest_dp.proposers.constants import constants_of
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA, paired_log_ratio

DRAWS = 2_000
"""Draws of a smoothed run. More take longer; fewer: gradients are noise."""
LAST_DRAWS = 4_000
"""Draws by which the end of a climb is judged. More take longer; fewer: chance chooses."""
KNOWN_PARTS = 64
"""Part of a loss that its error may be, to be known. Larger takes longer; smaller: chance
chooses."""
STARTS = 3
"""Places at which a climb may start. More take longer; fewer: climbs end on low hills."""
REACH = 8
"""Distance from its start that a climb covers at a time. More: steps are coarse; less: it takes
longer."""
MAX_CENTRES = 8
"""Outputs whose gradients are followed, and climbs. More take longer; fewer may miss the one that
leaks."""
MIN_GAIN = 1.25
"""Factor by which a climb has to be better. Larger: small gains are lost; smaller: chance counts
as one."""
MIN_LOSS = 1e-3
"""Loss in nats that counts as none. Larger: small losses are not climbed; smaller: chance is."""
MIN_PROBABILITY = 1e-30
"""Probability that counts, at least: of 0 there is no logarithm."""

MIN_SHARE = 0.01
"""The least probability of an output on the input where it is likelier. Given by the paper."""
SHARPER = (STEEPNESS, STEEPNESS**2)
"""Steepness of comparisons, one optimisation after the other."""
MAX_DRAWS = 2**17
"""Of an estimate. Derived: shares of 1 % are then known to 3 % of themselves, without what shared
draws save."""
EXACTNESS = 0.01
"""Nats by which a probability may be too small, and within which a climb ends. Larger: climbs end
early; smaller: they take longer."""
STEP = 1e-6
"""Of finite differences. Derived: floats resolve 1e-16 of a probability, so that slopes are known
to 1e-10."""
OPTIMISED = 50
"""Steps of an optimisation. Given by the paper on DP-Finder."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundOutput:
    """Neighbours, and an output that tells them apart."""

    family: PairFamily
    vector: Floats
    """The numbers of both inputs."""
    output: Output
    thresholds: Floats
    """Of the output's numbers."""
    forward: bool
    """Whether it is likelier on D than on D'."""
    loss: float
    """In nats, by draws to which it may be fitted: the logarithm of the ratio of probabilities."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """The input on which it is likelier, and the other."""
        d1, d2 = self.family.sides
        return (d1, d2) if self.forward else (d2, d1)

    @property
    def pair(self) -> Pair | None:
        """The inputs, the likelier one as D; None if they are no neighbours once rounded."""
        pair = self.family.pair(self.vector)
        return pair if pair is None or self.forward else pair.reversed()


class Gradients:
    """Restarts of a search on one mechanism.

    `family_of` gives neighbours to move, by random numbers; `centres` are numbers around which
    inputs may matter; outputs have at least the probability `least` on one input. Raises CannotCopy
    if the mechanism cannot be copied.
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

    def restart(self, number: int) -> FoundOutput | None:
        """Return the end of one restart; None if no output is likely enough.

        Raises CannotInstrument if the mechanism does with numbers what arrays cannot do, and
        OutOfTime.
        """
        found = self.start(number)
        for steepness in SHARPER:
            if found is not None:
                with self._steepness(steepness):
                    found = self._optimise(self._measure(found))
                    rng = np.random.default_rng(self._seed)
                    other = self._telling_most(found.family, found.vector, rng)
                    if other and other.loss > MIN_GAIN * max(found.loss, MIN_LOSS):
                        found = other
        return found

    def start(self, number: int) -> FoundOutput | None:
        """Return the best of a few random starts; None if no output is likely enough."""
        rng = np.random.default_rng((self._seed, number))
        starts = [start for start in (self._start(rng) for _ in range(STARTS)) if start is not None]
        return max(starts, key=lambda start: start.loss, default=None)

    def _start(self, rng: np.random.Generator) -> FoundOutput | None:
        """Return random neighbours with their best output; None if no output is likely enough."""
        family, runs = self._family_of(rng), self._runs
        if not runs.smoothing.spread:
            runs.weigh_outputs(family.sides[0], family.start(rng, 0.0, 1.0)[None, :])
        reach = runs.smoothing.spread or 1.0
        vector = family.start(rng, float(rng.choice(self._centres)), reach)
        return self._telling_most(family, vector, rng)

    def _telling_most(
        self, family: PairFamily, vector: Floats, rng: np.random.Generator
    ) -> FoundOutput | None:
        """Return the likely output whose probability differs most between the neighbours."""
        outputs = self._outputs(family, vector, rng)
        if not outputs:
            return None
        asked = [(output, thresholds[None, :]) for output, thresholds in outputs]
        chances = (self._runs.chances(side, vector[None, :], asked) for side in family.sides)
        p, q = (_logs(chance)[:, 0] for chance in chances)
        losses = np.where(np.maximum(p, q) >= math.log(self._least), np.abs(p - q), 0.0)
        best = int(np.argmax(losses))
        forward = bool(p[best] >= q[best])
        return FoundOutput(family, vector, *outputs[best], forward, float(losses[best]))

    def _outputs(
        self, family: PairFamily, vector: Floats, rng: np.random.Generator
    ) -> list[tuple[Output, Floats]]:
        """Return the outputs that are likely enough on one of the inputs."""
        found: dict[Key, tuple[Output, Floats]] = {}
        with self._steepness(HARD):
            for side in family.sides:
                found |= outputs_of(
                    self._runs.weigh_outputs(side, vector[None, :]), self._least, rng
                )
        return list(found.values())

    @contextmanager
    def _steepness(self, steepness: float) -> Iterator[None]:
        smoothing = self._runs.smoothing
        before, smoothing.steepness = smoothing.steepness, steepness
        try:
            yield
        finally:
            smoothing.steepness = before

    def estimate(self, found: FoundOutput) -> tuple[float, float]:
        """Return the loss at what was found, and its error: approximate, in nats.

        By fresh draws, the same on both inputs, ever more until the error is small or there are
        `MAX_DRAWS`.
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
        """Return the loss of an output by its counts, unsmoothed, and by how much it may be off.

        NaN if it is too rare on the input where it should be likelier.
        """
        asked = [(found.output, found.thresholds[None, :])]
        p, q = (runs.chances(side, found.vector[None, :], asked) for side in found.sides)
        c1, c2, both = (round(float(share.sum())) for share in (p, q, p * q))
        if c1 < self._least / 2 * runs.smoothing.draws:
            return math.nan, math.inf
        return paired_log_ratio(c1, c2, both, SHOWN_ALPHA)

    def _logs_of(self, found: FoundOutput, points: Floats) -> tuple[Floats, Floats]:
        """Return log probabilities of an output on its likelier input and on the other input."""
        vectors, thresholds = np.split(points, [len(found.vector)], axis=1)
        asked = [(found.output, thresholds)]
        p, q = (_logs(self._runs.chances(side, vectors, asked))[0] for side in found.sides)
        return p, q

    def _measure(self, found: FoundOutput) -> FoundOutput:
        (p,), (q,) = self._logs_of(found, _point(found)[None, :])
        return replace(found, loss=p - q)

    def _optimise(self, found: FoundOutput) -> FoundOutput:
        """Return a local optimum within a few spreads of the noise, or the start.

        An optimum of the smoothed loss counts only if it is as good without smoothing.
        """
        units, bounds = self._units(found), self._bounds(found)
        low, high = bounds / units
        start = np.clip(_point(found) / units, low, high)
        low, high = np.maximum(low, start - REACH), np.minimum(high, start + REACH)
        best = climb_ratio(lambda x: self._logs_of(found, x * units), start, low, high, self._least)
        vector, thresholds = np.split(best * units, [len(found.vector)])
        moved = self._measure(replace(found, vector=vector, thresholds=thresholds))
        with self._steepness(HARD):
            counted = [self._count_loss(one, self._runs) for one in (found, moved)]
        (before, _), (after, error) = counted
        comes = not math.isnan(after) and not after + error < before
        return moved if moved.loss > found.loss and comes else found

    def _units(self, found: FoundOutput) -> Floats:
        """Return the units in which numbers move: 1 between neighbours, the noise for others."""
        spread, family = self._runs.smoothing.spread or 1.0, found.family
        widths = np.minimum(family.high - family.low, spread)
        of_inputs = np.where(family.steps, 1.0, np.where(widths > 0, widths, 1.0))
        return np.concatenate([of_inputs, np.full(len(found.thresholds), spread)])

    def _bounds(self, found: FoundOutput) -> Floats:
        ends = np.full(len(found.thresholds), np.inf)
        family = found.family
        return np.stack([np.concatenate([family.low, -ends]), np.concatenate([family.high, ends])])


def _logs(chances: Floats) -> Floats:
    """Return the logarithms of probabilities, by outputs and vectors."""
    logs: Floats = np.log(np.maximum(chances.mean(axis=-1), MIN_PROBABILITY))
    return logs


def _point(found: FoundOutput) -> Floats:
    return np.concatenate([found.vector, found.thresholds])


def gradients_of(
    families: Callable[[np.random.Generator], PairFamily],
    call: Call,
    seed: int,
    deadline: Deadline,
    least: float = MIN_SHARE,
) -> Gradients:
    """Return restarts on neighbours, around the constants of the code; raises as `Gradients`."""
    values = constants_of(call.mechanism, call.params)
    centres = [float(value) for value in values if is_real(value)]
    return Gradients(call, families, centres[:MAX_CENTRES], seed, deadline, least)


class ByGradients:
    """Proposes the pair that each restart ends with; raises ClaimError as `families_of`."""

    name = "gradient"

    def __init__(self, promise: Promise, call: Call, clock: Clock, seed: int) -> None:
        self._reason = ""
        self._pairs = self._propose(families_of(promise, "search='gradient'"), call, clock, seed)

    def propose(self) -> Iterator[Pair]:
        """Return the pairs, until time is up; they were all, if it is asked for more."""
        return self._pairs

    def notes(self) -> list[str]:
        """Return why no gradient was followed; none if one was."""
        return [f"no gradient was followed, as {self._reason}"] if self._reason else []

    def _propose(
        self,
        families: Callable[[np.random.Generator], PairFamily],
        call: Call,
        clock: Clock,
        seed: int,
    ) -> Iterator[Pair]:
        try:
            gradients = gradients_of(families, call, seed, Deadline(clock.remaining))
            for number in range(MAX_CENTRES):
                found = gradients.restart(number)
                if found is not None and (pair := found.pair) is not None:
                    yield replace(pair, origin="D was moved along the gradient of its loss")
        except (CannotCopy, CannotInstrument) as reason:
            self._reason = str(reason)
        except OutOfTime:
            return


Logs = Callable[[Floats], tuple[Floats, Floats]]
"""From points, one in each row, to the logarithms of two probabilities at each."""


def climb_ratio(logs: Logs, start: Floats, low: Floats, high: Floats, least: float) -> Floats:
    """Return about where the ratio of two probabilities is largest, as far as a climb gets.

    The first probability stays at `least` or more, to within `EXACTNESS`. By sequential quadratic
    programming (SLSQP), with finite differences that are computed side by side.
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
