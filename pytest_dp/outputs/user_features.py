"""Quantities that a function of the user's works out from one output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.outputs.flatten import SCALAR, Structure
from pytest_dp.outputs.leaves import ABSENT, NUMBER, as_float
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import Table, tabulate

_ALLOWED = (
    "Allowed: a number, or a list, tuple or 1-d array of numbers, equally long for every output; "
    "True and False count as 1 and 0."
)
"""What a user's function may return, for its errors."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of an output, and what it gives."""

    function: Callable[[Any], Any] = field(hash=False)
    """Gives a number or a sequence of numbers. It is not called for the outcome of a run that
    raised, which has no output."""
    width: int | None
    """How many numbers; None for a single one that is not in a sequence."""

    def columns(self, table: Table) -> tuple[Floats, Ints]:
        """Return its numbers, shape (n, width or 1), and codes as in `Table`, shape (n,).

        Raises ClaimError if the function raises, or gives anything else than it should.
        """
        if self not in table.results:
            table.results[self] = self._compute(table)
        return table.results[self]

    def _compute(self, table: Table) -> tuple[Floats, Ints]:
        rows = _outputs(table)
        returned = _call_on_outputs(self.function, table, rows)
        widths = [_width(structure) for structure in returned.structures]
        wrong = np.array([width != self.width for width in widths], dtype=bool)[returned.structure]
        if wrong.any():
            at = int(np.argmax(wrong))
            _refuse(
                self.function,
                f"returned {on_one_line(returned.raw[at])} for the output "
                f"{on_one_line(table.raw[rows[at]])}, which is "
                f"{_so_many(widths[returned.structure[at]])}"
                f", but {_so_many(self.width)} for another output. {_ALLOWED}",
            )
        numbers = np.full((len(table), 1 if self.width is None else self.width), np.nan)
        numbers[rows] = _as_numbers(returned).reshape(len(rows), numbers.shape[1])
        codes = np.full(len(table), ABSENT)
        codes[rows] = NUMBER
        return numbers, codes


def user_function(function: Callable[[Any], Any], table: Table) -> UserFunction | None:
    """Return a function with its count of numbers for an output; None without outputs.

    Raises ClaimError if the function raises, or gives anything else than it should.
    """
    rows = _outputs(table)
    if not rows:
        return None
    named = UserFunction(
        function, _width(_call_on_outputs(function, table, rows[:1]).structures[0])
    )
    named.columns(table)
    return named


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of what it wraps, or of its type."""
    inner = getattr(function, "func", function)  # of functools.partial
    return str(getattr(inner, "__name__", type(inner).__name__))


def _outputs(table: Table) -> list[int]:
    """Return the runs that did not raise."""
    if isinstance(table.raw, np.ndarray):
        return list(range(len(table)))
    return [row for row, output in enumerate(table.raw) if not isinstance(output, Raised)]


def _call_on_outputs(function: Callable[[Any], Any], table: Table, rows: list[int]) -> Table:
    """Call the function on some outputs: it returns bare numbers, or flat sequences of numbers."""
    results: list[Any] = []
    for row in rows:
        try:
            results.append(function(table.raw[row]))
        except Exception as error:
            said = f"raised {type(error).__name__}: {error}"
            _refuse(function, f"{said}, for the output {on_one_line(table.raw[row])}.", error)
    returned = tabulate(results)
    no_vector = np.array([_width(structure) == 0 for structure in returned.structures], bool)
    bad = no_vector[returned.structure]
    bad[returned.owner[(returned.codes != NUMBER) & np.isnan(_as_numbers(returned))]] = True
    if bad.any():
        at = int(np.argmax(bad))
        _refuse(
            function,
            f"returned {on_one_line(results[at])}, of type {type(results[at]).__name__}, for the "
            f"output {on_one_line(table.raw[rows[at]])}. {_ALLOWED}",
        )
    return returned


def _as_numbers(table: Table) -> Floats:
    """Return all leaves as numbers, also booleans and huge integers; NaN for anything else."""
    values = [as_float(v) if kind in ("bool", "int") else np.nan for kind, v in table.levels]
    by_code = np.array([*values, np.nan, np.nan])  # the last two stand for no category
    return np.where(table.codes == NUMBER, table.numbers, by_code[table.codes])


def _width(structure: Structure) -> int | None:
    """Return how many numbers a flat sequence has, 0 for anything else; None for a bare number."""
    if structure == SCALAR:
        return None
    return structure.length if structure.is_flat else 0


def _so_many(width: int | None) -> str:
    return "a single number" if width is None else f"a sequence of {width}"


def _refuse(function: Callable[[Any], Any], what: str, error: Exception | None = None) -> NoReturn:
    raise ClaimError(f"The function {function_name(function)} of an output {what}") from error
