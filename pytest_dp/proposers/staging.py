"""A pair of inputs as stand-ins that share their variables, and pairs from answers of z3."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import z3

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import key, kind_of, rebuilt, records_of
from pytest_dp.data.fields import columns_of
from pytest_dp.data.relations import (
    AllQueries,
    OneQuery,
    Pair,
    Relation,
    WithParams,
)
from pytest_dp.proposers.input_leaves import (
    Leaf,
    LeafRecord,
    Seen,
    Variable,
    Variables,
    constants_in,
    literal,
)
from pytest_dp.proposers.solving import Model
from pytest_dp.proposers.trace import Trace

Redraw = Callable[[Pair, Mapping[int, Any]], Pair | None]
"""The pair of a strategy in which some choices are others; None if there is none."""

if TYPE_CHECKING:  # with Hypothesis
    from pytest_dp.pairs.edits import DrawnValue


class StagingError(Exception):
    """Nothing can stand in for an input of this type."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a pair was drawn, and how to draw others."""

    drawn: DrawnValue
    redraw: Redraw
    seen: Mapping[Hashable, Seen]
    """What the fields of its records were seen to hold."""


class Stage:
    """Stand-ins for a pair.

    `facts` are what D and D' have to fulfil to be neighbours, and inside of the strategy's range;
    parameters that were `decided` keep these values. Raises StagingError.
    """

    def __init__(
        self,
        pair: Pair,
        relation: Relation | None,
        strategy: Strategy | None,
        decided: Mapping[str, Any],
    ) -> None:
        self.pair, self._relation, self._strategy = pair, relation, strategy
        made = Variables()
        self._made = made
        self._d1 = [made.record(record) for record in _rows(pair.d1)]
        self._d2 = self._second()
        self.params = {name: leaf for name, v in pair.params.items() if (leaf := made.leaf(v))}
        if strategy is not None:
            self._match_choices(strategy)
        self.facts = [*made.facts, *self._neighbours()]
        self.facts += [fact for variable in made.all for fact in variable.allowed()]
        for name, values in decided.items():
            for variable, value in zip(self.params[name].variables, values, strict=True):
                self.facts.append(variable.formula == literal(value))

    @property
    def known(self) -> list[Any]:
        """The conditions that variables have the values that they have."""
        return [variable.known for variable in self._made.all]

    def params_in(self, formula: Any, model: Model) -> dict[str, list[Any]]:
        """Return the values in an answer of those parameters that a formula depends on."""
        used = constants_in(formula)
        return {
            name: [variable.found(model) for variable in leaf.variables]
            for name, leaf in self.params.items()
            if any(str(variable.formula) in used for variable in leaf.variables)
        }

    # Which variables D and D' share

    def _second(self) -> list[LeafRecord]:
        """Return the records of D': those that D holds as well are the same."""
        if isinstance(self._relation, OneQuery | AllQueries):
            return [self._made.record(record) for record in _rows(self.pair.d2)]
        left: dict[Hashable, list[LeafRecord]] = {}
        for record in self._d1:
            left.setdefault(key(record.record), []).append(record)
        shared = (left.get(key(record)) for record in _rows(self.pair.d2))
        return [
            same.pop(0) if same else self._made.record(record)
            for same, record in zip(shared, _rows(self.pair.d2), strict=True)
        ]

    def _neighbours(self) -> Iterator[Any]:
        if not isinstance(self._relation, OneQuery | AllQueries):
            return
        both = list(zip(_formulas(self._d1), _formulas(self._d2), strict=True))
        moved = [a != b for a, b in both]
        for a, b in both:
            yield z3.And(a - b <= 1, b - a <= 1, a >= 0, b >= 0)
        yield z3.Or(*moved)
        if isinstance(self._relation, OneQuery):
            yield z3.AtMost(*moved, 1)

    # Choices of a strategy

    def _match_choices(self, strategy: Strategy) -> None:
        """Find the choices that variables are; others keep their values."""
        self._let_ranges(strategy)
        first = [variable for record in self._d1 for variable in record.variables]
        second = [variable for record in self._d2 for variable in record.variables]
        params = [variable for leaf in self.params.values() for variable in leaf.variables]
        parts = strategy.drawn.choices
        choices = [choice for part in parts for choice in part]
        ends = list(accumulate(map(len, parts), initial=0))
        if len(parts) > 1:  # those of D, of D', and of parameters
            sides = [(first, ends[0], ends[1]), (second, ends[1], ends[2])]
            _align(params, choices, range(ends[2], len(choices)), set())
        else:
            known = set(map(id, first))
            _align(params[::-1], choices, range(len(choices) - 1, -1, -1), set())  # drawn last
            rest = [variable for variable in second if id(variable) not in known]
            sides = [(first, 0, len(choices)), (rest, 0, len(choices))]
        taken = {at for variable in self._made.all for at in variable.places}
        for variables, low, high in sides:
            _align(variables, choices, range(low, high), taken)
        for variable in self._made.all:
            if not variable.places:
                self._made.facts.append(variable.known)

    def _let_ranges(self, strategy: Strategy) -> None:
        for record in (*self._d1, *self._d2):
            for name, leaf in record.leaves.items():
                for variable in leaf.variables:
                    variable.seen = strategy.seen.get(name, Seen())
        for name, leaf in self.params.items():
            for variable in leaf.variables:
                variable.seen = strategy.seen.get(("with", name), Seen())

    def _changes(self, values: Mapping[int, Any]) -> dict[int, Any]:
        """Return other choices by their numbers, of values by the variables that have them."""
        return {
            at: values[id(variable)]
            for variable in self._made.all
            if id(variable) in values and not _same(values[id(variable)], variable.value)
            for at in variable.places
        }

    def _makes(self, pair: Pair, value_of: Callable[[Variable], Any]) -> bool:
        """Return whether a pair has the values that are expected."""
        try:
            d1, d2, params = self._with(value_of)
        except ValueError:
            return False
        return key((_rows(pair.d1), _rows(pair.d2), dict(pair.params))) == key((d1, d2, params))

    # Stand-ins and answers

    def d1(self, trace: Trace) -> Any:
        return self._stand_in(trace, self.pair.d1, self._d1)

    def d2(self, trace: Trace) -> Any:
        return self._stand_in(trace, self.pair.d2, self._d2)

    def _stand_in(self, trace: Trace, like: Any, rows: list[LeafRecord]) -> Any:
        values = [record.with_values(lambda leaf: leaf.stand_in(trace)) for record in rows]
        data = _assemble(like, values)
        if not self.params:
            return WithParams(data, self.pair.params) if self.pair.params else data
        params = {name: leaf.stand_in(trace) for name, leaf in self.params.items()}
        return WithParams(data, {**self.pair.params, **params})

    def _with(self, value_of: Callable[[Variable], Any]) -> tuple[list[Any], list[Any], Any]:
        def made(leaf: Leaf) -> Any:
            return leaf.made(*map(value_of, leaf.variables))

        d1, d2 = ([record.with_values(made) for record in side] for side in (self._d1, self._d2))
        params = {name: made(leaf) for name, leaf in self.params.items()}
        return d1, d2, {**self.pair.params, **params}

    def answer(self, model: Model) -> Pair | None:
        """Return the pair of an answer; None if it is no pair of neighbours."""
        try:
            values = {id(variable): variable.found(model) for variable in self._made.all}
            value_of: Callable[[Variable], Any] = lambda variable: values[id(variable)]  # noqa: E731
            if self._strategy is not None:
                pair = self._strategy.redraw(self.pair, self._changes(values))
                return pair if pair is not None and self._makes(pair, value_of) else None
            rows1, rows2, params = self._with(value_of)
            d1, d2 = _like(self.pair.d1, rows1), _like(self.pair.d2, rows2)
            if self._relation is None:
                return replace(self.pair, d1=d1, d2=d2)
            pair = self._relation.pair(d1, d2)
            return pair and replace(pair, params=params)
        except (ClaimError, ValueError, OverflowError):  # such as of a column that cannot hold it
            return None


