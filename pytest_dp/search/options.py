"""The space of a claim on single values: no others are proposed, and any two are neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pytest_dp.limits import THOUSAND
from pytest_dp.search.constants import Constant
from pytest_dp.search.spaces import Candidate, Walk, choice


class Options:
    """The values of a claim."""

    def __init__(self, options: Sequence[Any]) -> None:
        self.records = tuple(options)[:THOUSAND]

    def corners(self, values: Sequence[Constant]) -> Iterator[Candidate]:  # noqa: ARG002
        return (Candidate(option, "one of the values") for option in self.records)

    def placed(self, constant: Constant) -> Iterator[Candidate]:  # noqa: ARG002
        """None: a value that is not listed may mean nothing to the mechanism."""
        return iter(())

    def combined(self, constants: Sequence[Constant], rng: np.random.Generator) -> Candidate:  # noqa: ARG002
        """A random value."""
        return Candidate(choice(self.records, rng), "one of the values")

    def inserted(
        self,
        data: Any,  # noqa: ARG002
        constant: Constant,  # noqa: ARG002
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Iterator[Candidate]:
        """None, as with `placed`."""
        return iter(())

    def mutated(
        self,
        data: Any,  # noqa: ARG002
        constants: Sequence[Constant],
        rng: np.random.Generator,
    ) -> Candidate:
        return self.combined(constants, rng)

    def walk(self, start: Any, end: Any) -> Walk | None:
        """Any two are neighbours."""
        return start, end
