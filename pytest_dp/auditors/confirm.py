"""Confirm a violation, before it is reported, on copies of the mechanism that start afresh.

Evidence counts runs as independent. A mechanism that draws once for each input and then repeats its
answer keeps its claim, and yet its runs on two inputs differ as if it had no noise. So copies of
the mechanism, made before its first run, are run a few times each. If runs are independent, it is
all the same which copy an output came from, how many came before, and whether it came from a copy
at all. What differs beyond chance keeps something, and there is no verdict on it. Missing noise and
fixed seeds are the same in all copies.

Where a mechanism cannot be copied, processes that were forked before its first run take the place
of copies. What can be confirmed in neither way is inconclusive. Copies share libraries, and the
environment. So a few such processes run the mechanism as well, and what it keeps there is seen.

Nothing here can make a violation, so it takes nothing from the validity of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Never

import numpy as np

from pytest_dp.auditors.audit_result import AuditResult
from pytest_dp.auditors.budget import Budget
from pytest_dp.auditors.importing import drawn_at_the_import
from pytest_dp.auditors.independence import (
    dependence,
    examples_of,
    told_apart,
    unlike,
)
from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.auditors.starting_afresh import (
    LEAST_RUNS,
    MIN_PROCESSES,
    RUNS_A_COPY,
    Copies,
    binary_events,
    by_chance,
    copied_outputs,
    keep_answers,
    note_few,
    outputs_of_starts,
)
from pytest_dp.basics.arrays import Outputs, join_outputs
from pytest_dp.basics.errors import DependentRuns, MechanismError
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.counterexample import in_one_sentence
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.raised import Raised, all_raised
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.pairs import Pair
from pytest_dp.results.result import Counterexample
from pytest_dp.running.alarm import HUNG_SECONDS
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.forked import MAX_STARTS, Start
from pytest_dp.running.opened_files import ASKED, record_opened_files
from pytest_dp.running.sampler import Sampler, SampleRequest
from pytest_dp.running.streams import Purpose
from pytest_dp.statistics import assumptions
from pytest_dp.statistics.assumptions import NOT_IID

PROCESS_RUNS = 16
"""Runs of each of some processes on either input. More take longer; fewer miss small
differences."""
IMPORT_STARTS = 24
"""Starts before and after an import. More take longer; fewer miss what is drawn there."""

KEPT_FIELDS = "pairs", "proposed", "screened", "largest_movement", "largest_pair"
"""Fields of a violation's result that hold of what is not confirmed. Given: what was looked at."""
ADVICE = (
    "Claim a function that makes its own connection, cache or file each time it is called, or "
    "that takes a new one as an argument"
)
FIRST_TURN = 32
"""Runs of a mechanism that cannot be started afresh until the other input has its turn; each turn
is twice as long. Longer ones are cut off where runs are slow; shorter ones make no difference."""
MAX_ALONE = 6_200
"""Runs of it on either input. More see weaker dependence, and take longer."""
OVER_LIMIT = 1_000
"""The same where `max_samples` are used up. Fewer see less, more exceed that limit by more."""
RUNS_BEFORE = 16
"""Runs of each start of a mechanism as it was before an earlier audit. Fewer miss what is kept
beneath other noise, more take longer."""
MIN_ALONE = 128
"""The same, below which dependence of the strongest kind would not be seen."""


def confirm_finding(session: Session, finding: AuditFinding) -> AuditFinding:
    """Return what was found, once copies have confirmed violations; others are inconclusive.

    Raises DependentRuns if copies of the mechanism that start afresh do not give independent runs
    like its own. What is run once needs no such runs: no two of them are compared.
    """
    finding = replace(finding, result=_confirm_result(session, finding))
    return finding if finding.beyond is None else _with_confirmed_beyond(session, finding)


