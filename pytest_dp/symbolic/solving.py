"""Questions to z3, with an effort that is the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from pytest_dp.limits import MILLION, SEVERAL

EFFORT = 2 * MILLION
"""Steps of z3 for a question, of which it makes some ten million in a second."""


def answer(hard: Sequence[Any], soft: Sequence[Any]) -> Any:
    """A model of all hard conditions, and of many soft ones; None if there is none, or none soon.

    Soft conditions that contradict the others are dropped, as z3 names them.
    """
    solver = z3.Solver()
    solver.set("rlimit", EFFORT)
    solver.add(*hard)
    wanted = {z3.Bool(f"soft {at}"): condition for at, condition in enumerate(soft)}
    for name, condition in wanted.items():
        solver.add(z3.Implies(name, condition))
    names = list(wanted)
    for _ in range(4 * SEVERAL):
        found = solver.check(*names)
        if found == z3.sat:
            return solver.model()
        core = {name.get_id() for name in solver.unsat_core()} if found == z3.unsat else set()
        kept = [name for name in names if name.get_id() not in core] if core else []
        if not names:
            return None
        if found == z3.unsat and not core:
            return None
        names = kept
    return None


def best(hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]) -> Any:
    """A model of all hard conditions, as many wanted ones as possible, then soft ones: MaxSMT."""
    optimizer = z3.Optimize()
    optimizer.set("rlimit", EFFORT)
    optimizer.add(*hard)
    for condition in wanted:
        optimizer.add_soft(condition, len(soft) + 1)
    for condition in soft:
        optimizer.add_soft(condition, 1)
    return optimizer.model() if optimizer.check() == z3.sat else None


def least(hard: Sequence[Any], objective: Any) -> Any:
    """A model of all hard conditions with the smallest value of an objective."""
    optimizer = z3.Optimize()
    optimizer.set("rlimit", EFFORT)
    optimizer.add(*hard)
    optimizer.minimize(objective)
    return optimizer.model() if optimizer.check() == z3.sat else None
