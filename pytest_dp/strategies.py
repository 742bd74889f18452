"""Hypothesis strategies for private data, and for pairs of neighbours in tests of your own.

Thin compositions of `hypothesis.strategies`: for ``inputs=`` of a claim, best in a module of your
tests that the claim names (``inputs="tests.dp_inputs:patients"``), or for ``@given``.

Examples
--------
Datasets for a claim:

>>> from hypothesis import strategies as st
>>> from pytest_dp.strategies import categories, numbers, records, tables
>>> patients = st.lists(records(age=numbers(0, 120), smokes=categories(["yes", "no"])))
>>> visits = tables({"user": numbers(1, 5), "cost": numbers(0.0, 1e4)}, kind="dict")

A test that no record changes a count by more than one:

>>> from hypothesis import given
>>> from pytest_dp.strategies import neighbors
>>> @given(neighbors(patients, "add_remove_one"))
... def test_sensitivity(pair):
...     d1, d2 = pair
...     assert abs(len(d1) - len(d2)) <= 1
>>> test_sensitivity()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pytest_dp.basics.errors import invalid
from pytest_dp.claiming.keywords import read_keyword
from pytest_dp.declaration import Neighbors
from pytest_dp.pairs.pair_strategies import draw_neighbours

__all__ = ["categories", "histograms", "neighbors", "numbers", "records", "tables"]

Kind = Literal["pandas", "polars", "dict"]


def numbers(low: float, high: float, *, nan: bool = False) -> SearchStrategy[Any]:
    """Return a strategy for numbers from `low` to `high`, both included.

    Parameters
    ----------
    low, high : int or float
        If both are of type int, only integers are drawn; else floats.
    nan : bool
        Whether NaN is drawn too, also among integers.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pytest_dp.strategies import numbers
    >>> find(numbers(0, 120), lambda age: age > 64)
    65
    >>> find(numbers(0.0, 1.0), lambda share: share > 0)
    1.0
    """
    integral = isinstance(low, int) and isinstance(high, int)
    finite = st.integers(int(low), int(high)) if integral else st.floats(float(low), float(high))
    return finite | st.just(float("nan")) if nan else finite


def categories(values: Iterable[Any], *, missing: bool = False) -> SearchStrategy[Any]:
    """Return a strategy that draws one of the values.

    Parameters
    ----------
    values : iterable
        All that may occur, whether or not they do in the data at hand.
    missing : bool
        Whether None is drawn too.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pytest_dp.strategies import categories
    >>> find(categories(["a", "b"]), lambda value: value != "a")
    'b'
    """
    return st.sampled_from([*values, None] if missing else list(values))


def records(*fields: SearchStrategy[Any], **columns: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Return a strategy for records: tuples of unnamed fields, or dicts of named fields.

    Raises ClaimError for both kinds of fields together, and without any.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pytest_dp.strategies import categories, numbers, records
    >>> find(records(numbers(0, 9), categories("ab")), lambda record: record[0] > 3)
    (4, 'a')
    >>> find(records(age=numbers(0, 120)), lambda record: True)
    {'age': 0}
    """
    if bool(fields) == bool(columns):
        raise invalid(
            "records",
            (*fields, *columns.values()),
            "Allowed: strategies without names, for tuples, or with names, for dicts.",
        )
    return st.tuples(*fields) if fields else _dicts_in_order(columns)


