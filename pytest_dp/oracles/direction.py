"""The search for an alignment of the runs on one input with those on another.

A shift may differ between paths only: it has to be the same for all draws on a path. Draws whose
scale, or whose centre's difference, depends on other draws are refused, as are scales that depend
on the data. So what a replay shows of the loss holds for all runs on its path, and only paths that
no replay took may lose more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.checking import (
    LOW,
    ORDINARY,
    OUTPUTS_DIFFER,
    Laws,
    Memory,
    Most,
    NotAligned,
    Pairing,
    candidates,
    highest,
    probability_above,
)
from pytest_dp.oracles.handing_out import ReplayedRun, Shift
from pytest_dp.oracles.shift_loss import LossBound, largest, loss_of_shift
from pytest_dp.oracles.shifts import are_equal, shift_of_centres, shift_of_path, solve_shift
from pytest_dp.oracles.standard_draws import Numbers
from pytest_dp.outputs.raised import same
from pytest_dp.running.generator_stand_ins import CannotInstrument

FIRST_REPLAYS = 6
"""Replays that show which draws may be left out. With fewer, more is checked in vain."""
MAX_ROUNDS = 12
"""Rounds until the shift of all draws of a path is found, as each shows where the path goes on."""
NEW_PATHS, MAX_LOSSES = 0.15, 4
"""Where a larger share of the second half of the replays takes new paths, and these have more
losses than that, paths that no replay took may lose more: then the largest losses of all draws
count together. With larger numbers, losses on such paths are left out more often; with smaller
ones, sparse vectors of many answers have no bound."""
SAME_SHIFT = 1e-9
"""Difference of shifts that count as equal, which rounding makes of constants."""
SHIFTS_DEPEND = "what a draw is added to depends on other draws"
NO_NOISE = "nothing that it draws is seen"
STATEFUL = "with the same draws it gives another output: it keeps something, or draws unseen"
GAUSSIAN_PATHS = "Gaussian draws have to move differently on different paths"


class Direction:
    """The search for an alignment of the runs on one input with those on the other.

    `numbers` are those of the replays: all are made where one shift does for all runs, and the
    first half where shifts differ between paths, as the other direction takes as many. `known` are
    runs on the source with such numbers. `reverse` is the other direction, if it was searched
    before.
    """

    def __init__(
        self,
        pairing: Pairing,
        numbers: list[Numbers],
        known: dict[Any, ReplayedRun],
        is_within: Callable[[LossBound], bool],
        memory: Memory,
        reverse: Direction | None,
    ) -> None:
        self.pairing, self._all = pairing, numbers
        self._half = numbers if reverse else numbers[: max(len(numbers) // 2, 1)]
        self._is_within, self._memory = is_within, memory
        self._first = self._all[:FIRST_REPLAYS]
        self._plain = known
        self._reverse = reverse
        self._kept: dict[Any, Floats] = {}  # the shifts that keep all sums, by lines of code
        self._checked: list[Numbers] = []
        self.shift: Shift | None = None  # the one for all runs that was found
        self.turned: LossBound | None = None
        """The bound of the other direction by the same shift turned round, where it is one."""
        self.left_out: Most = {}

    def bound(self) -> LossBound:
        """Return the bound of the best alignment that all replays agree with.

        Draws of one input alone are left out where there is none with them.
        """
        if not any(self._run(each).drawn for each in self._first[:2]):
            raise NotAligned(NO_NOISE)
        self.check_determined(self._first[0])
        reason = NotAligned(OUTPUTS_DIFFER)
        if self._reverse is None or not self._reverse.left_out:
            try:
                return self._best()
            except NotAligned as none:
                reason = none
        rare = self._close_gap()
        if rare is None:
            raise reason
        return replace(self._best(), rare=rare)

    @property
    def replays(self) -> int:
        """Replays that agree with the best alignment."""
        return len(self._checked)

    def outputs(self) -> list[Any]:
        """Return outputs of replays with draws from the laws."""
        return [self._run(each).output for each in self._checked if not each.is_of_tails]

    def outputs_on_target(self, most: int) -> list[Any]:
        """Return some on the target, of other replays than those under the shift."""
        chosen = [each for each in self._checked if not each.is_of_tails][:most]
        return [self.pairing.on_target(each, {}).output for each in chosen]

    def _best(self) -> LossBound:
        """Return the smallest bound of the ways to find shifts, or the first within the claim."""
        ways = [self._by_sums, self._by_path, self._by_jacobian]
        if self._memory.by_path:
            ways = [self._by_path, self._by_sums, self._by_jacobian]
        best, reason = None, OUTPUTS_DIFFER
        for find in ways:
            if best is not None and math.isfinite(best.pure) and find == self._by_jacobian:
                break
            try:
                found = find()
            except NotAligned as none:
                reason = str(none) if reason == OUTPUTS_DIFFER else reason
                continue
            if best is None or found.pure + found.mu < best.pure + best.mu:
                best = found
                self._memory.by_path = find == self._by_path
            if self._is_within(best):
                break
        if best is None:
            raise NotAligned(reason)
        return best

    def _by_sums(self) -> LossBound:
        """Return the smallest loss of shifts that keep all sums, and that all replays agree with.

        The likeliest shift is tried first: that of the other direction, turned round.
        """
        tried: list[Shift] = []
        best, reason = None, OUTPUTS_DIFFER
        for shift in self._shifts():
            if shift is None or any(are_equal(shift, other) for other in tried):
                continue
            tried.append(shift)
            try:
                found = self._check(shift)
            except NotAligned as none:
                reason = str(none)
                continue
            if best is None or found.pure < best.pure:
                best, self.shift = found, shift
            if self._is_within(found):
                return found
            if math.isfinite(best.pure):
                break
        if best is None:
            raise NotAligned(reason)
        return best

    def _shifts(self) -> Iterator[Shift | None]:
        if self._reverse is not None and self._reverse.shift is not None:
            yield {number: -moved for number, moved in self._reverse.shift.items()}
        for final in (False, True):
            yield self._shift_at(self._first[0], final=final)

    def _by_jacobian(self) -> LossBound:
        """Return the loss of the shift with which outputs are closest."""
        start = self._shift_at(self._first[0]) or {}
        solved = solve_shift(self.pairing, self._first, start)
        if solved is None:
            raise NotAligned(OUTPUTS_DIFFER)
        found = self._check(solved)
        self.shift = solved
        return found

    def _close_gap(self) -> float | None:
        """Find draws that only one input asks for, and return how likely they are released."""
        pairing, reverse = self.pairing, self._reverse
        ours, theirs = pairing.on_source(self._all[0]), pairing.on_target(self._all[0], {})
        every = candidates(ours, theirs)
        if reverse is not None and reverse.left_out:
            every = iter([(reverse.pairing.gaps[::-1], list(reverse.left_out))])
        for gaps, draws in every:
            pairing.gaps, pairing.exactly = gaps, True
            agree = self._agreement()
            values = ((value, at) for at in range(len(self._first)) for value in (LOW, ORDINARY))
            if not all(agree(dict.fromkeys(draws, value), at) for value, at in values):
                continue
            most = highest(draws, agree, len(self._first))
            if most is not None:
                pairing.pins, pairing.exactly, self.left_out = most, False, most
                self._plain = {}
                return probability_above(most, (theirs if gaps[0] else ours).drawn)
        return None

    def _agreement(self) -> Callable[[Most, int], bool]:
        """Return whether replays agree where some draws have these values, under their shifts."""
        shifts: dict[int, Shift | None] = {}

        def agree(values: Most, replay: int) -> bool:
            numbers = self._first[replay]
            self.pairing.pins = values
            if replay not in shifts:
                with suppress(CannotInstrument):
                    shifts[replay] = self._shift_at(numbers)
            shift = shifts.setdefault(replay, None)
            if shift is None:
                return False
            moved = self.pairing.on_target(numbers, shift)
            ours = self.pairing.on_source(numbers)
            return self.pairing.agrees(numbers, shift, ours.output, moved)

        return agree

    def _run(self, numbers: Numbers, *, tracked: bool = False) -> ReplayedRun:
        """Return the run on the source, which is made once."""
        key = numbers.seed, tracked
        if key not in self._plain:
            self._plain[key] = self.pairing.on_source(numbers, tracked=tracked)
        return self.pairing.noted(self._plain[key])

    def check_determined(self, numbers: Numbers | None = None) -> None:
        """Raise NotAligned where a run with the same draws as before gives something else."""
        numbers = numbers or self._checked[-1]
        before, again = self._run(numbers), self.pairing.on_source(numbers)
        if len(before.drawn) != len(again.drawn) or not same(before.output, again.output):
            raise NotAligned(STATEFUL)

    def _shift_at(
        self, numbers: Numbers, *, final: bool = False, start: Shift | None = None
    ) -> Shift | None:
        """Return the shift that keeps all sums in a replay."""
        if self.pairing.exactly:  # with other values of some draws each time
            ours = self.pairing.on_source(numbers, tracked=True)
        else:
            ours = self._run(numbers, tracked=True)
        found = self._shift_and_target(numbers, ours, final=final, start=start)
        return None if found is None else found[0]

    def _shift_and_target(
        self,
        numbers: Numbers,
        ours: ReplayedRun,
        *,
        final: bool = False,
        start: Shift | None = None,
    ) -> tuple[Shift, ReplayedRun] | None:
        """Return the shift that keeps all sums of a run, and the run on the target under it."""
        shift: Shift = dict(start or {})
        for _ in range(MAX_ROUNDS):
            theirs = self.pairing.on_target(numbers, shift, tracked=True)
            found = shift_of_centres(ours, theirs, final=final)
            if found is None:
                return None
            if are_equal(found, shift):
                return shift, theirs
            shift = found
        return None

    def _check(self, shift: Shift) -> LossBound:
        """Return the loss of a shift; raises NotAligned if a replay does not agree with it."""
        laws, pairing = Laws(self.pairing.gaps), self.pairing
        bounds, turned, checked = [LossBound(0.0, 0.0)], [LossBound(0.0, 0.0)], list[Numbers]()
        for numbers in self._all:
            ours = self._run(numbers)
            new = {each.number for each in ours.drawn if each.law is not None} - shift.keys()
            if new and (more := self._shift_at(numbers, start=shift)) is not None:
                shift = {**{number: more[number] for number in new if number in more}, **shift}
            theirs = pairing.on_target(numbers, shift)
            laws.check(ours, theirs)
            if not pairing.agrees(numbers, shift, ours.output, theirs):
                raise NotAligned(OUTPUTS_DIFFER)
            bounds.append(loss_in_replay(pairing, numbers, ours, shift))
            back = {number: -moved for number, moved in shift.items()}
            turned.append(replace(loss_of_shift(ours.drawn, back), replay=bounds[-1].replay))
            checked.append(numbers)
        self._checked = checked
        self.turned = None if any(pairing.gaps) else largest(turned)
        return largest(bounds)

    # A shift for each path

    def _by_path(self) -> LossBound:
        """Return the loss of the cheapest shift for each path that replays take."""
        pairing, laws = self.pairing, Laws(self.pairing.gaps)
        if not self._run(self._first[0], tracked=True).record.comparisons:
            raise NotAligned(OUTPUTS_DIFFER)
        shifts: dict[Any, Shift] = {}
        bounds, gaussian = [LossBound(0.0, 0.0)], dict[Any, Any]()
        new_late, by_line = 0, dict[Any, float]()
        checked: list[Numbers] = []
        for at, numbers in enumerate(self._half):
            ours = self._run(numbers, tracked=True)
            path = ours.record.path, tuple(each.number for each in ours.drawn)
            if path not in shifts:
                shifts[path] = self._shift_of_path(numbers, ours)
                new_late += 2 * at >= len(self._half)
            theirs = pairing.on_target(numbers, shifts[path], tracked=True)
            laws.check(ours, theirs, path)
            if theirs.record.path != path[0]:
                raise NotAligned(OUTPUTS_DIFFER)
            if not pairing.agrees(numbers, shifts[path], ours.output, theirs):
                raise NotAligned(OUTPUTS_DIFFER)
            found = loss_in_replay(pairing, numbers, ours, shifts[path])
            if found.mu:
                _check_alike(ours, shifts[path], gaussian)
            bounds.append(found)
            checked.append(numbers)
            for each in ours.drawn:
                own = loss_of_shift([each], shifts[path], pairing.gaps).pure
                by_line[each.line] = max(own, by_line.get(each.line, 0.0))
        self._checked, self.turned = checked, None
        bound = largest(bounds)
        losses = {round(each.pure, 9) for each in bounds}
        if 2 * new_late > NEW_PATHS * len(self._half) and len(losses) > MAX_LOSSES:
            bound = replace(bound, pure=sum(by_line.values()))
        return replace(bound, varies=len(shifts) > 1)

    def _shift_of_path(self, numbers: Numbers, ours: ReplayedRun) -> Shift:
        """Return the cheapest shift with which the other input takes the path of a run, `ours`.

        Raises NotAligned if there is none, or if a line needs another shift than in earlier runs.
        """
        found = self._shift_and_target(numbers, ours)
        if found is None:
            raise NotAligned(OUTPUTS_DIFFER)
        kept, theirs = found
        if theirs.record.path != ours.record.path:
            raise NotAligned(OUTPUTS_DIFFER)
        for each in ours.drawn:
            moved = kept.get(each.number, np.zeros(0))
            before = self._kept.setdefault(each.line, moved)
            if not np.allclose(moved, before, rtol=SAME_SHIFT, atol=SAME_SHIFT):
                raise NotAligned(SHIFTS_DEPEND)
        shift = shift_of_path(ours, theirs)
        if shift is None:
            raise NotAligned(OUTPUTS_DIFFER)
        return shift


def loss_in_replay(
    pairing: Pairing, numbers: Numbers, ours: ReplayedRun, shift: Shift
) -> LossBound:
    """Return the loss of a shift of the draws of a run, with what tells the replay again."""
    found = loss_of_shift(ours.drawn, shift, pairing.gaps)
    return replace(found, replay=(pairing, numbers, shift))


def _check_alike(run: ReplayedRun, shift: Shift, before: dict[Any, Floats]) -> None:
    """Raise NotAligned where draws move otherwise than those of the same lines did before."""
    for each in run.drawn:
        moved = shift.get(each.number, np.zeros(0))
        if not np.array_equal(moved, before.setdefault(each.line, moved)):
            raise NotAligned(GAUSSIAN_PATHS)
