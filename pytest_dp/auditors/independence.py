"""Tests of whether runs of one mechanism, in their order, are independent of each other.

Where nothing can be started afresh, an answer that is drawn once and then repeated is told from
missing noise by this alone. What was drawn once and is never repeated as it is, such as noise of a
session to which each answer adds more, is not seen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pytest_dp.auditors.starting_afresh import Copies, binary_events
from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.statistics import assumptions
from pytest_dp.statistics.assumptions import NOT_IID

MAX_CHUNKS = 64
"""Chunks of runs that are compared. More see what changes often; fewer what changes slowly."""

LAGS = 1, 2, 3, 5, 8, 13, 21, 55
"""How far apart the runs are that are compared. More lags see more periods, and take longer."""
BLOCKS = 16
"""Stretches of runs that are compared. More see shorter drifts, fewer see smaller ones."""
MAX_REPEATED = 0.01
"""Share of outputs that may repeat an earlier one to all digits. More lets noise of a large pool
pass; less refuses floats of single precision, some of which agree by chance."""
DIGITS = 8
"""Significant digits below which a number may be one of a few values, such as a multiple of 0.1."""
GRID = 2.0**20
"""Fractions of a power of two that are at most this fine may be noise on a grid."""


def dependence(outputs: tuple[Outputs, Outputs], event: Any) -> str:
    """Return why runs on two inputs do not look independent, or nothing if they do.

    Each p-value has to be below that of all such checks to count.
    """
    tables = tuple(map(tabulate, outputs))
    if all(is_event_constant(table, event) for table in tables):
        return "each input always got the same answer"
    for table, other in (tables, tables[::-1]):
        for place in table.places:
            repeated = _share_of_repeats(_numbers(table, place), _numbers(other, place))
            if repeated > MAX_REPEATED:
                return f"{100 * repeated:.0f} % of its answers repeat an earlier one to all digits"
        for inside in binary_events(table, event):
            sizes = np.bincount(np.arange(len(inside)) * BLOCKS // len(inside))
            hits = np.bincount(np.arange(len(inside)) * BLOCKS // len(inside), inside)
            if assumptions.same_in_all_chunks(hits.astype(np.int64), sizes, BLOCKS)[0] < NOT_IID:
                return "its answers change in the course of the runs"
            lags = [lag for lag in LAGS if assumptions.runs_depend(inside, lag) < NOT_IID]
            if lags:
                return f"answers depend on those {lags[0]} before"
    return ""


def is_event_constant(table: Table, event: Any) -> bool:
    """Return whether the event, or without one all of the output, is the same in all runs."""
    events = list(binary_events(table, event))
    return all(inside.all() or not inside.any() for inside in (events[:1] if event else events))


def _numbers(table: Table, place: str) -> Floats:
    if place not in table.places:
        return np.empty(0)
    numbers, codes = table.leaf(place)
    found: Floats = numbers[codes == NUMBER]
    return found[np.isfinite(found)]


def _share_of_repeats(values: Floats, others: Floats) -> float:
    """Return the share of numbers that repeat another to all digits, as no fresh noise does.

    Those that come on the other input too may be among a few that can be chosen.
    """
    found, counts = np.unique(values[~np.isin(values, others)], return_counts=True)
    again = (counts > 1) & (found * GRID != np.round(found * GRID))
    long = [value != float(f"{value:.{DIGITS}g}") for value in found[again]]
    return float((counts[again][long] - 1).sum() / max(len(values), 1)) if again.any() else 0.0


def told_apart(copied: Copies, table: Table, event: Any) -> str:
    """Return how outputs tell which copy they came from, or nothing if they do not."""
    copy = np.repeat(np.arange(len(copied)), len(copied[0]))
    if assumptions.repeats(hashes(table), copy) < NOT_IID:
        return "it repeats what it gave before"
    for inside in binary_events(table, event):
        if assumptions.pairs_agree(inside.reshape(len(copied), -1)) < NOT_IID:
            return "what a copy of it gave once it gives again"
        if why := unlike(inside, copy, "copies of it"):
            return why
    return ""


def unlike(inside: Bools, group: Ints, what: str) -> str:
    """Return that outputs are more often in an event in some groups than in others, if so."""
    sizes = np.bincount(group)
    hits = np.bincount(group, inside).astype(np.int64)
    if assumptions.same_in_all_chunks(hits, sizes, MAX_CHUNKS)[0] >= NOT_IID:
        return ""
    shares = ", ".join(f"{100 * share:.0f} %" for share in hits[:4] / sizes[:4])
    return f"an event held in {shares}, ... of the outputs of the first {what}"


def examples_of(outputs: Copies) -> str:
    """Return two outputs of each of the first copies, as text."""
    return "; ".join(f"{safe_repr(copy[0])}, {safe_repr(copy[-1])}" for copy in outputs[:3])
