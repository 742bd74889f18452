"""Movements of many pairs, before any noise is drawn: which of them are to be looked at first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import chain, cycle, islice
from typing import Any

import numpy as np

from pytest_dp.basics import clocks
from pytest_dp.data import key, kind_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import fields_of
from pytest_dp.data.ordering import in_turn, representatives
from pytest_dp.data.record_relations import AddRemoveOne
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.data.types import DataType, type_of
from pytest_dp.data.units import Step, group_by_unit, name_of, owners
from pytest_dp.pairs.movement import Movements, ProbedInput
from pytest_dp.pairs.noiseless import FAR_POINTS, NoiselessRunner
from pytest_dp.pairs.sources import Moved, Movement
from pytest_dp.pairs.unreached import Line, LineTracer, find_unreached
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline, OutOfTime

SLOW_TIMES = 2.0
"""How many times its time a screening may compute before it ends early. With more, bets of slow
mechanisms have less time."""
HANGING_TIMES = 4.0
"""How many times the time for a screening one batch of pairs may last on the clock."""
MAX_REFINED = 16
"""Kinds of movement whose largest pair is run twice, to see how large its noise is."""
INPUTS_KEPT = 4
"""Inputs whose runs are kept: two kinds of pairs in turn share one each."""
FEWEST_PAIRS = 256
"""Pairs that are screened at least. With more, a violation that is soon found takes longer; with
fewer, less is known of how far the answer moves."""
MAX_LEFT_OUT_KINDS = 300
"""Rows that are left out, or stand alone. With fewer, a rare value may never be."""
MAX_SUBSET = 24
"""Units of a random part of an example. Shorter parts do not reach thresholds."""

Group = tuple[int, ...]
"""Positions of the rows of one unit, or of one row."""

NO_ANSWER = "the mechanism gives no answer when its random numbers are fixed"


class Screening:
    """A screening of pairs: runs without noise that show how far the answer moves on each pair.

    Of slow mechanisms it ends early, after a few times `seconds`; then `note` says so. `raising` is
    whether it counts as a movement if a run raises on one input of a pair alone; else such an input
    may be one that the mechanism refuses.
    """

    def __init__(
        self, call: Call, seconds: float, *, raising: bool = False, tracer: LineTracer | None = None
    ) -> None:
        self._raising = raising
        self._runner = NoiselessRunner(call, tracer)
        self._movements = Movements(self._runner)
        self._seconds, self._spent, self._making = seconds, 0.0, 0.0
        self._last: list[tuple[Any, bool, ProbedInput | None]] = []
        self.note = ""
        self.cut_off = ""
        """Why there are no more pairs, where there would have been."""
        self.has_enough = False
        """Whether a screening ended as the answer moves far enough on some pair."""

    @property
    def runs(self) -> int:
        """Runs that were made so far."""
        return self._runner.runs

    @property
    def tracer(self) -> LineTracer:
        """The lines that runs executed; another screening may share this tracer."""
        return self._runner.tracer

    def screen(
        self, pairs: Iterable[Pair], most: int, *, twice: bool = False, enough: float = math.inf
    ) -> tuple[int, list[Moved]]:
        """Run the mechanism on up to `most` pairs; return how many ran, and the largest moves.

        These are the largest of each kind, at most `MAX_REFINED`. With `twice`, all pairs run at
        two points, which shows noise whose size draws do not tell; else only the largest do. Ends
        early, and sets `note`, `cut_off` or `has_enough`, if the answer moves by more than
        `enough`, if none of the first pairs can be run, if user code fails, or if time is up.
        """
        best: dict[Any, Moved] = {}
        done = tried = 0
        self.note = self.note or self._runner.reason
        if self.note:
            return 0, []
        largest: list[Moved] = []
        batches = _batches(islice(pairs, most))
        try:
            while batch := self._next_batch(batches):
                started = clocks.processor_seconds()
                # Nothing else is to run while draws are answered, such as what draws pairs.
                with self._in_place():
                    for pair in batch:
                        movement = self._compute_movement(pair, twice=twice)
                        if movement is None:
                            continue
                        done += 1
                        known = best.get(movement.kind)
                        if known is None or movement.order > known.movement.order:
                            best[movement.kind] = Moved(pair, movement)
                tried += len(batch)
                self._spent += clocks.processor_seconds() - started
                if self._runner.reason or (tried - done > FAILED_IN_VAIN and not done):
                    self.note = self._runner.reason or NO_ANSWER
                    break
                if self._spent > SLOW_TIMES * self._seconds:
                    self.note = "runs take too long"
                    break
                losses = (moved.movement.loss for moved in best.values())
                if tried >= FEWEST_PAIRS and any(enough < loss < math.inf for loss in losses):
                    self.has_enough = True
                    break
            largest = rank_moves(best.values())[:MAX_REFINED]
            with self._in_place():
                largest = largest if twice else [self._refine(moved) for moved in largest]
        except (OutOfTime, Exception) as error:  # of the user's own objects: it only proposes
            late = "runs take too long" if isinstance(error, OutOfTime) else ""
            self.note = late or f"{type(error).__name__}: {error}"
            largest = largest or rank_moves(best.values())
        self._last.clear()
        return done, rank_moves(largest)

    def _next_batch(self, batches: Iterator[list[Pair]]) -> list[Pair]:
        """Return the next pairs; empty at the end, or if making pairs took too long.

        Sets `cut_off` in the latter case.
        """
        if self._making > SLOW_TIMES * self._seconds:
            self.cut_off = "pairs take too long to make"
            return []
        started = clocks.processor_seconds()
        batch = next(batches, [])
        self._making += clocks.processor_seconds() - started
        return batch

    def _in_place(self) -> AbstractContextManager[None]:
        """Answer draws inside with fixed values; raise OutOfTime if one batch takes too long."""
        return self._runner.in_place(Deadline(HANGING_TIMES * self._seconds))

    def find_unreached_lines(self, inputs: Iterable[Any], fixed: Iterable[str]) -> list[Line]:
        """Run inputs with other noise if lines were not reached; return lines still unreached.

        `fixed` are names of parameters that no input changes. Failures of these runs are ignored.
        """
        if find_unreached(self.tracer, fixed):
            with suppress(OutOfTime, Exception), self._in_place():
                points = range(FAR_POINTS, FAR_POINTS + NOISE_RUNS)
                for point, data in zip(points, cycle(inputs), strict=False):
                    self._runner.run(data, point)
        return find_unreached(self.tracer, fixed)

    def _compute_movement(self, pair: Pair, *, twice: bool = False) -> Movement | None:
        """Run the mechanism on a pair and return the movement; None if a run cannot be made.

        The movement is 0 if a run raises on one input alone, unless that counts.
        """
        d1, d2 = pair.inputs
        one, other = self._probe_input(d1, pair.d1, twice), self._probe_input(d2, pair.d2, twice)
        if one is None or other is None:
            return None
        if one.away.output.raised != other.away.output.raised and not self._raising:
            return Movement(0.0, kind="raised")
        return self._movements.between(one, other)

    def _refine(self, moved: Moved) -> Moved:
        """Run a pair again at two points; return it with that movement, unchanged if runs fail."""
        movement = self._compute_movement(moved.pair, twice=True)
        return moved if movement is None else Moved(moved.pair, movement)

    def _probe_input(self, data: Any, owner: Any, twice: bool) -> ProbedInput | None:
        """Return the runs on an input, cached if a pair shortly before had it; None if they fail.

        `owner` is the data of the pair, `data` that with its parameters. Keeps the last
        `INPUTS_KEPT`.
        """
        found = next(
            (at for at in self._last if at[0] is owner and owner is data and at[1] == twice), None
        )
        if found is None:
            found = owner, twice, self._movements.run_on(data, twice=twice)
        self._last = [found, *(at for at in self._last if at is not found)][:INPUTS_KEPT]
        return found[2]


BATCH_PAIRS, BATCH_RECORDS = 32, 50_000
"""Pairs, and their records, that are made before they are run. More take more memory."""
NOISE_RUNS = 100
"""Runs with other noise. With fewer, code that large noise alone reaches counts as unreached."""
FAILED_IN_VAIN = 20
"""Pairs without a run, and none with one, after which a screening ends."""


def _batches(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    """Yield lists of up to `BATCH_PAIRS` pairs; a list also ends at `BATCH_RECORDS` records."""
    batch: list[Pair] = []
    records = 0
    for pair in pairs:
        batch.append(pair)
        records += sum(length(data) for data in (pair.d1, pair.d2) if kind_of(data))
        if len(batch) >= BATCH_PAIRS or records >= BATCH_RECORDS:
            yield batch
            batch, records = [], 0
    if batch:
        yield batch


def rank_moves(moved: Iterable[Moved]) -> list[Moved]:
    """Return a list of the pairs, the largest movement first."""
    return sorted(moved, key=lambda one: one.movement.order, reverse=True)


def can_take_parts(relation: Relation | None) -> bool:
    """Return whether parts of examples are inside a claim: where one record comes or goes."""
    return isinstance(relation, AddRemoveOne) and relation.group == 1


def draw_parts(
    examples: Sequence[Any], relation: AddRemoveOne, rng: np.random.Generator
) -> Iterator[Pair]:
    """Yield pairs of parts of examples, each D with D' that lacks one unit; without end.

    First each kind of unit with the empty dataset, and the whole example with itself without each
    kind, in turn; then random parts. All keep the example's order. Nothing if all examples are
    empty; raises ClaimError if a row has no owner.
    """
    sources = [_Parts(example, relation, rng) for example in examples if length(example)]
    yield from in_turn(chain.from_iterable((s.pairs_alone(), s.pairs_left_out()) for s in sources))
    while sources:
        for source in sources:
            yield from source.random_pairs()


class _Parts:
    """A maker of pairs of parts of one example."""

    def __init__(self, example: Any, relation: AddRemoveOne, rng: np.random.Generator) -> None:
        self._type: DataType = type_of(example)  # type: ignore[assignment]
        self._relation, self._rng = relation, rng
        self._rows = self._type.join_rows([example])
        records = self._type.records(example)
        self._every, unit = range(len(records)), relation.unit
        units = list(self._every) if unit is None else owners(example, records, unit)
        self._groups = [tuple(rows) for rows in group_by_unit(units).values()]
        self._names = {g: "" if unit is None else name_of(unit, units[g[0]]) for g in self._groups}
        self._kinds = self._groups
        if len(self._groups) > MAX_LEFT_OUT_KINDS:
            chosen = set(representatives(records, MAX_LEFT_OUT_KINDS))
            self._kinds = [g for g in self._groups if not chosen.isdisjoint(g)][:MAX_LEFT_OUT_KINDS]
        columns: dict[Any, dict[Any, list[Group]]] = {}
        for group in self._groups:
            for name, value in fields_of(records[group[0]]).items():
                columns.setdefault(name, {}).setdefault(key(value), []).append(group)
        self._sharing = [list(column.values()) for column in columns.values()]

    def pairs_alone(self) -> Iterator[Pair]:
        """Yield each kind of unit paired with the empty dataset."""
        empty = self._take_rows([])
        return (self._pair_without(group, self._take_rows(group), empty) for group in self._kinds)

    def pairs_left_out(self) -> Iterator[Pair]:
        """Yield the whole example paired with itself without each kind of unit."""
        whole = self._take_rows(self._every)
        for group in self._kinds:
            rest = sorted(set(self._every).difference(group))
            yield self._pair_without(group, whole, self._take_rows(rest))

    def random_pairs(self) -> Iterator[Pair]:
        """Yield pairs from a random part that loses one unit after the other: before, after.

        Half of the time, these are units that share the value of a random column.
        """
        rng, groups = self._rng, self._groups
        if rng.random() < 0.5:
            column = self._sharing[int(rng.integers(len(self._sharing)))]
            groups = column[int(rng.integers(len(column)))]
        size = int(rng.integers(1, min(len(groups), MAX_SUBSET) + 1))
        chosen = [groups[at] for at in rng.choice(len(groups), size, replace=False).tolist()]
        rows = sorted(chain.from_iterable(chosen))
        data = self._take_rows(rows)
        for group in chosen:
            rows = [row for row in rows if row not in group]
            before, data = data, self._take_rows(rows)
            yield self._pair_without(group, before, data)

    def _take_rows(self, rows: Sequence[int]) -> Any:
        """Return the example's rows at these positions as a dataset."""
        return self._type.take_rows(self._rows, rows)

    def _pair_without(self, leaving: Group, d1: Any, d2: Any) -> Pair:
        """Return the pair of two datasets, of which the second lacks one unit."""
        return self._relation.pair_of(d1, d2, [Step(self._names[leaving], len(leaving))])


def draw_any_two(pairs: Sequence[Pair], rng: np.random.Generator) -> Iterator[Pair]:
    """Yield random pairs of two values of some pairs, without end; nothing if all are equal."""
    values = [(data, pair.params) for pair in pairs for data in (pair.d1, pair.d2)]
    if len({key(data) for data, _ in values}) < 2:
        return
    while True:
        (a, params), (b, _) = (values[int(at)] for at in rng.integers(len(values), size=2))
        if key(a) != key(b):
            yield Pair(a, b, "any two values", params=params)
