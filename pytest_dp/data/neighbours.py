"""Neighbours: inputs that differ in one unit of privacy, and what a relation says of them."""

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
    """How D differs from D', where that is more than an exchange of "removed" and "added"."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Values of parameters that were drawn with the inputs, the same for both."""
    origin: str = field(default="", compare=False)
    """Where a pair comes from that holds what the claim does not give, or that was solved for: ``"D
    holds 6, a constant in stats.py:14"``; else empty."""
    beyond: str = field(default="", compare=False)
    """What of it is beyond what the claim gives: ``"age = 0 (they have 18 to 90)"``; else empty."""

    digests: tuple[tuple[Any, bytes], ...] = field(default=(), compare=False, repr=False)
    """Large datasets of the pair, each with what is equal for equal ones only: it follows from how
    they were made, as to read them takes long."""

    @property
    def is_large(self) -> bool:
        """True if its inputs are large, and made of rows of the examples alone."""
        large = {id(data) for data, _ in self.digests}
        return id(self.d1) in large and id(self.d2) in large

    @property
    def inputs(self) -> tuple[Any, Any]:
        """D and D' with their parameters, as a `Call` takes them."""
        if not self.params:
            return self.d1, self.d2
        return WithParams(self.d1, self.params), WithParams(self.d2, self.params)

    @property
    def content(self) -> frozenset[bytes]:
        """Equal for pairs of equal inputs, in either order; hashes, as the inputs may be large."""
        known = {id(data): content for data, content in self.digests}
        return frozenset(
            known.get(id(data)) or digest((data, dict(self.params))) for data in (self.d1, self.d2)
        )

    def reversed(self) -> Pair:
        """Return the pair of D' and D."""
        words = (_OPPOSITE.get(word, word) for word in self.difference.split(" "))
        difference = self.opposite or " ".join(words)
        return replace(
            self, d1=self.d2, d2=self.d1, difference=difference, opposite=self.difference
        )


@dataclass(frozen=True, slots=True)
class Relation(ABC):
    """When two inputs are neighbours; a value, equal to another one that says the same."""

    name: ClassVar[str]
    """As in ``neighbors=``."""
    example: ClassVar[str]
    """A pair that fits."""
    of: ClassVar[type | None] = None
    """What says which inputs there are, such as `Queries`; None of example datasets."""

    @property
    @abstractmethod
    def required(self) -> str:
        """Condition that it puts on a pair, in words."""

    @property
    def neighbors(self) -> Any:
        """Its name, or the function that tells it."""
        return self.name

    @property
    def said(self) -> dict[str, Any]:
        """Arguments of a claim that belong to it, besides its name."""
        return {}

    def __str__(self) -> str:
        """Return the relation as a keyword of a claim."""
        said = self.said
        return (
            f"neighbors={Neighbors(self.name, **said) if said else argument_text(self.neighbors)}"
        )

    def covers(self, other: Relation) -> bool:
        """Return whether a promise for these neighbours is also one for the other neighbours.

        Groups count by their units.
        """
        return self == other

    @property
    def label(self) -> str:
        """Label that distinguishes it from others in the id of a test."""
        return "-".join(
            value if isinstance(value, str) else argument_text(value)
            for value in (self.neighbors, *self.said.values())
        )

    def check(self, dataset: Any) -> str:  # noqa: ARG002  what only some relations ask
        """Return why a dataset cannot be an input, whatever its neighbours; empty if it can.

        Raises ClaimError if its records have no unit, where they should.
        """
        return ""

    @abstractmethod
    def between(self, d1: Any, d2: Any) -> Pair | str:
        """Return two inputs as a pair, which says how they differ; else what prevents a pair."""

    def fault(self, d1: Any, d2: Any) -> str:
        """Return why two inputs are not neighbours; empty if they are."""
        found = self.between(d1, d2)
        return found if isinstance(found, str) else ""

    def pair(self, d1: Any, d2: Any) -> Pair | None:
        """Return two inputs as a pair, if they are neighbours."""
        found = self.between(d1, d2)
        return None if isinstance(found, str) else found

    @abstractmethod
    def pairs(self, dataset: Any, records: Sequence[Any] = ()) -> Iterator[Pair]:
        """Return the dataset with each of its neighbours, one after the other, each at most once.

        Those of small and extreme records come first. Each pair has the same D, a copy of
        `dataset`. `records` are what may be added to it, or take the place of its records, in the
        form of `records_of`. Raises ClaimError if the dataset is none, or cannot hold a record.
        """


def argument_text(value: Any) -> str:
    """Return an argument of a claim as it was written: functions by their names."""
    return str(value.__name__) if hasattr(value, "__name__") else repr(value)


def different_kinds(d1: Any, d2: Any) -> str:
    """Explain that two datasets cannot exchange records."""
    return f"one is {type_in_words(d1)}, the other {type_in_words(d2)}"
