"""Shrink and explain a counterexample.

Shrinking looks at search samples only, as the event is tested afterwards. Explanations are likely
causes, never certain ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from pytest_dp.basics.arrays import Bools
from pytest_dp.basics.reprs import SHORT_LENGTH
from pytest_dp.data import describe
from pytest_dp.outputs.event_search import Rank, RankedEvent
from pytest_dp.outputs.events import Between, Condition, Equals, Event, Is, OneOf
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.table import Table, hashes
from pytest_dp.readers.noise_traces import NoiseRelation, Remainder
from pytest_dp.results.result import Counterexample

KEPT_RANK = 0.8
"""Share of its rank that a simpler event keeps. Smaller: events prove less; larger: are longer."""
MAX_RECURRING = 0.1
"""Share of outputs that may recur beside an event's number. Smaller: cuts are taken for values."""


def simplest_event(
    ranked: RankedEvent, table: Table, on_d: Bools, rank: Rank, kept_rank: float = KEPT_RANK
) -> RankedEvent:
    """Return an event that is easier to read and ranks nearly as high on the same outputs.

    Tries half-lines in place of intervals, and thresholds with fewer digits; takes the first that
    keeps the share `kept_rank` of the rank. An event with a rank of 0 or less, or none that is
    simpler, is returned as it is.
    """
    best = ranked
    floor = kept_rank * ranked.rank
    for at, condition in enumerate(ranked.event.conditions):
        if not isinstance(condition, Between) or floor <= 0:
            continue
        for candidate in _simpler_conditions(condition):
            conditions = list(best.event.conditions)
            conditions[at] = candidate
            simpler = RankedEvent.from_event(Event(tuple(conditions)), table, on_d, rank)
            if simpler.rank >= floor:
                best = simpler
                break
    return best


def _simpler_conditions(condition: Between) -> Iterator[Between]:
    """Yield half-lines and intervals like a condition, with rounded ends, the simplest first."""
    shapes = [condition]
    if condition.low is not None and condition.high is not None:
        shapes = [replace(condition, low=None), replace(condition, high=None), condition]
    sizes = [abs(end) for end in (condition.low, condition.high) if end and math.isfinite(end)]
    largest = math.floor(math.log10(max(sizes))) if sizes else 0
    for shape in shapes:
        for digits in range(-largest, 6 - largest):
            low = None if shape.low is None else round(shape.low, digits) + 0.0
            high = None if shape.high is None else round(shape.high, digits) + 0.0
            if low is None or high is None or low < high:
                yield replace(shape, low=low, high=high)


def in_one_sentence(example: Counterexample) -> str:
    """Return D, D', S and its counts as a sentence, for a violation that was not confirmed.

    The counts are those among outputs that were bet on if there are no held-out ones.
    """
    counts, runs = example.counts, example.runs
    if not any(runs) and example.bet_counts is not None and example.bet_runs is not None:
        counts, runs = example.bet_counts, example.bet_runs
    (c1, c2), (n1, n2) = counts, runs
    d1, d2 = (describe(data, SHORT_LENGTH) for data in (example.d1, example.d2))
    return (
        f"It was seen on D = {d1} and D' = {d2}: S = {{{example.event}}} came in {c1:,} of {n1:,} "
        f"runs on D, and in {c2:,} of {n2:,} on D'"
    )


def diagnose(
    event: Event | None,
    counts: tuple[int, int],
    runs: tuple[int, int],
    searched: Sequence[Table] = (),
) -> Iterator[str]:
    """Yield sentences on likely causes of a counterexample, the most telling first.

    `event` is None for an attack that cannot be read. `counts` are the fresh outputs in the event
    among the `runs` on D and on D'; `searched` are outputs of the search on either.
    """
    always = all(c in (0, n) for c, n in zip(counts, runs, strict=True))
    if searched and always and all(map(is_constant, searched)):
        yield (
            "M returned the same value in all of its runs on each input: missing noise, a fixed "
            "seed, noise that was drawn only once (at import, or into a file), or a cache that "
            "repeats its first answer?"
        )
        return
    leak = None if event is None else _leak_sentence(event)
    if leak:
        yield leak
    elif any(is_recurring_number(event, table) for table in searched):
        yield (
            "One output comes again and again, and all others come once: the mechanism may "
            "release the true value without noise in some cases. Add noise in all cases."
        )
    if counts[0] and not counts[1]:
        yield (
            f"S never came on D' in {runs[1]:,} runs: the true loss may be far larger than the "
            "proven one, or infinite."
        )


