"""Estimates of how far one record moves the answer, as the loss that the noise leaves.

They come from runs with fixed draws on both inputs, and assume that an output is a noiseless value
plus noise, and that branches are decided alike in all runs. Pairs are chosen by them; verdicts are
not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.pairs.noiseless import AWAY, CENTRE, GeneratorCall, NoiselessRun, NoiselessRunner
from pytest_dp.pairs.sources import Movement

MAX_PROBED = 24
"""Single draws that are moved one by one, in up to four runs each. More draws: spreads count."""
SPREAD_RUNS = 6
"""Runs that show what noise changes. With fewer, what it changes seldom counts as constant."""
STEPS = (1.0, -1.0, 6.0, -6.0)
"""How far a draw is moved, in scales, until a number changes. Clamps hide large, rounding small."""
SAME = 1e-9
"""Relative difference that counts as rounding. Larger values overlook small leaks."""
NOT_EXPLAINED = 1e-6
"""Share of a movement that draws cannot make up for, beyond which it counts as not noisy."""


NOTHING_MOVES = Movement(0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """How the draws of a run change the numbers of its output.

    It holds for all runs with the same draws and an output of the same form.
    """

    varies: Bools
    """Which numbers any draw changes."""
    spread: Floats
    """The standard deviation of each number over a few runs."""
    decided: bool
    """Whether noise changes the form or a category."""
    reach: Floats | None
    """By how much each number moves if one draw moves by its scale: shape (numbers, draws).

    None if single draws were not moved."""
    gaussian: Bools
    """Which of these single draws are Gaussian."""
    away: Floats
    """Each number at the point `AWAY`, less its value at the centre."""
    scales: Floats
    """Of each single draw."""


@dataclass(frozen=True, slots=True, eq=False)
class ProbedInput:
    """An input, and the runs on it that movements are computed from."""

    data: object
    away: NoiselessRun
    """With draws away from their centres, so that noise of another size moves the output too."""
    centre: NoiselessRun | None = None
    """With draws at their centres; None where it failed, or gave an output of another form."""

    @property
    def structure(self) -> Hashable:
        """A key that is equal for runs with the same draws and outputs of the same form."""
        draws = tuple((drawn.method, drawn.law, len(drawn.scale)) for drawn in self.away.draws)
        return draws, self.away.output.form, len(self.away.output.numbers)

    @property
    def scales(self) -> Floats:
        """The scale of each single draw."""
        return np.concatenate([drawn.scale for drawn in self.away.draws] or [np.empty(0)])

    @property
    def response(self) -> Floats | None:
        """How far each number moves as draws go away from their centres; None without both runs."""
        if self.centre is None:
            return None
        return self.away.output.numbers - self.centre.output.numbers


class Movements:
    """A calculator of movements: how far apart the noiseless answers of two inputs are, as a loss.

    The noise is probed once for each form of runs.
    """

    def __init__(self, runner: NoiselessRunner) -> None:
        self._runner = runner
        self._noises: dict[Hashable, Noise | None] = {}

    def run_on(self, data: object, *, twice: bool = False) -> ProbedInput | None:
        """Run the mechanism on an input, once or `twice`; None if no such run can be made.

        The second run shows noise whose size depends on the input. Without it, movements between
        inputs whose noise differs in size are too large or too small.
        """
        away = self._runner.run(data, AWAY)
        if away is None:
            return None
        centre = self._runner.run(data, CENTRE) if twice else None
        if centre is not None and not _are_of_one_form(centre, away):
            centre = None
        return ProbedInput(data, away, centre)

    def between(self, one: ProbedInput, other: ProbedInput) -> Movement:
        """Return the movement from an input to another; run the mechanism to probe new noise.

        Its loss is in nats: infinite if something differs that has no noise, and 0 if forms or
        categories differ that noise decides.
        """
        noise = self._noise_of(one)
        decided = noise is None or noise.decided
        ours, theirs = one.centre or one.away, other.centre or other.away
        if (one.centre is None) != (other.centre is None):
            ours, theirs = one.away, other.away
        if ours.output.form != theirs.output.form:
            return _move_category("form", decided=decided)
        if ours.output.categories != theirs.output.categories:
            changed = _changed_places(ours.output.categories, theirs.output.categories)
            return _move_category(("category", changed), decided=decided)
        moved = theirs.output.numbers - ours.output.numbers
        size = np.maximum(np.abs(ours.output.numbers), np.abs(theirs.output.numbers))
        moved = np.where(np.abs(moved) <= SAME * size, 0.0, moved)
        answer = float(np.abs(moved).max(initial=0.0))
        laws = _loss_of_weights(ours.draws, theirs.draws)
        if noise is None:
            if not moved.any() and not laws:
                return NOTHING_MOVES
            return Movement(laws, answer, kind="not known")
        bare = (moved != 0) & ~noise.varies | self._find_one_sided_noise(noise, other)
        if bare.any():
            places = tuple(np.flatnonzero(bare)[:3].tolist())
            return Movement(math.inf, answer, kind=("bare", places))
        return self._movement_under_noise(moved, answer, laws, noise, one, other)

    def _find_one_sided_noise(self, noise: Noise, other: ProbedInput) -> Bools:
        """Return a mask of numbers that have noise on one input only; may probe the other.

        All False if noise decides the form or a category, which few runs do not show.
        """
        there = self._noise_of(other)
        if there is None or there.decided or noise.decided:
            return np.zeros(len(noise.varies), bool)
        one_sided: Bools = noise.varies != there.varies
        return one_sided

    def _movement_under_noise(
        self,
        moved: Floats,
        answer: float,
        laws: float,
        noise: Noise,
        one: ProbedInput,
        other: ProbedInput,
    ) -> Movement:
        """Return the movement of numbers that have noise, by the loss of shifting the draws.

        `moved` is how far each number moves, `answer` the farthest; `laws` is the loss of other
        weights of choices. The loss is infinite if no shifts of draws explain the move.
        """
        times, weakest = _noise_ratio(one, other)
        loss, explained = _loss_of_shifts(moved, noise, one)
        places = tuple(np.flatnonzero(moved)[:8].tolist())
        kind = "moves", places, round(2 * math.log2(times))
        if not explained:
            # Numbers with the same noise move by different amounts.
            return Movement(math.inf, answer, kind=("shared", kind))
        if weakest:
            loss *= times
        scale = _scale_at(int(np.abs(moved).argmax()), noise) if moved.any() else 0.0
        return Movement(loss + math.log(times) + laws, answer, scale, kind)

    def _noise_of(self, probed: ProbedInput) -> Noise | None:
        """Return the noise of runs like those on an input, probed once; None if probing fails."""
        structure = probed.structure
        if structure not in self._noises:
            self._noises[structure] = self._probe(probed)
        return self._noises[structure]

    def _probe(self, probed: ProbedInput) -> Noise | None:
        """Run the mechanism at other points, and measure how draws change each number.

        Each draw is also moved alone, unless there are more than `MAX_PROBED`. None if no run at
        another point gives an output of the same form.
        """
        away = probed.away.output
        outputs, decided = [away.numbers], False
        for point in (CENTRE, *range(AWAY + 1, AWAY + SPREAD_RUNS)):
            run = self._runner.run(probed.data, point)
            if run is None:
                continue
            if not _are_of_one_form(run, probed.away):
                decided = True
                continue
            decided |= run.output.categories != away.categories
            outputs.append(run.output.numbers)
        if len(outputs) == 1:
            return None
        table = np.array(outputs)
        spread = table.std(axis=0)
        size = np.abs(table).max(axis=0)
        varies = spread > SAME * size
        reach = self._probe_single_draws(probed)
        if reach is not None:
            varies = varies | (reach != 0).any(axis=1)
        single = [drawn.gaussian for drawn in probed.away.draws for _ in drawn.scale]
        gaussian, response = np.array(single, bool), outputs[0] - outputs[1]
        return Noise(varies, spread, decided, reach, gaussian, response, probed.scales)

    def _probe_single_draws(self, probed: ProbedInput) -> Floats | None:
        """Move each single draw by its scale, and return how far each number moves.

        Shape (numbers, draws). None without draws or with more than `MAX_PROBED`, if the family of
        a draw is not among `LOCATED`, or if draws decide the form of the output.
        """
        draws, centre = probed.away.draws, self._runner.run(probed.data, CENTRE)
        places = [(call, at) for call, drawn in enumerate(draws) for at in range(len(drawn.scale))]
        located = all(_is_located(drawn) for drawn in draws)
        if not places or len(places) > MAX_PROBED or not located:
            return None
        if centre is None or not _are_of_one_form(centre, probed.away):
            return None
        base = centre.output
        columns = []
        for place in places:
            column = np.zeros(len(probed.away.output.numbers))
            for step in STEPS:
                run = self._runner.run(probed.data, CENTRE, {place: step})
                if run is None or not _are_of_one_form(run, centre):
                    continue
                column = (run.output.numbers - base.numbers) / step
                if column.any():
                    break
            columns.append(column)
        return np.array(columns).T


def _are_of_one_form(run: NoiselessRun, other: NoiselessRun) -> bool:
    """Return whether the numbers of two runs' outputs can be subtracted."""
    one, two = run.output, other.output
    return one.form == two.form and len(one.numbers) == len(two.numbers)


