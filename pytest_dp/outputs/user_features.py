"""Quantities that a function of the user's works out from one output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.outputs.feature import KINDS, Column, Feature, FeatureKind
from pytest_dp.outputs.leaves import ABSENT, NUMBER, as_float, is_number
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import Table

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
        numbers = np.full((len(table), 1 if self.width is None else self.width), np.nan)
        codes = np.full(len(table), ABSENT)
        for row in _outputs(table):
            width, values = _call_on_output(self.function, table.raw[row])
            if width != self.width:
                _refuse(
                    self.function,
                    f"returned {on_one_line(values if width is not None else values[0])} for the "
                    f"output {on_one_line(table.raw[row])}, which is {_so_many(width)}, but "
                    f"{_so_many(self.width)} for another output. {_ALLOWED}",
                )
            numbers[row], codes[row] = [as_float(value) for value in values], NUMBER
        return numbers, codes


def user_features(
    function: Callable[[Any], Any], table: Table, labels: Sequence[str] = ()
) -> list[Feature]:
    """Return features for what a function gives for each output.

    One number, or each of a sequence; each of them may have a label, such as those of
    `targeted.Targeted`. Raises ClaimError if the function raises, gives anything but numbers, or
    not as many for every output. So do the columns of these features, for other tables.
    """
    rows = _outputs(table)
    if not rows:
        return []
    wrapped = UserFunction(function, _call_on_output(function, table.raw[rows[0]])[0])
    wrapped.columns(table)
    text = f"{function_name(function)}(output)"
    numbered = [text] if wrapped.width is None else [f"{text}[{i}]" for i in range(wrapped.width)]
    return [Feature(said, "user", (wrapped, i)) for i, said in enumerate(labels or numbered)]


def _column(argument: Any, table: Table) -> Column:
    function, index = argument
    numbers, codes = function.columns(table)
    return numbers[:, index], codes


KINDS["user"] = FeatureKind(_column)


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of what it wraps, or of its type."""
    inner = getattr(function, "func", function)  # of functools.partial
    return str(getattr(inner, "__name__", type(inner).__name__))


def _outputs(table: Table) -> list[int]:
    """Return the runs that did not raise."""
    if isinstance(table.raw, np.ndarray):
        return list(range(len(table)))
    return [row for row, output in enumerate(table.raw) if not isinstance(output, Raised)]


def _call_on_output(
    function: Callable[[Any], Any], output: Any
) -> tuple[int | None, Sequence[Any]]:
    """Return the numbers that a function gives for an output, and how many.

    None stands for a bare number. Raises ClaimError for anything else.
    """
    try:
        returned = function(output)
    except Exception as error:
        said = f"raised {type(error).__name__}: {error}"
        _refuse(function, f"{said}, for the output {on_one_line(output)}.", error)
    plain = np.asarray(returned).tolist() if hasattr(returned, "__array__") else returned
    is_sequence = isinstance(plain, list | tuple)
    numbers = plain if is_sequence else (plain,)
    if not numbers or not all(isinstance(n, bool) or is_number(type(n)) for n in numbers):
        _refuse(
            function,
            f"returned {on_one_line(returned)}, of type {type(returned).__name__}, for the "
            f"output {on_one_line(output)}. {_ALLOWED}",
        )
    return len(numbers) if is_sequence else None, numbers


def _so_many(width: int | None) -> str:
    return "a single number" if width is None else f"a sequence of {width}"


def _refuse(function: Callable[[Any], Any], what: str, error: Exception | None = None) -> NoReturn:
    raise ClaimError(f"The function {function_name(function)} of an output {what}") from error
