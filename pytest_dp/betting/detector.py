"""A detector sorts outputs into bins: by a learned score, and by whether readable events hold.

It is fitted on past batches only. Each half of the past is counted by a detector of the other half,
so that counts do not flatter the bets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pytest_dp.basics.arrays import Bools, Floats, Ints, Outputs
from pytest_dp.betting.additive import (
    AdditiveScore,
    choose_columns,
    fit_weights,
    quantile_positions,
)
from pytest_dp.betting.models import Posterior
from pytest_dp.betting.scores import scores
from pytest_dp.outputs.event_search import Rank, search
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.paired_outputs import Extract
from pytest_dp.outputs.rounding import WholeOutputs
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.statistics.ledger import BetRecord

MIN_IN_BIN = 3
"""Outputs beyond the outermost cut, at least. Fewer: bins of chance."""

BinNumbers = npt.NDArray[np.uint8]

MAX_SCORE_CUTS = 24
"""Cuts of the score, at most. More follow its tails closer, and share the same wealth."""
MAX_EVENTS = 2
"""Readable events of each half of the past, beside rare ones. More share every stake; with none, a
value in 1 of 1,000 runs goes unseen."""


class Binning(Protocol):
    """A rule that sorts outputs into bins, numbered from 0."""

    @property
    def width(self) -> int:
        """The number of bins."""

    def bins(self, table: Table) -> BinNumbers:
        """Return the bin number of each of n outputs, shape (n,)."""


@dataclass(frozen=True, slots=True)
class ByScore:
    """A binning by the log odds of a model, cut in increasing order: the last bin points to D."""

    model: Posterior
    cuts: Floats

    @property
    def width(self) -> int:
        return len(self.cuts) + 1

    def bins(self, table: Table) -> BinNumbers:
        return np.searchsorted(self.cuts, scores(self.model, table)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class ByEvent:
    """A binning by whether an event holds: bin 1 if it does, else bin 0."""

    event: Event | WholeOutputs

    @property
    def width(self) -> int:
        return 2

    def bins(self, table: Table) -> BinNumbers:
        return self.event.mask(table).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Reader:
    """A function that sorts outputs into bins, which samplers call as they draw: see `__call__`."""

    binnings: tuple[Binning, ...]
    keep: bool
    """Whether the outputs are returned as well."""
    extract: Extract | None = None
    """Reduces a table of outputs to the columns that are kept; None keeps all of them."""

    def __call__(self, outputs: Outputs) -> tuple[BinNumbers, Table | None]:
        """Return the bin numbers of n outputs, shape (binnings, n), and their table or None."""
        table = tabulate(outputs)
        seen = [binning.bins(table) for binning in self.binnings]
        bins = np.stack(seen) if seen else np.zeros((0, len(table)), np.uint8)
        if not self.keep:
            return bins, None
        return bins, table if self.extract is None else self.extract(table)


def cuts_of(odds: Floats, max_cuts: int) -> Floats:
    """Return cut points of scores: between all values if at most `max_cuts` differ, else quantiles.

    Half of the quantiles are even, the other half lie ever farther out in both tails. Empty if all
    scores are equal.
    """
    values = np.unique(odds)
    if len(values) <= max_cuts:
        return np.asarray(values[:-1] / 2 + values[1:] / 2)
    half = max_cuts // 2
    at = quantile_positions(len(odds), half, max_cuts - half - 1, MIN_IN_BIN)
    return np.unique(np.sort(odds)[at]) - 5e-10  # scores are rounded to 1e-9


def joint_counts(bins1: BinNumbers, bins2: BinNumbers, width: int) -> Ints:
    """Return the number of pairs of outputs in each pair of bins, the bin on D first.

    `bins1` and `bins2` are bin numbers on D and on D' of the same pairs, shape (n,); the result has
    shape (width, width).
    """
    both = bins1.astype(np.int64) * width + bins2
    return np.bincount(both, minlength=width * width).reshape(width, width)


@dataclass(frozen=True, slots=True)
class Detector:
    """Binnings of outputs, the one by score first."""

    binnings: tuple[Binning, ...] = ()
    pairs: int = 0
    """The number of pairs of outputs that it was fitted on; 0 before there were any."""


def fit_detector(
    table: Table,
    on_d: Bools,
    features: Sequence[Feature],
    rank: Callable[[int], Rank],
    fit_model: Callable[[Table, Bools], Posterior] | None = None,
) -> tuple[Detector, BetRecord]:
    """Fit a detector of outputs on D against as many on D'; return it, and counts of their bins.

    The k-th rows on D and on D' are a pair of outputs. `rank` returns a ranking of events by their
    counts, given the number of pairs that they were counted in. `fit_model` returns a model in
    place of an `AdditiveScore`. Each half of the pairs is counted by a detector of the other half.
    """
    by_score, counts, means = fit_score(table, on_d, features, fit_model)
    binnings: list[Binning] = [by_score]
    joint = [counts]
    for seen, unseen in split_halves(table):
        rows = table.rows(unseen)
        for event in _readable_events(table.rows(seen), on_d[seen], features, rank):
            if event not in binnings:
                binnings.append(event)
                joint.append(count_pairs(event.bins(rows), on_d[unseen], event.width))
    return Detector(tuple(binnings), len(table) // 2), BetRecord(joint, means)


def split_halves(table: Table) -> tuple[tuple[Bools, Bools], tuple[Bools, Bools]]:
    """Return masks of rows to fit on and rows to score: early and late pairs, then swapped.

    Rows i and i + n/2 of n rows are a pair.
    """
    pairs = len(table) // 2
    early = np.arange(len(table)) % pairs < pairs // 2
    return (early, ~early), (~early, early)


def fit_score(
    table: Table,
    on_d: Bools,
    features: Sequence[Feature],
    fit_model: Callable[[Table, Bools], Posterior] | None = None,
    max_cuts: int = MAX_SCORE_CUTS,
) -> tuple[ByScore, Floats, Floats]:
    """Fit a score; return a binning by it, counts of pairs of bins, and the mean score of each bin.

    Each half of the outputs is counted as the other half scores it. Counts have shape (width,
    width), means (width,). Parameters are those of `fit_detector`; the score is cut at `max_cuts`
    places at most.
    """
    halves = split_halves(table)
    model: Posterior
    if fit_model is None:
        model, held_out = _fit_additive(table, on_d, features, halves)
    else:
        model, held_out = fit_model(table, on_d), np.zeros(len(table))
        for seen, unseen in halves:
            part = fit_model(table.rows(seen), on_d[seen])
            held_out[unseen] = scores(part, table.rows(unseen))
    final = scores(model, table)
    for half, _ in halves:
        held_out[half] = with_values(held_out[half], final[half])
    by_score = ByScore(model, cuts_of(final, max_cuts))
    bins = np.searchsorted(by_score.cuts, held_out).astype(np.uint8)
    counts = count_pairs(bins, on_d, by_score.width)
    return by_score, counts, mean_scores(held_out, bins, by_score.cuts)


def _fit_additive(
    table: Table, on_d: Bools, features: Sequence[Feature], halves: Sequence[tuple[Bools, Bools]]
) -> tuple[AdditiveScore, Floats]:
    """Fit a score on each half; return their mean, and each output's score by the other half."""
    columns = choose_columns(table, features)
    codes = [column.codes(table) for column in columns]
    held_out, mean = np.zeros(len(table)), [np.zeros(column.width) for column in columns]
    for seen, unseen in halves:
        weights = fit_weights(columns, [code[seen] for code in codes], on_d[seen])
        part = AdditiveScore(tuple(columns), tuple(weights))
        held_out[unseen] = scores(part, table.rows(unseen))
        mean = [total + weight / 2 for total, weight in zip(mean, weights, strict=True)]
    return AdditiveScore(tuple(columns), tuple(mean)), held_out


