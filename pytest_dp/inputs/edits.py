"""Neighbours that a strategy yields itself: the choices that a dataset was made of, edited.

Whatever a strategy asks of its datasets (records that are sorted, or different, or have a fixed
sum), a value that it makes of edited choices is one of its own. Which edits give a neighbour is not
known before: they are tried, and the relation decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_dp.datasets import kind_of
from pytest_dp.datasets.making import length
from pytest_dp.inputs.drawing import Drawn, Part, options_beside

MAX_CUTS = 4
"""Ways, at most, in which a value is taken for a row of parts."""
MAX_ROWS = 1_000
"""Rows, at most, among which is looked for one that could be longer."""
MAX_MOVED = 64
"""Numbers that are moved at once."""

Choices = list[Any]
Pick = Callable[[int], int]
"""A number below the given one."""
Member = tuple[Part, ...]
"""What belongs to one record: a part, or one of each column."""


@dataclass(frozen=True, slots=True)
class Made:
    """A value with its choices and their parts."""

    value: Any
    choices: tuple[Any, ...]
    constraints: tuple[Mapping[str, Any], ...]
    whole: Part

    def of(self, member: Member) -> tuple[Any, ...]:
        """The choices of a member."""
        return tuple(one for part in member for one in self.choices[part.start : part.end])


def made_of(drawn: Drawn | None) -> Made | None:
    """What was drawn with the parts of its choices; None where these are not known."""
    if drawn is None or drawn.whole is None:
        return None
    return Made(drawn.value, drawn.choices, drawn.constraints, _shifted(drawn.whole, drawn.start))


def _shifted(part: Part, by: int) -> Part:
    if not by:
        return part
    parts = [_shifted(one, by) for one in part.parts]
    return Part(part.label, part.start - by, part.end - by, parts)


def cuts(whole: Part, least: int = 2, most: int = MAX_CUTS) -> list[list[Member]]:
    """Ways to see a value as members that are made alike, the widest parts first.

    Where several rows of parts stand beside each other and are as long, such as columns, the first
    part of each make up one member, and so on.
    """
    found: list[list[Member]] = []
    level = [whole]
    while level and len(found) < most:
        rows = [row for part in level for row in _rows(part) if len(row) >= least]
        sizes = dict.fromkeys(map(len, rows))
        for size in sizes:
            alike = [row for row in rows if len(row) == size]
            if len(alike) > 1:
                found.append(list(zip(*alike, strict=True)))
            found += [[(part,) for part in row] for row in alike[:2]]
        level = [inner for part in level for inner in part.parts]
    return found[:most]


def _rows(part: Part) -> list[list[Part]]:
    """The parts of a part, those that are alike together."""
    rows: dict[int, list[Part]] = {}
    for one in part.parts:
        rows.setdefault(one.label, []).append(one)
    return list(rows.values())


class Edits:
    """Ways to change a value by what it was made of.

    Parameters
    ----------
    one, other : Made
        The value that is changed, and another one of the same strategy.
    pick : callable
    units : bool
        Whether members that agree in a choice, such as rows of a user, go together.
    """

    def __init__(self, one: Made, other: Made, pick: Pick, *, units: bool = False) -> None:
        self._one, self._other, self._pick, self._units = one, other, pick, units

    def drop(self) -> Iterator[Choices]:
        """Without a member."""
        members = self._cut(self._one)
        if members:
            gone = self._group(self._one, members)
            yield from self._with(members, {}, gone, -len(gone))

    def add(self) -> Iterator[Choices]:
        """With a member of the other value."""
        theirs = self._cut(self._other)
        if not theirs:
            return
        labels = [part.label for part in theirs[0]]
        for members in cuts(self._one.whole, 1, MAX_ROWS):
            if [part.label for part in members[0]] == labels:
                come = self._group(self._other, theirs)
                before = members[self._pick(len(members))]
                new = self._columns(come, before)
                yield from self._with(members, new, [], len(come))
                return

    def swap(self) -> Iterator[Choices]:
        """With a member of the other value in place of one."""
        members, theirs = self._cut(self._one), self._cut(self._other)
        if members and theirs and len(members[0]) == len(theirs[0]):
            gone, come = self._group(self._one, members), self._group(self._other, theirs)
            new = self._columns(come, gone[0])
            yield from self._with(members, new, gone, len(come) - len(gone))

    def change(self) -> Iterator[Choices]:
        """With another choice in one place, or in all members that agree in it."""
        choices = list(self._one.choices)
        places = [at for at, one in enumerate(choices) if type(one) is not bool]
        if not places or not self._pick(4):
            places = list(range(len(choices)))
        at = places[self._pick(len(places))]
        options = options_beside(choices[at], self._one.constraints[at])
        others = [one for one in self._other.choices if type(one) is type(choices[at])]
        options += others
        if type(choices[at]) is str and self._pick(4):
            options = self._spelled(choices[at], "".join(others))
        if not options:
            return
        new = options[self._pick(len(options))]
        places = [at]
        if self._units and self._pick(2):
            places = self._where_agreed(at)
        for place in places:
            choices[place] = new
        yield choices

    def _spelled(self, text: str, letters: str) -> list[str]:
        """A text with a letter less, more or other at some place."""
        at = self._pick(len(text) + 1)
        some = [letters[self._pick(len(letters))]] if letters else []
        kept = [text[:at] + text[at + 1 :]] if text else []
        return [*kept, *(text[:at] + new + text[at + skip :] for new in some for skip in (0, 1))]

    def move(self) -> Iterator[Choices]:
        """With one number more or less by 1, or with some of them."""
        choices = list(self._one.choices)
        numbers = [at for at, one in enumerate(choices) if type(one) in (int, float)]
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
        yield choices

    def _cut(self, made: Made) -> list[Member]:
        """Members of a value: mostly as many as it has records, if it has some."""
        found = [_without_end(made, members) for members in cuts(made.whole)]
        if kind_of(made.value) and self._pick(4):
            size = length(made.value)
            found = [members for members in found if len(members) == size] or found
        return found[self._pick(len(found))] if found else []

    def _group(self, made: Made, members: Sequence[Member]) -> list[Member]:
        """A member, with those that agree with it in one choice where these go together."""
        chosen = members[self._pick(len(members))]
        if not self._units:
            return [chosen]
        own = made.of(chosen)
        places = [at for at, one in enumerate(own) if type(one) is not bool]
        at = places[self._pick(len(places))] if places else 0
        return [one for one in members if made.of(one)[at : at + 1] == own[at : at + 1]]

    def _where_agreed(self, at: int) -> list[int]:
        """The places of a choice in all members that agree in it."""
        for members in cuts(self._one.whole):
            for part in (part for member in members for part in member):
                if part.start <= at < part.end:
                    inside, choices = at - part.start, self._one.choices
                    rows = [one for member in members for one in member if one.label == part.label]
                    places = [one.start + inside for one in rows if one.start + inside < one.end]
                    return [place for place in places if choices[place] == choices[at]]
        return [at]

    def _columns(self, come: Sequence[Member], at: Member) -> dict[int, Choices]:
        """What to put in front of which choices."""
        theirs = self._other.choices
        return {
            part.start: [one for new in come for one in theirs[new[n].start : new[n].end]]
            for n, part in enumerate(at)
        }

    def _with(
        self, members: Sequence[Member], new: dict[int, Choices], gone: Sequence[Member], more: int
    ) -> Iterator[Choices]:
        """The choices with some put in and some left out; also where a number says how many."""
        left = {at for member in gone for part in member for at in range(part.start, part.end)}
        count = next(
            (
                at
                for at in range(members[0][0].start)
                if type(self._one.choices[at]) is int and self._one.choices[at] == len(members)
            ),
            None,
        )
        for counted in dict.fromkeys((count, None)) if more else (None,):
            made: Choices = []
            for at, one in enumerate(self._one.choices):
                made += new.get(at, [])
                if at not in left:
                    made.append(one + more if at == counted else one)
            yield made


def _without_end(made: Made, members: list[Member]) -> list[Member]:
    """Without the last one if that is a choice by itself, after longer ones: to make no more."""
    last = len(made.of(members[-1]))
    ends = len(members) > 1 and last == len(members[-1]) < len(made.of(members[0]))
    return members[:-1] if ends else members
