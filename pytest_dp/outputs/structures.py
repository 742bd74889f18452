"""Structures: where outputs have their leaves, and how a person would write each place down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from pytest_dp.outputs.containers import indices


@dataclass(frozen=True)
class Structure:
    """Where an output has its leaves."""

    kind: str
    """Type of the output: ``"list"``, ``"ndarray"``, ``"scalar"`` for a bare leaf, ..."""
    places: tuple[str, ...]
    """One Python expression for each leaf."""
    length: int | None = None
    """``len(output)``, where it has one."""
    is_flat: bool = False
    """Whether the leaves are exactly ``output[0], output[1], ...``."""

    @cached_property
    def position(self) -> dict[str, int]:
        """Which of the leaves stands at each place."""
        return {place: i for i, place in enumerate(self.places)}


SCALAR = Structure("scalar", ("output",))
EXTRACT = Structure("extract", ())
"""Of outputs that are gone, but for some quantities; see `extracts`."""


@lru_cache(maxsize=16)
def of_shape(kind: str, shape: tuple[int, ...]) -> Structure:
    """The structure of arrays."""
    labels = indices(shape)
    if labels is None:
        return of_length(kind, shape[0])
    return structure_of(kind, tuple(f"output{label}" for label in labels), shape[0])


@lru_cache(maxsize=64)
def of_length(kind: str, length: int) -> Structure:
    """The structure of lists, and of the like, without containers in them."""
    return Structure(kind, tuple(f"output[{i}]" for i in range(length)), length, True)


def structure_of(kind: str, places: tuple[str, ...], length: int | None) -> Structure:
    """The structure of outputs of this type that have leaves at these places."""
    is_flat = length == len(places) and places == of_length(kind, length).places
    return Structure(kind, places, length, is_flat)
