"""Single values, any two of which are neighbours, as a space to search: nothing but these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pytest_dp.search.constants import Constant
from pytest_dp.search.spaces import Found, Way, one_of

MAX_OPTIONS = 1_000
"""Values that are looked at."""


class Options:
    """The values of a claim.

    Parameters
    ----------
    options : sequence
    """

    def __init__(self, options: Sequence[Any]) -> None:
        self.records = tuple(options)[:MAX_OPTIONS]

    def inside(self, data: Any) -> bool:  # noqa: ARG002
        """All are."""
        return True

    def corners(self, values: Sequence[Constant]) -> Iterator[Found]:  # noqa: ARG002
        """Each of them."""
        return (Found(option, "one of the values") for option in self.records)

    def placed(self, constant: Constant) -> Iterator[Found]:  # noqa: ARG002
        """None: a value that is not listed may mean nothing to the mechanism."""
        return iter(())

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Found:  # noqa: ARG002
        """One of them."""
        return Found(one_of(self.records, rng), "one of the values")

    def combed(self, data: Any, constant: Constant, rng: np.random.Generator) -> Iterator[Found]:  # noqa: ARG002
        """None, as with `placed`."""
        return iter(())

    def mutated(self, data: Any, constants: Sequence[Constant], rng: np.random.Generator) -> Found:  # noqa: ARG002
        """Another one."""
        return self.combined(constants, rng)

    def way(self, start: Any, end: Any) -> Way | None:
        """Any two are neighbours."""
        return _Step(start, end)


class _Step:
    def __init__(self, start: Any, end: Any) -> None:
        self._ends = start, end

    def __len__(self) -> int:
        return 1

    def __getitem__(self, step: int) -> Any:
        return self._ends[step]
