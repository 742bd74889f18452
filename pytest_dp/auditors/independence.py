"""Tests of whether runs of one mechanism are independent: of each other, and of where they started.

A start is a copy of the mechanism, a process or an import, which gives several outputs. Without
starts, only the order of runs distinguishes an answer that is drawn once and then repeated from
missing noise. A value drawn once to which each answer adds more noise goes unseen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs, join_outputs
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.betting.scores import Attack, Tally
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.table import Table, hashes, tabulate
from pytest_dp.running.workers import surprise
from pytest_dp.statistics import count_tests
from pytest_dp.statistics.count_tests import NOT_IID

MAX_PLACES = 32
"""Places of an output that are looked at for dependence. More take longer; fewer miss it."""
MAX_CHUNKS = 64
"""Chunks of runs that are compared. More see what changes often; fewer what changes slowly."""
LAGS = 1, 2, 3, 5, 8, 13, 21, 55
"""How far apart the runs are that are compared. More lags see more periods, and take longer."""
BLOCKS = 16
"""Stretches of runs that are compared. More see shorter drifts, fewer see smaller ones."""
MAX_REPEATED = 0.01
"""Share of outputs that may repeat an earlier one. Smaller: floats of single precision are
refused."""
DIGITS = 8
"""Significant digits below which a number may be one of a few values, such as a multiple of 0.1."""
GRID = 2.0**20
"""Fractions of a power of two that are at most this fine may be noise on a grid."""
MAX_NUMERATOR, MAX_DENOMINATOR = 1_000_000, 1_000
"""Of ratios that may repeat. Larger: random numbers are such ratios by chance; smaller: noisy sums
over noisy counts are refused."""
COMPARED_RUNS = 8
"""Runs of each process that show whether all draw alike. More take longer; fewer miss it."""

Starts = list[Outputs]
"""The outputs of each start, the same number of each."""


def binary_events(table: Table, event: Any) -> Iterator[Bools]:
    """Yield masks of outputs, shape (n,): of the event, then of values at each place.

    At a place, these are the numbers above the median, and the most frequent category. An `event`
    that is neither an `Event` nor an `Attack` is left out.
    """
    if isinstance(event, Event):
        yield event.mask(table)
    elif isinstance(event, Attack):
        yield Tally(event).hits(table)[0]
    for place in table.places[:MAX_PLACES]:
        numbers, codes = table.leaf(place)
        is_number = codes == NUMBER
        if is_number.any():
            middle = np.median(numbers[is_number])
            above = is_number & (numbers > middle)
            yield above if above.any() else is_number & (numbers >= middle)
        if not is_number.all():
            values, counts = np.unique(codes[~is_number], return_counts=True)
            yield codes == values[counts.argmax()]


def start_dependence(starts: Starts, event: Any) -> str:
    """Return a reason why outputs depend on which start they came from; "" if none is seen."""
    table, start = tabulate(join_outputs(starts)), _start_numbers(starts)
    keeps = repeat_own_answers(starts) and not may_repeat_by_chance(starts)
    if keeps or count_tests.p_value_of_repeats(hashes(table), start) < NOT_IID:
        return f"it repeats what it gave before ({examples_of(starts)})"
    for inside in binary_events(table, event):
        if count_tests.p_value_of_agreement(inside.reshape(len(starts), -1)) < NOT_IID:
            return f"what it gave once it gives again ({examples_of(starts)})"
        if why := _compare_groups(inside, start, "starts"):
            return f"{why} ({examples_of(starts)})"
    return ""


def order_dependence(starts: Starts, event: Any) -> str:
    """Return a reason why outputs depend on the number of runs before them; "" if none is seen."""
    table, run = tabulate(join_outputs(starts)), np.arange(len(starts[0]))
    whys = (
        _compare_groups(inside, np.tile(run, len(starts)), "runs of each")
        for inside in binary_events(table, event)
    )
    return next(filter(None, whys), "")


def _start_numbers(starts: Starts) -> Ints:
    """Return the number of the start of each output, for all outputs in one row."""
    return np.repeat(np.arange(len(starts)), len(starts[0]))


def _compare_groups(inside: Bools, group: Ints, what: str) -> str:
    """Return a phrase if outputs are more often in an event in some groups than in others, else "".

    `inside` marks the outputs in the event; `group` is the number of each output's group.
    """
    sizes = np.bincount(group)
    hits = np.bincount(group, inside).astype(np.int64)
    if count_tests.p_value_of_equal_chunks(hits, sizes, MAX_CHUNKS)[0] >= NOT_IID:
        return ""
    shares = ", ".join(f"{100 * share:.0f} %" for share in hits[:4] / sizes[:4])
    return f"an event held in {shares}, ... of the outputs of the first {what}"


def examples_of(starts: Starts) -> str:
    """Return the first and the last output of each of the first three starts, as text."""
    return "; ".join(f"{safe_repr(start[0])}, {safe_repr(start[-1])}" for start in starts[:3])


def repeat_own_answers(starts: Starts) -> bool:
    """Return whether each start gave one answer again and again, and two starts differ."""
    texts = [{safe_repr(output) for output in start} for start in starts]
    return max(map(len, texts)) == 1 < len(set().union(*texts))


def may_repeat_by_chance(starts: Starts) -> bool:
    """Return whether independent runs might repeat the first output of their start, as coins do."""
    first = surprise([safe_repr(start[0]) for start in starts])
    return (len(starts[0]) - 1) * first < -math.log(NOT_IID)


def draw_same_values(starts: Starts) -> bool:
    """Return whether processes draw the same values, as forks of a reserve of random bytes do.

    The n-th outputs of many processes are then one value, which is rare among all other outputs.
    Its share there bounds the chance of that.
    """
    texts = np.array([[safe_repr(out) for out in start[:COMPARED_RUNS]] for start in starts])
    for run, here in enumerate(texts.T):
        values, counts = np.unique(here, return_counts=True)
        others = np.delete(texts, run, axis=1)
        share = (np.sum(others == values[counts.argmax()]) + 1) / (others.size + 1)
        most = int(counts.max())
        if len(here) * math.comb(len(here), most) * share**most < NOT_IID:
            return True
    return False


def run_dependence(outputs: tuple[Outputs, Outputs], event: Any) -> str:
    """Return why runs on two inputs, in their order, do not look independent; "" if they do.

    Looks for constant and repeated answers, drifts, and runs that depend on earlier ones.
    """
    tables = tuple(map(tabulate, outputs))
    if all(_is_event_constant(table, event) for table in tables):
        return "each input always got the same answer"
    for table, other in (tables, tables[::-1]):
        for place in table.places:
            repeated = _share_of_repeats(
                _finite_numbers(table, place), _finite_numbers(other, place)
            )
            if repeated > MAX_REPEATED:
                return f"{100 * repeated:.0f} % of its answers repeat an earlier one to all digits"
        for inside in binary_events(table, event):
            if _compare_groups(inside, np.arange(len(inside)) * BLOCKS // len(inside), "stretches"):
                return "its answers change in the course of the runs"
            lags = [lag for lag in LAGS if count_tests.p_value_of_lag(inside, lag) < NOT_IID]
            if lags:
                return f"answers depend on those {lags[0]} before"
    return ""


def _is_event_constant(table: Table, event: Any) -> bool:
    """Return whether all runs agree on the event; on every binary event if there is none."""
    events = list(binary_events(table, event))
    return all(inside.all() or not inside.any() for inside in (events[:1] if event else events))


def _finite_numbers(table: Table, place: str) -> Floats:
    """Return the finite numbers at a place of outputs; empty if no output has the place."""
    if place not in table.places:
        return np.empty(0)
    numbers, codes = table.leaf(place)
    found: Floats = numbers[codes == NUMBER]
    return found[np.isfinite(found)]


def _share_of_repeats(values: Floats, others: Floats) -> float:
    """Return the share of numbers that repeat an earlier one to all digits, as no fresh noise does.

    Short numbers, fractions of powers of two, ratios of small whole numbers, and numbers in
    `others`, which come on the other input too, do not count: they may be among a few possible
    ones.
    """
    found, counts = np.unique(values[~np.isin(values, others)], return_counts=True)
    again = (counts > 1) & (found * GRID != np.round(found * GRID))
    long = [
        value != float(f"{value:.{DIGITS}g}") and not _is_ratio(value) for value in found[again]
    ]
    return float((counts[again][long] - 1).sum() / max(len(values), 1)) if again.any() else 0.0


def _is_ratio(value: float) -> bool:
    """Return whether a number is a ratio of small whole numbers, as a noisy sum over a count is."""
    ratio = Fraction(value).limit_denominator(MAX_DENOMINATOR)
    return abs(ratio.numerator) <= MAX_NUMERATOR and math.isclose(ratio, value, rel_tol=1e-15)
