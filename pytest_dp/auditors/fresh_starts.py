"""Runs of a mechanism that starts afresh: as copies, in forked processes, or imported anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.auditors.budget import Budget
from pytest_dp.auditors.independence import (
    Starts,
    draw_same_values,
    may_repeat_by_chance,
    repeat_own_answers,
    start_dependence,
)
from pytest_dp.basics.arrays import Outputs, join_outputs
from pytest_dp.outputs.paired_outputs import mean_leaves
from pytest_dp.outputs.raised import all_equal, all_raised, equal_outputs
from pytest_dp.outputs.table import tabulate
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.forked import MAX_STARTS, Start
from pytest_dp.running.generators import Purpose
from pytest_dp.running.sampler import Sampler, SampleRequest
from pytest_dp.running.subject import Subject

LEAST_RUNS = 64
"""Runs for which there is time in any case. Fewer: slow mechanisms are not confirmed."""
COPIED_RUNS = 128
"""Runs of copies on either input, at most. Fewer miss small differences between copies."""
MIN_COPIED = 32
"""The same at least. More: small efforts are exceeded; fewer: copies repeat by chance."""
FORKED_RUNS = 512
"""Runs of forked processes on either input. Fewer miss that some hundred noises come again."""
RUNS_A_COPY = 4
"""Runs of each copy. More see what repeats late; fewer make copies, which take time."""
MIN_COPIES = 8
"""Copies that show what repeats, at least. Fewer: chance repeats as well; more take longer."""
LEAST_COPIES = 2
"""The same where copies give no answer again and again, and time is up."""
MAX_NUMBERS = 1_000_000
"""Numbers of the outputs that are kept. More take memory; fewer: copies are fewer."""

MIN_PROCESSES = 2
"""Other processes that are run in any case. Fewer: differences between processes go unseen."""
PROCESS_RUNS = 16
"""Runs of each of them on either input. More take longer; fewer miss small differences."""

IMPORTS = 4
"""Processes that import a mechanism anew. Fewer show less of noise drawn at an import."""
IMPORTED_RUNS = 128
"""Runs on either input after each import. Fewer miss small noise of the import."""
FEW_IMPORTED_RUNS = 16
"""The same after further imports of constant mechanisms. Fewer: one other answer may be chance."""

FIRST_TURN = 32
"""Runs on an input of a mechanism that cannot be restarted, before those on the other input; then
always twice as many. More are cut off if runs are slow."""
MAX_ALONE = 6_200
"""Runs of it on either input. More see weaker dependence, and take longer."""
MIN_ALONE = 128
"""The same, below which dependence of the strongest kind would not be seen."""
OVER_LIMIT = 1_000
"""The same where `max_samples` are used up. Fewer see less, more exceed that limit by more."""


@dataclass(frozen=True, slots=True)
class BrokenPair:
    """A pair of inputs and an event by which a claim was refuted, to be run again."""

    sampler: Sampler
    budget: Budget
    inputs: tuple[Input, Input]
    event: Any
    """None if there was no time to choose one."""

    def note_few(self, done: int, planned: int, what: str) -> None:
        """Add a note that time was up when `done` of `planned` copies, or other runs, had ended."""
        self.sampler.note(f"time was up when {done:,} of {planned:,} {what} had confirmed it")


def outputs_of_copies(pair: BrokenPair, deadline: Deadline) -> list[Starts]:
    """Run copies of the mechanism on both inputs in turn; return the outputs of each, by input.

    Forked processes replace copies that cannot be made. Adds a note if time ends it. Raises
    CannotCopy if there are neither, or if processes draw the same values, and OutOfTime if time is
    up before there are enough copies.
    """
    sampler, budget = pair.sampler, pair.budget
    copies, runs = MAX_STARTS, FORKED_RUNS // MAX_STARTS
    if not sampler.forks:  # a few runs too many are better than red for answers that are kept
        total = int(np.clip(budget.runs_left // 3, MIN_COPIED, COPIED_RUNS))
        copies, runs = total // RUNS_A_COPY, RUNS_A_COPY
    starts: list[Starts] = [[] for _ in pair.inputs]
    soon = budget.confirming_deadline(LEAST_COPIES * 2 * runs)
    while (number := len(starts[0])) < copies:
        if number == MIN_COPIES:  # of long outputs no more are kept
            numbers = runs * mean_leaves(tabulate(starts[0][0]))
            copies = min(copies, max(MIN_COPIES, int(MAX_NUMBERS / numbers)))
        try:
            drawn = [
                sampler.run_afresh(item, runs, (side, number), deadline)
                for side, item in enumerate(pair.inputs)
            ]
        except OutOfTime:
            if not _are_enough(starts):
                raise
            break
        for of_input, outputs in zip(starts, drawn, strict=True):
            of_input.append(outputs)
        if not budget.has_time(soon) and _are_enough(starts):
            break
    if sampler.forks and any(map(draw_same_values, starts)):
        raise CannotCopy("processes that are forked from it draw the same values")
    if len(starts[0]) < copies:
        pair.note_few(len(starts[0]), copies, "copies")
    return starts


def _are_enough(starts: list[Starts]) -> bool:
    """Return whether copies are enough to confirm a violation if there is no time for more.

    Two are, or eight if their answers repeat, or may do so by chance. `starts` are by input.
    """
    is_kept = any(repeat_own_answers(some) or may_repeat_by_chance(some) for some in starts if some)
    return len(starts[0]) >= (MIN_COPIES if is_kept else LEAST_COPIES)


def outputs_before(pair: BrokenPair, before: Subject, item: Input) -> Starts:
    """Run the mechanism as `before` an earlier audit; return the outputs on an input, by start.

    Fewer starts, or none, if the mechanism cannot be copied or time is up.
    """
    starts = Starts()
    deadline = pair.budget.confirming_deadline(LEAST_RUNS)
    with suppress(CannotCopy, OutOfTime):
        while len(starts) < MAX_STARTS:
            key = MAX_STARTS, len(starts)
            starts.append(before.run_afresh(item, PROCESS_RUNS, key, deadline))
    return starts


def outputs_of_processes(pair: BrokenPair) -> list[Starts]:
    """Run processes in the state before the audit; return their outputs, by input.

    [] if none can be made, or one always raises, as it may lack objects of this process. Adds a
    note if time ends it.
    """
    left = pair.budget.runs_left
    processes = min(max(left // (2 * RUNS_A_COPY), MIN_PROCESSES), MAX_STARTS)
    runs = max(min(PROCESS_RUNS, left // (2 * processes)), RUNS_A_COPY)
    deadline = pair.budget.confirming_deadline(4 * runs)
    drawn: list[Starts] = []
    try:
        while len(drawn) < processes:
            keyed = [(item, (side, len(drawn), 1)) for side, item in enumerate(pair.inputs)]
            drawn.append(pair.sampler.run_forked(keyed, runs, deadline, Start.AS_IT_WAS))
            if any(map(all_raised, drawn[-1])):
                return []
    except CannotCopy:  # then the others are all that can be told
        pass
    except OutOfTime:
        pair.note_few(len(drawn), processes, "processes")
    return list(map(list, zip(*drawn, strict=True)))


def import_dependence(pair: BrokenPair) -> str:
    """Import the module anew several times; return why outputs depend on the import, or "".

    "" if equal random numbers give equal outputs after imports, as nothing was drawn at them.
    Outputs that never vary need more imports, so that fair coins fall alike with chance alpha at
    most. "" as well for code that reads no values, and where each start was an import. Notes are
    added if modules cannot be imported, or time is up.
    """
    sampler, budget = pair.sampler, pair.budget
    if not sampler.reads_data or sampler.imports:
        return ""  # each start was an import
    deadline = budget.confirming_deadline(LEAST_RUNS, at_most_end=True)
    drawn, here, replayed = list[list[Outputs]](), list[Outputs](), True
    fair_coins = 1 + math.ceil(-math.log2(budget.alpha))
    try:
        while len(drawn) < (max(IMPORTS, fair_coins) if replayed else IMPORTS):
            number = len(drawn)
            keyed = [(item, (number, side, 2)) for side, item in enumerate(pair.inputs)]
            runs = IMPORTED_RUNS if number < IMPORTS else FEW_IMPORTED_RUNS
            drawn.append(sampler.run_forked(keyed, runs, deadline, Start.IMPORTED))
            if replayed:
                soon = budget.confirming_deadline(LEAST_RUNS)
                here = [sampler.run_afresh(item, runs, key, soon) for item, key in keyed]
                replayed = all(
                    all(map(equal_outputs, *both)) for both in zip(here, drawn[-1], strict=True)
                )
            if replayed and not any(map(all_equal, drawn[-1])):
                return ""
    except CannotCopy:
        if sampler.origin is not None and (reason := sampler.origin.reason):
            sampler.note(f"noise that is drawn at an import would not be noticed, as {reason}")
    except OutOfTime:
        sampler.note("time was up during a new import of the module to confirm the violation")
    whys = () if replayed else map(partial(_compare_imports, pair), zip(here, *drawn, strict=True))
    return next(filter(None, whys), "")


def _compare_imports(pair: BrokenPair, imports: Sequence[Outputs]) -> str:
    """Return why outputs on one input depend on the import, given those of each; "" if not."""
    fewest = min(map(len, imports))
    why = start_dependence([outputs[:fewest] for outputs in imports], pair.event)
    told = "its answers change with each import of its module, as with noise that follows from a"
    return f"{told} secret key: {why}" if why else ""


def outputs_alone(pair: BrokenPair) -> tuple[Outputs, Outputs]:
    """Run the mechanism itself on both inputs in turn; return the outputs on each.

    Adds a note if time ends it; raises OutOfTime if there was no time for `MIN_ALONE` runs.
    """
    deadline = pair.budget.confirming_deadline(2 * MIN_ALONE)
    wanted, runs = min(MAX_ALONE, max(pair.budget.runs_left // 2, OVER_LIMIT)), 0
    parts: tuple[list[Outputs], list[Outputs]] = ([], [])
    try:
        while runs < wanted:
            size = min(max(runs, FIRST_TURN), wanted - runs)
            draws = [
                SampleRequest(item, size, (Purpose.COPY, side, runs, 3))
                for side, item in enumerate(pair.inputs)
            ]
            for part, outputs in zip(parts, pair.sampler.draw(draws, deadline), strict=True):
                part.append(outputs)
            runs += size
    except OutOfTime:
        if runs < MIN_ALONE:
            raise
        pair.note_few(runs, wanted, "runs")
    return join_outputs(parts[0]), join_outputs(parts[1])
