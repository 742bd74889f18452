"""A pair of inputs as stand-ins that share their variables, and pairs from answers of z3."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import z3
from z3.z3util import get_vars

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import key, kind_of, rebuild, records_of
from pytest_dp.data.fields import fields_of, with_field
from pytest_dp.data.relations import AllQueries, OneQuery, Pair, Relation, WithParams
from pytest_dp.proposers.interesting_values import LARGEST_NUMBER
from pytest_dp.proposers.stand_ins import Truth, number, term
from pytest_dp.proposers.trace import Trace

if TYPE_CHECKING:  # with Hypothesis, which claims about examples do without
    from pytest_dp.pairs.generated import Generated

Values = Mapping[str, bool | str]
"""Values that z3 found for variables, by their names: numbers as texts of fractions."""
Range = tuple[float, float]
"""The smallest and the largest number of a parameter or a field."""
EVERYTHING: Range = (-LARGEST_NUMBER, LARGEST_NUMBER)


def number_in(values: Values, variable: Any) -> Fraction:
    """Return the number that z3 found for a variable; 0 if it left the variable open."""
    return Fraction(values.get(str(variable), 0))


class StagingError(Exception):
    """Nothing can stand in for an input of this type."""


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A number or a truth of an input as a variable of z3, with the value that it has there."""

    formula: Any
    value: Any
    range: Range

    @property
    def kept_condition(self) -> Any:
        """The condition that the variable keeps its present value."""
        return self.formula == literal(self.value)

    def conditions(self) -> Iterator[Any]:
        """Yield the conditions that a number stays in its range; none for truths."""
        if not isinstance(self.value, bool):
            low, high = map(type(self.value), self.range)
            yield self.formula >= literal(low)
            yield self.formula <= literal(high)

    def stand_in(self, trace: Trace) -> Any:
        """Return a stand-in with this value, whose decisions are noted in a trace."""
        if isinstance(self.value, bool):
            return Truth(trace, self.value, self.formula)
        return number(trace, self.value, self.formula)

    def value_in(self, values: Values) -> Any:
        """Return the variable's value in an answer of z3; False or 0 if z3 left it open."""
        if isinstance(self.value, bool):
            return values.get(str(self.formula), False)
        return type(self.value)(number_in(values, self.formula))


def literal(value: Any) -> Any:
    """Return a value as a constant of z3."""
    return z3.BoolVal(value) if isinstance(value, bool) else term(value)


class Variables:
    """A maker of variables for the values of an input; `all` has those made so far."""

    def __init__(self) -> None:
        self.all: list[Variable] = []

    def new(self, value: Any, among: Range = EVERYTHING) -> Variable | None:
        """Append a new variable for a value to `all`, and return it.

        None for other types than bool, int and float, and for NaN and infinities.
        """
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) not in (bool, int, float) or not math.isfinite(value):
            return None
        sorts = {bool: z3.Bool, int: z3.Int, float: z3.Real}
        formula = sorts[type(value)](f"v{len(self.all)}")
        self.all.append(Variable(formula, value, among))
        return self.all[-1]

    def record(self, record: Any) -> VariableRecord:
        """Return a record with new variables for its values."""
        made = {name: self.new(value) for name, value in fields_of(record).items()}
        return VariableRecord(record, {name: one for name, one in made.items() if one is not None})


@dataclass(frozen=True, slots=True)
class VariableRecord:
    """A record, with variables for some of its fields."""

    record: Any
    variables: Mapping[Hashable, Variable]

    def with_values(self, value_of: Callable[[Variable], Any]) -> Any:
        """Return the record with `value_of(variable)` in the field of each variable."""
        made = self.record
        for name, variable in self.variables.items():
            made = with_field(made, name, value_of(variable))
        return made