def _with_confirmed_beyond(session: Session, finding: AuditFinding) -> AuditFinding:
    """Return a finding without what is beyond the claim's inputs if copies do not confirm it."""
    assert finding.beyond is not None
    try:
        beyond = _confirm_result(session, finding.beyond)
    except MechanismError as error:
        reason = str(error)
    else:
        if beyond.violated:
            return replace(finding, beyond=replace(finding.beyond, result=beyond))
        reason = beyond.reason
    note = f"a violation outside the declared inputs is not reported: {reason}"
    samples, notes = session.sampler.runs, (*finding.result.notes, note)
    result = replace(finding.result, samples=samples, notes=notes)
    return replace(finding, result=result, beyond=None)


def _confirm_result(session: Session, finding: AuditFinding) -> AuditResult:
    """Return the result of a finding, once it is confirmed; else an inconclusive one."""
    result = finding.result
    if not result.violated or not session.method.repeats:
        return result
    if session.budget.report_deadline is None:
        session.budget.start_reporting()
    example = result.counterexample
    pair, event = finding.pair or session.pairs[0], None
    if example:
        pair, event = Pair(example.d1, example.d2, params=example.params), example.event
    items = [Input(data) for data in pair.inputs]
    said = len(session.sampler.notes)
    try:
        both = _confirmed_copies(session.sampler, session.budget, example, items, event)
        if isinstance(both, str):
            return _confirmed_alone(session, result, items, event, both)
    except KeptOutside as reason:
        return _withdraw_violation(session, result, f"{reason}. {ADVICE}")
    except OutOfTime:
        cost = session.budget.run_text
        return _withdraw_violation(
            session, result, f"a run takes {cost}, and time was up: raise max_seconds"
        )
    _check_before(session.sampler, session.budget, items, event)
    if why := drawn_at_the_import(session.sampler, session.budget, items, event):
        _refuse(session.sampler, why)
    if not session.sampler.forks:
        _check_forked(session.sampler, session.budget, items, event)
    notes = *result.notes, *session.sampler.notes[said:]
    return replace(result, samples=session.sampler.runs, notes=notes)


def _confirmed_copies(
    sampler: Sampler, budget: Budget, example: Counterexample | None, items: list[Input], event: Any
) -> list[Copies] | str:
    """Return outputs on both inputs of the mechanism as it starts afresh, or why it does not."""
    pristine = sampler.call.pristine
    reasons = [pristine.reason] if pristine and pristine.reason else []
    while True:
        try:
            return _independent_copies(sampler, budget, example, items, event)
        except KeptOutside:
            raise
        except CannotCopy as reason:
            reasons.append(str(reason))
            if not sampler.import_instead():
                return "; ".join(dict.fromkeys(reasons))


def _confirmed_alone(
    session: Session, result: AuditResult, items: list[Input], event: Any, why: str
) -> AuditResult:
    """Return the result if runs of a mechanism that cannot be restarted look independent.

    Return it as unconfirmed otherwise.
    """
    runs, dependent = _runs_alone(session.sampler, session.budget, items, event)
    if dependent:
        return _withdraw_violation(session, result, f"{why}; {dependent}. {ADVICE}")
    session.sampler.note(f"could not be restarted ({why}); {runs:,} runs looked independent")
    notes = tuple(session.sampler.notes)
    return replace(result, samples=session.sampler.runs, notes=notes)


class KeptOutside(CannotCopy):
    """A mechanism may have its answers from where all starts look: a file, or another process."""