def _readable_events(
    table: Table, on_d: Bools, features: Sequence[Feature], rank: Callable[[int], Rank]
) -> list[ByEvent]:
    """Return binnings by the readable events that rank highest, and by rare ones that rank well."""
    readable = [feature for feature in features if feature.of_kind.ease != "no"]
    ranked = search(table, on_d, rank(len(on_d) // 2), readable, MAX_EVENTS, rare=True)
    return [ByEvent(candidate.event) for candidate in ranked]


def count_pairs(bins: BinNumbers, on_d: Bools, width: int) -> Floats:
    """Return `joint_counts` as floats, given the bins of all outputs, and a mask of those on D."""
    return joint_counts(bins[on_d], bins[~on_d], width).astype(np.float64)


def with_values(ranked: Floats, values: Floats) -> Floats:
    """Return `values` in the order of `ranked`: the k-th smallest where `ranked` is k-th smallest.

    Scores that are tied in `ranked` get one value, the middle one of theirs.
    """
    inverse, counts = np.unique(ranked, return_inverse=True, return_counts=True)[1:]
    middle = np.cumsum(counts) - (counts + 1) // 2
    mapped: Floats = np.sort(values)[middle[inverse]]
    return mapped


def mean_scores(scored: Floats, bins: BinNumbers, cuts: Floats) -> Floats:
    """Return the mean score of the outputs in each bin; of an empty bin, a cut beside it, or 0."""
    width = len(cuts) + 1
    sizes = np.bincount(bins, minlength=width)
    mean: Floats = np.bincount(bins, scored, width) / np.maximum(sizes, 1)
    if len(cuts):
        mean = np.where(sizes > 0, mean, cuts[np.maximum(np.arange(width) - 1, 0)])
    return mean
