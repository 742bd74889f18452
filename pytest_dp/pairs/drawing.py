"""Draws from Hypothesis strategies, and values that a strategy makes of edited choices.

A strategy makes a value from a sequence of choices: integers, floats, booleans, texts, bytes. Only
public functions of Hypothesis are used: ``fuzz_one_input`` makes a value of random bytes, and, as
that test fails, saves its choices in a database in memory; `Phase.reuse` makes values of the
choices in a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, lru_cache, partial
from random import Random
from typing import Any, TypeVar
from unittest import SkipTest

from hypothesis import (
    HealthCheck,
    Phase,
    Verbosity,
    currently_in_test_context,
    errors,
    given,
    seed,
    settings,
    target,
)
from hypothesis import __version__ as version
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase, choices_from_bytes, choices_to_bytes

from pytest_dp.pairs.edits import Choices, DrawnValue, corners, guess_records

MAX_DRAWS = 1_000
"""Draws in a row of which none is of use. With fewer, what is rare is not found."""
MAX_POOL_RECORDS = 100_000
"""Records of all datasets that are drawn to choose from. With fewer, few are large."""

T = TypeVar("T")

BUFFERS = (2_048, 65_536)
"""Bytes that a value is made of, at first and after many draws in vain. Few make no long values."""
DRAWS_IN_VAIN = 20
"""Draws in a row that give nothing, after which more bytes are tried."""
BATCH = 24
"""Values that are drawn at a time. More take longer until the first one is there."""
PADDING = (0,) * 64
"""Choices behind edited ones, which become the simplest. With fewer, Hypothesis makes up others."""
MAX_PLACES = 2
"""Integers, and floats, whose ranges are looked for. With fewer, ends of others come by chance."""
MAX_POWER, MIN_POWER = 60, -20
"""Powers of two of the steps to the end of a range. Longer ranges count as without end."""
CONSTANT_SHARE = 0.1
"""Share of choices that become a constant where one is allowed."""

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
"""Settings that no profile of the user changes, under which nothing is saved or printed."""


class _Kept(Exception):  # noqa: N818  a way out, not an error
    """A value was made, and its choices are to be saved."""


class _Database(ExampleDatabase):
    """Choices in memory: those offered, to make values of, and those that Hypothesis saved."""

    def __init__(self, offered: Iterable[Sequence[Any]] = ()) -> None:
        super().__init__()
        self._offered = [choices_to_bytes(tuple(choices)) for choices in offered]
        self.saved: list[bytes] = []

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Return the choices that are offered; none under keys for other purposes."""
        return () if key.endswith((b".secondary", b".pareto")) else iter(self._offered)

    def save(self, key: bytes, value: bytes) -> None:  # noqa: ARG002
        """Append choices to `saved`, under any key."""
        self.saved.append(value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Do nothing: choices are offered once."""


def _outside_of_tests(compute: Callable[[], T]) -> T:
    """Call a function and return its result; in another thread while a Hypothesis test runs.

    Hypothesis takes a test inside of another test, in one thread, for a mistake of the user's.
    """
    if not currently_in_test_context():
        return compute()
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(compute).result()


class _Fuzzed:
    """A maker of values of a strategy from random bytes."""

    def __init__(self, strategy: st.SearchStrategy[Any]) -> None:
        self._database, self._values = _Database(), list[Any]()
        self._test: Any = _outside_of_tests(lambda: self._failing_test(strategy))

    def _failing_test(self, strategy: st.SearchStrategy[Any]) -> Any:
        """Return a Hypothesis test that appends a value of the strategy to `_values`, and fails."""
        values = self._values

        @settings(QUIET, database=self._database)
        @given(strategy)
        def keep(value: Any) -> None:
            values.append(value)
            # Of failures that are alike, Hypothesis saves only those that are simpler than before.
            raise type("_KeptOnce", (_Kept,), {})

        return keep

    def draw_batch(self, buffers: Sequence[bytes]) -> list[DrawnValue | None]:
        """Return the value that each buffer of bytes makes, None where the strategy rejects it.

        The values come without choices if this version of Hypothesis cannot remake values.
        """
        drawn = map(self.draw_from, buffers)
        return [one if one is None or choices_work() else DrawnValue(one.value) for one in drawn]

    def draw_from(self, buffer: bytes) -> DrawnValue | None:
        """Return the value that random bytes make, with its choices; None if they are rejected.

        Raises whatever the strategy raises.
        """
        self._database.saved.clear()
        try:
            self._test.hypothesis.fuzz_one_input(buffer)
        except _Kept:
            saved = self._database.saved
            return DrawnValue(self._values.pop(), (saved and choices_from_bytes(saved[-1])) or ())
        except errors.Unsatisfiable:  # of a strategy that yields nothing
            pass
        return None


def draw_values(
    strategy: st.SearchStrategy[Any],
    number: int,
    constants: Sequence[Any] = (),
    ends: tuple[Any, ...] | None = None,
) -> Iterator[DrawnValue | None]:
    """Yield values of a strategy, without end; None where the strategy rejects a draw.

    Equal seeds (`number`) give equal values. Each value with choices is followed by an edited one,
    with corner cases, constants or repeated records. `ends` are the smallest and largest numbers
    that the strategy allows; None looks for them, which makes hundreds of values. Raises whatever
    the strategy raises.
    """
    random, fuzzed, in_vain = Random(number), _Fuzzed(strategy), 0
    while True:
        size = BUFFERS[in_vain >= DRAWS_IN_VAIN]
        buffers = [_random_bytes(random, size) for _ in range(BATCH)]
        batch = _outside_of_tests(partial(fuzzed.draw_batch, buffers))
        in_vain = 0 if any(batch) else in_vain + BATCH
        kept = [one for one in batch if one is not None and one.choices]
        longer = [one for one in kept if len(one.choices) > 1] or kept
        several = [one if len(one.choices) > 1 else random.choice(longer) for one in kept]
        if ends is None and kept:  # looked for in a value that has choices of most types
            various = max(kept, key=lambda one: len(set(map(type, one.choices))))
            ends = _find_ends(strategy, various.choices)
        changed = [_with_corners(one.choices, random, constants, ends or ()) for one in several]
        others = iter(remake_values(strategy, changed, as_made=True) if changed else ())
        for one in batch:
            yield one
            if one is not None and one.choices:
                yield next(others)
        yield from others


_SCALES = (
    bytes(range(256)),
    bytes(byte * byte // 255 for byte in range(256)),
    bytes(255 - (255 - byte) ** 2 // 255 for byte in range(256)),
)
"""Bytes as they are, smaller, and larger: of smaller ones, lists are shorter."""


def _random_bytes(random: Random, size: int) -> bytes:
    """Return random bytes: uniform in half of the calls, mostly small or large in others."""
    return random.randbytes(size).translate(_SCALES[random.choice((0, 0, 0, 1, 1, 2))])


def _with_corners(
    choices: Choices, random: Random, constants: Sequence[Any], ends: Sequence[Any]
) -> Choices:
    """Return the choices with corner cases, constants or repeated records in random places.

    `ends` are numbers at ends of the strategy's ranges, which count as corner cases. Numbers of
    2**60 and more mostly become smaller ones.
    """
    repeat, corner = random.choice((0.0, 0.0, 0.4, 1.0)), random.choice((0.0, 0.1, 0.3, 0.9))
    made = list(choices)
    for at, choice in enumerate(choices):
        kind = type(choice)
        is_wide = kind in (int, float) and not abs(choice) < 2.0**60
        options: list[Any] = []
        if kind is not bool and random.random() < corner:
            options = [end for end in ends if type(end) is kind]
            options = corners(kind) if not options or random.random() < 0.3 else options
        elif random.random() < CONSTANT_SHARE:
            options = [constant for constant in constants if type(constant) is kind]
        elif is_wide and random.random() < 0.8:  # few mechanisms are about such numbers
            options = [kind(random.choice((1, -1)) * 10 ** random.uniform(0, 5))]
        made[at] = random.choice(options) if options else choice
    ways = guess_records(choices) if repeat else []
    if ways:
        first, *others = random.choice(ways[:2])
        for member in others:
            for (start, end), (low, high) in zip(member, first, strict=True):
                if random.random() < repeat:
                    made[start:end] = made[low:high]
    return tuple(made)


@lru_cache(maxsize=16)
def _find_ends(strategy: st.SearchStrategy[Any], choices: Choices) -> tuple[Any, ...]:
    """Remake values to find the smallest and largest numbers that a strategy allows; return these.

    Only the first `MAX_PLACES` integers and floats among the choices are moved, by steps that are
    doubled, then halved. Ranges without an end are left out.
    """
    places = [
        at
        for kind in (int, float)
        for at in [at for at, choice in enumerate(choices) if type(choice) is kind][:MAX_PLACES]
    ]
    ends = {(at, sign): choices[at] for at in places for sign in (1, -1)}

    def moved(searches: Iterable[tuple[int, int]], power: int) -> list[tuple[int, int]]:
        """Move ends by a step if the strategy allows that; return which were moved."""
        asked = {
            (at, sign): ends[at, sign] + sign * type(choices[at])(2.0**power)
            for at, sign in searches
            if type(choices[at]) is float or power >= 0
        }
        changed = [(*choices[:at], new, *choices[at + 1 :]) for (at, _), new in asked.items()]
        made = zip(asked.items(), remake_values(strategy, changed, as_made=True), strict=True)
        fits = {
            (at, sign): new
            for ((at, sign), new), one in made
            if one is not None and one.choices[at : at + 1] == (new,)
        }
        ends.update(fits)
        return list(fits)

    rising, power = list(ends), 0
    while rising and power < MAX_POWER:
        rising, power = moved(rising, power), power + 1
    for without_end in rising:
        del ends[without_end]
    for smaller in range(power, MIN_POWER, -1):
        moved(ends, smaller)
    found = {repr(number): number for number in map(_round_whole, ends.values())}
    return tuple(found.values())


def _round_whole(number: Any) -> Any:
    """Return a number; a float that is nearly whole becomes the whole float."""
    whole = float(round(number))
    is_close = abs(whole - number) <= 2.0**MIN_POWER * max(abs(number), 4.0)
    return whole if type(number) is float and is_close else number


def remake_values(
    strategy: st.SearchStrategy[Any], requests: Sequence[Sequence[Any]], *, as_made: bool = False
) -> list[DrawnValue | None]:
    """Return the value that a strategy makes of each sequence of choices; None where it rejects.

    A choice that the strategy does not allow becomes its simplest one. Each value comes with the
    choices that were requested; if `as_made`, with the choices that really made it, which takes
    longer. Raises whatever the strategy raises.
    """
    made: list[DrawnValue | None] = [None] * len(requests)
    if requests:
        _outside_of_tests(lambda: _fill_in_values(strategy, requests, made, as_made=as_made))
    return made


def _fill_in_values(
    strategy: st.SearchStrategy[Any],
    requests: Sequence[Sequence[Any]],
    made: list[DrawnValue | None],
    *,
    as_made: bool,
) -> None:
    """Set the entries of `made` to the values that a strategy makes of each sequence of choices.

    Entries of sequences that the strategy rejects stay None.
    """
    offered = [(at, *choices, *PADDING) for at, choices in enumerate(requests)]

    database = _Database(offered)

    # After as many values as a profile allows examples, Hypothesis would leave the others out.
    @settings(QUIET, database=database, phases=[Phase.reuse], max_examples=len(requests) + 1)
    @seed(0)
    @given(st.integers(0, len(requests)), strategy)
    def keep(at: int, value: Any) -> None:
        made[at] = DrawnValue(value, tuple(requests[at]))
        if as_made:  # the values that are best for a target are saved: each is better than before
            target(float(sum(one is not None for one in made)))

    with suppress(errors.Unsatisfiable, SkipTest):
        keep()
    for saved in database.saved:
        choices: Any = choices_from_bytes(saved) or (len(made),)
        if choices[0] < len(made) and (one := made[choices[0]]) is not None:
            made[choices[0]] = DrawnValue(one.value, choices[1:])


@cache
def choices_work() -> bool:
    """Return whether this version of Hypothesis saves choices, and remakes values from them."""
    probe = st.lists(st.tuples(st.integers(0, 9), st.floats()))
    try:
        drawn = (_Fuzzed(probe).draw_from(Random(number).randbytes(999)) for number in range(50))
        long = next(one for one in drawn if one is not None and len(one.value) > 2)
        (again,) = remake_values(probe, [long.choices])
    except Exception:  # whatever another version does: `describe_lost_features` says so
        return False
    return bool(long.choices) and repr(again) == repr(long)


def describe_lost_features() -> str:
    """Return a note on what does not work with this version of Hypothesis; empty if all works."""
    if choices_work():
        return ""
    return (
        f"with Hypothesis {version}, what strategies yield is neither edited nor made smaller, so "
        "that fewer violations are found: install a version from 6.140 to 6.170, or a newer "
        "pytest-dp"
    )
