"""Counts of an event or an attack, and the bars of its picture, which samplers make as they draw.

The bars are made by outputs of a search. Fresh outputs are sorted into them while they are counted,
so that a picture shows the runs that the text counts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs
from pytest_dp.basics.reprs import LABEL_LENGTH, on_one_line, shorten_line
from pytest_dp.betting.scores import Attack
from pytest_dp.outputs.events import Between, Equals, Event
from pytest_dp.outputs.feature import numbers_and_categories
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import NUMBER, category_text
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.outputs.wording import short_number
from pytest_dp.results.pictures import Bar, Histogram, round_for_drawing

MAX_SPANS = 24
"""Ranges of a picture. More are less readable; fewer show less."""
MAX_KINDS = 8
"""Outputs of a picture that are no numbers. More are less readable; fewer show less."""

Span = tuple[str, float | None, float | None]
"""Of a bar of numbers: a name, if it needs one, and its ends."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars that outputs are sorted into, each with a part for those in an event."""

    event: Event | Attack
    spans: tuple[Span, ...]
    """Of numbers, in increasing order."""
    edges: tuple[float, ...]
    """Where each span but the first begins."""
    kinds: tuple[tuple[Hashable, str], ...]
    """What is no number: how it is told, and its name. What is neither comes last of all."""

    @property
    def size(self) -> int:
        """How many bars there are."""
        return len(self.spans) + len(self.kinds) + 1

    def codes(self, table: Table) -> Ints:
        """Return for each output twice the position of its bar, plus one inside the event."""
        numbers, which, kind, keys = _read(self.event, table)
        of_keys = {key: len(self.spans) + at for at, (key, _) in enumerate(self.kinds)}
        bars = np.array([of_keys.get(key, self.size - 1) for key in keys], int)[kind]
        at = np.searchsorted(np.array(self.edges), numbers, side="right")
        codes: Ints = 2 * np.where(which, at, bars) + self.event.mask(table)
        return codes

    def counts(self, table: Table) -> Ints:
        """Return how often each code comes."""
        return np.bincount(self.codes(table), minlength=2 * self.size)

    def histogram(self, on_d: Ints, on_d2: Ints) -> Histogram:
        """Return the bars, by counts of codes on either input; without empty ones at the ends."""
        outside, within = (np.stack([on_d, on_d2])[:, part::2].T for part in (0, 1))
        named = [*self.spans, *((name, None, None) for _, name in self.kinds)]
        bars = [
            Bar(name, _end(low), _end(high), *_pairs(out + part, part))
            for (name, low, high), out, part in zip(
                [*named, ("others", None, None)], outside, within, strict=True
            )
        ]
        filled = [at for at in range(len(self.spans)) if any(bars[at].counts)]
        ranges = bars[filled[0] : filled[-1] + 1] if filled else []
        others = [bar for bar in bars[len(self.spans) :] if any(bar.counts)]
        runs = int(on_d.sum()), int(on_d2.sum())
        return Histogram(_quantity(self.event), runs, (*ranges, *others))


def bars_of(event: Event | Attack, table: Table) -> Bars:
    """Return the bars that show an event best, by some outputs."""
    numbers, which, kind, keys = _read(event, table)
    spans, edges = _spans(numbers[which], [end for end in _ends(event) if math.isfinite(end)])
    counts, within = (
        np.bincount(kind[part & ~which], minlength=len(keys))
        for part in (np.ones(len(table), bool), event.mask(table))
    )
    chosen = sorted(np.flatnonzero(counts).tolist(), key=lambda k: (not within[k], -counts[k]))
    chosen = chosen if len(chosen) <= MAX_KINDS + 1 else chosen[:MAX_KINDS]
    kinds = tuple((keys[k], _name(keys[k], kind, k, table)) for k in chosen)
    return Bars(event, spans, edges, kinds)


def _feature(event: Event | Attack) -> Any:
    """Return the quantity that an event speaks of first; None if that is the whole output."""
    return None if isinstance(event, Attack) else getattr(event.conditions[0], "feature", None)


def _quantity(event: Event | Attack) -> str:
    if isinstance(event, Attack):
        return "score(output)"
    return getattr(_feature(event), "text", "output")


