"""Counts of attacks and events, which samplers make while they draw outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Bools, Ints, Outputs
from pytest_dp.attacks.bars import Bars
from pytest_dp.attacks.scores import Attack
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import Table, tabulate


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts outputs: all, above an attack's threshold, at it, in an event, above another's.

    Behind these counts are those of the codes of `bars`.
    """

    attack: Attack | None
    event: Event | None
    other: Attack | None = None
    bars: tuple[Bars, ...] = ()

    def __call__(self, outputs: Outputs) -> Ints:
        table = tabulate(outputs)
        hits = [len(outputs), *(int(hits.sum()) for hits in self.hits(table))]
        return np.concatenate([hits, *(bars.counts(bars.codes(table)) for bars in self.bars)])

    def hits(self, table: Table) -> list[Bools]:
        """Which outputs are above the threshold, at it, in the event, above the other one's."""
        nothing = np.zeros(len(table), bool)
        above, at = self.attack.hits(table) if self.attack is not None else (nothing, nothing)
        inside = self.event.mask(table) if self.event is not None else nothing
        others = self.other.hits(table)[0] if self.other is not None else nothing
        return [above, at, inside, others]


@dataclass(frozen=True, slots=True)
class Hits:
    """What a `Tally` counts, output by output: hits, shape (4, n), and the codes of its bars."""

    tally: Tally

    def __call__(self, outputs: Outputs) -> tuple[Bools, list[Ints]]:
        table = tabulate(outputs)
        return np.array(self.tally.hits(table)), [bars.codes(table) for bars in self.tally.bars]
