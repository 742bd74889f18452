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