LOCATED = frozenset(["laplace", "normal", "logistic", "gumbel"])
"""Families of noise on the whole line, of which shifts can undo a move of the answer."""


def _is_located(drawn: GeneratorCall) -> bool:
    """Return whether a draw is of one of the families `LOCATED`."""
    return isinstance(drawn.law, tuple) and bool(drawn.law) and drawn.law[0] in LOCATED


def _move_category(kind: Hashable, *, decided: bool) -> Movement:
    """Return the movement between forms or categories: infinite, 0 if noise decides these.

    Few runs do not show how likely noise makes each of them.
    """
    return Movement(0.0 if decided else math.inf, kind=kind)


def _scale_at(place: int, noise: Noise) -> float:
    """Return the scale of the only probed draw that reaches a number; 0 without just one."""
    if noise.reach is None:
        return 0.0
    reaching = np.flatnonzero(noise.reach[place])
    return float(abs(noise.reach[place, reaching[0]])) if len(reaching) == 1 else 0.0


def _changed_places(ours: Sequence[object], theirs: Sequence[object]) -> Hashable:
    """Return the positions of the first three categories that differ."""
    places = [at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    return tuple(places[:3])


def _loss_of_weights(ours: Sequence[GeneratorCall], theirs: Sequence[GeneratorCall]) -> float:
    """Return the loss, in nats, of choices that are drawn with other weights; 0 without any.

    It is the sum, over the choices, of the largest absolute log ratio of weights.
    """
    if len(ours) != len(theirs):
        return 0.0
    loss = 0.0
    for one, other in zip(ours, theirs, strict=True):
        if one.law == other.law or one.method != other.method:
            continue
        if not (isinstance(one.law, tuple) and isinstance(other.law, tuple)):
            continue
        weights = [np.array(law) for law in (one.law, other.law)]
        if len(weights[0]) != len(weights[1]) or weights[0].dtype.kind != "f":
            continue
        with np.errstate(all="ignore"):
            ratios = np.abs(
                np.log(weights[0] / weights[0].sum()) - np.log(weights[1] / weights[1].sum())
            )
        ratios = ratios[~np.isnan(ratios)]
        loss += float(ratios.max(initial=0.0))
    return loss


def _noise_ratio(one: ProbedInput, other: ProbedInput) -> tuple[float, bool]:
    """Return how many times larger the noise is on one input than on the other, 1.0 if equal.

    The second value is True if numbers of the output show it, and False if only the draws' scales
    do.
    """
    ratio, ours, theirs = 1.0, one.response, other.response
    if ours is not None and theirs is not None and len(ours) == len(theirs):
        ratio = _times_larger(ours, theirs)
    is_shown = ratio > 1.0
    for mine, yours in zip(one.away.draws, other.away.draws, strict=False):
        if mine.law == yours.law and len(mine.scale) == len(yours.scale):
            ratio = max(ratio, _times_larger(mine.scale, yours.scale))
    return ratio, is_shown


def _times_larger(ours: Floats, theirs: Floats) -> float:
    """Return the largest ratio, either way, of two numbers in one place; 1.0 if nearly equal.

    Zeros are left out.
    """
    both = (ours != 0) & (theirs != 0)
    with np.errstate(all="ignore"):
        apart = float(np.abs(np.log(np.abs(ours[both] / theirs[both]))).max(initial=0.0))
    return math.exp(min(apart, 50.0)) if apart > NOT_EXPLAINED else 1.0


def _loss_of_shifts(moved: Floats, noise: Noise, probed: ProbedInput) -> tuple[float, bool]:
    """Return the loss, in nats, of the shifts of draws that explain a move, and whether any do.

    `moved` is how far each number moves. If single draws were not probed, the spread of each number
    gives an estimate, which counts as explained.
    """
    if not moved.any():
        return 0.0, True
    if noise.reach is None:
        at = moved != 0
        return float(np.sum(np.abs(moved[at]) * math.sqrt(2) / noise.spread[at])), True
    response = probed.response
    reach = noise.reach
    if response is not None and len(response) == len(noise.away):
        with np.errstate(all="ignore"):
            times = np.where((noise.away != 0) & (response != 0), response / noise.away, 1.0)
        reach = reach * times[:, None]
    elif len(probed.scales) == reach.shape[1]:
        with np.errstate(all="ignore"):
            times = probed.scales / noise.scales
        reach = reach * np.where((times > 0) & np.isfinite(times), times, 1.0)
    shift = np.linalg.lstsq(reach, moved, rcond=None)[0]
    left = np.abs(reach @ shift - moved).max()
    loss = float(np.abs(shift[~noise.gaussian]).sum())
    loss += float(np.sqrt(np.square(shift[noise.gaussian]).sum()))
    return loss, bool(left <= NOT_EXPLAINED * np.abs(moved).max())
