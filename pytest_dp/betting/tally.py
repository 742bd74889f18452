"""Counts of attacks and events, which samplers make while they draw outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.basics.arrays import Bools, Ints, Outputs
from pytest_dp.betting.bars import Bars
from pytest_dp.betting.scores import Attack
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.results.pictures import Histogram


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts outputs: all, in an event, at the threshold of an attack, and above another's.

    Behind these counts are those of the codes of `bars`.
    """

    event: Event | Attack
    other: Attack | None = None
    bars: Bars | None = None

    def __call__(self, outputs: Outputs) -> Ints:
        return self.counted(tabulate(outputs))[0]

    def counted(self, table: Table) -> tuple[Ints, Bools]:
        """The counts, and what of them is told output by output: the hits, shape (3, n)."""
        hits = np.array(self.hits(table))
        codes = [] if self.bars is None else [self.bars.counts(table)]
        return np.concatenate([[len(table)], hits.sum(1), *codes]), hits

    def hits(self, table: Table) -> list[Bools]:
        """Which outputs are in the event, at its threshold, above the other one's."""
        nothing = np.zeros(len(table), bool)
        if isinstance(self.event, Attack):
            inside, at = self.event.hits(table)
        else:
            inside, at = self.event.mask(table), nothing
        return [inside, at, nothing if self.other is None else self.other.mask(table)]

    def histogram(self, on_d: Ints, on_d2: Ints) -> Histogram | None:
        """The bars, by counts on either input; None if there are none."""
        return None if self.bars is None else self.bars.histogram(on_d[4:], on_d2[4:])


@dataclass(frozen=True, slots=True)
class Hits:
    """What a `Tally` counts, and its hits output by output."""

    tally: Tally

    def __call__(self, outputs: Outputs) -> tuple[Ints, Bools]:
        return self.tally.counted(tabulate(outputs))