def _runs_alone(
    sampler: Sampler, budget: Budget, items: Sequence[Input], event: Any
) -> tuple[int, str]:
    """Return how many runs of the mechanism itself were made, and why they look dependent, if so.

    The inputs take turns. Raises OutOfTime if there was no time for enough runs.
    """
    deadline = budget.confirming_deadline(2 * MIN_ALONE)
    wanted, runs = min(MAX_ALONE, max(budget.left // 2, OVER_LIMIT)), 0
    parts: list[list[Outputs]] = [[], []]
    try:
        while runs < wanted:
            size = min(max(runs, FIRST_TURN), wanted - runs)
            for side, item in enumerate(items):
                draw = SampleRequest(item, size, (Purpose.COPY, side, runs, 3))
                parts[side] += sampler.draw([draw], deadline)
            runs += size
    except OutOfTime:
        if runs < MIN_ALONE:
            raise
        sampler.note(f"time was up when {runs:,} of {wanted:,} runs had confirmed the violation")
    outputs = join_outputs(parts[0])[:runs], join_outputs(parts[1])[:runs]
    return 2 * runs, dependence(outputs, event)


def _independent_copies(
    sampler: Sampler, budget: Budget, example: Counterexample | None, items: list[Input], event: Any
) -> list[Copies]:
    """Return outputs on both inputs of the mechanism as it starts afresh, which look independent.

    Raises CannotCopy if it does not start afresh, OutOfTime if time is up, and DependentRuns if
    its runs depend on those before.
    """
    # A process that was forked may wait for a thread, which is to be told from one that is slow.
    to_hang = 2 * HUNG_SECONDS if sampler.forks else 0.0
    deadline = budget.confirming_deadline(LEAST_RUNS, at_most_end=True, more=to_hang)
    with record_opened_files() as files:
        both = copied_outputs(sampler, budget, items, event, deadline)
    for side, copied in enumerate(both):
        _refuse_other_errors(sampler, items[side], copied)
        original = (example.counts[side], example.runs[side]) if example else (0, 0)
        _check(sampler, copied, event, original)
    asked = {*files, *(sampler.origin.files if sampler.origin else ())}
    if ASKED in asked and (
        why := dependence((join_outputs(both[0]), join_outputs(both[1])), event)
    ):
        raise KeptOutside(f"it asks {ASKED}, which may keep something, and {why}")
    if files or sampler.forks:  # what is opened in another process is not heeded here
        _refuse_files(sampler, items, both, deadline)
    return both


def _withdraw_violation(session: Session, result: AuditResult, why: str) -> AuditResult:
    """Return an inconclusive result in place of a violation, which may come of what is kept."""
    reason = (
        "looks violated, but an answer that is drawn once and then repeated would look the same, "
        f"and the mechanism could not be restarted: {why}"
    )
    if result.counterexample is not None:
        reason += f". {in_one_sentence(result.counterexample)}"
    session.sampler.note(reason, hinders=True, first=True)
    known = {name: getattr(result, name) for name in KEPT_FIELDS}
    return session.result("inconclusive", **known)


def _refuse_other_errors(sampler: Sampler, item: Input, copied: Copies) -> None:
    """Refuse copies that raise where the mechanism itself does not."""
    raised = [out for outputs in copied for out in outputs if isinstance(out, Raised)]
    total = sum(map(len, copied))
    before, runs = sampler.raised(item)
    if raised and runs and assumptions.two_samples((before, len(raised)), (runs, total)) < NOT_IID:
        where = "processes that start afresh" if sampler.forks else "copies of it"
        line = raised[0].message.strip().partition("\n")[0]
        raise CannotCopy(
            f"{where} raised {raised[0].kind} ({line}) in {len(raised):,} of "
            f"{total:,} runs, it did itself in {before:,} of {runs:,}"
        )


def _refuse_files(
    sampler: Sampler, items: Sequence[Input], both: Sequence[Copies], deadline: Deadline
) -> None:
    """Refuse a mechanism that may have its answer, or a part of it, from a file.

    Where answers vary, a file that each run writes again makes no two runs alike: what it changes
    is seen in runs that follow each other.
    """
    for item, copied in zip(items, both, strict=True):
        files: list[str] = []
        with suppress(CannotCopy, OutOfTime):  # then copies are all that can be told
            always = len(_answers(copied)) == 1
            files = sampler.files_kept(item, deadline, rewritten=always)
        if files:
            raise KeptOutside(f"it reads {files[0]}, which was written while it was audited")


def _answers(copied: Copies) -> set[str]:
    """Return the first answers of each copy, as texts."""
    return {safe_repr(output) for outputs in copied for output in outputs[:2]}


def _check_before(sampler: Sampler, budget: Budget, items: Sequence[Input], event: Any) -> None:
    """Refuse a mechanism that kept something when an earlier audit in this process ran it."""
    for before in (sampler.before_all(), sampler.before_all(forks=True)):
        if before is None:
            continue
        for item in items:
            outputs: list[Outputs] = []
            with suppress(CannotCopy, OutOfTime):
                deadline = budget.confirming_deadline(LEAST_RUNS)
                outputs = outputs_of_starts(before, item, IMPORT_STARTS, RUNS_BEFORE, deadline)
            if outputs and told_apart(outputs, tabulate(join_outputs(outputs)), event):
                _refuse(
                    sampler,
                    "an earlier audit left something in it, as where nobody had asked before, in "
                    f"copies or in other processes, it gave ({examples_of(outputs)})",
                )


def _check_forked(sampler: Sampler, budget: Budget, items: Sequence[Input], event: Any) -> None:
    """Refuse a mechanism that keeps something where copies do not reach.

    Processes that all draw alike, from a generator that nobody could seed, tell nothing.
    """
    drawn = _in_other_processes(sampler, budget, items)
    for outputs in map(list, zip(*drawn, strict=True)):
        if len(outputs) > 1 and keep_answers(outputs) and not by_chance(outputs):
            _refuse(sampler, f"it repeats what it gave before ({examples_of(outputs)})")
        if len({tuple(map(safe_repr, of_one)) for of_one in outputs}) > 1:
            _check_copies(sampler, outputs, event)


def _in_other_processes(sampler: Sampler, budget: Budget, items: Sequence[Input]) -> list[Copies]:
    """Return outputs on both inputs of some processes each; none if these cannot run the mechanism.

    What always raises there may lack what was set up here.
    """
    left = budget.left
    processes = min(max(left // (2 * RUNS_A_COPY), MIN_PROCESSES), MAX_STARTS)
    runs = max(min(PROCESS_RUNS, left // (2 * processes)), RUNS_A_COPY)
    deadline = budget.confirming_deadline(4 * runs)
    drawn: list[Copies] = []
    try:
        while len(drawn) < processes:
            keyed = [(item, (side, len(drawn), 1)) for side, item in enumerate(items)]
            drawn.append(sampler.forked(keyed, runs, deadline, Start.AS_IT_WAS))
            if any(map(all_raised, drawn[-1])):
                return []
    except CannotCopy:  # then the others are all that can be told
        pass
    except OutOfTime:
        note_few(sampler, len(drawn), processes, "processes")
    return drawn


def _check(sampler: Sampler, copied: Copies, event: Any, original: tuple[int, int]) -> None:
    table, run = _check_copies(sampler, copied, event), np.arange(len(copied[0]))
    for inside in binary_events(table, event):
        if why := unlike(inside, np.tile(run, len(copied)), "runs of each"):
            _refuse(sampler, why)
    if isinstance(event, Event) and original[1]:
        again, total = int(event.mask(table).sum()), len(table)
        if assumptions.two_samples((original[0], again), (original[1], total)) < NOT_IID:
            _refuse(
                sampler,
                f"{event} held in {original[0]:,} of {original[1]:,} runs, and in {again:,} of "
                f"{total:,} of fresh copies",
            )


def _check_copies(sampler: Sampler, copied: Copies, event: Any) -> Table:
    """Refuse outputs that tell which copy they came from; else a table of them."""
    table = tabulate(join_outputs(copied))
    if why := told_apart(copied, table, event):
        _refuse(sampler, f"{why} ({examples_of(copied)})")
    return table


def _refuse(sampler: Sampler, seen: str) -> Never:
    """Raise the error of a mechanism that keeps something, with what to claim instead."""
    raise DependentRuns(
        f"{sampler.name} keeps something from run to run, so there is no verdict on "
        f"privacy: {seen}. An answer that is drawn once and then repeated keeps its claim, but "
        "looks like missing noise. Claim a function that keeps nothing between calls: the "
        "function beneath the cache (f.__wrapped__ of functools.lru_cache), or a function that "
        "makes a new object with the cache, the buffer or the counter."
    )
