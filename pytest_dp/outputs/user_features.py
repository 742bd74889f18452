"""Quantities that a function works out from one output: one of the user's, or `Targeted`.

The latter tells whether one record was among those that a table of records was made of: by counts
of records that agree with the target in random subsets of the columns, how far the closest ones
are, and moments of each column. The counts are the attack that TAPAS found strongest; here they are
compared with what the data without the target would give, so that they say something before
anything was learned.

Source: Houssiau et al., "TAPAS: a Toolbox for Adversarial Privacy Auditing of Synthetic Data",
2022; Stadler, Oprisanu, Troncoso, "Synthetic Data: Anonymisation Groundhog Day", USENIX Security
2022 (histograms).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs
from pytest_dp.basics.errors import ClaimError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.data.fields import Cells, cells_of, changed_records, record_cells
from pytest_dp.outputs.feature import KINDS, Column, Feature, FeatureKind
from pytest_dp.outputs.leaves import ABSENT, NUMBER, as_float, is_number
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import Table

_ALLOWED = (
    "Allowed: a number, or a list, tuple or 1-d array of numbers, equally long for every output; "
    "True and False count as 1 and 0."
)
"""What a user's function may return, for its errors."""

TRIED_DIRECTIONS = 48
"""Random subsets of columns that are tried. More take longer; fewer miss the record."""
MAX_CATEGORIES = 24
"""Different values of a column of categories. More take numbers for categories; fewer, the
reverse."""
FAR_SCALES = 3
"""Deviations at which a cell is as far off as possible. More: one far cell decides; fewer: near and
far look equal."""
MAX_NAMED = 3
"""Columns that are named. More hide the rest."""
CLOSEST_ROWS = 8
"""Rows closest to the record, and outputs that are tried. More: others count as near; fewer: chance
decides."""

CLOSE = 1 / 8
"""Deviations from the target's number within which a number agrees, in a column of many numbers."""
MOMENTS: dict[str, Callable[[Floats], Any]] = {"mean": np.mean, "deviation": np.std}
"""What is computed of the finite numbers of each column."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function of the user from an output to numbers, and how many numbers it returns."""

    function: Callable[[Any], Any] = field(hash=False)
    """Returns a number or a sequence of numbers. Not called for a run that raised."""
    width: int | None
    """How many numbers; None for a single one outside a sequence."""

    def columns(self, table: Table) -> tuple[Floats, Ints]:
        """Call the function for each output, once per table; return numbers and codes.

        Numbers have shape (n, width or 1), NaN for exceptions; codes have shape (n,). Raises
        ClaimError if the function raises, or returns anything but `width` numbers.
        """
        if self not in table.results:
            table.results[self] = self._compute(table)
        return table.results[self]

    def _compute(self, table: Table) -> tuple[Floats, Ints]:
        """Call the function for each output that is no exception; return and raise as `columns`."""
        numbers = np.full((len(table), 1 if self.width is None else self.width), np.nan)
        codes = np.full(len(table), ABSENT)
        for row in _rows_without_exceptions(table):
            width, values = _call_on_output(self.function, table.raw[row])
            if width != self.width:
                _refuse(
                    self.function,
                    f"returned {on_one_line(values if width is not None else values[0])} for the "
                    f"output {on_one_line(table.raw[row])}, which is {_count_text(width)}, but "
                    f"{_count_text(self.width)} for another output. {_ALLOWED}",
                )
            numbers[row], codes[row] = [as_float(value) for value in values], NUMBER
        return numbers, codes


def user_features(
    function: Callable[[Any], Any], table: Table, labels: Sequence[str] = ()
) -> list[Feature]:
    """Call a function for each output, and return a feature for each of its numbers.

    `labels` are the texts of the features. Empty if all runs raised. Raises ClaimError if the
    function raises, or does not return equally many numbers for every output. The features' columns
    call the function for other tables, and raise ClaimError too.
    """
    rows = _rows_without_exceptions(table)
    if not rows:
        return []
    wrapped = UserFunction(function, _call_on_output(function, table.raw[rows[0]])[0])
    wrapped.columns(table)
    text = f"{function_name(function)}(output)"
    numbered = [text] if wrapped.width is None else [f"{text}[{i}]" for i in range(wrapped.width)]
    return [Feature(said, "user", (wrapped, i)) for i, said in enumerate(labels or numbered)]


