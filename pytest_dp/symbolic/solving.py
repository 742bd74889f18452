"""Questions to z3, each in a context of its own, so that its answer depends on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from pytest_dp.limits import DOZENS, MILLION

EFFORT = MILLION
"""Steps of z3 for a question: the same on every machine, and half a second on most."""


class Model:
    """Values for all variables."""

    def __init__(self, context: Any, model: Any) -> None:
        self._context, self._model = context, model

    def value_of(self, formula: Any) -> Any:
        """A formula as a constant of z3."""
        return self._model.eval(formula.translate(self._context), model_completion=True)


def answer(hard: Sequence[Any], soft: Sequence[Any]) -> Model | None:
    """A model of all hard conditions, and of many soft ones; None if there is none, or none soon.

    Soft conditions that contradict the others are dropped, as z3 names them.
    """
    context = z3.Context()
    solver = z3.Solver(ctx=context)
    solver.set("rlimit", EFFORT)
    solver.add(*(condition.translate(context) for condition in hard))
    names = [z3.Bool(f"soft {at}", context) for at in range(len(soft))]
    for name, condition in zip(names, soft, strict=True):
        solver.add(z3.Implies(name, condition.translate(context)))
    for _ in range(DOZENS):
        found = solver.check(*names)
        if found == z3.sat:
            return Model(context, solver.model())
        core = {name.get_id() for name in solver.unsat_core()} if found == z3.unsat else set()
        if not names or (found == z3.unsat and not core):
            return None
        names = [name for name in names if name.get_id() not in core] if core else []
    return None


def best(hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]) -> Model | None:
    """A model of all hard conditions, as many wanted ones as possible, then soft ones: MaxSMT."""
    context, optimizer = _optimizer(hard)
    for condition in wanted:
        optimizer.add_soft(condition.translate(context), len(soft) + 1)
    for condition in soft:
        optimizer.add_soft(condition.translate(context), 1)
    return Model(context, optimizer.model()) if optimizer.check() == z3.sat else None


def least(hard: Sequence[Any], objective: Any) -> Model | None:
    """A model of all hard conditions with the smallest value of an objective."""
    context, optimizer = _optimizer(hard)
    optimizer.minimize(objective.translate(context))
    return Model(context, optimizer.model()) if optimizer.check() == z3.sat else None


def _optimizer(hard: Sequence[Any]) -> tuple[Any, Any]:
    context = z3.Context()
    optimizer = z3.Optimize(ctx=context)
    optimizer.set("rlimit", EFFORT)
    optimizer.add(*(condition.translate(context) for condition in hard))
    return context, optimizer
