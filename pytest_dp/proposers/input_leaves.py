"""Values of inputs as variables of z3, stand-ins for them, and values from its answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import z3

from pytest_dp.data.fields import fields_of, with_field
from pytest_dp.proposers.solving import Model
from pytest_dp.proposers.stand_in_numbers import Truth, number, term
from pytest_dp.proposers.stand_in_texts import text
from pytest_dp.proposers.trace import Trace

LARGEST_NUMBER = 2.0**32
"""Largest number that is proposed. Beyond, floats are too coarse for the noise of most
mechanisms."""
MAX_TEXT = 60
"""Characters of a text that is proposed. Longer ones take z3 longer."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The values of a field that a strategy was seen to yield: numbers, and letters of texts."""

    low: float = -LARGEST_NUMBER
    high: float = LARGEST_NUMBER
    letters: frozenset[str] = frozenset()
    length: int = MAX_TEXT

    @classmethod
    def of(cls, values: Iterable[Any]) -> Seen:
        """Return what is known of the range of these values."""
        values = list(values)
        numbers = [v for v in values if type(v) in (int, float) and abs(v) <= LARGEST_NUMBER]
        texts = [value for value in values if type(value) is str]
        low, high = (min(numbers), max(numbers)) if numbers else (-LARGEST_NUMBER, LARGEST_NUMBER)
        longest = max(map(len, texts), default=MAX_TEXT)
        return cls(low, high, frozenset("".join(texts)), longest)


@dataclass(slots=True)
class Variable:
    """A number, a truth or a text of an input, with the value that it has there."""

    formula: Any
    value: Any
    places: list[int] = field(default_factory=list)
    """The choices of a strategy that it is, if any."""
    seen: Seen = field(default_factory=lambda: Seen())
    """What is known of the range of these choices."""

    @property
    def known(self) -> Any:
        """The condition of having the value that it has."""
        return self.formula == literal(self.value)

    def allowed(self) -> Iterable[Any]:
        """Yield conditions on its value: the range of a strategy, if it is known."""
        if isinstance(self.value, str):
            yield z3.Length(self.formula) <= min(self.seen.length, MAX_TEXT)
            letters = [z3.Re(letter) for letter in sorted(self.seen.letters)]
            letters = letters or [z3.Range(chr(32), chr(126))]
            one = z3.Union(*letters) if len(letters) > 1 else letters[0]
            yield z3.InRe(self.formula, z3.Star(one))
        elif not isinstance(self.value, bool):
            yield self.formula >= literal(type(self.value)(self.seen.low))
            yield self.formula <= literal(type(self.value)(self.seen.high))

    def found(self, model: Model) -> Any:
        """Return its value in an answer."""
        if isinstance(self.value, bool):
            return model.value(self.formula)
        if isinstance(self.value, str):
            return _unescape(model.value(self.formula))
        return type(self.value)(model.number(self.formula))


def _unescape(written: str) -> str:
    """Return a text as z3 writes it, with codes in place of characters beyond ASCII."""
    return re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda found: chr(int(found[1], 16)), written)


def literal(value: Any) -> Any:
    """Return a value as a constant of z3."""
    if isinstance(value, bool):
        return z3.BoolVal(value)
    return z3.StringVal(value) if isinstance(value, str) else term(value)


def constants_in(formula: Any) -> set[str]:
    """Return the names of the variables in a formula."""
    found: set[str] = set()
    seen: set[int] = set()
    ahead = [formula]
    while ahead:
        part = ahead.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            ahead += part.children()
            if z3.is_const(part) and part.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                found.add(str(part))
    return found


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of an input: its variables, a stand-in for it, and how it is made of their values."""

    variables: tuple[Variable, ...]
    stand_in: Callable[[Trace], Any]
    made: Callable[..., Any]
    facts: tuple[Any, ...] = ()


class Variables:
    """Makes variables for the values of an input."""

    def __init__(self) -> None:
        self.all: list[Variable] = []
        self.facts: list[Any] = []

    def _new(self, sort: Callable[[str], Any], value: Any) -> Variable:
        self.all.append(Variable(sort(f"v{len(self.all)}"), value))
        return self.all[-1]

    def leaf(self, value: Any) -> Leaf | None:
        """Return a value as variables; None if there are none for its type."""
        value = value.item() if isinstance(value, np.generic) else value
        if type(value) is bool:
            truth = self._new(z3.Bool, value)
            return Leaf((truth,), lambda trace: Truth(trace, value, truth.formula), bool)
        if type(value) is str:
            string = self._new(z3.String, value)
            return Leaf((string,), lambda trace: text(trace, value, string.formula), str)
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            kind = type(value)
            single = self._new(z3.Int if kind is int else z3.Real, value)
            return Leaf((single,), lambda trace: number(trace, value, single.formula), kind)
        return None

    def record(self, record: Any) -> LeafRecord:
        """Return a record with variables for its values."""
        leaves = {name: self.leaf(value) for name, value in fields_of(record).items()}
        return LeafRecord(record, {name: leaf for name, leaf in leaves.items() if leaf is not None})


@dataclass(frozen=True, slots=True)
class LeafRecord:
    """A record with some of its values as leaves."""

    record: Any
    leaves: Mapping[Hashable, Leaf]

    def with_values(self, value_of: Callable[[Leaf], Any]) -> Any:
        """Return the record with something else in place of its leaves."""
        made = self.record
        for name, leaf in self.leaves.items():
            made = with_field(made, name, value_of(leaf))
        return made

    @property
    def variables(self) -> list[Variable]:
        return [variable for leaf in self.leaves.values() for variable in leaf.variables]
