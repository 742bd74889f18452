"""Pairs of neighbouring inputs, and the base class of the relations between neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from pytest_dp.data.conversion import type_in_words
from pytest_dp.data.equality import digest
from pytest_dp.declaration import Neighbors

MAX_PAIRS = 512
"""Pairs of inputs of a claim, or examples. No audit has samples for more."""
_OPPOSITE = {"removed": "added", "added": "removed"}


@dataclass(frozen=True, slots=True)
class WithParams:
    """An input that comes with values of some of the mechanism's parameters."""

    data: Any
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two neighbouring inputs, D and D', as the mechanism takes them."""

    d1: Any
    d2: Any
    difference: str = ""
    """How D' differs from D, such as ``"one record removed"``; empty if no relation was stated."""
    opposite: str = field(default="", compare=False)
    """How D differs from D'; empty if an exchange of "removed" and "added" says it."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters that were drawn with the inputs, the same for both."""
    origin: str = field(default="", compare=False)
    """What a pair comes from besides the claim: ``"D holds 6, a constant in stats.py:14"``."""
    beyond: str = field(default="", compare=False)
    """What is outside of the declared inputs: ``"age = 0 (they have 18 to 90)"``; else empty."""

    digests: tuple[tuple[Any, bytes], ...] = field(default=(), compare=False, repr=False)
    """Large datasets of the pair, each with a hash that is equal for equal datasets only."""

    @property
    def is_large(self) -> bool:
        """True if its inputs are large, and made of rows of the examples alone."""
        large = {id(data) for data, _ in self.digests}
        return id(self.d1) in large and id(self.d2) in large

    @property
    def inputs(self) -> tuple[Any, Any]:
        """D and D', as `WithParams` if the pair has parameters."""
        if not self.params:
            return self.d1, self.d2
        return WithParams(self.d1, self.params), WithParams(self.d2, self.params)

    @property
    def content(self) -> frozenset[bytes]:
        """Hashes that are equal for pairs of equal inputs, in either order."""
        known = {id(data): content for data, content in self.digests}
        return frozenset(
            known.get(id(data)) or digest((data, dict(self.params))) for data in (self.d1, self.d2)
        )

    def reverse(self) -> Pair:
        """Return the pair of D' and D, with the difference in words turned around."""
        words = (_OPPOSITE.get(word, word) for word in self.difference.split(" "))
        difference = self.opposite or " ".join(words)
        return replace(
            self, d1=self.d2, d2=self.d1, difference=difference, opposite=self.difference
        )


@dataclass(frozen=True, slots=True)
class Relation(ABC):
    """A rule that says when two inputs are neighbours; equal to another one with the same rule."""

    name: ClassVar[str]
    """Its name in ``neighbors=``."""
    example: ClassVar[str]
    """A pair of neighbours, as Python."""
    of: ClassVar[type | None] = None
    """The class of ``inputs=``, such as `Queries`; None if these are example datasets."""

    @property
    @abstractmethod
    def required(self) -> str:
        """The condition on a pair, in words."""

    @property
    def neighbors(self) -> Any:
        """The value of ``neighbors=``: its name, or a function."""
        return self.name

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of a claim that belong to the relation, besides its name."""
        return {}

    def __str__(self) -> str:
        """Return the keyword ``neighbors=`` of a claim, with its value."""
        said = self.arguments
        return (
            f"neighbors={Neighbors(self.name, **said) if said else argument_text(self.neighbors)}"
        )

    def covers(self, other: Relation) -> bool:
        """Return whether all neighbours by the other relation are neighbours by this one.

        By default, only an equal relation is covered. The number of units in a group does not
        count.
        """
        return self == other

    @property
    def label(self) -> str:
        """The label of the relation in the id of a test."""
        return "-".join(
            value if isinstance(value, str) else argument_text(value)
            for value in (self.neighbors, *self.arguments.values())
        )

    def check(self, dataset: Any) -> str:  # noqa: ARG002  what only some relations ask
        """Return why a dataset cannot be an input, with any neighbour; empty if it can.

        Raises ClaimError if its records have no unit, where they should.
        """
        return ""

    @abstractmethod
    def between(self, d1: Any, d2: Any) -> Pair | str:
        """Return two neighbours as a pair; else the reason, as a text, why they are no neighbours.

        Raises ClaimError if their records have no unit, or if a function of the user fails.
        """

    def fault(self, d1: Any, d2: Any) -> str:
        """Return why two inputs are not neighbours; empty if they are. Errors as `between`."""
        found = self.between(d1, d2)
        return found if isinstance(found, str) else ""

    def pair(self, d1: Any, d2: Any) -> Pair | None:
        """Return two inputs as a pair; None if they are no neighbours. Errors as `between`."""
        found = self.between(d1, d2)
        return None if isinstance(found, str) else found

    @abstractmethod
    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """Yield the pairs of a dataset with its neighbours, each pair at most once.

        Pairs that differ in extreme records come first. Each pair has the same D, a copy of
        `dataset`. `records` may be added to it, or take the place of its records; they are in the
        form of `records_of`. Raises ClaimError if the object is no dataset, or cannot hold a
        record.
        """


def argument_text(value: Any) -> str:
    """Return an argument of a claim as text: the name of a function or class, else the repr."""
    return str(value.__name__) if hasattr(value, "__name__") else repr(value)


def different_kinds(d1: Any, d2: Any) -> str:
    """Return the reason why datasets of two types are no neighbours."""
    return f"one is {type_in_words(d1)}, the other {type_in_words(d2)}"