def seen_in(pairs: Sequence[Pair]) -> dict[Hashable, Seen]:
    """Return what each field of records, and each parameter, was seen to hold."""
    records = (record for pair in pairs for data in (pair.d1, pair.d2) for record in _rows(data))
    seen = {name: Seen.of(column.values()) for name, column in columns_of(records).items()}
    for name in pairs[0].params if pairs else ():
        seen["with", name] = Seen.of(pair.params.get(name) for pair in pairs)
    return seen


def _rows(data: Any) -> list[Any]:
    return records_of(data) if kind_of(data) else [data]


def _like(data: Any, rows: Sequence[Any]) -> Any:
    return rebuilt(data, rows) if kind_of(data) else rows[0]


def _formulas(records: Sequence[LeafRecord]) -> list[Any]:
    return [variable.formula for record in records for variable in record.variables]


def _assemble(like: Any, values: list[Any]) -> Any:
    """Return a dataset of the same type that holds stand-ins."""
    if not kind_of(like):
        return values[0]
    if type(like) in (list, tuple):
        return type(like)(values)
    if isinstance(like, np.ndarray) and like.dtype.names is None:
        return np.array(values, object) if values else like
    pandas: Any = sys.modules.get("pandas")
    if pandas is not None and isinstance(like, pandas.DataFrame):
        columns = {
            name: pandas.Series([row[at] for row in values], dtype=object)
            for at, name in enumerate(like.columns)
        }
        return pandas.DataFrame(columns, columns=like.columns)
    raise StagingError(type(like).__name__)


def _same(choice: Any, value: Any) -> bool:
    return type(choice) is type(value) and bool(choice == value)


def _align(
    variables: Sequence[Variable], choices: Sequence[Any], order: range, taken: set[int]
) -> None:
    """Give each variable the next choice with its value, in some order."""
    ahead = order
    for variable in variables:
        for place, at in enumerate(ahead):
            if at not in taken and _same(choices[at], variable.value):
                variable.places.append(at)
                ahead = ahead[place + 1 :]
                taken.add(at)
                break
