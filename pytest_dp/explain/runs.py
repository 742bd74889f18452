"""Runs on D and D' with the same noise, some with replaced draws, and findings about their lines.

A place is where a part of an output stands, such as ``output[0]``; a leaf is that part.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from pytest_dp.basics.reprs import LABEL_LENGTH, SHORT_LENGTH
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.table import tabulate
from pytest_dp.readers.parsed import TEXTS, parse_text, rename_output
from pytest_dp.readers.text_features import NUMBERS_IN
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument, Request, Site
from pytest_dp.running.instrumented import (
    Draw,
    Replaced,
    Replacement,
    Seeded,
    Tape,
    run_instrumented,
)

LOOK_RUNS = 24
"""Runs on either input that show which leaves differ. Fewer miss rare differences."""
MAX_LEAVES = 2_000
"""Places of an output that are compared, at most. With fewer, long outputs are left out."""
ROUNDING = 1e-9
"""Relative error after a few operations. Larger: small differences are missed."""
FAR_OFF = 1e6
"""Multiple by which a draw is moved far off. Smaller: outputs hide it; larger: it overflows."""

RUNS = 200
"""Runs on either input in which something has to be always the same. Fewer are less sure."""
MANY_RUNS = 600
"""Runs on either input in which something is counted. Fewer are less sure."""

Leaf = float | tuple[Any, ...]
"""Part of an output: a number, or the kind and the value of a category."""
SIDES = ("D", "D'")
ABSENT: Leaf = ("absent",)
"""The value of a leaf in a run whose output does not have it."""
LENGTH = "len(output)"
"""The place of the leaf that holds an output's length."""
ORDER = "list(output)"
"""The place of the leaf that holds the keys of a dict, in their order."""
WHOLE = (LENGTH, ORDER)
"""Places that stand for an output as a whole, not for a part of it."""
UNIFORM = {"random", "random_sample", "rand", "ranf", "sample"}
"""Methods that draw uniformly from [0, 1)."""
BELOW_ONE = 1 - 2.0**-53
"""Given: the largest double below 1."""


class TooLong(Exception):  # noqa: N818  a way out, not an error
    """An output has too many leaves to look at them one by one."""


ENDS = (CannotInstrument, CannotCopy, OutOfTime, TooLong, MemoryError, RecursionError)
"""Exceptions that end the explaining runs of a mechanism, with the findings so far."""


@dataclass(frozen=True)
class SideRun:
    """One run on one input."""

    output: Any
    draws: list[Draw]
    seeded: list[Seeded]

    @cached_property
    def leaves(self) -> dict[str, Leaf]:
        """The parts of the output by their places, and its length; raises TooLong."""
        leaves, length = _read_leaves(self.output)
        return leaves if length is None else {**leaves, LENGTH: ("length", length)}

    def draws_at(self, line: Site) -> list[Draw]:
        """Return the draws of a line in this run."""
        return [draw for draw in self.draws if place_of(draw.stack) == line]


def _read_leaves(output: Any) -> tuple[dict[str, Leaf], int | None]:
    """Return the values in an output by place, such as ``output[0]``, and its length or None.

    Texts such as JSON are parsed. A text of several words gives a value for each number, and one
    for the words. Raises TooLong if there are more than `MAX_LEAVES`.
    """
    table = tabulate([output])
    if len(table.codes) > MAX_LEAVES:
        raise TooLong
    names: dict[int, Any] = {code: level for level, code in table.levels.items()}
    structure = table.structures[0]
    leaves: dict[str, Leaf] = {}
    for place, number, code in zip(structure.places, table.numbers, table.codes, strict=True):
        kind, value = names.get(int(code), ("", None))
        parsed = parse_text(value) if kind in TEXTS else None
        if parsed is not None:
            name = parsed[0](place)
            inside = _read_leaves(parsed[1])[0]
            leaves |= {rename_output(inner, name): leaf for inner, leaf in inside.items()}
        elif kind == "str" and " " in value and (numbers := NUMBERS_IN.findall(value)):
            leaves |= {f"numbers({place})[{i}]": float(n) for i, n in enumerate(numbers)}
            leaves[f"words({place})"] = kind, NUMBERS_IN.sub("#", value)
        elif code == NUMBER:
            leaves[place] = float(number) if number == number else math.nan
        else:
            leaves[place] = kind, value
    if type(output) is dict and len(output) > 1:
        leaves[ORDER] = "order", ", ".join(map(repr, output))
    return leaves, structure.length


