"""Draws from Hypothesis strategies: corner cases too, to be drawn again, mutated and shrunk.

A strategy makes a value from a sequence of choices (integers, floats, booleans, strings, bytes),
each with constraints. Who makes the choices decides what is drawn: `_Corners` prefers the ends of
their ranges, NaN and infinities, repetitions and given constants, so that every strategy yields its
own corner cases. A value keeps its choices; edited, they give another value of the same strategy,
and never one that it cannot yield.

This is the only module that looks inside Hypothesis, at what is there from 6.140 to 6.170 (tested).
With another one values are drawn by ``@given``, without choices, and can be neither mutated nor
shrunk: audits say so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, cast

from hypothesis import HealthCheck, Phase, Verbosity, errors, given, seed, settings
from hypothesis import __version__ as version
from hypothesis import strategies as st

from pytest_dp import clocks
from pytest_dp.limits import SELDOM, SEVERAL, THOUSAND

try:
    from hypothesis.control import BuildContext, current_build_context
    from hypothesis.internal.conjecture.choice import choice_permitted
    from hypothesis.internal.conjecture.data import ConjectureData, Status
    from hypothesis.internal.conjecture.engine import ConjectureRunner, RunIsComplete
    from hypothesis.internal.conjecture.providers import HypothesisProvider
    from hypothesis.internal.conjecture.shrinker import sort_key
except ImportError:  # another Hypothesis: `choices_work` says so
    HypothesisProvider = object  # type: ignore[assignment, misc]


QUIET = settings(
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    verbosity=Verbosity.quiet,
    print_blob=False,
    report_multiple_bugs=False,
    derandomize=False,
    backend="hypothesis",
)
"""Of all that a user's profile may say, nothing holds here, and nothing is left behind."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A value, and the choices it was made from with the constraints of each.

    There are no choices where it was drawn by ``@given``.
    """

    value: Any
    choices: tuple[Any, ...] = ()
    constraints: tuple[Mapping[str, Any], ...] = ()
    whole: Part | None = field(default=None, compare=False)
    """All choices and their parts, if these are known."""


@dataclass(slots=True)
class Part:
    """Choices made for one part of a value, such as a record; it may have parts itself."""

    label: int
    """Equal for what is made alike, such as the records of a list."""
    start: int
    """The first of the choices."""
    end: int = 0
    """The one after the last."""
    parts: list[Part] = field(default_factory=list)
    """Those that are in the value."""

    def after(self, start: int) -> Part:
        """The same part, counted from a choice before it."""
        inner = [part.after(start) for part in self.parts] if start else self.parts
        return Part(self.label, self.start - start, self.end - start, inner)


class _Corners(HypothesisProvider):
    """Makes choices: as Hypothesis does, or corners of their ranges, constants, earlier ones.

    It notes which choices belong together.
    """

    def __init__(self, data: Any, constants: Sequence[Any] = ()) -> None:
        super().__init__(data)
        self._constants = constants
        self._earlier: dict[Any, list[Any]] = {}
        self._luck = luck = cast("Random", self._random)
        repeats, corners = (0.0, 0.0, 0.4, 0.95), (0.0, 0.1, 0.3, 0.9)
        sizes = (-0.9, 0.0, 0.0, 0.5, 0.8)  # how much shorter, or longer, collections are
        self._moods = [luck.choice(moods) for moods in (repeats, corners, sizes)]
        self.open = [Part(0, 0)]
        """Parts that are being made, each one inside of the one before."""

    def span_start(self, label: int, /) -> None:
        self.open.append(Part(label, self._made()))

    def span_end(self, discard: bool, /) -> None:
        if len(self.open) > 1:  # a value that is given up ends more than once
            part = self.open.pop()
            part.end = self._made()
            if not discard and part.end > part.start:
                self.open[-1].parts.append(part)

    def _made(self) -> int:
        data: Any = self._cd
        return len(data.nodes)

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        # Hypothesis takes those of all modules that were imported so far, so that what is drawn
        # would depend on which tests are selected.
        return None

    def draw_boolean(self, p: float = 0.5) -> bool:
        longer = self._moods[2]
        p = p * (1 + longer) if longer < 0 else 1 - (1 - p) * (1 - longer)
        return bool(super().draw_boolean(p)) if 0 < p < 1 else p >= 1

    def draw_integer(self, *args: Any, **constraints: Any) -> int:
        return int(self._chosen(int, super().draw_integer, args, constraints))

    def draw_float(self, *args: Any, **constraints: Any) -> float:
        return float(self._chosen(float, super().draw_float, args, constraints))

    def draw_string(self, *args: Any, **constraints: Any) -> str:
        return str(self._chosen(str, super().draw_string, args, constraints))

    def draw_bytes(self, *args: Any, **constraints: Any) -> bytes:
        return bytes(self._chosen(bytes, super().draw_bytes, args, constraints))

    def _chosen(
        self, kind: type, usual: Callable[..., Any], args: Any, constraints: dict[str, Any]
    ) -> Any:
        names = ("min_value", "max_value", "min_size", "max_size")
        repeat, corner, _ = self._moods
        earlier = self._earlier.setdefault((kind, *map(constraints.get, names)), [])
        options: list[Any] = []
        if earlier and self._luck.random() < repeat:
            options = earlier[-1:]
        elif self._luck.random() < corner:
            options = corners(kind, constraints)
        elif self._luck.random() < SELDOM:
            options = [c for c in self._constants if type(c) is kind]
        options = [value for value in options if _is_permitted(value, constraints)]
        earlier.append(self._luck.choice(options) if options else usual(*args, **constraints))
        return earlier[-1]


def _is_permitted(choice: Any, constraints: Any) -> bool:
    return choice is not None and choice_permitted(choice, constraints)


def corners(kind: type, constraints: Mapping[str, Any]) -> list[Any]:
    """Corners of the range of a choice; some of them may be not permitted."""
    if kind is str:
        return [""]
    if kind is bytes:
        return [b""]
    ends = [constraints.get("min_value"), constraints.get("max_value")]
    if kind is int:
        return [0, *ends] if None not in ends else [0, 10**6, -(10**6), 2**31 - 1, -(2**31)]
    inf, largest = float("inf"), sys.float_info.max
    return [0.0, -0.0, *ends, inf, -inf, float("nan"), 1e6, -1e6, largest, -largest]


def draws(
    strategy: st.SearchStrategy[Any], number: int, constants: Sequence[Any] = ()
) -> Iterator[Drawn | None]:
    """Values of a strategy, without end, the same ones for each `number`; None where it rejects.

    What the strategy raises is not caught.
    """
    random = Random(number)
    while choices_work():
        yield _drawn(strategy, (), random, constants)
    count = 100
    while True:
        yield from _drawn_by_given(strategy, random.getrandbits(64), count)
        count = min(2 * count, THOUSAND)


def _drawn(
    strategy: st.SearchStrategy[Any],
    prefix: Sequence[Any],
    random: Random,
    constants: Sequence[Any] = (),
) -> Drawn | None:
    """The value whose first choices are these, as far as they are allowed; None if rejected."""
    data = ConjectureData(
        random=random,
        prefix=tuple(prefix),
        provider=_Corners,
        provider_kw={"constants": constants},
    )
    try:
        with BuildContext(data, is_final=False, wrapped_test=_drawn):
            value = data.draw(strategy)
    except (errors.StopTest, errors.UnsatisfiedAssumption):
        return None
    return _as_drawn(value, data)


def remade(strategy: st.SearchStrategy[Any], choices: Sequence[Any]) -> Drawn | None:
    """The value that a strategy makes of some choices; None if it rejects them.

    Choices that are not allowed where they stand, or that are missing, are replaced: the same ones
    each time.
    """
    return _drawn(strategy, choices, Random(0))


def traced(draw: Callable[[st.SearchStrategy[Any]], Any], strategy: Any) -> Drawn:
    """What is drawn inside of a composite strategy, with its choices."""
    if not choices_work():
        return Drawn(draw(strategy))
    data: Any = current_build_context().data
    start = len(data.nodes)
    value = draw(strategy)
    return _as_drawn(value, data, start)


def _as_drawn(value: Any, data: Any, start: int = 0) -> Drawn:
    """A value and the choices that were made for it, those from `start` on."""
    nodes = data.nodes[start:]
    whole = data.provider.open[-1].parts if isinstance(data.provider, _Corners) else []
    return Drawn(
        value,
        tuple(node.value for node in nodes),
        tuple(node.constraints for node in nodes),
        whole[-1].after(start) if whole else None,
    )


def _drawn_by_given(
    strategy: st.SearchStrategy[Any], number: int, count: int
) -> list[Drawn | None]:
    """Up to `count` values, drawn by ``@given`` alone."""
    values: list[Drawn | None] = []

    @seed(number)
    @settings(QUIET, max_examples=count)
    @given(strategy)
    def collect(value: Any) -> None:
        values.append(Drawn(value))

    try:
        collect()
    except errors.Unsatisfiable:
        return [None] * count
    return values


@cache
def choices_work() -> bool:
    """Whether this Hypothesis can be looked into: by drawing, drawing again, and shrinking."""
    probe = st.lists(st.tuples(st.integers(0, 9), st.floats()))
    try:
        drawn = [_drawn(probe, (), Random(number)) for number in range(30)]
        long = next(value for value in drawn if value and len(value.value) > 2)
        again = _drawn(probe, long.choices, Random(0))
        small = _shrunk(probe, long, lambda value: len(value) > 1, 1.0)
    except Exception:  # whatever another version has in place of it: `lost_by_version` says so
        return False
    return repr(again) == repr(long) and small.value == [(0, 0.0), (0, 0.0)]


def lost_by_version() -> str:
    """Return what this version of Hypothesis keeps from working, as a note; empty if nothing."""
    if choices_work():
        return ""
    return (
        f"with Hypothesis {version}, what strategies yield is neither mutated nor made smaller, so "
        "that fewer violations are found: install a version from 6.140 to 6.170, or a newer "
        "pytest-dp"
    )


def mutated(
    strategy: st.SearchStrategy[Any],
    drawn: Drawn,
    other: Drawn,
    random: Random,
    constants: Sequence[Any] = (),
) -> Drawn | None:
    """A value near `drawn`: a choice changed, or a few left out, repeated, or taken from `other`.

    None if there are no choices, or the strategy rejects the new ones.
    """
    if not drawn.choices or not choices_work():
        return None
    choices = list(drawn.choices)
    at = random.randrange(len(choices))
    end = at + random.randint(1, SEVERAL)
    match random.choice(("change", "change", "leave out", "repeat", "move", "tail")):
        case "change":
            options = options_beside(choices[at], drawn.constraints[at], constants)
            choices[at] = random.choice(options) if options else choices[at]
        case "leave out":
            del choices[at:end]
        case "repeat":
            choices[end:end] = choices[at:end]
        case "move":
            start = random.randrange(len(other.choices) or 1)
            choices[at:end] = other.choices[start : start + end - at]
        case "tail":
            del choices[at:]
    return _drawn(strategy, choices, random, constants)


def options_beside(
    choice: Any, constraints: Mapping[str, Any], constants: Sequence[Any] = ()
) -> list[Any]:
    """Other choices of the same kind that are allowed: near ones, corners and constants."""
    kind = type(choice)
    if kind is bool:
        return [not choice]
    near: list[Any] = []
    if kind in (int, float):
        near = [choice + 1, choice - 1, 2 * choice, -choice, choice + choice / 10]
    options = [c for c in constants if type(c) is kind]
    options += [kind(value) for value in near if kind is float or value == int(value)]
    options += corners(kind, constraints)
    return [value for value in options if _is_permitted(value, constraints)]


def shrunk(
    strategy: st.SearchStrategy[Any],
    drawn: Drawn,
    still_fails: Callable[[Any], bool],
    seconds: float,
) -> Drawn:
    """The smallest value found that still fails, by Hypothesis' own shrinking.

    The value that is drawn fails, and is returned if nothing smaller does. `still_fails` says the
    same of equal values. After so many seconds, no value counts as failing.
    """
    if not drawn.choices or not choices_work():
        return drawn
    return _shrunk(strategy, drawn, still_fails, seconds)


def _shrunk(
    strategy: st.SearchStrategy[Any],
    drawn: Drawn,
    still_fails: Callable[[Any], bool],
    seconds: float,
) -> Drawn:
    until, smallest = clocks.seconds() + seconds, drawn
    size: Any = None

    def test(data: Any) -> None:
        nonlocal smallest, size
        with BuildContext(data, is_final=False, wrapped_test=test):
            value = data.draw(strategy)
        if clocks.seconds() < until and still_fails(value):
            if size is None or sort_key(data.nodes) < size:
                smallest, size = _as_drawn(value, data), sort_key(data.nodes)
            failing: Any = "still fails"
            data.mark_interesting(failing)

    def is_interesting(data: Any) -> bool:
        if clocks.seconds() >= until:  # or it would go on trying, in vain
            raise RunIsComplete
        return bool(data.status is Status.INTERESTING)

    allowed = settings(QUIET, phases=[Phase.generate, Phase.shrink])
    runner = ConjectureRunner(test, settings=allowed, random=Random(0), ignore_limits=True)
    with suppress(RunIsComplete):
        start: Any = runner.cached_test_function(drawn.choices)
        if start.status is Status.INTERESTING:
            runner.shrink(start, is_interesting)
    return smallest
