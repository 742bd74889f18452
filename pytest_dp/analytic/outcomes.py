"""What a traced run ends in: an output as functions of draws, and the conditions on its way."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from pytest_dp.analytic.conversions import NAMES
from pytest_dp.analytic.laws import Law
from pytest_dp.analytic.trace import Condition, Interval, Trace
from pytest_dp.analytic.traced import Traced
from pytest_dp.analytic.tracing import Tracer
from pytest_dp.analytic.values import Affine, Finite, simplest
from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.outputs.outcome import Raised
from pytest_dp.randomness.branching import Path, explored
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.instrumented import instrumented, run_copy

MAX_WAYS = 2_000
"""Ways that a mechanism may go on one input."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """One way that a mechanism may go.

    Attributes
    ----------
    structure : hashable
        Of the output without its numbers.
    leaves : tuple
        Its numbers: `Affine`, `Finite` or constants. No `Finite` shares a draw with an `Affine` or
        with a condition.
    laws : sequence of Law
        Of all draws.
    allowed : mapping of int to intervals
        Where draws are that were decided upon.
    conditions : tuple of Condition
    """

    structure: Hashable
    leaves: tuple[Any, ...]
    laws: Sequence[Law]
    allowed: Mapping[int, tuple[Interval, ...]]
    conditions: tuple[Condition, ...]


def outcomes_of(
    call: Call, data: Any, deadline: Deadline, max_ways: int = MAX_WAYS
) -> list[Outcome]:
    """Every way that a mechanism may go on an input.

    Parameters
    ----------
    call : Call
    data : object
    deadline : Deadline
    max_ways : int

    Raises
    ------
    CannotInstrument
        If it does with draws what is not traced, goes too many ways, or raises.
    CannotCopy, OutOfTime
        As `pytest_dp.sampling.instrumented.run_instrumented`.
    """
    tracer = Tracer()

    def run(path: Path) -> Outcome:
        tracer.start(path)
        try:
            output = run_copy(call, data, tracer, NAMES)
        except (ClaimError, MechanismError) as error:  # as vectorised mechanisms raise
            first = str(error).partition("\n")[0].rstrip(":")
            raise CannotInstrument(f"with draws that are traced: {first}") from None
        outcome = None if tracer.refusal else _ended(tracer.trace, output)
        if tracer.refusal or outcome is None:  # and the mechanism went on
            raise CannotInstrument(tracer.refusal)
        return outcome

    found = []
    with instrumented(tracer, deadline):
        for _, outcome, left in explored(run):
            found.append(outcome)
            if not left:
                break
            if deadline.remaining() <= 0:
                raise OutOfTime
            if len(found) >= max_ways:
                raise CannotInstrument(f"it goes more than {max_ways:,} ways")
    return found


def _ended(trace: Trace, output: Any) -> Outcome:
    if isinstance(output, Raised):
        raise CannotInstrument(f"it {output}, with draws that are traced")
    leaves: list[Any] = []
    structure = opened(output, leaves)
    leaves = [simplest(leaf) for leaf in leaves]
    while True:
        shared = {draw for leaf in leaves if isinstance(leaf, Affine) for draw in leaf.terms}
        shared |= {draw for condition in trace.conditions for draw in condition.terms}
        bound = [
            at
            for at, leaf in enumerate(leaves)
            if isinstance(leaf, Finite) and (leaf.cuts.keys() & shared)
        ]
        if not bound:
            break
        for at in bound:
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
            opened(_as_in_arrays(element), leaves)
        return ("array", output.shape)
    if isinstance(output, dict):
        inner = [(opened(key, []), repr(key), opened(at, leaves)) for key, at in output.items()]
        return ("dict", *inner)
    if isinstance(output, list | tuple):
        return (type(output).__qualname__, *(opened(element, leaves) for element in output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return (type(output).__qualname__, *(opened(v, leaves) for v in _fields(output)))
    if isinstance(output, Traced):
        leaves.append(output)
        return "number"
    if isinstance(output, np.generic):
        output = output.item()
    if not isinstance(output, bool | int | float | complex | str | bytes | None):
        raise CannotInstrument(f"its outputs hold objects of type {type(output).__qualname__}")
    leaves.append(output)
    return "number"


def _as_in_arrays(value: Any) -> Any:
    """Numbers of one array are all of one type."""
    if isinstance(value, Finite):
        return value.map(_as_in_arrays)
    return float(value) if isinstance(value, bool | int) and abs(value) < 2**53 else value


def _fields(output: Any) -> Iterator[Any]:
    return (getattr(output, field.name) for field in dataclasses.fields(output))
