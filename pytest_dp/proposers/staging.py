"""A pair of inputs as stand-ins that share their variables, and pairs from answers of z3."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import z3
from z3.z3util import get_vars

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import key, kind_of, rebuilt, records_of
from pytest_dp.data.fields import columns_of, fields_of, with_field
from pytest_dp.data.relations import AllQueries, OneQuery, Pair, Relation, WithParams
from pytest_dp.proposers.odd_values import LARGEST_NUMBER
from pytest_dp.proposers.solving import Values, number_in
from pytest_dp.proposers.stand_ins import Truth, number, term
from pytest_dp.proposers.trace import Trace

if TYPE_CHECKING:  # with Hypothesis, which claims about examples do without
    from pytest_dp.pairs.generated import Generated

Range = tuple[float, float]
"""The smallest and the largest number of a field."""
EVERYTHING: Range = (-LARGEST_NUMBER, LARGEST_NUMBER)


class StagingError(Exception):
    """Nothing can stand in for an input of this type."""


@dataclass(slots=True, eq=False)
class Variable:
    """A number or a truth of an input, with the value that it has there."""

    formula: Any
    value: Any
    range: Range
    places: list[int] = field(default_factory=list)
    """The choices of a strategy that it is, if any."""

    @property
    def known(self) -> Any:
        """The condition of having the value that it has."""
        return self.formula == literal(self.value)

    def allowed(self) -> Iterator[Any]:
        """Yield conditions on its value."""
        if not isinstance(self.value, bool):
            low, high = map(type(self.value), self.range)
            yield self.formula >= literal(low)
            yield self.formula <= literal(high)

    def stand_in(self, trace: Trace) -> Any:
        """Return a stand-in with its value."""
        if isinstance(self.value, bool):
            return Truth(trace, self.value, self.formula)
        return number(trace, self.value, self.formula)

    def found(self, values: Values) -> Any:
        """Return its value in an answer."""
        if isinstance(self.value, bool):
            return values.get(str(self.formula), False)
        return type(self.value)(number_in(values, self.formula))


def literal(value: Any) -> Any:
    """Return a value as a constant of z3."""
    return z3.BoolVal(value) if isinstance(value, bool) else term(value)


class Variables:
    """Makes variables for the values of an input, each in the range of its field."""

    def __init__(self, ranges: Mapping[Hashable, Range]) -> None:
        self.all: list[Variable] = []
        self._ranges = ranges

    def new(self, value: Any, name: Hashable = None) -> Variable | None:
        """Return a variable for the value of a field; None if there is none for its type."""
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) not in (bool, int, float) or not math.isfinite(value):
            return None
        sorts = {bool: z3.Bool, int: z3.Int, float: z3.Real}
        formula = sorts[type(value)](f"v{len(self.all)}")
        self.all.append(Variable(formula, value, self._ranges.get(name, EVERYTHING)))
        return self.all[-1]

    def record(self, record: Any) -> VariableRecord:
        """Return a record with variables for its values."""
        made = {name: self.new(value, name) for name, value in fields_of(record).items()}
        return VariableRecord(record, {name: one for name, one in made.items() if one is not None})


@dataclass(frozen=True, slots=True)
class VariableRecord:
    """A record with some of its values as variables."""

    record: Any
    variables: Mapping[Hashable, Variable]

    def with_values(self, value_of: Callable[[Variable], Any]) -> Any:
        """Return the record with something else in place of its variables."""
        made = self.record
        for name, variable in self.variables.items():
            made = with_field(made, name, value_of(variable))
        return made


class Stage:
    """Stand-ins for a pair.

    `facts` are what D and D' have to fulfil to be neighbours, inside of `ranges`; parameters that
    were `decided` keep these values. Of a `generated` pair, what is no choice of the strategy stays
    as it is. Raises StagingError.
    """

    def __init__(
        self,
        pair: Pair,
        relation: Relation | None,
        generated: Generated | None,
        ranges: Mapping[Hashable, Range],
        decided: Mapping[str, Any],
    ) -> None:
        self.pair, self._relation, self._generated = pair, relation, generated
        made = Variables(ranges)
        self._all = made.all
        self._d1 = [made.record(record) for record in _rows(pair.d1)]
        self._d2 = self._second(made)
        named = {name: made.new(value, ("with", name)) for name, value in pair.params.items()}
        self.params = {name: one for name, one in named.items() if one is not None}
        self.facts = [*self._neighbours()]
        self.facts += [fact for variable in made.all for fact in variable.allowed()]
        self.facts += [self.params[name].formula == literal(v) for name, v in decided.items()]
        if generated is not None:
            self._match_choices(generated)
            self.facts += [variable.known for variable in made.all if not variable.places]

    @property
    def known(self) -> list[Any]:
        """The conditions that variables have the values that they have."""
        return [variable.known for variable in self._all]

    def params_in(self, formula: Any, answered: Values) -> dict[str, Any]:
        """Return the values in an answer of those parameters that a formula depends on."""
        used = set(map(str, get_vars(formula)))
        named = self.params.items()
        return {name: one.found(answered) for name, one in named if str(one.formula) in used}

    def _second(self, made: Variables) -> list[VariableRecord]:
        """Return the records of D': those that D holds as well are the same."""
        left: dict[Hashable, list[VariableRecord]] = {}
        for record in self._d1 if not _is_of_queries(self._relation) else ():
            left.setdefault(key(record.record), []).append(record)
        rows = _rows(self.pair.d2)
        shared = (left.get(key(record)) for record in rows)
        return [
            same.pop(0) if same else made.record(record)
            for same, record in zip(shared, rows, strict=True)
        ]

    def _neighbours(self) -> Iterator[Any]:
        if not _is_of_queries(self._relation):
            return
        sides = (_variables(records) for records in (self._d1, self._d2))
        both = [(one.formula, other.formula) for one, other in zip(*sides, strict=True)]
        moved = [a != b for a, b in both]
        for a, b in both:
            yield z3.And(a - b <= 1, b - a <= 1, a >= 0, b >= 0)
        yield z3.Or(*moved)
        if isinstance(self._relation, OneQuery):
            yield z3.AtMost(*moved, 1)

    def _match_choices(self, generated: Generated) -> None:
        """Find the choices that variables are: those with their values, in order."""
        drawn = generated.drawn(self.pair)
        parts = drawn.choices if drawn is not None else ()
        choices, taken = [*chain.from_iterable(parts)], set[int]()
        first, second = _variables(self._d1), _variables(self._d2)

        def align(variables: Iterable[Variable], order: range) -> None:
            for variable in variables:
                same = (at for at in order if _is_same(choices[at], variable.value))
                at = next((at for at in same if at not in taken), None)
                if at is not None:
                    variable.places.append(at)
                    taken.add(at)
                    order = order[order.index(at) + 1 :]

        everywhere = range(len(choices))
        align(reversed(self.params.values()), everywhere[::-1])  # which are drawn last
        align(first, everywhere)
        if len(parts) > 1:  # the choices of D' follow those of D
            align(second, everywhere[len(parts[0]) :])
        else:
            align((one for one in second if one not in first), everywhere)

    def d1(self, trace: Trace) -> Any:
        """Return stand-ins for D."""
        return self._stand_in(trace, self.pair.d1, self._d1)

    def d2(self, trace: Trace) -> Any:
        """Return stand-ins for D'."""
        return self._stand_in(trace, self.pair.d2, self._d2)

    def _stand_in(self, trace: Trace, like: Any, rows: list[VariableRecord]) -> Any:
        values = [record.with_values(lambda one: one.stand_in(trace)) for record in rows]
        params = {name: one.stand_in(trace) for name, one in self.params.items()}
        data = _assemble(like, values)
        return WithParams(data, {**self.pair.params, **params}) if self.pair.params else data

    def answer(self, answered: Values) -> Pair | None:
        """Return the pair of an answer; None if it is no pair of neighbours."""
        values = {str(one.formula): one.found(answered) for one in self._all}

        def value_of(variable: Variable) -> Any:
            return values[str(variable.formula)]

        try:
            sides = [[row.with_values(value_of) for row in rows] for rows in (self._d1, self._d2)]
            params = {name: value_of(one) for name, one in self.params.items()}
            params = {**self.pair.params, **params}
            if self._generated is not None:
                changes = {at: value_of(one) for one in self._all for at in one.places}
                pair = self._generated.redrawn(self.pair, changes)
                made = pair and (_rows(pair.d1), _rows(pair.d2), dict(pair.params))
                return pair if key(made) == key((*sides, params)) else None
            d1, d2 = (
                rebuilt(data, rows) if kind_of(data) else rows[0]
                for data, rows in zip(self.pair.inputs, sides, strict=True)
            )
            if self._relation is None:
                return replace(self.pair, d1=d1, d2=d2)
            pair = self._relation.pair(d1, d2)
            return pair and replace(pair, params=params)
        except (ClaimError, ValueError, OverflowError):  # such as of a column that cannot hold it
            return None


def ranges_of(pairs: Sequence[Pair]) -> dict[Hashable, Range]:
    """Return the ranges of numbers that fields of records, and parameters, hold in some pairs."""
    records = (record for pair in pairs for data in pair.inputs for record in _rows(data))
    seen = {name: list(column.values()) for name, column in columns_of(records).items()}
    for name in pairs[0].params if pairs else ():
        seen["with", name] = [pair.params.get(name) for pair in pairs]
    numbers = {
        name: [v for v in values if type(v) in (int, float) and abs(v) <= LARGEST_NUMBER]
        for name, values in seen.items()
    }
    return {name: (min(values), max(values)) for name, values in numbers.items() if values}


def _is_of_queries(relation: Relation | None) -> bool:
    return isinstance(relation, OneQuery | AllQueries)


def _rows(data: Any) -> list[Any]:
    return records_of(data) if kind_of(data) else [data]


def _variables(records: Sequence[VariableRecord]) -> list[Variable]:
    return [variable for record in records for variable in record.variables.values()]


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


def _is_same(choice: Any, value: Any) -> bool:
    return type(choice) is type(value) and bool(choice == value)
