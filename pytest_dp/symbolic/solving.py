"""Questions to z3: the same ones in the same order have the same answers, on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import z3

from pytest_dp.limits import DOZENS, MILLION

EFFORT = 2 * MILLION
"""Steps of z3 for a question, of which it makes some ten million a second."""


class Model:
    """Values for all variables."""

    def __init__(self, context: Any, model: Any) -> None:
        self._context, self._model = context, model

    def value_of(self, formula: Any) -> Any:
        """A formula as a constant of z3."""
        here = formula if formula.ctx == self._context else formula.translate(self._context)
        return self._model.eval(here, model_completion=True)

    def number(self, formula: Any) -> Fraction:
        """A formula as a number, which is rounded if it is irrational."""
        value = self.value_of(formula)
        value = value.approx(20) if z3.is_algebraic_value(value) else value
        return Fraction(value.as_fraction() if z3.is_real(value) else value.as_long())


class Questions:
    """Asks in a context of its own, as what z3 answers depends on all that was made before."""

    def __init__(self) -> None:
        self._context = z3.Context()

    def _here(self, conditions: Sequence[Any]) -> list[Any]:
        return [condition.translate(self._context) for condition in conditions]

    def any(self, hard: Sequence[Any], soft: Sequence[Any]) -> Model | None:
        """A model of all hard conditions, and of many soft ones; None if none is found soon.

        Soft conditions that contradict the others are dropped, as z3 names them.
        """
        solver = z3.Solver(ctx=self._context)
        solver.set("rlimit", EFFORT)
        solver.add(*self._here(hard))
        names = [z3.Bool(f"soft {at}", self._context) for at in range(len(soft))]
        for name, condition in zip(names, self._here(soft), strict=True):
            solver.add(z3.Implies(name, condition))
        for _ in range(DOZENS):
            found = solver.check(*names)
            if found == z3.sat:
                return Model(self._context, solver.model())
            core = {name.get_id() for name in solver.unsat_core()} if found == z3.unsat else set()
            if not names or (found == z3.unsat and not core):
                return None
            names = [name for name in names if name.get_id() not in core] if core else []
        return None

    def most(self, hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]) -> Model | None:
        """A model of all hard conditions, of most of the wanted ones, then of soft ones: MaxSMT."""
        optimizer = self._optimizer(hard)
        for condition in self._here(wanted):
            optimizer.add_soft(condition, len(soft) + 1)
        for condition in self._here(soft):
            optimizer.add_soft(condition, 1)
        return self._optimum(optimizer)

    def least(self, hard: Sequence[Any], objective: Any) -> Model | None:
        """A model of all hard conditions with the smallest value of an objective."""
        optimizer = self._optimizer(hard)
        optimizer.minimize(objective.translate(self._context))
        return self._optimum(optimizer)

    def farthest(self, hard: Sequence[Any], both: Sequence[tuple[Any, Any]]) -> Fraction | None:
        """How far pairs of numbers may be apart in all; None if that is not found soon."""
        optimizer = self._optimizer(hard)
        apart = [z3.Real(f"apart {at}", self._context) for at in range(len(both))]
        for distance, numbers in zip(apart, both, strict=True):
            a, b = self._here(numbers)
            for larger, smaller in ((a, b), (b, a)):  # much quicker than a maximum of both
                optimizer.add(z3.Implies(larger >= smaller, distance == larger - smaller))
        optimizer.maximize(z3.Sum(apart))
        model = self._optimum(optimizer)
        return None if model is None else sum(map(model.number, apart), start=Fraction(0))

    def _optimizer(self, hard: Sequence[Any]) -> Any:
        optimizer = z3.Optimize(ctx=self._context)
        optimizer.set("rlimit", EFFORT)
        optimizer.add(*self._here(hard))
        return optimizer

    def _optimum(self, optimizer: Any) -> Model | None:
        if optimizer.check() != z3.sat:
            return None
        return Model(self._context, optimizer.model())


def closed(condition: Any) -> Any:
    """A comparison together with its boundary, where answers are mostly continuous."""
    inner = condition.arg(0) if z3.is_not(condition) else condition
    if not (z3.is_lt(inner) or z3.is_gt(inner) or z3.is_le(inner) or z3.is_ge(inner)):
        return condition
    a, b = inner.children()
    return b >= a if (z3.is_lt(inner) or z3.is_le(inner)) ^ z3.is_not(condition) else a >= b