def _column(argument: Any, table: Table) -> Column:
    """Return the column of one number of a `UserFunction`, given both as a pair."""
    function, index = argument
    numbers, codes = function.columns(table)
    return numbers[:, index], codes


KINDS["user"] = FeatureKind(_column)


def function_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or of a function in a `partial`; else of its type."""
    inner = getattr(function, "func", function)  # of functools.partial
    return str(getattr(inner, "__name__", type(inner).__name__))


def _rows_without_exceptions(table: Table) -> list[int]:
    """Return the rows of outputs that are no exceptions."""
    if isinstance(table.raw, np.ndarray):
        return list(range(len(table)))
    return [row for row, output in enumerate(table.raw) if not isinstance(output, Raised)]


def _call_on_output(
    function: Callable[[Any], Any], output: Any
) -> tuple[int | None, Sequence[Any]]:
    """Call a function on an output; return the count of its numbers, and the numbers.

    The count is None for a single number. Raises ClaimError if the function raises, or returns
    anything but numbers.
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


def _count_text(width: int | None) -> str:
    return "a single number" if width is None else f"a sequence of {width}"


def _refuse(function: Callable[[Any], Any], what: str, error: Exception | None = None) -> NoReturn:
    """Raise ClaimError about a function of an output."""
    raise ClaimError(f"The function {function_name(function)} of an output {what}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Targeted:
    """A function from a table of records to quantities by which to look for a target record.

    All are NaN for outputs that are no table with the columns of the target. The first quantity is
    larger with the target than without, before anything is learned.
    """

    names: tuple[Hashable, ...]
    target: tuple[Any, ...]
    room: Floats
    """How far a number may be off and agree, shape (columns,); NaN for other values."""
    scale: Floats
    """The deviation of each column, shape (columns,); NaN for other values than numbers."""
    subsets: Bools
    """Which columns each count is about, shape (counts, columns)."""
    usual: Floats
    """Shares of the records without the target that agree, shape (counts,)."""

    @property
    def labels(self) -> list[str]:
        """The text of each quantity."""
        counts = [
            f"rows that agree with the record in {', '.join(self._column_names(subset))}"
            for subset in self.subsets
        ]
        moments = [f"{what} of {_column_text(name)}" for name in self._numbers for what in MOMENTS]
        return [
            "agreement with the record",
            "distance of the closest row to the record",
            f"distance of the closest {CLOSEST_ROWS} rows to the record",
            "number of rows",
            *counts,
            *moments,
        ]

    @property
    def _numbers(self) -> list[Hashable]:
        """The names of the columns of numbers."""
        return [name for name, at in zip(self.names, self.scale, strict=True) if not np.isnan(at)]

    def _column_names(self, subset: Bools) -> list[str]:
        """Return at most `MAX_NAMED` names of a subset of columns, and a text for the rest."""
        named = [_column_text(name) for name, yes in zip(self.names, subset, strict=True) if yes]
        more = [f"{len(named) - MAX_NAMED} more"] if len(named) > MAX_NAMED else []
        return named[:MAX_NAMED] + more

    def __call__(self, output: Any) -> list[float]:
        cells = cells_of(output)
        if cells is None or cells.keys() != set(self.names):
            return [np.nan] * len(self.labels)
        agrees, apart = self.compare_cells(cells)
        agreeing = self.count_rows(agrees)
        expected = self.usual * len(agrees)
        excess = float(((agreeing - expected) / np.sqrt(expected + 1)).mean())
        distances = np.sort(apart.mean(axis=1))
        moments: list[float] = []
        for name in self._numbers:
            column = cells[name]  # of objects, where only the data has numbers
            known = column[:0] if column.dtype == object else column[np.isfinite(column)]
            moments += [f(known) if len(known) else np.nan for f in MOMENTS.values()]
        closest = [distances[0], distances[:CLOSEST_ROWS].mean()]
        return [excess, *closest, float(len(agrees)), *agreeing, *moments]

    def count_rows(self, agrees: Bools) -> Floats:
        """Return how many rows agree with the target in all columns of each subset, (counts,).

        `agrees` has the shape (rows, columns).
        """
        missed = (~agrees).astype(np.float64) @ self.subsets.T
        counts: Floats = (missed == 0).sum(axis=0).astype(np.float64)
        return counts

    def compare_cells(self, cells: Cells) -> tuple[Bools, Floats]:
        """Return whether each cell agrees with the target, and its distance in [0, 1].

        Both have the shape (rows, columns). The distance of a missing number is 1.
        """
        agrees, apart = [], []
        for name, value, room, scale in zip(
            self.names, self.target, self.room, self.scale, strict=True
        ):
            column = cells[name]
            if np.isnan(scale) or column.dtype == object:
                same = np.array(column == value, dtype=bool)
                agrees.append(same)
                apart.append((~same).astype(np.float64))
            else:
                off = np.abs(column - value)
                agrees.append(off <= room)
                apart.append(np.nan_to_num(np.minimum(off / (FAR_SCALES * scale), 1.0), nan=1.0))
        return np.stack(agrees, axis=1), np.stack(apart, axis=1)


def _column_text(name: Hashable) -> str:
    """Return the name of a column as text; a position in brackets."""
    return f"[{name}]" if isinstance(name, int) else str(name)


def target_record(without: Any, record: dict[Hashable, Any], seed: int) -> Targeted | None:
    """Return a `Targeted` for a record, scaled by the data `without` the record.

    Random subsets of columns follow from the seed. None if the data is no table, or has other
    columns than the record.
    """
    cells = cells_of(without)
    if cells is None or cells.keys() != record.keys():
        return None
    names, target = tuple(cells), tuple(record[name] for name in cells)
    columns = list(zip(cells.values(), target, strict=True))
    scale = np.array([_deviation(column, value) for column, value in columns])
    few = np.array(
        [len(np.unique(c)) <= MAX_CATEGORIES if c.dtype != object else True for c in cells.values()]
    )
    room = np.where(few, 0.0, CLOSE * scale)
    subsets = _draw_subsets(len(names), np.random.default_rng(seed))
    bare = Targeted(names, target, room, scale, subsets, np.zeros(len(subsets)))
    agrees, _ = bare.compare_cells(cells)
    return Targeted(names, target, room, scale, subsets, bare.count_rows(agrees) / len(agrees))


def _deviation(column: Any, value: Any) -> float:
    """Return the standard deviation of a column, 1.0 in place of 0; NaN unless of numbers."""
    if column.dtype == object or isinstance(value, str):
        return np.nan
    return float(np.nanstd(column)) or 1.0


def _draw_subsets(width: int, random: np.random.Generator) -> Bools:
    """Return different subsets of columns: all, each one, and random ones; (subsets, columns)."""
    chosen = [np.ones(width, bool), *np.eye(width, dtype=bool)]
    for _ in range(TRIED_DIRECTIONS if width > 2 else 0):
        subset = np.zeros(width, bool)
        subset[random.permutation(width)[: random.integers(2, width)]] = True
        chosen.append(subset)
    return np.unique(chosen, axis=0)


def target_of(d1: Any, d2: Any, outputs: Outputs, seed: int) -> Targeted | None:
    """Return a `Targeted` for the record that only one of two inputs has.

    None if the inputs differ in more than one record, are no tables of at least two columns, or if
    none of the first outputs is a table of these columns.
    """
    cells, some = cells_of(d1) or cells_of(d2), list(outputs[:CLOSEST_ROWS])
    if cells is None or len(cells) < 2:
        return None
    if all((cells_of(output) or {}).keys() != cells.keys() for output in some):
        return None
    found = changed_records(d1, d2)
    if found is None or len(found) != 1:
        return None
    has, without, at = (
        (d1, d2, found[0].at1) if found[0].at1 is not None else (d2, d1, found[0].at2)
    )
    return None if at is None else target_record(without, record_cells(has, at), seed)