def tables(
    columns: Mapping[str, SearchStrategy[Any]],
    *,
    min_size: int = 0,
    max_size: int | None = None,
    kind: Kind | None = None,
) -> SearchStrategy[Any]:
    """Return a strategy for tables with records as rows, all with equal dtypes, empty ones too.

    Raises ClaimError for an unknown `kind`, and without columns.

    Parameters
    ----------
    columns : mapping from names to strategies
    min_size, max_size : int
        Number of rows.
    kind : {"pandas", "polars", "dict"}, optional
        A data frame, or a dict of lists. By default what is installed, pandas before polars.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pytest_dp.strategies import categories, numbers, tables
    >>> people = tables({"age": numbers(0, 120), "sex": categories("fm")}, kind="dict")
    >>> find(people, lambda table: sum(table["age"]) > 120)
    {'age': [1, 120], 'sex': ['f', 'f']}
    """
    if kind not in (*_MAKERS, None):
        raise invalid("kind", kind, f"Valid choices: {', '.join(map(repr, _MAKERS))}.")
    if not columns:
        raise invalid("columns", columns, 'Write at least one, such as {"age": numbers(0, 120)}.')
    make = _MAKERS[kind or _data_frame_library()]
    row = st.tuples(*columns.values())
    rows = st.lists(row, min_size=min_size, max_size=max_size)
    return st.builds(lambda template, rest: make(list(columns), template, rest), row, rows)


def histograms(
    bins: int | Sequence[Any], *, max_count: int = 1_000
) -> SearchStrategy[list[int]] | SearchStrategy[dict[Any, int]]:
    """Return a strategy for counts: a list of this length, or a dict with a count for each label.

    Parameters
    ----------
    bins : int or sequence of labels
    max_count : int
        Largest count.

    Examples
    --------
    >>> from hypothesis import find
    >>> from pytest_dp.strategies import histograms
    >>> find(histograms(3), lambda counts: sum(counts) > 1_500)
    [0, 501, 1000]
    >>> find(histograms(["yes", "no"]), lambda counts: counts["no"] > 2)
    {'yes': 0, 'no': 3}
    """
    counts = st.integers(0, max_count)
    if isinstance(bins, int):
        return st.lists(counts, min_size=bins, max_size=bins)
    return _dicts_in_order(dict.fromkeys(bins, counts))


def _dicts_in_order(columns: Mapping[Any, SearchStrategy[Any]]) -> SearchStrategy[dict[Any, Any]]:
    """Return a strategy for dicts with their entries in the order of `columns`."""
    names = list(columns)
    return st.tuples(*columns.values()).map(lambda values: dict(zip(names, values, strict=True)))


def neighbors(
    datasets: SearchStrategy[Any], relation: str | Neighbors | Callable[..., Any]
) -> SearchStrategy[tuple[Any, Any]]:
    """Return a strategy for neighbours (D, D'): D from `datasets`, new records from another draw.

    Raises ClaimError for an unknown relation; drawing rejects a D without neighbours.

    Parameters
    ----------
    datasets : SearchStrategy
        Of datasets; of single values, any two of which are neighbours, under ``"any_two"``.
    relation : str, value or callable
        As ``neighbors=`` of a claim. D' need not be a dataset that the strategy may yield: it may
        have one record more or less. For a claim, write ``inputs=datasets`` with
        ``neighbors=relation``: then it is.

    Examples
    --------
    >>> from hypothesis import find, strategies as st
    >>> from pytest_dp.strategies import neighbors
    >>> find(neighbors(st.lists(st.integers()), "add_remove_one"), lambda pair: True)
    ([], [0])
    """
    return draw_neighbours(datasets, read_keyword("neighbors", relation)).map(
        lambda pair: (pair.d1, pair.d2)
    )


def _data_frame_library() -> str:
    return next((name for name in ("pandas", "polars") if find_spec(name)), "dict")


def _pandas(names: list[str], template: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> Any:
    import pandas as pd

    frame = pd.DataFrame.from_records([template, *rows], columns=names)  # which sets the dtypes
    return frame.iloc[1:].reset_index(drop=True)


def _polars(names: list[str], template: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> Any:
    import polars as pl

    return pl.DataFrame([template, *rows], schema=names, orient="row", infer_schema_length=None)[1:]


def _dict(names: list[str], template: tuple[Any, ...], rows: list[tuple[Any, ...]]) -> Any:  # noqa: ARG001
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


_MAKERS: dict[str, Callable[..., Any]] = {"pandas": _pandas, "polars": _polars, "dict": _dict}
