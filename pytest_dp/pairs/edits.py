"""Ways to change the choices that a dataset was made of, so that a neighbour may come of it.

Whatever a strategy asks of its datasets (records that are sorted, or different, or have a fixed
sum), a value that it makes of edited choices is one of its own. Which choices belong to one record
is guessed, by how their types repeat. Which edits give a neighbour is not known before: they are
tried, and the relation decides.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_dp.data import kind_of
from pytest_dp.data.conversion import length

MAX_MOVED = 64
"""Numbers that are moved at once."""
MAX_WIDTH = 16
"""Choices of one record, or of one entry of a column. With fewer, wide records are not found."""
MAX_WAYS = 8
"""Ways to see a value as records. More are tried in vain."""

Choices = tuple[Any, ...]
Pick = Callable[[int], int]
"""A number below the given one."""
Span = tuple[int, int]
"""The first of some choices, and the one after the last."""
Member = tuple[Span, ...]
"""The choices of one record: those in a row, or those of each column."""


@dataclass(frozen=True, slots=True)
class DrawnValue:
    """A value, and the choices that it was made from; none where these are not known."""

    value: Any
    choices: Choices = ()


def corners(kind: type) -> list[Any]:
    """Return numbers and texts at which code goes wrong; a strategy may not allow some of them."""
    if kind is int:
        return [0, 1, 10**6, -(10**6), 2**31 - 1, -(2**31)]
    if kind is float:
        inf, largest = math.inf, sys.float_info.max
        return [0.0, -0.0, inf, -inf, math.nan, 1e6, -1e6, largest, -largest]
    return [kind()]


def options_beside(choice: Any, constants: Sequence[Any] = ()) -> list[Any]:
    """Return other choices of the same kind: near ones, corners and constants."""
    kind = type(choice)
    if kind is bool:
        return [not choice]
    near: list[Any] = []
    if kind in (int, float) and math.isfinite(choice):
        near = [choice + 1, choice - 1, 2 * choice, -choice, choice + choice / 10]
    options = [constant for constant in constants if type(constant) is kind]
    options += [kind(value) for value in near if kind is float or value == int(value)]
    return options + corners(kind)


def cuts(choices: Sequence[Any], size: int | None = None) -> list[list[Member]]:
    """Return ways to see choices as records that are made alike.

    These are choices in a row whose types repeat. Where several rows have as many, such as columns,
    the first of each row make up one record, and so on. Ways with `size` records come first; of
    rows that are longer, the ends are ways too, and so are entries that begin with a truth each.
    """
    ways: list[list[Member]] = []
    rows = list(_rows([type(choice) for choice in choices]))
    if size:
        ends = slice(-size, None), slice(None, size)
        rows += [row[part] for row in rows if len(row) > size for part in ends]
        starts = [at for at, choice in enumerate(choices) if choice is True]
        if len(starts) == size:
            last = len(choices) - (choices[-1] is False)
            rows.append(list(zip(starts, [*starts[1:], last], strict=True)))
    for count in dict.fromkeys(map(len, rows)):
        alike = _apart([row for row in rows if len(row) == count])
        if len(alike) > 1:
            ways.append(list(zip(*alike, strict=True)))
    ways += [[(span,) for span in row] for row in rows]
    if size is not None:
        ways.sort(key=lambda way: len(way) != size)
    return [_without_end(choices, way) for way in ways[:MAX_WAYS]]


def _rows(kinds: Sequence[type]) -> Iterator[list[Span]]:
    """Yield rows of spans whose types repeat: one for each width and place, the longest first."""
    for width in range(1, min(MAX_WIDTH, len(kinds) // 2) + 1):
        start = 0
        while start + 2 * width <= len(kinds):
            end = start + width
            while end < len(kinds) and kinds[end] is kinds[end - width]:
                end += 1
            count = (end - start) // width
            is_whole = len(set(kinds[start : start + width])) > 1 or width == 1
            if count > 1 and is_whole:
                yield [(at, at + width) for at in range(start, start + count * width, width)]
            start = max(end - width, start) + 1


def _apart(rows: Sequence[list[Span]]) -> list[list[Span]]:
    """Return rows that have no choice in common, the first ones first."""
    chosen: list[list[Span]] = []
    for row in sorted(rows):
        if not chosen or row[0][0] >= chosen[-1][-1][1]:
            chosen.append(row)
    return chosen


def _without_end(choices: Sequence[Any], members: list[Member]) -> list[Member]:
    """Return the members without a last one that says that a list ends."""
    (start, end), *more = members[-1]
    is_end = not more and len(members) > 1 and choices[start] is False and end - start == 1
    return members[:-1] if is_end and choices[members[0][0][0]] is True else members


class Edits:
    """Ways to change a value by what it was made of.

    The donor is another value of the same strategy, which gives parts. `units` is whether members
    that agree in a choice, such as rows of a user, go together.
    """

    def __init__(
        self, made: DrawnValue, donor: DrawnValue, pick: Pick, *, units: bool = False
    ) -> None:
        self._made, self._donor, self._pick, self._units = made, donor, pick, units

    def drop(self) -> Iterator[Choices]:
        """Yield the choices without a member."""
        members = self._members(self._made)
        if members:
            gone = self._group(self._made, members)
            yield from self._splice(members, {}, gone, -len(gone))

    def add(self) -> Iterator[Choices]:
        """Yield the choices with a member of the other value."""
        theirs = self._members(self._donor)
        if not theirs:
            return
        members = self._members(self._made)
        come = self._group(self._donor, theirs)
        if members and len(members[0]) == len(theirs[0]):
            before = members[self._pick(len(members))]
            yield from self._splice(members, self._columns(come, before), [], len(come))
        elif not members:  # an empty dataset, before the end of which a record comes
            new = [choice for member in come for choice in _choices(self._donor, member)]
            choices = self._made.choices
            yield (*choices[:-1], *new, *choices[-1:])

    def swap(self) -> Iterator[Choices]:
        """Yield the choices with a member of the other value in place of one."""
        members, theirs = self._members(self._made), self._members(self._donor)
        if members and theirs and len(members[0]) == len(theirs[0]):
            gone, come = self._group(self._made, members), self._group(self._donor, theirs)
            new = self._columns(come, gone[0])
            yield from self._splice(members, new, gone, len(come) - len(gone))

    def change(self) -> Iterator[Choices]:
        """Yield one edit, or none: another choice in one place."""
        choices = list(self._made.choices)
        places = [at for at, choice in enumerate(choices) if type(choice) is not bool]
        if not places or not self._pick(4):
            places = list(range(len(choices)))
        at = places[self._pick(len(places))]
        donated = [c for c in self._donor.choices if type(c) is type(choices[at])]
        options = options_beside(choices[at]) + donated
        if type(choices[at]) is str and self._pick(4):
            options = self._respell(choices[at], "".join(donated))
        if not options:
            return
        choices[at] = options[self._pick(len(options))]
        yield tuple(choices)

    def _respell(self, text: str, letters: str) -> list[str]:
        """Return a text with a letter less, more or other at some place."""
        at = self._pick(len(text) + 1)
        texts = [text[:at] + text[at + 1 :]] if text else []
        if letters:
            letter = letters[self._pick(len(letters))]
            texts += [text[:at] + letter + text[at + skip :] for skip in (0, 1)]
        return texts

    def move(self) -> Iterator[Choices]:
        """Yield an edit: one number more or less by 1, or some of them."""
        choices = list(self._made.choices)
        numbers = [at for at, choice in enumerate(choices) if type(choice) in (int, float)]
        if not numbers:
            return
        if self._pick(2):
            steps = {numbers[self._pick(len(numbers))]: 2 * self._pick(2) - 1}
        elif self._pick(2):
            steps = dict.fromkeys(numbers, 2 * self._pick(2) - 1)
        else:
            steps = {at: self._pick(3) - 1 for at in numbers[:MAX_MOVED]}
        for at, step in steps.items():
            choices[at] += step
        yield tuple(choices)

    def _members(self, made: DrawnValue) -> list[Member]:
        """Return members of a value: mostly as many as it has records, if it has some."""
        size = length(made.value) if kind_of(made.value) else None
        ways = cuts(made.choices, size)
        if size is not None and self._pick(4):
            ways = [members for members in ways if len(members) == size] or ways
        return ways[self._pick(len(ways))] if ways else []

    def _group(self, made: DrawnValue, members: Sequence[Member]) -> list[Member]:
        """Return a member, with those that agree with it in one choice where these go together."""
        chosen = members[self._pick(len(members))]
        if not self._units:
            return [chosen]
        choices = _choices(made, chosen)
        places = [at for at, choice in enumerate(choices) if type(choice) is not bool]
        at = places[self._pick(len(places))] if places else 0
        return [m for m in members if _choices(made, m)[at : at + 1] == choices[at : at + 1]]

    def _columns(self, come: Sequence[Member], at: Member) -> dict[int, list[Any]]:
        """Return new choices, by the position in front of which they are put."""
        theirs = self._donor.choices
        return {
            start: [choice for new in come for choice in theirs[new[n][0] : new[n][1]]]
            for n, (start, _) in enumerate(at)
        }

    def _splice(
        self,
        members: Sequence[Member],
        new: dict[int, list[Any]],
        gone: Sequence[Member],
        more: int,
    ) -> Iterator[Choices]:
        """Yield choices with some exchanged, with and without adjusting a stored length."""
        left = {at for member in gone for start, end in member for at in range(start, end)}
        count = next(
            (
                at
                for at in range(members[0][0][0])
                if type(self._made.choices[at]) is int and self._made.choices[at] == len(members)
            ),
            None,
        )
        for counted in dict.fromkeys((count, None)) if more else (None,):
            edited: list[Any] = []
            for at, choice in enumerate(self._made.choices):
                edited += new.get(at, [])
                if at not in left:
                    edited.append(choice + more if at == counted else choice)
            yield tuple(edited)


def _choices(made: DrawnValue, member: Member) -> Choices:
    """Return the choices of a member."""
    return tuple(choice for start, end in member for choice in made.choices[start:end])
