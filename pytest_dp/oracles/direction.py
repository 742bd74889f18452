"""The search for shifts that align the runs on one input with those on another.

A shift may differ between paths, but is the same for all draws on a path. Draws whose scale, or
whose centre's difference, depends on other draws are refused, as are scales that depend on the
data. So the loss in a replay holds for all runs on its path; only paths that no replay took may
lose more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.checking import OUTPUTS_DIFFER, Laws, Memory, NotAligned, Pairing
from pytest_dp.oracles.handing_out import Numbers, ReplayedRun, Shift
from pytest_dp.oracles.shifts import (
    LossBound,
    are_equal,
    fit_shift,
    largest_bound,
    loss_of_shift,
    shift_of_path,
    shift_of_sums,
)
from pytest_dp.outputs.raised import equal_outputs

MAX_ROUNDS = 12
"""Rounds until the shift of all draws of a path is found, as each shows where the path goes on."""
NEW_PATHS, MAX_LOSSES = 0.15, 4
"""If a larger share of the later replays takes new paths, with more different losses, the largest
losses of all draws count together. Larger: losses on paths that no replay took are left out;
smaller: sparse vectors of many answers have no bound."""
FITTED_REPLAYS = 3
"""Replays to which a shift is fitted. Fewer: draws without effect in them get a wrong shift."""
SAME_SHIFT = 1e-9
"""Difference of shifts that count as equal, which rounding makes of constants."""
SHIFTS_DEPEND = "what a draw is added to depends on other draws"
NO_NOISE = "nothing that it draws is seen"
STATEFUL = "with the same draws it gives another output: it keeps something, or draws unseen"
GAUSSIAN_PATHS = "Gaussian draws have to move differently on different paths"


@dataclass(frozen=True, slots=True)
class CheckedShifts:
    """A shift for all runs, or one for each path, with which the outputs of all replays agree."""

    bound: LossBound
    replays: list[Numbers]
    """The numbers of these replays."""
    turned: LossBound | None = None
    """The bound in the other direction by the opposite shift; None where it differs by path."""


ShiftSearch = Callable[[], CheckedShifts]


class Direction:
    """The search for shifts of the draws on the source that give the outputs on the target.

    `numbers` are those of the replays. All are made if one shift does for all runs, and the first
    `by_path` of them if shifts differ between paths. `known` are kept runs on the source with such
    numbers; further runs are added to it.
    """

    def __init__(
        self,
        pairing: Pairing,
        numbers: list[Numbers],
        by_path: int,
        known: dict[Any, ReplayedRun],
        memory: Memory,
    ) -> None:
        self.pairing = pairing
        self._numbers, self._numbers_by_path = numbers, numbers[:by_path]
        self._runs, self._memory = known, memory
        self._shifts_tried: list[Shift] = []
        self._shift_of_line: dict[Any, Floats] = {}  # that keeps all sums

    def find_shifts(self, is_within: Callable[[LossBound], bool]) -> CheckedShifts:
        """Return the first shifts whose bound is within the claim, else those of least bound.

        Runs replays. Raises NotAligned if no shifts make their outputs agree, if the mechanism
        draws nothing, or if it keeps something from run to run.
        """
        if not any(self._run_on_source(each).requests for each in self._numbers[:2]):
            raise NotAligned(NO_NOISE)
        self.check_repeatable(self._numbers[0])
        searches: list[ShiftSearch] = [self._align_by_sums, self._align_by_path]
        if self._memory.by_path:
            searches.reverse()
        fallbacks: list[ShiftSearch] = [
            partial(self._align_by_sums, largest=True),
            self._align_by_fit,
        ]
        best, reason = None, OUTPUTS_DIFFER
        for align in (*searches, *fallbacks):
            if align in fallbacks and best is not None and math.isfinite(best.bound.pure):
                break
            try:
                found = align()
            except NotAligned as none:
                reason = str(none) if reason == OUTPUTS_DIFFER else reason
                continue
            if best is None or found.bound.pure + found.bound.mu < best.bound.pure + best.bound.mu:
                best = found
                self._memory.by_path = found.turned is None
            if is_within(best.bound):
                break
        if best is None:
            raise NotAligned(reason)
        return best

    def outputs(self, replays: list[Numbers]) -> list[Any]:
        """Return the outputs on the source of those replays whose draws are from the laws."""
        return [self._run_on_source(each).output for each in replays if not each.is_of_tails]

    def outputs_on_target(self, replays: list[Numbers], most: int) -> list[Any]:
        """Run the target with the unmoved draws of `most` replays at most; return its outputs."""
        chosen = [each for each in replays if not each.is_of_tails][:most]
        return [self.pairing.run_on_target(each, {}).output for each in chosen]

    def check_repeatable(self, numbers: Numbers) -> None:
        """Run the source again; raise NotAligned if equal draws give another output."""
        before, again = self._run_on_source(numbers), self.pairing.run_on_source(numbers)
        if len(before.requests) != len(again.requests) or not equal_outputs(
            before.output, again.output
        ):
            raise NotAligned(STATEFUL)

    def _run_on_source(self, numbers: Numbers, *, tracked: bool = False) -> ReplayedRun:
        """Return the run on the source with planned numbers, which is made once."""
        key = numbers.seed, tracked
        if key not in self._runs:
            self._runs[key] = self.pairing.run_on_source(numbers, tracked=tracked)
        return self.pairing.note_sizes(self._runs[key])

    def _shift_of_sums(
        self, numbers: Numbers, *, largest: bool = False, start: Shift | None = None
    ) -> tuple[Shift, ReplayedRun] | None:
        """Return the shift that keeps all sums of a replay, and the run on the target under it.

        None if no shift is found within 12 runs. `start` is a shift to begin with.
        """
        ours, shift = self._run_on_source(numbers, tracked=True), dict(start or {})
        for _ in range(MAX_ROUNDS):
            theirs = self.pairing.run_on_target(numbers, shift, tracked=True)
            found = shift_of_sums(ours, theirs, largest=largest)
            if found is None:
                return None
            if are_equal(found, shift):
                return shift, theirs
            shift = dict(found)
        return None

    def _loss_in_replay(self, numbers: Numbers, ours: ReplayedRun, shift: Shift) -> LossBound:
        """Return the loss of a shift of the draws of a replay, which the bound refers to."""
        replay = self.pairing, numbers, shift
        return replace(loss_of_shift(ours.requests, shift), replay=replay)

    def _align_by_sums(self, *, largest: bool = False) -> CheckedShifts:
        """Return the shift that keeps all sums of a replay; raise NotAligned if others disagree."""
        found = self._shift_of_sums(self._numbers[0], largest=largest)
        return self._check_shift(None if found is None else found[0])

    def _align_by_fit(self) -> CheckedShifts:
        """Return a shift fitted to a few replays; raise NotAligned if others disagree."""
        return self._check_shift(fit_shift(self.pairing, self._numbers[:FITTED_REPLAYS]))

    def _check_shift(self, shift: Shift | None) -> CheckedShifts:
        """Run all replays with a shift, extended by draws of later replays; return its bound.

        Raises NotAligned if a replay does not agree with it, or it is None or was tried before.
        """
        if shift is None or any(are_equal(shift, other) for other in self._shifts_tried):
            raise NotAligned(OUTPUTS_DIFFER)
        laws, pairing = Laws(), self.pairing
        self._shifts_tried.append(shift)
        bounds, turned = [LossBound(0.0, 0.0)], [LossBound(0.0, 0.0)]
        for numbers in self._numbers:
            ours = self._run_on_source(numbers)
            new = {each.number for each in ours.requests if each.law is not None} - shift.keys()
            if new and (more := self._shift_of_sums(numbers, start=shift)) is not None:
                added = {number: more[0][number] for number in new if number in more[0]}
                shift = {**added, **shift}
            theirs = pairing.run_on_target(numbers, shift)
            laws.check(ours, theirs)
            if not pairing.agrees(numbers, shift, ours.output, theirs):
                raise NotAligned(OUTPUTS_DIFFER)
            bounds.append(self._loss_in_replay(numbers, ours, shift))
            back = {number: -moved for number, moved in shift.items()}
            turned.append(replace(loss_of_shift(ours.requests, back), replay=bounds[-1].replay))
        return CheckedShifts(largest_bound(bounds), self._numbers, largest_bound(turned))

    # A shift for each path

    def _align_by_path(self) -> CheckedShifts:
        """Return the cheapest shift for each path that replays take, if all replays agree with it.

        Raises NotAligned otherwise, and if Gaussian draws move differently on different paths.
        """
        pairing, laws = self.pairing, Laws()
        if not self._run_on_source(self._numbers[0], tracked=True).record.comparisons:
            raise NotAligned(OUTPUTS_DIFFER)
        shifts: dict[Any, Shift] = {}
        bounds, gaussian = [LossBound(0.0, 0.0)], dict[Any, Floats]()
        new_late, by_line = 0, dict[Any, float]()
        for at, numbers in enumerate(self._numbers_by_path):
            ours = self._run_on_source(numbers, tracked=True)
            path = ours.record.path, len(ours.requests)
            if path not in shifts:
                shifts[path] = self._cheapest_shift_of_path(numbers, ours)
                new_late += 2 * at >= len(self._numbers_by_path)
            theirs = pairing.run_on_target(numbers, shifts[path], tracked=True)
            laws.check(ours, theirs, path)
            if theirs.record.path != path[0] or not pairing.agrees(
                numbers, shifts[path], ours.output, theirs
            ):
                raise NotAligned(OUTPUTS_DIFFER)
            bounds.append(self._loss_in_replay(numbers, ours, shifts[path]))
            for each in ours.requests:
                moved = shifts[path].get(each.number, np.zeros(0))
                if bounds[-1].mu and not np.array_equal(
                    moved, gaussian.setdefault(each.line, moved)
                ):
                    raise NotAligned(GAUSSIAN_PATHS)
                own = loss_of_shift([each], shifts[path]).pure
                by_line[each.line] = max(own, by_line.get(each.line, 0.0))
        bound = largest_bound(bounds)
        losses = {round(each.pure, 9) for each in bounds}
        if 2 * new_late > NEW_PATHS * len(self._numbers_by_path) and len(losses) > MAX_LOSSES:
            bound = replace(bound, pure=sum(by_line.values()))
        return CheckedShifts(bound, self._numbers_by_path)

    def _cheapest_shift_of_path(self, numbers: Numbers, ours: ReplayedRun) -> Shift:
        """Return the cheapest shift with which the target takes the path of a run on the source.

        Raises NotAligned if there is none, or if a line needs another shift than in earlier runs.
        """
        found = self._shift_of_sums(numbers)
        if found is None or found[1].record.path != ours.record.path:
            raise NotAligned(OUTPUTS_DIFFER)
        for each in ours.requests:
            moved = found[0].get(each.number, np.zeros(0))
            before = self._shift_of_line.setdefault(each.line, moved)
            if not np.allclose(moved, before, rtol=SAME_SHIFT, atol=SAME_SHIFT):
                raise NotAligned(SHIFTS_DEPEND)
        shift = shift_of_path(ours, found[1])
        if shift is None:
            raise NotAligned(OUTPUTS_DIFFER)
        return shift
