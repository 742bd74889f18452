"""Numbers that a mechanism takes for sizes: proposed ones must not fill the memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_dp.datasets import is_real, kind_of, rebuilt, records_of
from pytest_dp.datasets.relations import WithParams
from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.limits import FEW, MILLION, SEVERAL
from pytest_dp.sampling.deadline import OutOfTime


def is_too_large(data: Any, run: Callable[[Any], object]) -> bool:
    """Whether numbers of an input are sizes, of an array or a loop, for which there is no room."""
    if isinstance(data, WithParams):
        return is_too_large(data.data, lambda other: run(replace(data, data=other)))
    records = records_of(data) if kind_of(data) else [data]
    if not any(map(_is_large, records)):
        return False

    def memory(bound: int, repetitions: int) -> int:
        bounded = [_bounded(record, bound) for record in records]
        smaller = rebuilt(data, bounded) if kind_of(data) else bounded[0]
        # The least of several: other threads, and what is loaded once, take memory as well.
        return min(_memory(lambda: run(smaller)) for _ in range(repetitions))

    try:
        if memory(MILLION, 1) <= MILLION / 2:
            return False  # as nearly always: the difference is no more than that
        return memory(MILLION, FEW) - memory(SEVERAL, FEW) > MILLION / 2
    except OutOfTime:
        return True


def _memory(run: Callable[[], object]) -> int:
    """The peak of bytes that a run takes, and whatever else runs meanwhile."""
    if tracemalloc.is_tracing():  # somebody else measures
        return 0
    tracemalloc.start()
    try:
        run()
    except (ClaimError, MechanismError):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


def _is_large(record: Any) -> bool:
    if isinstance(record, tuple):
        return any(map(_is_large, record))
    return is_real(record) and abs(record) > MILLION


def _bounded(record: Any, bound: int) -> Any:
    if isinstance(record, tuple):
        return tuple(_bounded(value, bound) for value in record)
    return type(record)(max(min(record, bound), -bound)) if is_real(record) else record