def _read(event: Event | Attack, table: Table) -> tuple[Floats, Bools, Ints, list[Hashable]]:
    """Return the event's numbers, which outputs have one, their kinds, and the keys of kinds.

    The key of a whole output is its hash, the key of any other category its name.
    """
    if isinstance(event, Attack):
        signed = event.scores(table)
        return signed, np.isfinite(signed), np.zeros(len(table), int), ["no score"]
    feature = _feature(event)
    if feature is None:
        marks, kind = np.unique(hashes(table), return_inverse=True)
        return np.zeros(len(table)), np.zeros(len(table), bool), kind, marks.tolist()
    numbers, which, names = numbers_and_categories(feature, table)
    texts = [
        shorten_line(category_text(level), LABEL_LENGTH) for level in names[: len(table.levels)]
    ]
    keys: list[Hashable] = [*texts, "(absent)", "nan", "inf", "-inf"]
    distinct = list(dict.fromkeys(keys))
    alike = np.array([distinct.index(key) for key in keys])
    return numbers, which == NUMBER, alike[which], distinct


def _ends(event: Event | Attack) -> list[float]:
    """Return the values at which an event on a number begins and ends."""
    if isinstance(event, Attack):
        return [event.threshold]
    feature, ends = _feature(event), list[float]()
    for condition in event.conditions if feature is not None else ():
        if getattr(condition, "feature", None) != feature:
            continue
        if isinstance(condition, Between):
            ends += [end for end in (condition.low, condition.high) if end is not None]
        elif isinstance(condition, Equals):
            ends.append(condition.value)
    return ends


def _spans(numbers: Floats, ends: list[float]) -> tuple[tuple[Span, ...], tuple[float, ...]]:
    """Return spans for numbers, and their edges: single values if these are few, else ranges."""
    values = np.unique(numbers)
    if len(values) <= MAX_SPANS:
        single = tuple((short_number(float(value)), float(value), float(value)) for value in values)
        return single, tuple((values[:-1] / 2 + values[1:] / 2).tolist())
    edges = _edges(numbers, ends).tolist()
    spans = tuple(("", *ends) for ends in zip([None, *edges], [*edges, None], strict=True))
    return spans, tuple(edges)


def _edges(numbers: Floats, ends: list[float]) -> Floats:
    """Return even steps over nearly all numbers and the nearby ends of the event."""
    low, high = np.quantile(numbers, [0.01, 0.99]).tolist()
    if low == high:
        low, high = float(numbers.min()), float(numbers.max())
    near = [end for end in ends if 2 * low - high <= end <= 2 * high - low]
    low, high = min([low, *near]), max([high, *near])
    step, anchor = (high - low) / MAX_SPANS, near[0] if near else low
    start, stop = math.floor((low - anchor) / step) - 1, math.ceil((high - anchor) / step)
    edges: Floats = anchor + step * np.arange(start, stop + 1)
    return edges


def _name(key: Hashable, kind: Ints, which: int, table: Table) -> str:
    """Return the name of a kind; of a whole output, that output."""
    if isinstance(key, str):
        return key
    output = table.raw[int(np.flatnonzero(kind == which)[0])]
    return on_one_line(output.item() if isinstance(output, np.generic) else output, LABEL_LENGTH)


def _end(value: float | None) -> float | None:
    return None if value is None else round_for_drawing(float(value))


def _pairs(counts: Ints, within: Ints) -> tuple[tuple[int, int], tuple[int, int]]:
    (a, b), (c, d) = counts.tolist(), within.tolist()
    return (a, b), (c, d)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts outputs: all, in an event, and at the threshold of an attack.

    Behind these counts are those of the codes of `bars`.
    """

    event: Event | Attack
    bars: Bars | None = None

    def __call__(self, outputs: Outputs) -> Ints:
        table = tabulate(outputs)
        codes = [] if self.bars is None else [self.bars.counts(table)]
        return np.concatenate([[len(table)], np.sum(self.hits(table), 1), *codes])

    def hits(self, table: Table) -> list[Bools]:
        """Return which outputs are in the event, and at its threshold."""
        if isinstance(self.event, Attack):
            return list(self.event.hits(table))
        return [self.event.mask(table), np.zeros(len(table), bool)]

    def histogram(self, on_d: Ints, on_d2: Ints) -> Histogram | None:
        """Return the bars, by counts on either input; None if there are none."""
        return None if self.bars is None else self.bars.histogram(on_d[3:], on_d2[3:])
