"""Confirm a violation, before it is reported, by runs of the mechanism that start afresh.

Evidence counts runs as independent. A mechanism that draws once for each input and then repeats its
answer keeps its claim, and yet looks as if it had no noise. So copies of the mechanism, made before
its first run, are run a few times each. If their outputs depend on the copy or on earlier runs
beyond chance, the mechanism keeps something, and there is no verdict.

If a mechanism cannot be copied, processes that were forked before its first run take the place of
copies; without either, the violation is inconclusive. A few such processes also show what copies
share: libraries and the environment. Nothing here can make a violation.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Never

from pytest_dp.auditors.fresh_starts import (
    LEAST_RUNS,
    BrokenPair,
    import_dependence,
    outputs_alone,
    outputs_before,
    outputs_of_copies,
    outputs_of_processes,
)
from pytest_dp.auditors.independence import (
    Starts,
    order_dependence,
    run_dependence,
    start_dependence,
)
from pytest_dp.auditors.session import AuditFinding, AuditResult, Session
from pytest_dp.basics.arrays import join_outputs
from pytest_dp.basics.errors import DependentRuns, MechanismError
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.counterexample import in_one_sentence
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.pairs import Pair
from pytest_dp.results.result import Counterexample
from pytest_dp.running.alarm import HUNG_SECONDS
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.modules import ASKED, record_opened_files
from pytest_dp.running.sampler import Sampler
from pytest_dp.statistics import count_tests
from pytest_dp.statistics.count_tests import NOT_IID

KEPT_FIELDS = "pairs", "proposed"
"""Fields of a violation's result that hold of what is not confirmed. Given: what was looked at."""
ADVICE = (
    "Claim a function that makes its own connection, cache or file each time it is called, or "
    "that takes a new one as an argument"
)


def confirm_finding(session: Session, finding: AuditFinding) -> AuditFinding:
    """Run copies of the mechanism on a violation; return the finding, or an inconclusive one.

    A finding without a violation, or of a method that runs the mechanism once, is returned as it
    is. A violation outside of the declared inputs that is not confirmed is dropped with a note.
    Raises DependentRuns if runs depend on earlier runs or on where they started.
    """
    finding = replace(finding, result=_confirm_result(session, finding))
    return finding if finding.beyond is None else _confirm_beyond(session, finding)


def _confirm_beyond(session: Session, finding: AuditFinding) -> AuditFinding:
    """Confirm the violation outside of the declared inputs; return the finding, without it if not.

    A note then gives the reason, which may be a MechanismError.
    """
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


class KeptOutside(CannotCopy):
    """An error if all starts may take their answers from one place: a file, or another process."""


def _confirm_result(session: Session, finding: AuditFinding) -> AuditResult:
    """Run copies of the mechanism on a violation; return its result, or an inconclusive one.

    Inconclusive if answers may be kept outside of the mechanism, or time is up. Without copies, the
    order of runs decides, and a note is added. Raises DependentRuns.
    """
    result, sampler, budget = finding.result, session.sampler, session.budget
    if not result.violated or not session.method.repeats:
        return result
    if budget.report_deadline is None:
        budget.start_reporting()
    example, event = result.counterexample, None
    refuted = finding.pair or session.pairs[0]
    if example:
        refuted, event = Pair(example.d1, example.d2, params=example.params), example.event
    input1, input2 = map(Input, refuted.inputs)
    pair = BrokenPair(sampler, budget, (input1, input2), event)
    said = len(sampler.notes)
    try:
        why = _confirm_by_starts(pair, example)
        if why:
            runs = _confirm_by_order(pair, why)
            sampler.note(f"could not be restarted ({why}); {runs:,} runs looked independent")
    except KeptOutside as reason:
        return _withdraw_violation(session, result, f"{reason}. {ADVICE}")
    except OutOfTime:
        return _withdraw_violation(
            session, result, f"a run takes {budget.run_text}, and time was up: raise max_seconds"
        )
    if not why:
        _refuse_kept_elsewhere(pair)
    notes = *result.notes, *sampler.notes[said:]
    return replace(result, samples=sampler.runs, notes=notes)


def _confirm_by_starts(pair: BrokenPair, example: Counterexample | None) -> str:
    """Run copies, or else processes, of the mechanism; return "" if they confirm the violation.

    Return the reason if it cannot be started afresh. Raises OutOfTime if time is up, KeptOutside if
    all starts may take their answers from one place, and DependentRuns if runs depend on each
    other.
    """
    sampler = pair.sampler
    pristine = sampler.call.pristine
    reasons = [pristine.reason] if pristine and pristine.reason else []
    while True:
        # A process that was forked may wait for a thread, which is to be told from a slow one.
        to_hang = 2 * HUNG_SECONDS if sampler.forks else 0.0
        deadline = pair.budget.confirming_deadline(LEAST_RUNS, at_most_end=True, more=to_hang)
        try:
            with record_opened_files() as files:
                both = outputs_of_copies(pair, deadline)
            for side, starts in enumerate(both):
                _refuse_other_errors(sampler, pair.inputs[side], starts)
                counted = (example.counts[side], example.runs[side]) if example else (0, 0)
                _refuse_dependent(pair, starts, *counted)
            _refuse_kept_outside(pair, both, files, deadline)
        except KeptOutside:
            raise
        except CannotCopy as reason:
            reasons.append(str(reason))
            if not sampler.import_instead():
                return "; ".join(dict.fromkeys(reasons))
        else:
            return ""


