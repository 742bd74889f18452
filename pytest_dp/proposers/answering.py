"""Answers of z3, in a process of their own, which the system ends if one takes too long.

z3 does not heed its own limits everywhere, nor an alarm. Every question gets a context of its own,
as what z3 answers depends on all that was made in a context before.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import z3

MAX_STEPS = 2_000_000
"""Steps of z3 for a question, of which it makes some ten million a second.

With fewer, conditions on several values have no answer; more take time from other questions.
"""
MAX_CORES = 24
"""How often soft conditions that contradict the others are dropped; each is another question."""


class Question:
    """A question as z3 reads it: how many of its conditions are hard, wanted and soft."""

    def __init__(self, text: str, hard: int, wanted: int, soft: int) -> None:
        self._context = z3.Context()
        conditions = [*z3.parse_smt2_string(text, ctx=self._context)]
        if len(conditions) != hard + wanted + soft:
            raise z3.Z3Exception(f"{len(conditions)} conditions of {hard} + {wanted} + {soft}")
        self.hard, rest = conditions[:hard], conditions[hard:]
        self.wanted, self.soft = rest[:wanted], rest[wanted:]

    def any(self) -> Any:
        """Return a model of all hard conditions, and of many soft ones; None if there is none.

        Soft conditions that contradict the others are dropped, as z3 names them.
        """
        solver = z3.Solver(ctx=self._context)
        solver.set("rlimit", MAX_STEPS)
        solver.add(*self.hard)
        names = [z3.Bool(f"soft {at}", self._context) for at in range(len(self.soft))]
        for name, condition in zip(names, self.soft, strict=True):
            solver.add(z3.Implies(name, condition))
        for _ in range(MAX_CORES):
            found = solver.check(*names)
            if found == z3.sat:
                return solver.model()
            core = {name.get_id() for name in solver.unsat_core()} if found == z3.unsat else set()
            if not names or (found == z3.unsat and not core):
                return None
            names = [name for name in names if name.get_id() not in core] if core else []
        return None

    def most(self) -> Any:
        """Return a model of most of the wanted conditions, then of soft ones: MaxSMT."""
        optimizer = self._optimizer()
        for condition in self.wanted:
            optimizer.add_soft(condition, len(self.soft) + 1)
        for condition in self.soft:
            optimizer.add_soft(condition, 1)
        return self._optimum(optimizer)

    def least(self) -> Any:
        """Return a model in which the left side of the wanted equation is smallest."""
        optimizer = self._optimizer()
        optimizer.add(*self.wanted)
        optimizer.minimize(self.wanted[0].arg(0))
        return self._optimum(optimizer)

    def _optimizer(self) -> Any:
        optimizer = z3.Optimize(ctx=self._context)
        optimizer.set("rlimit", MAX_STEPS)
        optimizer.add(*self.hard)
        return optimizer

    @staticmethod
    def _optimum(optimizer: Any) -> Any:
        return optimizer.model() if optimizer.check() == z3.sat else None


KINDS: Mapping[str, Callable[[Question], Any]] = {
    "any": Question.any,
    "most": Question.most,
    "least": Question.least,
}


def answer(kind: str, text: str, counts: Sequence[int]) -> dict[str, Any] | None:
    """Return the values of variables by name: numbers as texts of fractions; None without any."""
    model = KINDS[kind](Question(text, *counts))
    if model is None:
        return None
    variables = [variable for variable in model.decls() if variable.arity() == 0]
    return {variable.name(): _plain(model[variable]) for variable in variables}


def _plain(value: Any) -> Any:
    if z3.is_bool(value):
        return z3.is_true(value)
    if z3.is_string(value):
        return value.as_string()
    value = value.approx(20) if z3.is_algebraic_value(value) else value
    return str(value.as_fraction() if z3.is_real(value) else value.as_long())


def serve() -> None:
    """Answer the questions on standard input, each on a line that begins with its seconds."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what z3 prints is no answer
    for line in sys.stdin:
        seconds, *question = json.loads(line)
        if hasattr(signal, "setitimer"):  # ends this process: there is no handler
            signal.setitimer(signal.ITIMER_PROF, seconds)
        started = time.process_time()
        try:
            found: dict[str, Any] = {"values": answer(*question)}
        except z3.Z3Exception as error:
            found = {"error": str(error)}
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)
        spent = time.process_time() - started
        answers.write(json.dumps({**found, "seconds": spent}) + "\n")
        answers.flush()
