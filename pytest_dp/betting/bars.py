"""Counts of an event or an attack, and the bars of its picture, which samplers make as they draw.

The bars are made by outputs of a search. Fresh outputs are sorted into them while they are counted,
so that a picture shows the runs that the text counts.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs
from pytest_dp.basics.reprs import LABEL_LENGTH, on_one_line, shorten_line
from pytest_dp.betting.scores import Attack
from pytest_dp.outputs.events import Event, short_number
from pytest_dp.outputs.feature import numbers_and_categories
from pytest_dp.outputs.leaves import NUMBER, category_text
from pytest_dp.outputs.table import Table, hashes, tabulate
from pytest_dp.results.outcome import Bar, Histogram, round_for_drawing

MAX_SPANS = 24
"""Ranges of a picture. More are less readable; fewer show less."""
MAX_KINDS = 8
"""Outputs of a picture that are no numbers. More are less readable; fewer show less."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars that outputs are sorted into, each with a part for those in an event."""

    event: Event | Attack
    values: tuple[float, ...]
    """The numbers that have a bar each, in increasing order, if these are few."""
    edges: tuple[float, ...]
    """Where each bar of numbers but the first begins."""
    kinds: tuple[tuple[Hashable, str], ...]
    """What is no number: its key, and its name. What is neither comes last of all."""

    @property
    def size(self) -> int:
        """How many bars there are."""
        return len(self.edges) + 1 + len(self.kinds) + 1

    def counts(self, table: Table) -> Ints:
        """Count outputs outside and inside the event in each bar, one bar after the other."""
        numbers, is_number, kind, keys = _numbers_and_kinds(self.event, table)
        of_kinds = {key: len(self.edges) + 1 + at for at, (key, _) in enumerate(self.kinds)}
        by_kind = np.array([of_kinds.get(key, self.size - 1) for key in keys], int)[kind]
        by_number = np.searchsorted(np.array(self.edges), numbers, side="right")
        bar = np.where(is_number, by_number, by_kind)
        return np.bincount(2 * bar + self.event.mask(table), minlength=2 * self.size)

    def histogram(self, on_d: Ints, on_d2: Ints) -> Histogram:
        """Return the bars by their counts on either input, without empty ones at the ends."""
        outside, inside = np.stack([on_d, on_d2]).reshape(2, self.size, 2).T.tolist()
        numeric: list[tuple[str, float | None, float | None]]
        if self.values:
            ends = [round_for_drawing(value) for value in self.values]
            numeric = list(zip(map(short_number, self.values), ends, ends, strict=True))
        else:
            edges = [None, *map(round_for_drawing, self.edges), None]
            numeric = [("", low, high) for low, high in pairwise(edges)]
        others = [(name, None, None) for name in [*(name for _, name in self.kinds), "others"]]
        bars = [
            Bar(name, low, high, (out1 + in1, out2 + in2), (in1, in2))
            for (name, low, high), (out1, out2), (in1, in2) in zip(
                [*numeric, *others], outside, inside, strict=True
            )
        ]
        filled = [at for at in range(len(numeric)) if any(bars[at].counts)]
        ranges = bars[filled[0] : filled[-1] + 1] if filled else []
        present = [bar for bar in bars[len(numeric) :] if any(bar.counts)]
        runs = int(on_d.sum()), int(on_d2.sum())
        return Histogram(_quantity(self.event), runs, (*ranges, *present))


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts outputs: all, in an event, and at the threshold of an attack; then those of `bars`."""

    event: Event | Attack
    bars: Bars | None = None

    def __call__(self, outputs: Outputs) -> Ints:
        table = tabulate(outputs)
        in_bars = [] if self.bars is None else [self.bars.counts(table)]
        return np.concatenate([[len(table)], np.sum(self.hits(table), 1), *in_bars])

    def hits(self, table: Table) -> list[Bools]:
        """Return which outputs are in the event, and at its threshold."""
        if isinstance(self.event, Attack):
            return list(self.event.hits(table))
        return [self.event.mask(table), np.zeros(len(table), bool)]

    def histogram(self, on_d: Ints, on_d2: Ints) -> Histogram | None:
        """Return the bars, by counts on either input; None if there are none."""
        return None if self.bars is None else self.bars.histogram(on_d[3:], on_d2[3:])


def bars_of(event: Event | Attack, table: Table) -> Bars:
    """Return the bars that show an event best, by some outputs.

    Numbers have a bar each if these are few, else ranges of equal length over nearly all of them.
    Kinds that come in the event are named first, then the most frequent ones.
    """
    numbers, is_number, kind, keys = _numbers_and_kinds(event, table)
    values = np.unique(numbers[is_number])
    if len(values) > MAX_SPANS:
        low, high = np.quantile(numbers[is_number], [0.01, 0.99])
        if low == high:
            low, high = values[0], values[-1]
        edges, values = np.linspace(low, high, MAX_SPANS - 1), values[:0]
    else:
        edges = values[:-1] / 2 + values[1:] / 2
    counts = np.bincount(kind[~is_number], minlength=len(keys))
    within = np.bincount(kind[~is_number & event.mask(table)], minlength=len(keys))
    chosen = sorted(np.flatnonzero(counts).tolist(), key=lambda k: (not within[k], -counts[k]))
    chosen = chosen if len(chosen) <= MAX_KINDS + 1 else chosen[:MAX_KINDS]
    kinds = tuple((keys[k], _name_of_kind(keys[k], kind == k, table)) for k in chosen)
    return Bars(event, tuple(values.tolist()), tuple(edges.tolist()), kinds)


def _feature(event: Event | Attack) -> Any:
    """Return the quantity that an event speaks of first; None if that is the whole output."""
    return None if isinstance(event, Attack) else getattr(event.conditions[0], "feature", None)


def _quantity(event: Event | Attack) -> str:
    if isinstance(event, Attack):
        return "score(output)"
    return getattr(_feature(event), "text", "output")


def _numbers_and_kinds(
    event: Event | Attack, table: Table
) -> tuple[Floats, Bools, Ints, list[Hashable]]:
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
    numbers, codes, names = numbers_and_categories(feature, table)
    levels = names[: len(table.levels)]
    texts = [shorten_line(category_text(level), LABEL_LENGTH) for level in levels]
    keys: list[Hashable] = [*texts, "(absent)", "nan", "inf", "-inf"]
    distinct = list(dict.fromkeys(keys))
    place = np.array([distinct.index(key) for key in keys])
    return numbers, codes == NUMBER, place[codes], distinct


def _name_of_kind(key: Hashable, rows: Bools, table: Table) -> str:
    """Return the name of a kind; of a whole output, that output."""
    if isinstance(key, str):
        return key
    output = table.raw[int(np.argmax(rows))]
    return on_one_line(output.item() if isinstance(output, np.generic) else output, LABEL_LENGTH)