@dataclass(frozen=True)
class PairRuns:
    """Runs on both inputs of a pair, which its methods and cached properties make.

    Runs with equal numbers of their noise get equal random numbers. A side is 0 for D, 1 for D'.
    Methods and properties may raise the exceptions of `ENDS`.
    """

    call: Call
    pair: tuple[Any, Any]
    deadline: Deadline

    def run(self, side: int, noise: int, replaced: Replaced | None = None) -> SideRun:
        """Run the mechanism, with some draws replaced; raises OutOfTime if no time is left."""
        if self.deadline.remaining() < 0:
            raise OutOfTime
        tape = Tape(noise, replaced)
        output = run_instrumented(self.call, self.pair[side], tape, self.deadline)
        return SideRun(output, tape.draws, tape.seeded)

    @cached_property
    def _usual(self) -> dict[tuple[int, int], SideRun]:
        return {}

    def cached_run(self, side: int, noise: int) -> SideRun:
        """Return the run on an input with the noise of this number; make it if it is not cached."""
        key = side, noise
        if key not in self._usual:
            self._usual[key] = self.run(side, noise)
        return self._usual[key]

    def run_both(self, noise: int) -> tuple[SideRun, SideRun]:
        """Return the runs on D and D' with the same noise, from the cache if they were made."""
        return self.cached_run(0, noise), self.cached_run(1, noise)

    def all_runs(self) -> Iterator[SideRun]:
        """Return the first `LOOK_RUNS` runs on D and on D', in pairs."""
        return chain.from_iterable(map(self.run_both, range(LOOK_RUNS)))

    def values(self, side: int, place: str, count: int) -> list[Leaf]:
        """Return the output's values at a place in `count` runs; ABSENT where it is missing."""
        return [self.cached_run(side, noise).leaves.get(place, ABSENT) for noise in range(count)]

    @cached_property
    def is_repeatable(self) -> bool:
        """True if runs on the same noise give the same output: all noise is captured."""
        return not any(
            changed_leaves(self.cached_run(side, noise), self.run(side, noise))
            for side in (0, 1)
            for noise in (0, 1)
        )

    @cached_property
    def differing_places(self) -> tuple[str, ...]:
        """Places, such as ``output[0]``, whose values differ between D and D' on equal noise."""
        places: dict[str, None] = {}  # in order
        for noise in range(LOOK_RUNS):
            here, there = (run.leaves for run in self.run_both(noise))
            places |= dict.fromkeys(
                place for place in here | there if differ(here.get(place), there.get(place))
            )
        return tuple(places)

    @cached_property
    def lines(self) -> tuple[Site, ...]:
        """The first lines that draw, in order; at most half of `LOOK_RUNS`."""
        lines = dict.fromkeys(place_of(draw.stack) for run in self.all_runs() for draw in run.draws)
        return tuple(lines)[: LOOK_RUNS // 2]

    def draw_at(self, line: Site) -> Draw:
        """Return the first draw of a line; raises StopIteration if it never draws."""
        return next(draw for run in self.all_runs() for draw in run.draws_at(line))

    def lines_of(self, place: str) -> frozenset[Site]:
        """Return the lines whose draws change the value at a place, on either input."""
        return self.lines_on(0, place) | self.lines_on(1, place)

    def lines_on(self, side: int, place: str) -> frozenset[Site]:
        """Return the lines whose draws change the value at a place on one input."""
        return frozenset(self._reaching.get((side, place), ()))

    @cached_property
    def _reaching(self) -> dict[tuple[int, str], set[Site]]:
        """The lines whose draws change a leaf if replaced, by the leaf's side and place."""
        reaching = defaultdict(set)
        ends = extreme(-1), extreme(1)
        trials: list[tuple[int, Replacement]] = [
            (noise, redrawn) for noise in range(LOOK_RUNS // 2)
        ]
        trials += [(noise, end) for noise in (0, 1) for end in ends]
        for side in (0, 1):
            for line in self.lines:
                for noise, replacement in trials:
                    run = self.run(side, noise, first_at(line, replacement))
                    for place in changed_leaves(self.cached_run(side, noise), run):
                        reaching[side, place].add(line)
        return dict(reaching)


def place_of(stack: tuple[Site, ...]) -> Site:
    """Return the innermost line of the project on the way to a draw; else the line that draws."""
    return next((site for site in stack if is_project_file(site.file)), stack[0])


def differ(one: Leaf | None, other: Leaf | None, relative: float = ROUNDING) -> bool:
    """Return whether two values differ by more than a `relative` error; NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, float):
        if one == other or (np.isnan(one) and np.isnan(other)):
            return False
        return not abs(one - other) <= relative * max(abs(one), abs(other))
    return one != other


def changed_leaves(one: SideRun, other: SideRun) -> set[str]:
    """Return the places, such as ``output[0]``, at which two outputs are not exactly equal."""
    places = one.leaves.keys() | other.leaves.keys()
    return {p for p in places if differ(one.leaves.get(p), other.leaves.get(p), 0.0)}


# --- draws that are replaced ---


def first_at(line: Site, replacement: Replacement) -> Replaced:
    """Return a function, for one run, that replaces the first `LOOK_RUNS` draws of a line.

    Later draws of the line stay real, as a loop may wait for another value.
    """
    left = LOOK_RUNS

    def replaced(draw: Draw) -> Replacement | None:
        nonlocal left
        if place_of(draw.stack) != line or not left:
            return None
        left -= 1
        return replacement

    return replaced


def all_at(line: Site, replacement: Replacement) -> Replaced:
    """Return a function that replaces all draws of a line."""
    return lambda draw: replacement if place_of(draw.stack) == line else None


def redrawn(draw: Draw, other: Any) -> Any:
    """Return a replacement: another value, drawn in the same way from the streams `other`."""
    return other.of(draw.request, draw.stack)


def extreme(sign: int) -> Replacement:
    """Return a replacement: a value far out on the side of `sign`; of integers, another draw."""

    def far(draw: Draw, other: Any) -> Any:
        value = draw.value
        if draw.request.method in UNIFORM:
            edge = 0.0 if sign < 0 else BELOW_ONE
            return np.full_like(value, edge) if isinstance(value, np.ndarray) else edge
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return value + sign * FAR_OFF * (1 + np.abs(value))
        if isinstance(value, float):
            return type(value)(value + sign * FAR_OFF * (1 + abs(value)))
        return redrawn(draw, other)

    return far


# --- findings, as text ---


@dataclass(frozen=True, slots=True)
class Finding:
    """A statement about a line that leaks, seen to hold in the runs."""

    kind: str
    """As in `Blame`."""
    line: Site
    text: str
    """The statement."""
    certain: bool = False
    """Whether no claim of any size can be kept with it."""
    loss: float = 0.0
    """The loss at the line in the claim's parameter; 0 if it is not known."""
    advice: str = ""
    """Advice for this finding alone, in place of the advice for its kind."""

    @property
    def remedy(self) -> str:
        """Advice on what to change; empty if that is unknown."""
        if not self.advice and self.kind == "too little noise" and math.isinf(self.loss):
            return OTHER_NOISE
        return self.advice or _REMEDIES.get(self.kind, "")


_REMEDIES = {
    "too little noise": (
        "let one record move the answer less, such as by a clip; or use more noise; or claim the "
        "larger loss"
    ),
    "shared noise": "draw new noise for each number that is released",
    "seeded": "leave the seed to the caller, so that each run has new noise",
    "too far apart": "make this outcome more equally likely on D and D', or claim the larger loss",
    "passing": "run this line less often, or by a noisy decision; or claim the larger loss",
}
"""Advice by kind of finding."""
OTHER_NOISE = (
    "use noise that can give every output on both inputs, with tails at least as heavy as "
    "Laplace noise; or claim a delta"
)


def find_caller(stack: Sequence[Site], loss: float) -> Iterator[Finding]:
    """Yield a finding on the line that asks for noise which a line of another function draws.

    Nothing if no other line of the project is on the stack.
    """
    sites = [site for site in stack if is_project_file(site.file)]
    for site in [site for site in sites if site.line != sites[0].line][:1]:
        text = f"this line asks for the noise of line {sites[0].line}, in {sites[0].function}"
        yield Finding("called", site, text, loss=loss)


def format_draw(request: Request) -> str:
    """Return a draw as in code: ``rng.laplace(scale=1.0)``; long arguments as ``...``."""
    arguments = [_format_argument(value) for value in request.args]
    arguments += [
        f"{name}={_format_argument(value)}"
        for name, value in request.keywords.items()
        if name != "size"
    ]
    text = f"{request.source.name}.{request.method}({', '.join(arguments)})"
    return text if len(text) <= SHORT_LENGTH else f"{request.source.name}.{request.method}(...)"


def _format_argument(value: Any) -> str:
    """Return an argument of a draw as in code; ``...`` for arrays and objects."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, float):
        return format_number(value)
    return repr(value) if isinstance(value, bool | int | str) else "..."


def format_number(value: float) -> str:
    """Return a number to four digits: ``2.0``, ``0.3333``."""
    text = f"{value:.4g}"
    return text if set(text) & set(".einf") else f"{text}.0"


def format_leaf(leaf: Leaf | None) -> str:
    """Return the value of a leaf as text, cut to the length of a label; "not there" if absent."""
    if isinstance(leaf, float):
        return format_number(leaf)
    if leaf is None or leaf == ABSENT:
        return "not there"
    text = repr(leaf[1]) if leaf[0] == "str" else " ".join(map(str, leaf[1:])) or str(leaf[0])
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 3]}..."


def format_places(places: Sequence[str]) -> str:
    """Return places as text, such as ``output[0], output[1] and 8 more``."""
    if len(places) <= 2:
        return " and ".join(places)
    return f"{places[0]}, {places[1]} and {len(places) - 2} more"


def together_with(lines: Sequence[Site]) -> str:
    """Return lines as text, such as ``, together with line 3``; empty for no lines."""
    numbers = sorted({line.line for line in lines})
    noun = "line" if len(numbers) == 1 else "lines"
    return f", together with {noun} {', '.join(map(str, numbers[:4]))}" if numbers else ""
