"""Pictures of an audit, from what it has counted and kept anyway: nothing is run for them.

What takes longer than the rest, and needs no samples, is added by `completed` once somebody looks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pytest_dp.arrays import Bools, Floats, Ints
from pytest_dp.attacks.scores import Attack, scores
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.paired_outputs import first_pairs
from pytest_dp.auditors.witness import Witness
from pytest_dp.evidence.counts import Bound
from pytest_dp.limits import DOZENS, HUNDREDS, LABEL, SEVERAL, SHOWN_OUTPUTS
from pytest_dp.outputs.events import Between, Equals, Event
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import ABSENT, NUMBER, written
from pytest_dp.outputs.table import Table
from pytest_dp.outputs.wording import plain
from pytest_dp.reprs import on_one_line
from pytest_dp.results.pictures import Bar, Histogram, Interval, Pictures, Points, points, rounded
from pytest_dp.results.result import Counterexample
from pytest_dp.sampling.deadline import OutOfTime, within


def wealth_of(trail: Sequence[tuple[int, float]]) -> tuple[tuple[int, float], ...]:
    """Samples and log e-values (base e) of every bet, thinned out, with decimal logarithms."""
    if not trail:
        return ()
    highest = max(range(len(trail)), key=lambda i: trail[i][1])
    even = np.linspace(0, len(trail) - 1, HUNDREDS - 1).round().astype(int).tolist()
    chosen = sorted({*even, highest}) if len(trail) > HUNDREDS else range(len(trail))
    return tuple((trail[i][0], round(trail[i][1] / math.log(10), 3)) for i in chosen)


def attack_of(joint: Floats, sign: int) -> Points:
    """Error rates of every threshold of a score, from counts of pairs of bins as in a record."""
    above1, above2 = (
        np.concatenate([[0.0], np.cumsum(joint.sum(axis)[::-1])]) / joint.sum() for axis in (1, 0)
    )
    # Turned around, the attack points to D': what was missed is then a false alarm.
    rates = (above2, 1 - above1) if sign > 0 else (1 - above1, above2)
    return points(*rates)


def pictures_of(
    context: Context,
    witness: Witness,
    bound: Bound | None,
    example: Counterexample | None,
) -> Pictures:
    """The event's error rates, and if it breaks the claim, a histogram of outputs of the search.

    `bound` is None where no effort was left for held-out runs.
    """
    event = None if bound is None else event_of(bound)
    if example is None:
        return Pictures(event=event)

    def histogram() -> Histogram | None:
        table, on_d = witness.state.outputs.table()
        return outputs_of(example.event, table, on_d if witness.sign > 0 else ~on_d)

    with suppress(OutOfTime):
        return Pictures(event=event, outputs=within(context.to_conclude(), histogram))
    return Pictures(event=event)


def event_of(bound: Bound) -> tuple[Interval, Interval] | None:
    """Error rates of what was counted on held-out samples; None if nothing was."""
    counts = bound.counts
    if not counts.common:
        return None
    hits, alarms = counts.c1 / counts.n1, counts.c2 / counts.n2
    (low1, high1), (low2, high2) = bound.intervals
    positives, negatives = (low2, alarms, high2), (1 - high1, 1 - hits, 1 - low1)
    return _interval(positives), _interval(negatives)


def outputs_of(event: Any, table: Table, on_d: Bools) -> Histogram | None:
    """The histogram that shows an event best; None for events that are unknown here.

    The table has as many outputs on either input; `on_d` marks those on the input that makes the
    event likelier.
    """
    table, on_d = first_pairs(table, on_d, SHOWN_OUTPUTS)
    sides = on_d, ~on_d
    runs = int(sides[0].sum()), int(sides[1].sum())
    if isinstance(event, Attack):
        signed, inside = event.sign * scores(event.model, table), event.hits(table)[0]
        bars = _number_bars(signed, np.isfinite(signed), sides, inside, [event.threshold])
        return Histogram("score(output)", runs, tuple(bars))
    if not isinstance(event, Event):
        return None
    inside = event.mask(table)
    feature = getattr(event.conditions[0], "feature", None)
    if feature is None:
        return Histogram("output", runs, tuple(_kind_bars(*_outputs(table), sides, inside)))
    numbers, codes = feature.columns(table)
    finite = (codes == NUMBER) & np.isfinite(numbers)
    ends = [end for c in event.conditions for end in _ends(c) if c.feature == feature]  # type: ignore[union-attr]
    bars = _number_bars(numbers, finite, sides, inside, ends)
    others = _kind_bars(*_categories(numbers, codes, table), sides, inside, ~finite)
    return Histogram(feature.text, runs, (*bars, *others))


def _interval(ends: Iterable[float]) -> Interval:
    low, middle, high = map(rounded, ends)
    return low, middle, high


def _ends(condition: Any) -> list[float]:
    """Where a condition on a number begins and ends to hold."""
    if isinstance(condition, Between):
        return [end for end in (condition.low, condition.high) if end is not None]
    return [condition.value] if isinstance(condition, Equals) else []


def _number_bars(
    numbers: Floats, which: Bools, sides: tuple[Bools, Bools], inside: Bools, ends: list[float]
) -> list[Bar]:
    """Bars for the numbers at `which`: each value by itself where they are few, else ranges."""
    values = np.unique(numbers[which])
    if not len(values):
        return []
    if len(values) <= DOZENS:
        bins = np.searchsorted(values, numbers)
        spans: list[Any] = [(plain(float(value)), value, value) for value in values]
    else:
        edges = _edges(numbers[which], [end for end in ends if math.isfinite(end)])
        bins = np.searchsorted(edges, numbers, side="right")
        spans = [("", *span) for span in zip([None, *edges], [*edges, None], strict=True)]
        if min(ends, default=edges[0]) < edges[0]:
            spans[0] = (f"below {edges[0]:.3g}", None, edges[0])
        if max(ends, default=edges[-1]) > edges[-1]:
            spans[-1] = (f"{edges[-1]:.3g} or more", edges[-1], None)
    counted = _counted(bins, len(spans), sides, which, inside)
    bars = [
        Bar(label, _end(low), _end(high), *counts)
        for (label, low, high), counts in zip(spans, counted, strict=True)
    ]
    filled = [number for number, bar in enumerate(bars) if any(bar.counts)]
    return bars[filled[0] : filled[-1] + 1]


def _end(value: Any) -> float | None:
    return None if value is None else rounded(float(value))


def _edges(numbers: Floats, ends: list[float]) -> Floats:
    """Even steps over nearly all numbers, one of which begins where the event does."""
    low, lower, upper, high = np.quantile(numbers, [0.005, 0.25, 0.75, 0.995]).tolist()
    if lower < upper:
        reach = 5 * (upper - lower)
        low, high = max(low, lower - reach), min(high, upper + reach)
    if low == high:
        low, high = float(numbers.min()), float(numbers.max())
    reach = high - low
    near = sorted(end for end in ends if low - reach <= end <= high + reach)
    step = (high - low) / DOZENS
    low, high = min([low, *(end - 2 * step for end in near)]), max([high, *near])
    step = (high - low) / DOZENS
    apart = near[1] - near[0] if len(near) > 1 else 0.0
    if apart and (high - low) * max(1, round(apart / step)) <= 2 * DOZENS * apart:
        step = (near[1] - near[0]) / max(1, round((near[1] - near[0]) / step))
    anchor = near[0] if near else low
    start, stop = math.floor((low - anchor) / step), math.ceil((high - anchor) / step)
    edges: Floats = anchor + step * np.arange(start, stop + 1)
    return edges


def _outputs(table: Table) -> tuple[Ints, list[str]]:
    """A number for each output, the same for equal ones, and a text for each number."""
    _, rows, kind = np.unique(hashes(table), return_index=True, return_inverse=True)
    outputs = (table.raw[int(row)] for row in rows)
    plain_outputs = (out.item() if isinstance(out, np.generic) else out for out in outputs)
    return kind, [on_one_line(output, LABEL) for output in plain_outputs]


def _categories(numbers: Floats, codes: Ints, table: Table) -> tuple[Ints, list[str]]:
    """For each output that is no finite number, its category; and the names of all categories."""
    names = {code: _one_line(written(level)) for level, code in table.levels.items()}
    size = max(names, default=-1) + 1
    labels = [names.get(code, "") for code in range(size)] + ["nan", "inf", "-inf", "(absent)"]
    special = np.select([np.isnan(numbers), numbers > 0], [size, size + 1], size + 2)
    kind = np.where(codes == NUMBER, special, np.where(codes == ABSENT, size + 3, codes))
    return kind, labels


def _one_line(text: str) -> str:
    """A text without line breaks, cut off where it gets long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LABEL else f"{flat[: LABEL - 3]}..."


