"""Neighbours that a strategy yields itself: the choices that a dataset was made of, edited.

Whatever a strategy asks of its datasets (records that are sorted, or different, or have a fixed
sum), a value that it makes of edited choices is one of its own. Which edits give a neighbour is not
known before: they are tried, and the relation decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_dp.datasets import kind_of
from pytest_dp.datasets.conversion import length
from pytest_dp.inputs.drawing import Drawn, Part, options_beside
from pytest_dp.limits import MANY, SEVERAL, THOUSAND

Choices = list[Any]
Pick = Callable[[int], int]
"""A number below the given one."""
Member = tuple[Part, ...]
"""What belongs to one record: a part, or one of each column."""


def cuts(whole: Part | None, least: int = 2, limit: int = SEVERAL // 2) -> list[list[Member]]:
    """Ways to see a value as members that are made alike, the widest parts first.

    Where several rows of parts stand beside each other and are as long, such as columns, the first
    part of each make up one member, and so on.
    """
    ways: list[list[Member]] = []
    level = [whole] if whole else []
    while level and len(ways) < limit:
        rows = [row for part in level for row in _rows(part) if len(row) >= least]
        sizes = dict.fromkeys(map(len, rows))
        for size in sizes:
            alike = [row for row in rows if len(row) == size]
            if len(alike) > 1:
                ways.append(list(zip(*alike, strict=True)))
            ways += [[(part,) for part in row] for row in alike[:2]]
        level = [inner for part in level for inner in part.parts]
    return ways[:limit]


def _rows(part: Part) -> list[list[Part]]:
    """The parts of a part, those that are alike together."""
    rows: dict[int, list[Part]] = {}
    for inner in part.parts:
        rows.setdefault(inner.label, []).append(inner)
    return list(rows.values())


class Edits:
    """Ways to change a value by what it was made of.

    The donor is another value of the same strategy, which gives parts. `units` is whether members
    that agree in a choice, such as rows of a user, go together.
    """

    def __init__(self, made: Drawn, donor: Drawn, pick: Pick, *, units: bool = False) -> None:
        self._made, self._donor, self._pick, self._units = made, donor, pick, units

    def drop(self) -> Iterator[Choices]:
        """Without a member."""
        members = self._members(self._made)
        if members:
            gone = self._group(self._made, members)
            yield from self._spliced(members, {}, gone, -len(gone))

    def add(self) -> Iterator[Choices]:
        """With a member of the other value."""
        theirs = self._members(self._donor)
        if not theirs:
            return
        labels = [part.label for part in theirs[0]]
        for members in cuts(self._made.whole, 1, THOUSAND):
            if [part.label for part in members[0]] == labels:
                come = self._group(self._donor, theirs)
                before = members[self._pick(len(members))]
                new = self._columns(come, before)
                yield from self._spliced(members, new, [], len(come))
                return

    def swap(self) -> Iterator[Choices]:
        """With a member of the other value in place of one."""
        members, theirs = self._members(self._made), self._members(self._donor)
        if members and theirs and len(members[0]) == len(theirs[0]):
            gone, come = self._group(self._made, members), self._group(self._donor, theirs)
            new = self._columns(come, gone[0])
            yield from self._spliced(members, new, gone, len(come) - len(gone))

    def change(self) -> Iterator[Choices]:
        """With another choice in one place, or in all members that agree in it."""
        choices = list(self._made.choices)
        places = [at for at, choice in enumerate(choices) if type(choice) is not bool]
        if not places or not self._pick(4):
            places = list(range(len(choices)))
        at = places[self._pick(len(places))]
        options = options_beside(choices[at], self._made.constraints[at])
        donated = [c for c in self._donor.choices if type(c) is type(choices[at])]
        options += donated
        if type(choices[at]) is str and self._pick(4):
            options = self._spelled(choices[at], "".join(donated))
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
        texts = [text[:at] + text[at + 1 :]] if text else []
        if letters:
            letter = letters[self._pick(len(letters))]
            texts += [text[:at] + letter + text[at + skip :] for skip in (0, 1)]
        return texts

    def move(self) -> Iterator[Choices]:
        """With one number more or less by 1, or with some of them."""
        choices = list(self._made.choices)
        numbers = [at for at, choice in enumerate(choices) if type(choice) in (int, float)]
        if not numbers:
            return
        if self._pick(2):
            steps = {numbers[self._pick(len(numbers))]: 2 * self._pick(2) - 1}
        elif self._pick(2):
            steps = dict.fromkeys(numbers, 2 * self._pick(2) - 1)
        else:
            steps = {at: self._pick(3) - 1 for at in numbers[:MANY]}
        for at, step in steps.items():
            choices[at] += step
        yield choices

    def _members(self, made: Drawn) -> list[Member]:
        """Members of a value: mostly as many as it has records, if it has some."""
        ways = [_without_end(made, members) for members in cuts(made.whole)]
        if kind_of(made.value) and self._pick(4):
            size = length(made.value)
            ways = [members for members in ways if len(members) == size] or ways
        return ways[self._pick(len(ways))] if ways else []

    def _group(self, made: Drawn, members: Sequence[Member]) -> list[Member]:
        """A member, with those that agree with it in one choice where these go together."""
        chosen = members[self._pick(len(members))]
        if not self._units:
            return [chosen]
        choices = _choices(made, chosen)
        places = [at for at, choice in enumerate(choices) if type(choice) is not bool]
        at = places[self._pick(len(places))] if places else 0
        return [m for m in members if _choices(made, m)[at : at + 1] == choices[at : at + 1]]

    def _where_agreed(self, at: int) -> list[int]:
        """The places of a choice in all members that agree in it."""
        for members in cuts(self._made.whole):
            for part in (part for member in members for part in member):
                if part.start <= at < part.end:
                    inside, choices = at - part.start, self._made.choices
                    alike = [p for m in members for p in m if p.label == part.label]
                    places = [p.start + inside for p in alike if p.start + inside < p.end]
                    return [place for place in places if choices[place] == choices[at]]
        return [at]

    def _columns(self, come: Sequence[Member], at: Member) -> dict[int, Choices]:
        """New choices, by the position in front of which they are put."""
        theirs = self._donor.choices
        return {
            part.start: [choice for new in come for choice in theirs[new[n].start : new[n].end]]
            for n, part in enumerate(at)
        }

    def _spliced(
        self, members: Sequence[Member], new: dict[int, Choices], gone: Sequence[Member], more: int
    ) -> Iterator[Choices]:
        """The choices with some put in and some left out, with a stored length adjusted or not."""
        left = {at for member in gone for part in member for at in range(part.start, part.end)}
        count = next(
            (
                at
                for at in range(members[0][0].start)
                if type(self._made.choices[at]) is int and self._made.choices[at] == len(members)
            ),
            None,
        )
        for counted in dict.fromkeys((count, None)) if more else (None,):
            edited: Choices = []
            for at, choice in enumerate(self._made.choices):
                edited += new.get(at, [])
                if at not in left:
                    edited.append(choice + more if at == counted else choice)
            yield edited


def _without_end(made: Drawn, members: list[Member]) -> list[Member]:
    """The members without a last one that is a single choice: it says that the list ends."""
    last = len(_choices(made, members[-1]))
    ends = len(members) > 1 and last == len(members[-1]) < len(_choices(made, members[0]))
    return members[:-1] if ends else members


def _choices(made: Drawn, member: Member) -> tuple[Any, ...]:
    """The choices of a member."""
    return tuple(choice for part in member for choice in made.choices[part.start : part.end])
