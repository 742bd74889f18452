"""Binnings: an output as one of a few bins, which is all that a bet needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pytest_dp.basics.arrays import Floats, Ints, Outputs
from pytest_dp.betting.feature_bins import quantile_positions
from pytest_dp.betting.models import Posterior
from pytest_dp.betting.scores import scores
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.feature import Extract
from pytest_dp.outputs.rounding import WholeOutputs
from pytest_dp.outputs.table import Table, tabulate

MIN_IN_BIN = 3
"""Outputs beyond the outermost cut, at least. Fewer: bins of chance; more: rare outputs are not
told apart."""

BinNumbers = npt.NDArray[np.uint8]


class Binning(Protocol):
    """Something that sorts outputs into bins."""

    @property
    def width(self) -> int:
        """How many bins there are."""

    def bins(self, table: Table) -> BinNumbers:
        """Return the bin of every output, shape (n,)."""


@dataclass(frozen=True, slots=True)
class ByScore:
    """By the log odds of a model, in increasing order: the last bin points to D."""

    model: Posterior
    cuts: Floats

    @property
    def width(self) -> int:
        return len(self.cuts) + 1

    def bins(self, table: Table) -> BinNumbers:
        return np.searchsorted(self.cuts, scores(self.model, table)).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class ByEvent:
    """Bins of outputs by whether they are in an event, or in which of some."""

    event: Event | WholeOutputs

    @property
    def width(self) -> int:
        return 2

    def bins(self, table: Table) -> BinNumbers:
        return self.event.mask(table).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Reader:
    """Puts outputs into the bins of each binning.

    Calling it gives the bins, shape (binnings, n), and the table of the outputs, or an extract of
    it, if they are to be kept.
    """

    binnings: tuple[Binning, ...]
    keep: bool
    extract: Extract | None = None

    def __call__(self, outputs: Outputs) -> tuple[BinNumbers, Table | None]:
        table = tabulate(outputs)
        seen = [binning.bins(table) for binning in self.binnings]
        bins = np.stack(seen) if seen else np.zeros((0, len(table)), np.uint8)
        if not self.keep:
            return bins, None
        return bins, table if self.extract is None else self.extract(table)


def cuts_of(odds: Floats, max_cuts: int) -> Floats:
    """Cut points for scores: between all values if they are few, else even and far into tails."""
    values = np.unique(odds)
    if len(values) <= max_cuts:
        return np.asarray(values[:-1] / 2 + values[1:] / 2)
    half = max_cuts // 2
    at = quantile_positions(len(odds), half, max_cuts - half - 1, MIN_IN_BIN)
    return np.unique(np.sort(odds)[at]) - 5e-10  # scores are rounded to 1e-9


def joint_counts(bins1: BinNumbers, bins2: BinNumbers, width: int) -> Ints:
    """Return how many pairs of outputs fell into each pair of bins, shape (width, width)."""
    both = bins1.astype(np.int64) * width + bins2
    return np.bincount(both, minlength=width * width).reshape(width, width)
