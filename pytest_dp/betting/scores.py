"""Scores of outputs by a model, attacks that go by them, and counts of events as they are drawn.

The bars of a picture are placed by past outputs. Fresh outputs are sorted into them while an event
is counted, so that a picture shows the runs that the text counts.
"""

from __future__ import annotations

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
MAX_RANGES = 24
"""Ranges of a picture. More are less readable; fewer show less."""
MAX_LABELS = 8
"""Labels of a picture, of outputs without a number. More are less readable; fewer show less."""


def scores(model: Posterior, table: Table) -> Floats:
    """Return the log odds of D for each of n outputs, in nats to 9 decimals, shape (n,)."""
    rounded: Floats = np.round(model.log_odds(table), 9) + 0.0
    return rounded


@dataclass(frozen=True, slots=True)
class Attack:
    """A randomised event: outputs that score above a threshold, and a share of those that meet it.

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
        """Return masks of the outputs above the threshold, and of those right at the threshold."""
        signed = self.scores(table)
        return signed > self.threshold, signed == self.threshold

    def scores(self, table: Table) -> Floats:
        """Return the score of each output in nats: the log odds of D if `sign` is 1, else of D'."""
        return self.sign * scores(self.model, table)

    def score(self, output: Any) -> float:
        """Return the score of one output, in nats."""
        return float(self.scores(tabulate([output]))[0])

    def mask(self, table: Table) -> Bools:
        """Return a mask of the outputs that score above the threshold."""
        return self.hits(table)[0]

    def __call__(self, output: Any) -> float:
        """Return the probability that the attack includes an output."""
        above, at = self.hits(tabulate([output]))
        return float(above[0]) or self.tie * float(at[0])

    @property
    def subject(self) -> str:
        """The event as the subject of a sentence."""
        return f"outputs with a score above {self.threshold:.4g}"

    def __str__(self) -> str:
        share = f", and a random {self.tie:.0%} of those at it" if self.tie else ""
        return f"score(output) > {self.threshold:.4g}{share}"


def main_quantities(attack: Attack, table: Table) -> tuple[str, ...]:
    """Return texts on up to three quantities that add most to the score inside of an attack.

    Each has typical values inside and outside. () if the model is not an `AdditiveScore`, or the
    attack includes all or none of the outputs. The table holds outputs of both inputs.
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
            here, there = (
                _typical_value(column.feature, table, rows) for rows in (inside, ~inside)
            )
            if here != there:
                told.append(f"{column.feature.text}: {here} in S, {there} outside")
    return tuple(told)


def _typical_value(feature: Feature, table: Table, rows: Bools) -> str:
    """Return as text the median of a feature if it is mostly a number, else its commonest category.

    Counts the outputs that `rows` marks.
    """
    numbers, codes = feature.columns(table)
    numbers, codes = numbers[rows], codes[rows]
    if (codes == NUMBER).mean() > 0.5:
        return f"{np.nanmedian(numbers[codes == NUMBER]):.4g}"
    values, counts = np.unique(codes[codes != NUMBER], return_counts=True)
    names = {code: category_text(level) for level, code in table.levels.items()}
    return names.get(int(values[counts.argmax()]), "absent")


def typical_rows(attack: Attack, table: Table, inside: bool) -> list[int]:
    """Return the rows of up to three outputs inside or outside of an attack, most typical first.

    Scores of typical outputs are close to the median. [] if there are no such outputs.
    """
    rows = np.flatnonzero(attack.mask(table) == inside)
    if not len(rows):
        return []
    score = scores(attack.model, table)[rows]
    order = np.argsort(np.abs(score - np.median(score)), kind="stable")
    chosen: list[int] = rows[order[:MAX_NAMED]].tolist()
    return chosen


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars of a picture: the numbers of outputs by range, all other outputs by label.

    Each bar has a part for outputs in the event. The bars of numbers come first, in increasing
    order, then those of labels, then one for all other labels.
    """

    event: Event | Attack
    values: tuple[float, ...]
    """The numbers that have a bar each, in increasing order; empty if they are many."""
    edges: tuple[float, ...]
    """Where each bar of numbers but the first begins."""
    labels: tuple[str, ...]
    """What outputs without a number are, such as a category; those with a bar of their own."""

    @property
    def size(self) -> int:
        """The number of bars."""
        return len(self.edges) + 1 + len(self.labels) + 1

    def counts(self, table: Table) -> Ints:
        """Return the outputs outside and inside the event, bar by bar, shape (2 * size,)."""
        numbers, is_number, codes, labels = _numbers_and_labels(self.event, table)
        bar_of = {label: len(self.edges) + 1 + at for at, label in enumerate(self.labels)}
        by_label = np.array([bar_of.get(label, self.size - 1) for label in labels], int)[codes]
        by_number = np.searchsorted(np.array(self.edges), numbers, side="right")
        bar = np.where(is_number, by_number, by_label)
        return np.bincount(2 * bar + self.event.mask(table), minlength=2 * self.size)

    def histogram(self, on_d: Ints, on_d2: Ints) -> Histogram:
        """Return the picture by sums of `counts` on either input; drop empty bars at its ends."""
        ends: list[tuple[str, float | None, float | None]]
        if self.values:
            rounded = [round_for_drawing(value) for value in self.values]
            ends = list(zip(map(short_number, self.values), rounded, rounded, strict=True))
        else:
            edges = [None, *map(round_for_drawing, self.edges), None]
            ends = [("", low, high) for low, high in pairwise(edges)]
        ends += [(label, None, None) for label in (*self.labels, "others")]
        outside, inside = np.stack([on_d, on_d2]).reshape(2, self.size, 2).T.tolist()
        bars = [
            Bar(*end, (out1 + in1, out2 + in2), (in1, in2))
            for end, (out1, out2), (in1, in2) in zip(ends, outside, inside, strict=True)
        ]
        numeric = len(self.edges) + 1
        filled = [at for at in range(numeric) if any(bars[at].counts)]
        ranges = bars[filled[0] : filled[-1] + 1] if filled else []
        labelled = [bar for bar in bars[numeric:] if any(bar.counts)]
        quantity = "score(output)"
        if not isinstance(self.event, Attack):
            quantity = getattr(_feature_of(self.event), "text", "output")
        return Histogram(quantity, (int(on_d.sum()), int(on_d2.sum())), (*ranges, *labelled))