def _leak_sentence(event: Event) -> str | None:
    """Return a sentence on the part of the output that leaks, by the event; None if unknown."""
    for condition in event.conditions:
        if told := _noise_sentence(condition) or _LEAKS.get(_quantity_of(condition)):
            return told
        if isinstance(condition, OneOf):
            texts = list(condition.texts)
        elif isinstance(condition, Is):
            texts = [repr(condition.category[1])]
        else:
            texts = [str(condition)]
        if any(text.startswith("raises ") for text in texts):
            if any(": " in text for text in texts):
                return "The exception and its message reveal the input: both are output too."
            return "The exception itself reveals the input: it leaks like any other output."
        if any(text in ("nan", "None") or text.startswith("isnan(") for text in texts):
            return "A missing value (None, NaN) reveals the input: it leaks like any output."
        if any("lowest bit of" in text for text in texts):
            return (
                "The last digits of the floats reveal the input. More noise does not help: "
                "round the output to a coarse grid, or use a discrete or snapping mechanism."
            )
    return None


def _quantity_of(condition: Condition) -> str:
    """Return the kind of quantity that a condition is about, also inside of a text; "" if none."""
    feature = getattr(condition, "feature", None)
    inner = getattr(getattr(feature, "argument", None), "inner", feature)
    inner = getattr(inner, "feature", inner)
    if inner is None:
        return ""
    return "position of a key" if inner.text.startswith("list(") else str(inner.kind)


_LEAKS = {
    "key": "The set of keys reveals the input: release the same keys for all data.",
    "position of a key": (
        "The order of the keys reveals the input: release them in a fixed order."
    ),
    "type of the output": "The type of the output reveals the input: always return the same type.",
    "type of a number": "The type of a number reveals the input: always return the same type.",
    "len": "The length of the output reveals the input.",
}
"""By the kind of the feature that the event speaks of."""


def _noise_sentence(condition: Condition) -> str | None:
    """Return a sentence on noise that numbers share, if a condition is about it; else None."""
    argument = getattr(getattr(condition, "feature", None), "argument", None)
    if isinstance(argument, NoiseRelation):
        many = {2: "Two", 3: "Three"}.get(len(argument.places), "Several")
        return (
            f"{many} numbers of the output share their noise: it cancels out in {argument}. Draw "
            "new noise for each number."
        )
    if isinstance(argument, Remainder):
        return (
            f"The outputs lie on a grid with steps of {argument.step}, and the data shift "
            "the grid. Round the noisy answer, not the noise."
        )
    return None


def is_recurring_number(event: Event | None, table: Table) -> bool:
    """Return whether an event is one finite number, among numbers that hardly ever recur."""
    for condition in event.conditions if event is not None else ():
        if isinstance(condition, Equals) and condition.feature.of_kind.categories:
            numbers, codes = condition.feature.columns(table)
            others = numbers[(codes == NUMBER) & (numbers != condition.value)]
            others = others[np.isfinite(others)]
            recur = 1 - len(np.unique(others)) / max(len(others), 1)
            return math.isfinite(condition.value) and len(others) > 1 and recur < MAX_RECURRING
    return False


def is_constant(table: Table) -> bool:
    """Return whether all outputs of a table are equal; False for an empty table."""
    marks = hashes(table)
    return bool(len(table)) and bool((marks == marks[0]).all())
