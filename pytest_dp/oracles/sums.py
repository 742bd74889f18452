"""Sums of draws that a run made and compared."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints

Terms = list[tuple[Ints, Floats]]
"""Numbers of draws and their coefficients, a pair of arrays for each summand."""


Form = tuple[tuple[int, float], ...]
"""Coefficients by the numbers of draws, in ascending order."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Sums of draws and a constant, element by element; `results` of a comparison with 0."""

    terms: Terms
    constants: Floats
    results: Bools | None = None

    @property
    def key(self) -> Hashable:
        """What is compared, but for the constants, and the results."""
        terms = tuple((at.tobytes(), by.tobytes()) for at, by in self.terms)
        return terms, np.asarray(self.results).tobytes()

    def rows(self) -> Iterator[tuple[Form, float, bool]]:
        """Coefficients by draws, the constant and the result of each element."""
        shape = np.shape(self.constants)
        terms = [
            (np.broadcast_to(at, shape).ravel(), np.broadcast_to(by, shape).ravel())
            for at, by in self.terms
        ]
        results = np.ones(shape, bool) if self.results is None else self.results
        for row, (constant, result) in enumerate(
            zip(np.ravel(self.constants).tolist(), np.ravel(results).tolist(), strict=True)
        ):
            form: dict[int, float] = {}
            for at, by in terms:
                form[int(at[row])] = form.get(int(at[row]), 0.0) + float(by[row])
            yield tuple(sorted((k, by) for k, by in form.items() if by)), constant, result


@dataclass(frozen=True, slots=True)
class ScalarSum:
    """One sum of draws and a constant; the `result` of a comparison with 0."""

    form: Form
    constant: float
    result: bool = True

    @property
    def key(self) -> Hashable:
        """What is compared, but for the constant, and the result."""
        return self.form, self.result

    def rows(self) -> Iterator[tuple[Form, float, bool]]:
        """Coefficients by draws, the constant and the result."""
        yield self.form, self.constant, self.result


@dataclass(slots=True)
class Record:
    """What a run did with its draws."""

    sums: list[Sum | ScalarSum] = field(default_factory=list)
    comparisons: list[Sum | ScalarSum] = field(default_factory=list)
    compared: list[Sum | ScalarSum] = field(default_factory=list)
    """The sums on both sides of comparisons."""

    @property
    def path(self) -> tuple[Hashable, ...]:
        """What was compared, and the results."""
        return tuple(each.key for each in self.comparisons)