def _kind_bars(
    kind: Ints,
    labels: list[str],
    sides: tuple[Bools, Bools],
    inside: Bools,
    which: Bools | None = None,
) -> list[Bar]:
    """Bars for the commonest kinds, those in the event first of all, and one for the others."""
    which = np.ones(len(kind), bool) if which is None else which
    counted = list(_counted(kind, len(labels), sides, which, inside))
    bars = [
        Bar(label, None, None, *counts)
        for label, counts in zip(labels, counted, strict=True)
        if any(counts[0])
    ]
    bars.sort(key=lambda bar: (-any(bar.inside), -sum(bar.counts)))
    if len(bars) <= SEVERAL + 1:
        return bars
    rest = bars[SEVERAL:]
    summed = [
        (sum(getattr(bar, name)[0] for bar in rest), sum(getattr(bar, name)[1] for bar in rest))
        for name in ("counts", "inside")
    ]
    return [*bars[:SEVERAL], Bar(f"{len(rest):,} others", None, None, *summed)]


def _counted(
    bins: Ints, width: int, sides: tuple[Bools, Bools], which: Bools, inside: Bools
) -> Iterable[tuple[tuple[int, int], tuple[int, int]]]:
    """For each bin: outputs on D and on D', and how many of those are in the event."""
    d, d2, in_d, in_d2 = (
        np.bincount(bins[which & side & part], minlength=width).tolist()
        for part in (np.ones(len(bins), bool), inside)
        for side in sides
    )
    return (((a, b), (in_a, in_b)) for a, b, in_a, in_b in zip(d, d2, in_d, in_d2, strict=True))
