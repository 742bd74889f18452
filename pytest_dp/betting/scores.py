"""Scores of outputs by a posterior, attacks that go by them, and the quantities behind a score."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs
from pytest_dp.basics.reprs import LABEL_LENGTH, on_one_line, shorten_line
from pytest_dp.betting.additive import AdditiveScore, FeatureBins
from pytest_dp.betting.models import Posterior
from pytest_dp.outputs.events import Event, short_number
from pytest_dp.outputs.feature import Feature, numbers_and_categories
from pytest_dp.outputs.leaves import NUMBER, category_text
from pytest_dp.outputs.table import Table, hashes, tabulate
from pytest_dp.results.outcome import Bar, Histogram, round_for_drawing

MAX_NAMED = 3
"""Quantities that are named, and outputs that are shown. More hide the most telling one."""
MAX_SPANS = 24
"""Ranges of a picture. More are less readable; fewer show less."""
MAX_KINDS = 8
"""Outputs of a picture that are no numbers. More are less readable; fewer show less."""


def scores(model: Posterior, table: Table) -> Floats:
    """Return the log odds, rounded so that equal outputs score the same in batches of any size."""
    rounded: Floats = np.round(model.log_odds(table), 9) + 0.0
    return rounded


@dataclass(frozen=True, slots=True)
class Attack:
    """A randomised event: outputs that score above a threshold, and a share of those right at it.

    ``attack(output)`` is the probability that the attack includes an output. The score is the
    learned log odds of the input that it points to against the other.
    """

    model: Posterior = field(repr=False)
    sign: int
    """1 if it includes outputs that point to D, -1 if those that point to D'."""
    threshold: float
    """In nats: ``sign`` times the log odds."""
    tie: float = 0.0
    """Probability with which outputs at the threshold are included."""
    told_by: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The quantities that add most to the score, with typical values inside and outside."""

    def hits(self, table: Table) -> tuple[Bools, Bools]:
        """Return which outputs score above the threshold, and which right at it."""
        signed = self.scores(table)
        return signed > self.threshold, signed == self.threshold

    def scores(self, table: Table) -> Floats:
        """Return the score of each output, in nats."""
        return self.sign * scores(self.model, table)

    def score(self, output: Any) -> float:
        """Return the score of one output, in nats."""
        return float(self.scores(tabulate([output]))[0])

    def mask(self, table: Table) -> Bools:
        """Return which outputs score above the threshold."""
        return self.hits(table)[0]

    def __call__(self, output: Any) -> float:
        above, at = self.hits(tabulate([output]))
        return float(above[0]) or self.tie * float(at[0])

    @property
    def said(self) -> str:
        """The event as the subject of a sentence."""
        return f"outputs with a score above {self.threshold:.4g}"

    def __str__(self) -> str:
        share = f", and a random {self.tie:.0%} of those at it" if self.tie else ""
        return f"score(output) > {self.threshold:.4g}{share}"


def told_by(attack: Attack, table: Table) -> tuple[str, ...]:
    """Return the quantities that add most to the score inside of an attack, with examples.

    The table holds outputs of both inputs, from which the attack was learned.
    """
    inside = attack.mask(table)
    if not isinstance(attack.model, AdditiveScore) or inside.all() or not inside.any():
        return ()
    adds = [attack.sign * part for part in attack.model.parts(table)]
    more = np.array([part[inside].mean() - part[~inside].mean() for part in adds])
    told = []
    for at in np.argsort(-more)[:MAX_NAMED].tolist():
        column = attack.model.columns[at]
        if more[at] > 0 and isinstance(column, FeatureBins):
            here, there = (_typical(column.feature, table, rows) for rows in (inside, ~inside))
            if here != there:
                told.append(f"{column.feature.text}: {here} in S, {there} outside")
    return tuple(told)


def _typical(feature: Feature, table: Table, rows: Bools) -> str:
    """Return the median of the numbers, or the commonest category, whatever is there more often."""
    numbers, codes = feature.columns(table)
    numbers, codes = numbers[rows], codes[rows]
    if (codes == NUMBER).mean() > 0.5:
        return f"{np.nanmedian(numbers[codes == NUMBER]):.4g}"
    values, counts = np.unique(codes[codes != NUMBER], return_counts=True)
    names = {code: category_text(level) for level, code in table.levels.items()}
    return names.get(int(values[counts.argmax()]), "absent")


def typical_outputs(attack: Attack, table: Table, inside: bool) -> list[int]:
    """Return the rows of a few outputs inside or outside of an attack, the typical ones first."""
    rows = np.flatnonzero(attack.mask(table) == inside)
    if not len(rows):
        return []
    score = scores(attack.model, table)[rows]
    order = np.argsort(np.abs(score - np.median(score)), kind="stable")
    chosen: list[int] = rows[order[:MAX_NAMED]].tolist()
    return chosen


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
