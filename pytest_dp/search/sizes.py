"""Numbers that a mechanism takes for sizes: proposed ones must not fill the memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_dp.datasets import is_real, kind_of, rebuilt, records_of
from pytest_dp.datasets.relations import WithParams
from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.sampling.deadline import OutOfTime

SMALL, LARGE = 8, 2**20
"""A million entries fit into any memory; numbers beyond are tried with so many first."""

TRIES = 3


def is_too_large(data: Any, run: Callable[[Any], object]) -> bool:
    """Whether numbers of an input are sizes, of an array or a loop, for which there is no room.

    Parameters
    ----------
    data : object
        An input, perhaps with parameters.
    run : callable
        Runs the mechanism on an input.
    """
    if isinstance(data, WithParams):
        return is_too_large(data.data, lambda other: run(replace(data, data=other)))
    records = records_of(data) if kind_of(data) else [data]
    if not any(map(_is_large, records)):
        return False

    def memory(most: int, tries: int) -> int:
        bounded = [_bounded(record, most) for record in records]
        smaller = rebuilt(data, bounded) if kind_of(data) else bounded[0]
        # The least of some: memory of other threads, and of what is loaded once, is not a size.
        return min(_memory(lambda: run(smaller)) for _ in range(tries))

    try:
        if memory(LARGE, 1) <= LARGE / 2:  # as nearly always: the difference is no more than that
            return False
        return memory(LARGE, TRIES) - memory(SMALL, TRIES) > LARGE / 2
    except OutOfTime:
        return True


def _memory(run: Callable[[], object]) -> int:
    """Bytes that a run takes at most, and whatever else runs meanwhile."""
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
    return is_real(record) and abs(record) > LARGE


def _bounded(record: Any, most: int) -> Any:
    if isinstance(record, tuple):
        return tuple(_bounded(one, most) for one in record)
    return type(record)(max(min(record, most), -most)) if is_real(record) else record
