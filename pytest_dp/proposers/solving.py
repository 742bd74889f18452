"""Questions to z3, in a process of its own, which is killed if it does not answer in time.

z3 does not heed its own limits everywhere, nor an alarm. Every question gets a context of its own,
as what z3 answers depends on all that was made in a context before: the same questions have the
same answers, on every machine that has time for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import z3
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from pytest_dp.basics import clocks

STARTING_SECONDS = 25.0
"""Seconds for z3's process to start. More: hangs are found later; fewer: slow machines fail."""
QUESTION_SECONDS = 2.0
"""Seconds for a question, most of which take less than a tenth of a second. With fewer, a slow
machine finds less; more are lost where z3 does not end."""
MAX_STEPS = 2_000_000
"""Steps of z3 for a question, of which it makes some ten million a second. With fewer, conditions
on several values have no answer; more take time from other questions."""

Values = Mapping[str, bool | str]
"""Values of variables by name: numbers as texts of fractions."""


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """Values that fulfil conditions, if any were found, and the processor seconds for them."""

    values: Values | None
    seconds: float


def number_in(values: Values, variable: Any) -> Fraction:
    """Return the number of a variable, rounded if it is irrational; any will do if it has none."""
    return Fraction(values.get(str(variable), 0))


class Questions:
    """Asks z3 in another process.

    `left` tells how many seconds there are for all questions; `unanswered` counts those that were
    given up.
    """

    def __init__(self, left: Callable[[], float] = lambda: QUESTION_SECONDS) -> None:
        self._left, self.unanswered = left, 0
        self._process: ProcessPoolExecutor | None = None

    def most(
        self, hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]
    ) -> Values | None:
        """Return values for all hard, most wanted, then most soft conditions (MaxSMT); or None."""
        return self._ask("most", hard, wanted, soft)

    def least(self, hard: Sequence[Any], objective: Any) -> Values | None:
        """Return values for all hard conditions with the smallest objective; or None."""
        smallest = z3.Const("smallest", objective.sort())
        return self._ask("least", hard, [smallest == objective], ())

    def close(self) -> None:
        """End the other process."""
        if self._process is not None:
            self._process.shutdown(kill_workers=True)
            self._process = None

    def _ask(
        self, kind: str, hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]
    ) -> Values | None:
        solver = z3.Solver()
        solver.add(*hard, *wanted, *soft)
        seconds = clocks.WALL_FACTOR * min(QUESTION_SECONDS, self._left())
        if self._process is None:
            self._process = ProcessPoolExecutor(1)
            seconds += STARTING_SECONDS
        question = kind, solver.to_smt2(), len(hard), len(wanted)
        try:
            answered: SolverAnswer = self._process.submit(_answer, *question).result(seconds)
        except (TimeoutError, BrokenProcessPool):
            self.unanswered += 1
            self.close()
            return None
        clocks.add_process_seconds(answered.seconds)
        return answered.values


def _answer(kind: str, text: str, hard: int, wanted: int) -> SolverAnswer:
    """Return the answer to a question as z3 writes it.

    Of its conditions the first ones are `hard`, the next ones `wanted`, and the others soft.
    """
    started, context = time.process_time(), z3.Context()
    conditions = [*z3.parse_smt2_string(text, ctx=context)]
    desired, soft = conditions[hard : hard + wanted], conditions[hard + wanted :]
    optimizer = z3.Optimize(ctx=context)
    optimizer.set("rlimit", MAX_STEPS)
    optimizer.add(*conditions[:hard])
    if kind == "least":
        optimizer.add(*desired)
        optimizer.minimize(desired[0].arg(0))
    for condition in desired if kind == "most" else ():
        optimizer.add_soft(condition, len(soft) + 1)
    for condition in soft:
        optimizer.add_soft(condition, 1)
    values = None
    if optimizer.check() == z3.sat:
        model = optimizer.model()
        found = ((variable.name(), model[variable]) for variable in model.decls())
        values = {name: _plain(value) for name, value in found if z3.is_expr(value)}
    return SolverAnswer(values, time.process_time() - started)


def _plain(value: Any) -> bool | str:
    if z3.is_bool(value):
        return bool(z3.is_true(value))
    value = value.approx(20) if z3.is_algebraic_value(value) else value
    return str(value.as_fraction() if z3.is_real(value) else value.as_long())
