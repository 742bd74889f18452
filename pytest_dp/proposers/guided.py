"""Inputs that take another way at a comparison of the code than all before.

A *way* is a comparison with one of its two outcomes. Rare ways are reached by steps: a choice of
the strategy is changed, and if the distance of a comparison from its other outcome changes, the
next step goes as far as that predicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random
from typing import Any

from hypothesis.strategies import SearchStrategy

from pytest_dp.pairs.drawing import draw_values, remake_values
from pytest_dp.pairs.edits import Choices, DrawnValue, Edits, similar_choices
from pytest_dp.pairs.noiseless import NoiselessRunner
from pytest_dp.proposers.comparisons import Distances, Way
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline

FIRST_DRAWS = 60
"""Drawn inputs that are run first. With fewer, ways are searched for that draws take."""
MAX_DRAWN = 24
"""Drawn inputs around which pairs are screened. Fewer miss what changes without a comparison."""
MAX_RUNS = 2_000
"""Runs in all. With fewer, comparisons of several choices at once are given up too early."""
MAX_ROUNDS = 32
"""Rounds towards one way in which no input came closer, after which it is given up."""
MAX_PROBED = 12
"""Choices that are moved in one round. With fewer, long inputs take more rounds."""
EDITS = 8
"""Random edits in each round. With fewer, inputs of another length are hardly tried."""
TWO_STEPS, SMALL, NEAR = 24, (1, 1, 1, 2, 2, 3, 4, 5, 6, 7), 3
"""Small steps of two choices in each round, their sizes, and how near these are. With fewer, a
search stays where no single step comes closer."""
JOINT_STEPS = [sign * size for size in range(1, 61) for sign in (1, -1)]
"""Steps of one choice that are joined with a step of another."""
MAX_JOINT = 16
"""Such joint steps in a round. More are mostly outside of what a strategy allows."""
ROUNDING = 1e-9
"""Relative length by which a step of a float is longer, to end behind the boundary."""
SIDEWAYS = 0.5
"""How often an equally close input replaces the closest. With 0, searches get stuck."""
MIN_SEEN = 10
"""Inputs that are all as far from a way, as of a test on parameters, to give it up."""
MAX_SECONDS = 10.0
"""Seconds after which a search ends. With less, a busy machine ends searches that would find."""


@dataclass(slots=True)
class _Aim:
    """A way that no run took, and the input that came closest to it."""

    distance: float
    drawn: DrawnValue
    rounds: int = 0
    """Rounds of steps since an input last came closer than all before."""
    seen: int = 0
    """Inputs whose distance was measured."""
    varies: bool = False
    """Whether their distances differ."""


class Guided:
    """A search of a strategy's values for new *ways*: outcomes of comparisons that no run had.

    `ends` are the smallest and largest numbers of the strategy, if they are known; `constants` are
    drawn now and then where the strategy allows them.
    """

    def __init__(
        self,
        strategy: SearchStrategy[Any],
        call: Call,
        seed: int,
        constants: Sequence[Any] = (),
        ends: tuple[Any, ...] | None = None,
    ) -> None:
        self._strategy, self._constants, self._ends = strategy, constants, ends
        self._seed, self.random = seed, Random(seed)
        self._distances = Distances()
        self._runner = NoiselessRunner(call, rewrite=self._distances.record_in)
        self._aims: dict[Way, _Aim] = {}
        self._taken: set[Way] = set()

    @cached_property
    def donors(self) -> list[DrawnValue]:
        """Values of the strategy, drawn at first access."""
        number = FIRST_DRAWS if self._distances.has_comparisons else MAX_DRAWN
        drawn = islice(draw_values(self._strategy, self._seed, self._constants, self._ends), number)
        return [one for one in drawn if one is not None and one.choices]

    def find_openings(self) -> Iterator[tuple[DrawnValue, str]]:
        """Run the mechanism; yield values that take a new way, and where: ``"stats.py:14"``.

        Drawn values come first. Nothing without comparisons. Raises OutOfTime after `MAX_SECONDS`.
        """
        deadline = Deadline(MAX_SECONDS)
        if not self._distances.has_comparisons:
            return
        _, openings = self._run(self.donors, deadline)
        yield from openings
        for aim in self._aims.values():
            if aim.seen >= MIN_SEEN and not aim.varies:
                aim.rounds = MAX_ROUNDS
        while self._aims and self._runner.runs < MAX_RUNS and not self._runner.reason:
            way, aim = min(self._aims.items(), key=lambda item: item[1].rounds)
            if aim.rounds >= MAX_ROUNDS:
                return
            aim.rounds += 1
            start, distance = aim.drawn, aim.distance
            probes = list(self._change_one_choice(start))
            asked = [start.choices, *(choices for _, _, choices in probes)]
            first, *made = remake_values(self._strategy, asked)
            (here,), _ = self._run([first], deadline, is_noted=False)
            found, openings = self._run(made, deadline)
            yield from openings
            steps: list[Choices] = []
            slopes, broken = dict[int, float](), dict[int, float]()
            for (at, by, _), least in zip(probes, found, strict=True):
                there = least.get(way, math.inf)
                lost = [far for at_way, far in least.items() if far and here.get(at_way) == 0]
                if lost and by:
                    broken[at] = min(lost)
                if by and there != distance:
                    steps += _steps_to_zero(start, at, by, distance, there)
                    # Close to the way, one of the two steps shows another slope.
                    if at not in slopes or self.random.random() < 0.5:
                        slopes[at] = by * (there - distance)
            two = [
                self._move_two_numbers(start, list(slopes)) for _ in range(TWO_STEPS * bool(slopes))
            ]
            two += self._move_jointly(start, slopes, distance)
            steps = [*two, *self._move_jointly(start, broken, 0.0), *steps]
            steps += [choices for _ in range(EDITS) for choices in self._edit(aim.drawn)]
            _, openings = self._run(remake_values(self._strategy, steps), deadline)
            yield from openings

    def _change_one_choice(self, drawn: DrawnValue) -> Iterator[tuple[int, int, Choices]]:
        """Yield (place, change, choices) with one choice changed; the change is 0 for texts."""
        places = [at for at, choice in enumerate(drawn.choices) if type(choice) is not bool]
        self.random.shuffle(places)
        for at in places[:MAX_PROBED]:
            choice = drawn.choices[at]
            if type(choice) in (int, float):
                for by in (1, -1):
                    yield at, by, _move_number(drawn, at, by)
            else:
                options = similar_choices(choice, self._constants)
                for option in self.random.sample(options, min(len(options), 4)):
                    yield at, 0, (*drawn.choices[:at], option, *drawn.choices[at + 1 :])

    def _move_jointly(
        self, drawn: DrawnValue, slopes: Mapping[int, float], distance: float
    ) -> Iterator[Choices]:
        """Yield the choices with two numbers moved so that a linear distance becomes 0, or stays 0.

        `slopes` are by how much a step of 1 changes the distance, by place; their signs are unknown
        if the distance is 0. Nothing unless two slopes, and the distance, are whole numbers.
        """
        places = [at for at, slope in slopes.items() if math.isfinite(slope) and slope % 1 == 0]
        if len(places) < 2 or distance % 1:
            return
        one, other = self.random.sample(places, 2)
        signs = (1,) if distance else (1, -1)
        left = ((by, distance + sign * by * slopes[one]) for by in JOINT_STEPS for sign in signs)
        for by, rest in islice((at for at in left if at[1] % slopes[other] == 0), MAX_JOINT):
            moved = DrawnValue(drawn.value, _move_number(drawn, one, by))
            yield _move_number(moved, other, -round(rest / slopes[other]))

    def _move_two_numbers(self, drawn: DrawnValue, places: Sequence[int]) -> Choices:
        """Return the choices with two numbers moved by 1 to 7, one of them at one of `places`."""
        numbers = [at for at, choice in enumerate(drawn.choices) if type(choice) in (int, float)]
        at = self.random.choice(places)
        near = [by for by in numbers if 0 < abs(by - at) <= NEAR] or numbers
        other = self.random.choice(near if self.random.random() < 0.5 else places)
        first, second = (self.random.choice((-1, 1)) * self.random.choice(SMALL) for _ in range(2))
        moved = DrawnValue(drawn.value, _move_number(drawn, at, first))
        return _move_number(moved, other, second)

    def _edit(self, drawn: DrawnValue) -> Iterator[Choices]:
        """Yield the choices after a random edit; nothing if the edit cannot be made."""
        donor = self.random.choice(self.donors)
        edits = Edits(drawn, donor, self.random.randrange)
        name = self.random.choice(("drop", "add", "swap", "change", "change", "move"))
        yield from islice(getattr(edits, name)(), 1)

    def _run(
        self, values: Sequence[DrawnValue | None], deadline: Deadline, *, is_noted: bool = True
    ) -> tuple[list[dict[Way, float]], list[tuple[DrawnValue, str]]]:
        """Run the mechanism on values; if `is_noted`, keep for each way the one that came closest.

        Return the distance of each value from each way (empty for None), and those that take a new
        way, with its place.
        """
        found: list[dict[Way, float]] = []
        openings: list[tuple[DrawnValue, str]] = []
        with self._runner.in_place(deadline):
            for drawn in values:
                self._distances.least = {}
                if drawn is not None:
                    self._runner.run(drawn.value)
                    if is_noted and (place := self._note_distances(drawn, self._distances.least)):
                        openings.append((drawn, place))
                found.append(self._distances.least)
        return found, openings

    def _note_distances(self, drawn: DrawnValue, least: dict[Way, float]) -> str:
        """Update the aims by the distances `least` of a value; return where it takes a new way.

        A way at distance 0 counts as taken from now on, and is no aim any more. For each other way
        the closest value is kept. The result is ``"FILE:LINE"`` of the last new way, "" without
        any.
        """
        place = ""
        for way, distance in least.items():
            if not distance:
                place = f"{way[0]}:{way[1]}" if way not in self._taken else place
                self._taken.add(way)
                self._aims.pop(way, None)
            elif way not in self._taken and math.isfinite(distance):
                aim = self._aims.setdefault(way, _Aim(distance, drawn))
                aim.seen += 1
                aim.varies |= distance != aim.distance
                if distance < aim.distance:
                    aim.distance, aim.drawn, aim.rounds = distance, drawn, 0
                elif distance == aim.distance and self.random.random() < SIDEWAYS:
                    aim.drawn = drawn
        return place


def _steps_to_zero(
    drawn: DrawnValue, at: int, by: int, distance: float, there: float
) -> list[Choices]:
    """Return the choices with the number at one place moved until the distance is 0, or below.

    The prediction is linear, from the `distance` at the value and the distance `there` after a step
    `by`. Empty if `there` is not finite.
    """
    if not math.isfinite(there):
        return []
    far = by * distance / (distance - there)
    sizes = [far, far * (1 + ROUNDING), 2 * far]
    if type(drawn.choices[at]) is int:
        sizes = [math.floor(far), math.ceil(far), 2 * round(far)]
    return [_move_number(drawn, at, size) for size in dict.fromkeys(sizes)]


def _move_number(drawn: DrawnValue, at: int, by: float) -> Choices:
    """Return the choices of a value with the number at one place moved, even out of its range."""
    choices = list(drawn.choices)
    choices[at] += by
    return tuple(choices)
