"""Edits of the choices that a dataset was made of, which may give a neighbour.

A value made of edited choices is one of the strategy's, whatever its datasets have in common
(sorted or different records, a fixed sum). Which choices belong to one record is guessed by how
their types repeat. The relation decides which edits give a neighbour.
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
    """Return corner cases of int or float; of other types the empty value."""
    if kind is int:
        return [0, 1, 10**6, -(10**6), 2**31 - 1, -(2**31)]
    if kind is float:
        inf, largest = math.inf, sys.float_info.max
        return [0.0, -0.0, inf, -inf, math.nan, 1e6, -1e6, largest, -largest]
    return [kind()]


def similar_choices(choice: Any, constants: Sequence[Any] = ()) -> list[Any]:
    """Return alternatives to a choice, of its type: `constants`, near numbers, then corner cases.

    Near numbers are 1 more, 1 less, the double, the negative, and 10 % more. The alternative to a
    truth is its opposite alone. The choice itself may be among them.
    """
    kind = type(choice)
    if kind is bool:
        return [not choice]
    near: list[Any] = []
    if kind in (int, float) and math.isfinite(choice):
        near = [choice + 1, choice - 1, 2 * choice, -choice, choice + choice / 10]
    options = [constant for constant in constants if type(constant) is kind]
    options += [kind(value) for value in near if kind is float or value == int(value)]
    return options + corners(kind)


def guess_records(choices: Sequence[Any], size: int | None = None) -> list[list[Member]]:
    """Return up to `MAX_WAYS` guesses of which choices made which record: a list of members each.

    A member holds the choices of one record: choices in a row whose types repeat, or, of columns of
    one length, the entries at one place. Guesses of `size` members come first; with a size, the
    ends of longer rows are tried too, and entries that begin with True.
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
        alike = _disjoint_rows([row for row in rows if len(row) == count])
        if len(alike) > 1:
            ways.append(list(zip(*alike, strict=True)))
    ways += [[(span,) for span in row] for row in rows]
    if size is not None:
        ways.sort(key=lambda way: len(way) != size)
    return [_without_end(choices, way) for way in ways[:MAX_WAYS]]


def _rows(kinds: Sequence[type]) -> Iterator[list[Span]]:
    """Yield rows of spans whose types repeat: one for each width and place, the narrowest first."""
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


def _disjoint_rows(rows: Sequence[list[Span]]) -> list[list[Span]]:
    """Return rows that have no choice in common, in the order of their first choices."""
    chosen: list[list[Span]] = []
    for row in sorted(rows):
        if not chosen or row[0][0] >= chosen[-1][-1][1]:
            chosen.append(row)
    return chosen


def _without_end(choices: Sequence[Any], members: list[Member]) -> list[Member]:
    """Return the members without the last one if that is the False at which a list ends."""
    (start, end), *more = members[-1]
    is_end = not more and len(members) > 1 and choices[start] is False and end - start == 1
    return members[:-1] if is_end and choices[members[0][0][0]] is True else members


class Edits:
    """Random edits of the choices that made a value; each method yields edited choices, maybe none.

    The donor is another value of the strategy, which gives records. With `units`, members (records)
    that agree in a choice, such as rows of a user, are edited together. The strategy may reject
    edits.
    """

    def __init__(
        self, made: DrawnValue, donor: DrawnValue, pick: Pick, *, units: bool = False
    ) -> None:
        self._made, self._donor, self._pick, self._units = made, donor, pick, units

    def drop(self) -> Iterator[Choices]:
        """Yield the choices without a random record; nothing if no records are recognised."""
        return self._exchange(leaves=True, comes=False)

    def add(self) -> Iterator[Choices]:
        """Yield the choices with a record of the donor added; nothing if no such record fits."""
        return self._exchange(leaves=False, comes=True)

    def swap(self) -> Iterator[Choices]:
        """Yield the choices with the donor's record in place of one; nothing if none fits."""
        return self._exchange(leaves=True, comes=True)

    def _exchange(self, *, leaves: bool, comes: bool) -> Iterator[Choices]:
        """Yield the choices without a record, with one of the donor, or both; maybe nothing."""
        members = self._choose_members(self._made)
        theirs = self._choose_members(self._donor) if comes else []
        if (leaves and not members) or (comes and not theirs):
            return
        come = self._choose_group(self._donor, theirs) if comes else []
        if not members:  # an empty dataset, before the end of which a record comes
            new = [choice for member in come for choice in _choices(self._donor, member)]
            yield (*self._made.choices[:-1], *new, *self._made.choices[-1:])
            return
        if comes and len(members[0]) != len(theirs[0]):
            return
        gone = self._choose_group(self._made, members) if leaves else []
        at = gone[0] if gone else members[self._pick(len(members))]
        yield from self._splice(
            members, self._new_choices_at(come, at), gone, len(come) - len(gone)
        )

    def change(self) -> Iterator[Choices]:
        """Yield the choices with a random one replaced: by a similar, donated or respelled one.

        Yields nothing if there is no other choice.
        """
        choices = list(self._made.choices)
        places = [at for at, choice in enumerate(choices) if type(choice) is not bool]
        if not places or not self._pick(4):
            places = list(range(len(choices)))
        at = places[self._pick(len(places))]
        donated = [c for c in self._donor.choices if type(c) is type(choices[at])]
        options = similar_choices(choices[at]) + donated
        if type(choices[at]) is str and self._pick(4):
            options = self._respell(choices[at], "".join(donated))
        if not options:
            return
        choices[at] = options[self._pick(len(options))]
        yield tuple(choices)

    def _respell(self, text: str, letters: str) -> list[str]:
        """Return texts with a letter left out, added or changed at a random place; maybe none.

        New letters are among `letters`.
        """
        at = self._pick(len(text) + 1)
        texts = [text[:at] + text[at + 1 :]] if text else []
        if letters:
            letter = letters[self._pick(len(letters))]
            texts += [text[:at] + letter + text[at + skip :] for skip in (0, 1)]
        return texts

    def move(self) -> Iterator[Choices]:
        """Yield the choices with one number moved by 1, all by 1, or the first by -1, 0 or 1 each.

        Yields nothing without numbers; at most `MAX_MOVED` are moved by steps of their own.
        """
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

    def _choose_members(self, made: DrawnValue) -> list[Member]:
        """Return the members of a value by a random guess of its records; empty without any guess.

        In three of four calls, the guess has as many members as a dataset has records, if one does.
        """
        size = length(made.value) if kind_of(made.value) else None
        ways = guess_records(made.choices, size)
        if size is not None and self._pick(4):
            ways = [members for members in ways if len(members) == size] or ways
        return ways[self._pick(len(ways))] if ways else []

    def _choose_group(self, made: DrawnValue, members: Sequence[Member]) -> list[Member]:
        """Return a random member; with `units`, all that agree with it in one random choice."""
        chosen = members[self._pick(len(members))]
        if not self._units:
            return [chosen]
        choices = _choices(made, chosen)
        places = [at for at, choice in enumerate(choices) if type(choice) is not bool]
        at = places[self._pick(len(places))] if places else 0
        return [m for m in members if _choices(made, m)[at : at + 1] == choices[at : at + 1]]

    def _new_choices_at(self, come: Sequence[Member], at: Member) -> dict[int, list[Any]]:
        """Return the donor's choices of members `come`, by the position before which they go."""
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
        """Yield the choices without the members that are `gone`, with `new` ones at positions.

        There are `more` members than before. If a choice before them holds their number, the
        choices with that number changed come first.
        """
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