def _confirm_by_order(pair: BrokenPair, why: str) -> int:
    """Run a mechanism that cannot be restarted; return the number of runs if they look independent.

    Raises KeptOutside if they do not; its message begins with `why`, the reason against a restart.
    Raises OutOfTime if time is up.
    """
    outputs = outputs_alone(pair)
    if dependent := run_dependence(outputs, pair.event):
        raise KeptOutside(f"{why}; {dependent}")
    return sum(map(len, outputs))


def _withdraw_violation(session: Session, result: AuditResult, why: str) -> AuditResult:
    """Return an inconclusive result in place of a violation, and note `why` it is not confirmed."""
    reason = (
        "looks violated, but an answer that is drawn once and then repeated would look the same, "
        f"and the mechanism could not be restarted: {why}"
    )
    if result.counterexample is not None:
        reason += f". {in_one_sentence(result.counterexample)}"
    session.sampler.note(reason, hinders=True, first=True)
    known = {name: getattr(result, name) for name in KEPT_FIELDS}
    return session.result("inconclusive", **known)


def _refuse_other_errors(sampler: Sampler, item: Input, starts: Starts) -> None:
    """Raise CannotCopy if starts raise clearly more often on an input than the mechanism itself."""
    raised = [out for outputs in starts for out in outputs if isinstance(out, Raised)]
    total = sum(map(len, starts))
    before, runs = sampler.count_raised(item)
    if (
        raised
        and runs
        and count_tests.fisher_p_value((before, len(raised)), (runs, total)) < NOT_IID
    ):
        where = "processes that start afresh" if sampler.forks else "copies of it"
        line = raised[0].message.strip().partition("\n")[0]
        raise CannotCopy(
            f"{where} raised {raised[0].kind} ({line}) in {len(raised):,} of "
            f"{total:,} runs, it did itself in {before:,} of {runs:,}"
        )


def _refuse_dependent(pair: BrokenPair, starts: Starts, hits: int, runs: int) -> None:
    """Raise DependentRuns if outputs depend on their start, or on the number of runs before them.

    Also if the event is likelier, or rarer, than in the counts of the violation: `hits` of `runs`.
    """
    if why := start_dependence(starts, pair.event) or order_dependence(starts, pair.event):
        _raise_dependent(pair, why)
    if not isinstance(pair.event, Event) or not runs:
        return
    table = tabulate(join_outputs(starts))
    again, total = int(pair.event.mask(table).sum()), len(table)
    if count_tests.fisher_p_value((hits, again), (runs, total)) < NOT_IID:
        before, after = f"{hits:,} of {runs:,} runs", f"{again:,} of {total:,} of fresh copies"
        _raise_dependent(pair, f"{pair.event} held in {before}, and in {after}")


def _refuse_kept_outside(
    pair: BrokenPair, both: Sequence[Starts], files: Sequence[str], deadline: Deadline
) -> None:
    """Raise KeptOutside if answers may come from another process, or a file that was written.

    `both` are the outputs of starts, by input; `files` were opened meanwhile. Runs the mechanism
    again to see what it writes.
    """
    sampler = pair.sampler
    asked = {*files, *(sampler.origin.files if sampler.origin else ())}
    if ASKED in asked:
        outputs = join_outputs(both[0]), join_outputs(both[1])
        if why := run_dependence(outputs, pair.event):
            raise KeptOutside(f"it asks {ASKED}, which may keep something, and {why}")
    if not files and not sampler.forks:  # what is opened in another process is not heeded here
        return
    for item in pair.inputs:
        written: list[str] = []
        with suppress(CannotCopy, OutOfTime):  # then starts are all that can be told
            written = sampler.find_written_files(item, deadline)
        if written:
            raise KeptOutside(f"it reads {written[0]}, which was written while it was audited")


def _refuse_kept_elsewhere(pair: BrokenPair) -> None:
    """Run starts of other kinds; raise DependentRuns if state is kept where copies do not reach.

    Such state is left by an earlier audit, drawn at an import, or held by libraries or the
    environment. Processes that all give equal outputs are no evidence.
    """
    sampler = pair.sampler
    for before in filter(None, (sampler.in_first_state(), sampler.in_first_state(forks=True))):
        for item in pair.inputs:
            starts = outputs_before(pair, before, item)
            if len(starts) > 1 and (why := start_dependence(starts, pair.event)):
                _raise_dependent(pair, f"before an earlier audit, {why}")
    if why := import_dependence(pair):
        _raise_dependent(pair, why)
    for starts in [] if sampler.forks else outputs_of_processes(pair):
        differ = len({tuple(map(safe_repr, outputs)) for outputs in starts}) > 1
        if differ and (why := start_dependence(starts, pair.event)):
            _raise_dependent(pair, why)


def _raise_dependent(pair: BrokenPair, seen: str) -> Never:
    """Raise DependentRuns with the symptom `seen`, and advice on a function to claim instead."""
    raise DependentRuns(
        f"{pair.sampler.name} keeps something from run to run, so there is no verdict on "
        f"privacy: {seen}. An answer that is drawn once and then repeated keeps its claim, but "
        "looks like missing noise. Claim a function that keeps nothing between calls: the "
        "function beneath the cache (f.__wrapped__ of functools.lru_cache), or a function that "
        "makes a new object with the cache, the buffer or the counter."
    )
