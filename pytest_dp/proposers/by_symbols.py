"""Pairs from runs on stand-ins, where somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_dp.basics.faults import note_fault
from pytest_dp.basics.reprs import LINE_WIDTH, on_one_line
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.pairs.sources import Proposing, Tried
from pytest_dp.proposers.clock import Clock
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import OutOfTime

MAX_PROPOSED = 48
"""Pairs that are proposed, beside those that part at most branches. More take samples from the
others."""


class BySymbols:
    """Proposes pairs that part at a branch, or that both go another way than the claim's pairs."""

    def __init__(
        self,
        call: Call,
        pairs: Sequence[Pair],
        relation: Relation | None,
        drawer: Any,
        clock: Clock,
    ) -> None:
        self._call, self._given, self._relation, self._drawer = call, pairs, relation, drawer
        self._clock = clock
        self._pairs: Iterator[Pair] | None = None
        self._notes: Callable[[], list[str]] = list
        self._error = ""
        self.proposing = Proposing("symbolic runs", self._propose)

    def notes(self) -> list[str]:
        """Return what a person may want to know of the runs."""
        return [*self._notes(), *[self._error] * bool(self._error)]

    def _propose(self, past: Sequence[Tried]) -> Iterator[Pair]:  # noqa: ARG002
        self._pairs = self._pairs or self._found()
        return self._pairs

    def _found(self) -> Iterator[Pair]:
        from pytest_dp.proposers.proposing import Explorer  # z3 is only loaded where it is asked

        clock, proposed = self._clock, 0
        pristine = Pristine((self._call.mechanism, self._call.params))
        call = replace(self._call, pristine=pristine)
        explorer = Explorer(call, self._relation, self._drawer, lambda: clock.remaining)
        self._notes = explorer.notes
        pairs = explorer.found(self._given, lambda: clock.remaining > 0)
        try:
            for found in clock.timed(pairs):
                proposed += not found.certain
                if found.certain or proposed <= MAX_PROPOSED:
                    yield found.pair
        except OutOfTime:
            raise
        except Exception as error:  # what z3 or a library says of stand-ins; nothing hangs on it
            note_fault(error, "symbolic runs")
            said = on_one_line(str(error), LINE_WIDTH)
            self._error = f"symbolic runs ended: {type(error).__name__}: {said}"
