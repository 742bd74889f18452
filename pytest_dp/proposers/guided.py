"""Inputs that take another way at a comparison than all before, by how far each is from it.

What draws of a strategy reach seldom or never, such as one total of many, is reached by steps: a
choice is moved, the distance says how much closer the comparison came, and the next step goes as
far as that predicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pytest_dp.pairs.distances import Distances, Way
from pytest_dp.pairs.drawing import draws, remade
from pytest_dp.pairs.edits import Choices, DrawnValue, Edits, options_beside
from pytest_dp.pairs.noiseless import NoiselessRunner
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline

FIRST_DRAWS = 60
"""Drawn inputs on which distances are looked at first. With fewer, ways are searched for that draws
take by themselves."""
MAX_DRAWN = 24
"""Drawn inputs around which pairs are screened, whatever way they take. More take longer; fewer
miss what changes without a comparison."""
MAX_RUNS = 2_000
"""Runs in all. With fewer, comparisons of several choices at once are given up too early."""
MAX_ROUNDS = 32
"""Rounds for one way in which nothing came closer, after which it is given up."""
MAX_PROBED = 12
"""Choices that are moved in one round. With fewer, long inputs take more rounds."""
MIN_SEEN = 10
"""Inputs that are all as far from a way, after which it is given up: as of a test on parameters."""
EDITS = 8
"""Random edits in each round: parts left out, added, swapped, and other choices. With fewer, inputs
of another length are hardly tried."""
TWO_STEPS = 24
"""Steps of two choices at once in each round. With fewer, a search stays where no single step comes
closer."""
JOINT_STEPS = [sign * size for size in range(1, 61) for sign in (1, -1)]
"""Steps of one choice that are joined with one of another, the smallest first. With fewer, what
asks for two exact numbers is met by chance."""
MAX_JOINT = 16
"""Such joint steps in a round. More are mostly outside of what a strategy allows."""
ROUNDING = 1e-9
"""How much longer a step is, so that it is no longer on the boundary."""
SIDEWAYS = 0.5
"""How often an input that is as close takes the place of the closest one. With 0, a search stays
where no single step comes closer."""
LARGEST_ANSWER = 1_000_000
"""Answers of queries are tried up to this number."""
MAX_SECONDS = 10.0
"""Seconds of effort after which a search ends early, of a mechanism that hangs or is slow. With
more, time is lost on such ones; with less, a busy machine ends other searches."""


@dataclass(slots=True)
class _Aim:
    """A way that no run took, and the input that came closest to it."""

    distance: float
    drawn: DrawnValue
    rounds: int = 0
    """Rounds since any came closer than all before."""
    seen: int = 0
    """Inputs that were compared."""
    varies: bool = False
    """Whether any of them was at another distance."""


def vectors(lengths: Sequence[int]) -> SearchStrategy[list[int]]:
    """Return a strategy of answers of counting queries."""
    numbers = st.integers(0, LARGEST_ANSWER)
    return st.one_of(*(st.lists(numbers, min_size=n, max_size=n) for n in lengths))


class Guided:
    """Searches the values of a strategy for those that take new ways at comparisons."""

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
        self._runner = NoiselessRunner(call, self._distances)
        self._aims: dict[Way, _Aim] = {}
        self._taken: set[Way] = set()

    @property
    def runs(self) -> int:
        """Runs that were made so far."""
        return self._runner.runs

    @cached_property
    def donors(self) -> list[DrawnValue]:
        """Values that were drawn."""
        number = FIRST_DRAWS if self._runner.tells_distances else MAX_DRAWN
        drawn = islice(draws(self._strategy, self._seed, self._constants, self._ends), number)
        return [one for one in drawn if one is not None and one.choices]

    def find_openings(self) -> Iterator[tuple[DrawnValue, str]]:
        """Yield values that take a way which no value before took, and where: ``"stats.py:14"``.

        Drawn ones come first. Raises OutOfTime where runs are slow.
        """
        self._until = Deadline(MAX_SECONDS)
        if not self._runner.tells_distances:
            return
        yield from self._note_all(self.donors, self._run(self.donors))
        for aim in self._aims.values():
            if aim.seen >= MIN_SEEN and not aim.varies:
                aim.rounds = MAX_ROUNDS
        while self.runs < MAX_RUNS and not self._runner.reason:
            if not self._aims:
                return
            way = min(self._aims, key=lambda at: self._aims[at].rounds)
            if self._aims[way].rounds >= MAX_ROUNDS:
                return
            yield from self._approach(way)

    def _approach(self, way: Way) -> Iterator[tuple[DrawnValue, str]]:
        """Take a round of steps towards a way; yield what takes new ways."""
        aim = self._aims[way]
        aim.rounds += 1
        start, distance = aim.drawn, aim.distance
        probes = [(0, 0, start.choices), *self._probes(start)]
        made = remade(self._strategy, [choices for _, _, choices in probes])
        here, *found = self._run(made)
        yield from self._note_all(made[1:], found)
        steps: list[Choices] = []
        active: set[int] = set()
        slopes, broken = dict[int, float](), dict[int, float]()
        for (at, by, _), least in zip(probes[1:], found, strict=True):
            there = least.get(way, math.inf)
            if by and (lost := [far for one, far in least.items() if far and not here.get(one, 1)]):
                broken[at] = min(lost)
            if by and there != distance:
                active.add(at)
            if at in active and math.isfinite(distance - there) and there != distance:
                # At the end of a range, or close to the way, one of two steps tells another slope.
                if at not in slopes or self.random.random() < 0.5:
                    slopes[at] = by * (there - distance)
                far = by * distance / (distance - there)
                sizes = [far, far * (1 + ROUNDING), 2 * far]
                if type(start.choices[at]) is int:
                    sizes = [math.floor(far), math.ceil(far), 2 * round(far)]
                steps += [_move_numbers(start, {at: size}) for size in dict.fromkeys(sizes)]
        two_steps = [self._two_steps(sorted(active)) for _ in range(TWO_STEPS * bool(active))]
        two_steps += self._joint_steps(slopes, distance) + self._joint_steps(broken, 0)
        steps += [choices for _ in range(EDITS) for choices in self._edit(aim.drawn)]
        moved = [_move_numbers(start, step) for step in two_steps]
        made = remade(self._strategy, [*moved, *steps])
        yield from self._note_all(made, self._run(made))

    def _two_steps(self, places: Sequence[int]) -> dict[int, int]:
        """Return small steps of two choices: both of these places, or one and one close to it."""
        at = self.random.choice(places)
        others = [place for place in places if place != at]
        if not others or self.random.random() < 0.5:
            others = [at + by for by in (-3, -2, -1, 1, 2, 3)]
        sizes = [by * self.random.choice((1, 1, 1, 2, 2, 3, 4, 5, 6, 7)) for by in (1, -1)]
        self.random.shuffle(sizes)
        same_way = self.random.choice((1, -1))
        return {at: sizes[0], self.random.choice(others): same_way * sizes[1]}

    def _joint_steps(self, slopes: Mapping[int, float], rest: float) -> list[dict[int, int]]:
        """Return steps of two choices that take a way by this rest, if it moves in proportion.

        `slopes` say by how much a step of 1 moves it: where there is no rest, whatever the sign.
        """
        places = [at for at, slope in slopes.items() if slope == int(slope)]
        if len(places) < 2 or rest != int(rest):
            return []
        one, other = self.random.sample(places, 2)
        return [
            {one: by, other: round(left / slopes[other])}
            for by in JOINT_STEPS
            for slope in ((slopes[one],) if rest else (slopes[one], -slopes[one]))
            if not (left := -rest - by * slope) % slopes[other]
        ][:MAX_JOINT]

    def _probes(self, drawn: DrawnValue) -> Iterator[tuple[int, float, Choices]]:
        """Yield the choices with single ones changed: which, by how much (0 for texts)."""
        places = [at for at, choice in enumerate(drawn.choices) if type(choice) is not bool]
        self.random.shuffle(places)
        for at in places[:MAX_PROBED]:
            choice = drawn.choices[at]
            if type(choice) in (int, float):
                for by in (1, -1):
                    yield at, by, _move_numbers(drawn, {at: by})
            else:
                options = options_beside(choice, self._constants)
                for option in self.random.sample(options, min(len(options), 4)):
                    yield at, 0, (*drawn.choices[:at], option, *drawn.choices[at + 1 :])

    def _edit(self, drawn: DrawnValue) -> Iterator[Choices]:
        """Yield the choices after a random edit, if it can be made."""
        donor = self.random.choice(self.donors)
        edits = Edits(drawn, donor, self.random.randrange)
        name = self.random.choice(("drop", "add", "swap", "change", "change", "move"))
        yield from islice(getattr(edits, name)(), 1)

    def _run(self, values: Sequence[DrawnValue | None]) -> list[dict[Way, float]]:
        """Return how far each of the values is from each way."""
        found: list[dict[Way, float]] = []
        with self._runner.in_place(self._until):
            for drawn in values:
                self._distances.least = {}
                if drawn is not None:
                    self._runner.run(drawn.value)
                found.append(self._distances.least)
        return found

    def _note_all(
        self, values: Sequence[DrawnValue | None], found: Sequence[dict[Way, float]]
    ) -> list[tuple[DrawnValue, str]]:
        """Learn how far the values are from each way; return which take new ones, and where."""
        both = zip(values, found, strict=True)
        return [
            (drawn, place)
            for drawn, least in both
            if drawn is not None and (place := self._note(drawn, least))
        ]

    def _note(self, drawn: DrawnValue, least: dict[Way, float]) -> str:
        """Learn how far a value is from each way; return where it takes a new one."""
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


def _move_numbers(drawn: DrawnValue, steps: Mapping[int, float]) -> Choices:
    """Return the choices of a value, the number at each place in `steps` moved by its step.

    Places without a number stay. Bounds are not checked.
    """
    choices = list(drawn.choices)
    for at, by in steps.items():
        if 0 <= at < len(choices) and type(choices[at]) in (int, float):
            choices[at] += by
    return tuple(choices)
