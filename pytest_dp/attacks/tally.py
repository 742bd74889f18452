"""Counts of attacks and events, which samplers make while they draw outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Bools, Ints, Outputs
from pytest_dp.attacks.bars import Bars
from pytest_dp.attacks.scores import Attack
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.results.pictures import Histogram


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
        return self.counted(tabulate(outputs))[0]

    def counted(self, table: Table) -> tuple[Ints, Bools]:
        """The counts, and what of them is told output by output: the hits, shape (4, n)."""
        hits = np.array(self.hits(table))
        counts = [[len(table)], hits.sum(1), *(bars.counts(table) for bars in self.bars)]
        return np.concatenate(counts), hits

    def hits(self, table: Table) -> list[Bools]:
        """Which outputs are above the threshold, at it, in the event, above the other one's."""
        nothing = np.zeros(len(table), bool)
        above, at = self.attack.hits(table) if self.attack is not None else (nothing, nothing)
        inside = self.event.mask(table) if self.event is not None else nothing
        others = self.other.mask(table) if self.other is not None else nothing
        return [above, at, inside, others]

    def histograms(self, on_d: Ints, on_d2: Ints) -> dict[str, Histogram]:
        """The bars by what they are about, the attack or the event, of counts on either input."""
        ends = np.cumsum([5, *(2 * bars.size for bars in self.bars)])[:-1]
        sides = (np.split(counts, ends)[1:] for counts in (on_d, on_d2))
        return {
            "attack" if bars.event is self.attack else "event": bars.histogram(*codes)
            for bars, *codes in zip(self.bars, *sides, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Hits:
    """What a `Tally` counts, and its hits output by output."""

    tally: Tally

    def __call__(self, outputs: Outputs) -> tuple[Ints, Bools]:
        return self.tally.counted(tabulate(outputs))
