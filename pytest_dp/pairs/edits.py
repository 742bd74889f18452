"""Ways to change the choices that a dataset was made of, so that a neighbour may come of it.

Whatever a strategy asks of its datasets (records that are sorted, or different, or have a fixed
sum), a value that it makes of edited choices is one of its own. Which edits give a neighbour is not
known before: they are tried, and the relation decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_dp.data import kind_of
from pytest_dp.data.conversion import length
from pytest_dp.pairs.corners import options_beside
from pytest_dp.pairs.drawing import Choices, DrawnValue
from pytest_dp.pairs.members import Member, cuts, matching, single, without_end

MAX_MOVED = 64
"""Numbers that are moved at once."""
Pick = Callable[[int], int]
"""A number below the given one."""


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
        """Yield one edit, or none: another choice in one place, or in all members that agree."""
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
        new = options[self._pick(len(options))]
        places = [at]
        if self._units and self._pick(2):
            places = self._where_agreed(at)
        for place in places:
            choices[place] = new
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
        ways = [without_end(made.choices, way) for way in cuts(made.choices, size)]
        if size is None:
            return ways[self._pick(len(ways))] if ways else []
        as_many = [members for members in ways if len(members) == size]
        if not as_many and size:
            as_many = self._alike(made, size)
        if self._pick(4):
            ways = as_many or ways
        ways = ways or as_many
        return ways[self._pick(len(ways))] if ways else []

    def _alike(self, made: DrawnValue, size: int) -> list[list[Member]]:
        """Return members like those of the other values, or the only one."""
        ways = []
        for other in (self._made, self._donor):
            their_size = length(other.value) if kind_of(other.value) else None
            for theirs in cuts(other.choices, their_size):
                if len(theirs) == their_size and len(theirs[0]) == 1:
                    kinds = [type(choice) for choice in _choices(other, theirs[0])]
                    ways.append(matching(made.choices, kinds)[:size])
        ways = [way for way in ways if len(way) == size]
        return ways or ([way] if size == 1 and (way := single(made.choices)) else [])

    def _group(self, made: DrawnValue, members: Sequence[Member]) -> list[Member]:
        """Return a member, with those that agree with it in one choice where these go together."""
        chosen = members[self._pick(len(members))]
        if not self._units:
            return [chosen]
        choices = _choices(made, chosen)
        places = [at for at, choice in enumerate(choices) if type(choice) is not bool]
        at = places[self._pick(len(places))] if places else 0
        return [m for m in members if _choices(made, m)[at : at + 1] == choices[at : at + 1]]

    def _where_agreed(self, at: int) -> list[int]:
        """Return the places of a choice in all members that agree in it."""
        choices = self._made.choices
        for members in cuts(choices):
            for column, (start, end) in ((n, s) for m in members for n, s in enumerate(m)):
                if start <= at < end:
                    places = [member[column][0] + at - start for member in members]
                    inside = (place for place in places if place < len(choices))
                    return [place for place in inside if choices[place] == choices[at]]
        return [at]

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