@dataclass(frozen=True, slots=True)
class Tally:
    """A function that counts outputs, which samplers call as they draw: see `__call__`."""

    event: Event | Attack
    bars: Bars | None = None

    def __call__(self, outputs: Outputs) -> Ints:
        """Return counts of outputs: all, in the event, at its threshold; then `Bars.counts`."""
        table = tabulate(outputs)
        in_bars = [] if self.bars is None else [self.bars.counts(table)]
        return np.concatenate([[len(table)], np.sum(self.hits(table), 1), *in_bars])

    def hits(self, table: Table) -> list[Bools]:
        """Return masks of the outputs in the event, and of those right at its threshold."""
        if isinstance(self.event, Attack):
            return list(self.event.hits(table))
        return [self.event.mask(table), np.zeros(len(table), bool)]

    def histogram(self, on_d: Ints, on_d2: Ints) -> Histogram | None:
        """Return the picture by sums of counts on either input; None if there are no bars."""
        return None if self.bars is None else self.bars.histogram(on_d[3:], on_d2[3:])


def bars_of(event: Event | Attack, table: Table) -> Bars:
    """Return bars for the picture of an event, placed by the outputs of a table.

    Numbers have a bar each if they are few, else ranges of equal length over nearly all of them.
    Labels that come in the event have the first bars, then the most frequent ones.
    """
    numbers, is_number, codes, labels = _numbers_and_labels(event, table)
    values = np.unique(numbers[is_number])
    if len(values) > MAX_RANGES:
        low, high = np.quantile(numbers[is_number], [0.01, 0.99])
        if low == high:
            low, high = values[0], values[-1]
        edges, values = np.linspace(low, high, MAX_RANGES - 1), values[:0]
    else:
        edges = values[:-1] / 2 + values[1:] / 2
    counts = np.bincount(codes[~is_number], minlength=len(labels))
    within = np.bincount(codes[~is_number & event.mask(table)], minlength=len(labels))
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda k: (not within[k], -counts[k]))
    chosen = order if len(order) <= MAX_LABELS + 1 else order[:MAX_LABELS]
    shown = tuple(labels[k] for k in chosen)
    return Bars(event, tuple(values.tolist()), tuple(edges.tolist()), shown)


def _feature_of(event: Event) -> Any:
    """Return the feature of the first condition of an event; None if that is the whole output."""
    return getattr(event.conditions[0], "feature", None)


def _numbers_and_labels(
    event: Event | Attack, table: Table
) -> tuple[Floats, Bools, Ints, list[str]]:
    """Return the number of each output, a mask of outputs with a number, label codes, and labels.

    The number is the score, or the first feature that the event is about. An event of whole outputs
    has no numbers. Codes index the labels.
    """
    if isinstance(event, Attack):
        score = event.scores(table)
        return score, np.isfinite(score), np.zeros(len(table), int), ["no score"]
    feature = _feature_of(event)
    if feature is None:
        _, first, codes = np.unique(hashes(table), return_index=True, return_inverse=True)
        outputs = [table.raw[row] for row in first]
        plain = [out.item() if isinstance(out, np.generic) else out for out in outputs]
        texts = [on_one_line(output, LABEL_LENGTH) for output in plain]
        numbers, is_number = np.zeros(len(table)), np.zeros(len(table), bool)
    else:
        numbers, codes, names = numbers_and_categories(feature, table)
        levels = names[: len(table.levels)]
        texts = [shorten_line(category_text(level), LABEL_LENGTH) for level in levels]
        texts += ["(absent)", "nan", "inf", "-inf"]
        is_number = codes == NUMBER
    labels = list(dict.fromkeys(texts))  # shortened texts may be equal
    place = {label: at for at, label in enumerate(labels)}
    return numbers, is_number, np.array([place[text] for text in texts], int)[codes], labels
