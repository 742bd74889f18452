"""Outcomes of traced runs: outputs as functions of draws, under conditions on these."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pytest_dp.analytic.affine import Affine
from pytest_dp.analytic.conversions import NAMES
from pytest_dp.analytic.finite import Finite
from pytest_dp.analytic.trace import Condition, Interval, Trace
from pytest_dp.analytic.traced import Traced, simplest
from pytest_dp.analytic.tracing import Tracer
from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.limits import THOUSAND
from pytest_dp.outputs.outcome import Raised
from pytest_dp.randomness.branching import Path, explored
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.instrumented import instrumented, run_copy


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a mechanism puts out on one path through its comparisons of draws."""

    structure: Hashable
    """Of the output without its numbers."""
    leaves: tuple[Any, ...]
    """Its numbers. No `Finite` shares a draw with an `Affine` or with a condition."""
    laws: Sequence[Law]
    """Of all draws."""
    allowed: Mapping[int, tuple[Interval, ...]]
    """Where draws lie on this path; others may be anywhere."""
    conditions: tuple[Condition, ...]


def outcomes_of(
    call: Call, data: Any, deadline: Deadline, max_paths: int = 2 * THOUSAND
) -> list[Outcome]:
    """The outcomes of all paths that a mechanism may take on an input.

    Raises CannotInstrument if it does with draws what is not traced, takes too many paths, or
    raises; CannotCopy and OutOfTime as `pytest_dp.sampling.instrumented.run_instrumented`.
    """
    tracer = Tracer()

    def run(path: Path) -> Outcome:
        tracer.start(path)
        try:
            output = run_copy(call, data, tracer, NAMES)
        except (ClaimError, MechanismError) as error:  # as vectorised mechanisms raise
            message = str(error).partition("\n")[0].rstrip(":")
            raise CannotInstrument(f"with draws that are traced: {message}") from None
        outcome = None if tracer.refusal else _outcome(tracer.trace, output)
        if tracer.refusal or outcome is None:  # the mechanism may have caught the refusal
            raise CannotInstrument(tracer.refusal)
        return outcome

    outcomes = []
    with instrumented(tracer, deadline):
        for _, outcome, left in explored(run):
            outcomes.append(outcome)
            if not left:
                break
            if deadline.remaining() <= 0:
                raise OutOfTime
            if len(outcomes) >= max_paths:
                raise CannotInstrument(f"it goes more than {max_paths:,} ways")
    return outcomes


def _outcome(trace: Trace, output: Any) -> Outcome:
    """The outcome of a run; finite leaves that share draws with others are decided."""
    if isinstance(output, Raised):
        raise CannotInstrument(f"it {output}, with draws that are traced")
    leaves: list[Any] = []
    structure = opened(output, leaves)
    leaves = [simplest(leaf) for leaf in leaves]
    while True:
        shared = {draw for leaf in leaves if isinstance(leaf, Affine) for draw in leaf.terms}
        shared |= {draw for condition in trace.conditions for draw in condition.terms}
        dependent = [
            at
            for at, leaf in enumerate(leaves)
            if isinstance(leaf, Finite) and (leaf.cuts.keys() & shared)
        ]
        if not dependent:
            break
        for at in dependent:
            leaf = leaves[at].simple()
            leaves[at] = leaf.decided() if isinstance(leaf, Finite) else leaf
    return Outcome(
        structure, tuple(leaves), trace.laws, dict(trace.allowed), tuple(trace.conditions)
    )


def opened(output: Any, leaves: list[Any]) -> Hashable:
    """The structure of an output, whose numbers are added to `leaves`."""
    if isinstance(output, np.ndarray):
        if output.dtype.kind == "f":
            leaves += output.ravel().tolist()
            return ("array", output.shape)
        for element in output.astype(object).view(np.ndarray).ravel():
            opened(_as_float(element), leaves)
        return ("array", output.shape)
    if isinstance(output, dict):
        items = [(opened(key, []), repr(key), opened(v, leaves)) for key, v in output.items()]
        return ("dict", *items)
    if isinstance(output, list | tuple):
        return (type(output).__qualname__, *(opened(element, leaves) for element in output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = (getattr(output, field.name) for field in dataclasses.fields(output))
        return (type(output).__qualname__, *(opened(value, leaves) for value in fields))
    if isinstance(output, Traced):
        leaves.append(output)
        return "number"
    if isinstance(output, np.generic):
        output = output.item()
    if not isinstance(output, bool | int | float | complex | str | bytes | None):
        raise CannotInstrument(f"its outputs hold objects of type {type(output).__qualname__}")
    leaves.append(output)
    return "number"


def _as_float(element: Any) -> Any:
    """An element of an array, whose numbers are all of one type."""
    if isinstance(element, Finite):
        return element.map(_as_float)
    return float(element) if isinstance(element, bool | int) and abs(element) < 2**53 else element