class Stage:
    """Stand-ins for a pair: for the records of D and D', or for the parameters of a drawn pair.

    `facts` are conditions of z3: that D and D' are neighbours, that parameters are inside of
    `ranges`, and that those `decided` keep these values. The records of a `generated` pair are no
    variables.
    """

    def __init__(
        self,
        pair: Pair,
        relation: Relation | None,
        generated: Generated | None,
        ranges: Mapping[str, Range],
        decided: Mapping[str, Any],
    ) -> None:
        self.pair, self._relation, self._generated = pair, relation, generated
        made = Variables()
        self._all = made.all
        self._d1, self._d2 = _plain_records(pair.d1), _plain_records(pair.d2)
        if generated is None:
            self._d1 = [made.record(one.record) for one in self._d1]
            self._d2 = self._records_of_d2(made)
        named = {
            name: made.new(value, ranges.get(name, EVERYTHING))
            for name, value in pair.params.items()
        }
        self.params = {name: one for name, one in named.items() if one is not None}
        self.facts = [] if generated is not None else [*self._neighbours()]
        self.facts += [fact for variable in made.all for fact in variable.conditions()]
        self.facts += [self.params[name].formula == literal(v) for name, v in decided.items()]

    @property
    def kept_conditions(self) -> list[Any]:
        """The conditions that variables keep their present values."""
        return [variable.kept_condition for variable in self._all]

    def params_in(self, formula: Any, answered: Values) -> dict[str, Any]:
        """Return the values in an answer of those parameters that a formula depends on."""
        used = set(map(str, get_vars(formula)))
        named = self.params.items()
        return {name: one.value_in(answered) for name, one in named if str(one.formula) in used}

    def _records_of_d2(self, made: Variables) -> list[VariableRecord]:
        """Return the records of D', with the variables of D in those that D holds as well."""
        left: dict[Hashable, list[VariableRecord]] = {}
        for record in self._d1 if not _is_of_queries(self._relation) else ():
            left.setdefault(key(record.record), []).append(record)
        rows = _records_of(self.pair.d2)
        shared = (left.get(key(record)) for record in rows)
        return [
            same.pop(0) if same else made.record(record)
            for same, record in zip(shared, rows, strict=True)
        ]

    def _neighbours(self) -> Iterator[Any]:
        """Yield the conditions for vectors of answers to be neighbours; none for other inputs."""
        if not _is_of_queries(self._relation):
            return
        sides = (
            [variable.formula for record in records for variable in record.variables.values()]
            for records in (self._d1, self._d2)
        )
        both = list(zip(*sides, strict=True))
        moved = [a != b for a, b in both]
        for a, b in both:
            yield z3.And(a - b <= 1, b - a <= 1, a >= 0, b >= 0)
        yield z3.Or(*moved)
        if isinstance(self._relation, OneQuery):
            yield z3.AtMost(*moved, 1)

    def d1(self, trace: Trace) -> Any:
        """Return stand-ins for D that note decisions in a trace; StagingError for unfit types."""
        return self._stand_in(trace, self.pair.d1, self._d1)

    def d2(self, trace: Trace) -> Any:
        """Return stand-ins for D' that note decisions in a trace; StagingError for unfit types."""
        return self._stand_in(trace, self.pair.d2, self._d2)

    def _stand_in(self, trace: Trace, like: Any, rows: list[VariableRecord]) -> Any:
        """Return stand-ins for an input and its parameters; `rows` are its records."""
        data = like
        if self._generated is None:
            values = [record.with_values(lambda one: one.stand_in(trace)) for record in rows]
            data = _assemble(like, values)
        params = {name: one.stand_in(trace) for name, one in self.params.items()}
        return WithParams(data, {**self.pair.params, **params}) if self.pair.params else data

    def make_pair(self, answered: Values) -> Pair | None:
        """Return the pair that z3's values make; None if the values do not fit.

        That is: D and D' are no neighbours, a dataset cannot hold them, or the strategy does not
        yield them.
        """
        values = {str(one.formula): one.value_in(answered) for one in self._all}

        def value_of(variable: Variable) -> Any:
            return values[str(variable.formula)]

        try:
            if self._generated is not None:
                return self._draw_with({name: value_of(one) for name, one in self.params.items()})
            sides = [[row.with_values(value_of) for row in rows] for rows in (self._d1, self._d2)]
            d1, d2 = (
                rebuild(data, rows) if kind_of(data) else rows[0]
                for data, rows in zip((self.pair.d1, self.pair.d2), sides, strict=True)
            )
            if self._relation is None:
                return replace(self.pair, d1=d1, d2=d2)
            return self._relation.pair(d1, d2)
        except (ClaimError, ValueError, OverflowError):  # such as of a column that cannot hold it
            return None

    def _draw_with(self, params: Mapping[str, Any]) -> Pair | None:
        """Remake the pair with other parameters; None if the strategies do not yield it.

        The choices that made the parameters are looked for from the end.
        """
        assert self._generated is not None
        drawn = self._generated.find_draw(self.pair)
        choices = [*chain.from_iterable(drawn.choices)] if drawn is not None else []
        changes: dict[int, Any] = {}
        at = len(choices)
        for name, variable in reversed(self.params.items()):
            value = variable.value
            places = (i for i in range(at - 1, -1, -1) if _is_same_choice(choices[i], value))
            at = next(places, at)
            changes[at] = params[name]
        pair = self._generated.redraw(self.pair, changes)
        return (
            pair if pair and key({**pair.params}) == key({**self.pair.params, **params}) else None
        )


def ranges_of_params(pairs: Sequence[Pair]) -> dict[str, Range]:
    """Return the smallest and largest number that each parameter has in some pairs."""
    found: dict[str, Range] = {}
    for pair in pairs:
        for name, value in pair.params.items():
            if type(value) in (int, float) and abs(value) <= LARGEST_NUMBER:
                low, high = found.get(name, (value, value))
                found[name] = min(low, value), max(high, value)
    return found


def _is_of_queries(relation: Relation | None) -> bool:
    return isinstance(relation, OneQuery | AllQueries)


def _records_of(data: Any) -> list[Any]:
    return records_of(data) if kind_of(data) else [data]


def _plain_records(data: Any) -> list[VariableRecord]:
    """Return the records of an input, without variables."""
    return [VariableRecord(record, {}) for record in _records_of(data)]


def _assemble(like: Any, values: list[Any]) -> Any:
    """Return a dataset of stand-ins of the type of another; StagingError if none can hold them."""
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


def _is_same_choice(choice: Any, value: Any) -> bool:
    return type(choice) is type(value) and bool(choice == value)
