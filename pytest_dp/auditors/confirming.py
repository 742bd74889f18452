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

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Never

import numpy as np

from pytest_dp.arrays import Bools, Ints, Outputs, joined
from pytest_dp.attacks.scores import Attack
from pytest_dp.attacks.tally import Tally
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.paired_outputs import leaves_of
from pytest_dp.auditors.result import AuditResult
from pytest_dp.errors import MechanismError
from pytest_dp.evidence import assumptions
from pytest_dp.inputs import Pair
from pytest_dp.limits import (
    DOZENS,
    HUNDREDS,
    HUNG_SECONDS,
    MANY,
    MAX_WORK,
    MILLION,
    NOT_IID,
    NOTICED_SECONDS,
    SAMPLES_SHARE,
    SEVERAL,
)
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.reprs import shown
from pytest_dp.sampling import fresh_process
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.forked import heeded_files
from pytest_dp.sampling.sharing import surprise

Copies = list[Outputs]
"""Outputs of copies, as many of each."""


def confirmed(context: Context, result: AuditResult) -> AuditResult:
    """The result, once copies have confirmed it if it is a violation; else it is inconclusive.

    Raises MechanismError if copies of the mechanism that start afresh do not give independent runs
    like its own. What is run once needs no such runs: no two of them are compared.
    """
    if not result.violated or not context.method.repeats:
        return result
    if context.told is None:
        context.refuted()
    example = result.counterexample
    pair, event = context.broken or context.pairs[0], None
    if example:
        pair, event = Pair(example.d1, example.d2, params=example.params), example.event
    items = [Input(data) for data in pair.inputs]
    # A process that was forked may wait for a thread, which is to be told from one that is slow.
    to_hang = 2 * HUNG_SECONDS if context.sampler.forks else 0.0
    deadline = Deadline(_left(context) + to_hang)
    try:
        with heeded_files() as files:
            wanted = _runs_wanted(context, result)
            both = _copied_outputs(context, items, event, wanted, deadline)
            if wanted < MANY // 2 <= context.left // 2 and any(map(_by_chance, both)):
                # a few that repeat themselves say nothing where there are few kinds of answers
                longer = Deadline(MANY * (context.sampler.seconds_a_run or 0.0) + to_hang)
                both = _copied_outputs(context, items, event, MANY // 2, longer)
        for side, copied in enumerate(both):
            _refuse_other_errors(context, items[side], copied)
            original = (example.counts[side], example.runs[side]) if example else (0, 0)
            _check(context, copied, event, original)
        if files or context.sampler.forks:  # what is opened in another process is not heeded here
            _refuse_files(context, items, both, deadline)
    except CannotCopy as reason:
        return _unconfirmed(
            context,
            result,
            f"{reason}. Claim a function that makes what it holds (a connection, a cache, a file) "
            "each time it is called, or that is given it made anew",
        )
    except OutOfTime:
        return _unconfirmed(
            context, result, f"a run takes {context.a_run}, and time was up: raise max_seconds"
        )
    _check_elsewhere(context, items, both)
    if not context.sampler.forks:
        _check_forked(context, items, event)
    return replace(result, samples=context.sampler.runs)


def _unconfirmed(context: Context, result: AuditResult, why: str) -> AuditResult:
    """An inconclusive result in place of a violation, which may come of what is kept."""
    reason = (
        "looks violated, but an answer that is drawn once and then repeated would look alike, and "
        f"the mechanism could not be started afresh: {why}"
    )
    context.sampler.note(reason)
    context.sampler.hindrances.insert(0, reason)
    return context.result("inconclusive", pairs=result.pairs, proposed=result.proposed)


def _refuse_other_errors(context: Context, item: Input, copied: Copies) -> None:
    """Refuse copies that raise where the mechanism itself does not."""
    raised = [out for outputs in copied for out in outputs if isinstance(out, Raised)]
    total = sum(map(len, copied))
    before, runs = context.sampler.raised(item)
    if raised and runs and assumptions.two_samples((before, len(raised)), (runs, total)) < NOT_IID:
        where = "processes that were forked" if context.sampler.forks else "copies of it"
        raise CannotCopy(
            f"{where} raised {raised[0].kind} ({raised[0].message}) in {len(raised):,} of "
            f"{total:,} runs, it did itself in {before:,} of {runs:,}"
        )


def _refuse_files(
    context: Context, items: Sequence[Input], both: Sequence[Copies], deadline: Deadline
) -> None:
    """Refuse a mechanism that may have its answer, or a part of it, from a file.

    Where answers vary, a file that each run writes again makes no two runs alike: what it changes
    is seen in runs that follow each other.
    """
    for item, copied in zip(items, both, strict=True):
        files: list[str] = []
        with suppress(CannotCopy, OutOfTime):  # then copies are all that can be told
            always = len(_answers(copied)) == 1
            files = context.sampler.files_kept(item, deadline, rewritten=always)
        if files:
            raise CannotCopy(f"it reads {files[0]}, which was written while it was audited")


def _answers(copied: Copies) -> set[str]:
    """The first answers of each copy, as texts."""
    return {shown(output) for outputs in copied for output in outputs[:2]}


def _check_elsewhere(context: Context, items: Sequence[Input], both: Sequence[Copies]) -> None:
    """Refuse a mechanism that always answers the same here, but not where nothing is kept yet.

    What it keeps may be older than this audit: of earlier ones in this process, or of the user.
    """
    for item, copied in zip(items, both, strict=True):
        answers = _answers(copied)
        if len(answers) > 1:
            return
        for texts in _elsewhere(context, item):
            if all(text == again for text, again in texts) and len({t for t, _ in texts}) > 1:
                _refuse(
                    context,
                    f"it answered {answers.pop()} again and again, and "
                    f"{', '.join(text for text, _ in texts[:3])} where nobody had asked before",
                )


def _elsewhere(context: Context, item: Input) -> Iterator[list[list[str]]]:
    """Two outputs each of mechanisms that were never run, wherever there are such."""
    sampler = context.sampler
    for before in (sampler.before_all(), sampler.before_all(forks=True)):
        with suppress(CannotCopy, OutOfTime):
            if before is not None:
                deadline = Deadline(_left(context))
                yield fresh_process.repeated(before, item, DOZENS, deadline)
    if sampler.keeps_data:
        copies = context.runs_within(_left(context) / 2, DOZENS)
        yield fresh_process.imported_anew(context.call, item.live, context.seed, copies) or []


def _left(context: Context) -> float:
    """Seconds for runs that start afresh: a few of them in any case."""
    a_few = 2 * SEVERAL * (context.sampler.seconds_a_run or 0.0)
    return max(context.to_conclude(), a_few, NOTICED_SECONDS)


def _check_forked(context: Context, items: Sequence[Input], event: Any) -> None:
    """Refuse a mechanism that keeps something where copies do not reach.

    Processes that all draw alike, from a generator that nobody could seed, tell nothing.
    """
    sampler = context.sampler
    deadline = Deadline(context.to_conclude())
    left = context.left // 2
    # a few runs too many are better than a red build for answers that are kept
    wanted = max(min(SEVERAL * MANY, left), min(2 * MANY, int(context.to_confirm / 6)))
    runs = max(context.runs_within(deadline.allowed / 4, wanted) // SEVERAL, 2)
    processes = min(SEVERAL, max(wanted // runs, 2))
    drawn: list[Copies] = []
    with suppress(CannotCopy, OutOfTime):  # then the others are all that can be told
        while sampler.origin is not None and len(drawn) < processes:
            keyed = [(item, (side, len(drawn), 1)) for side, item in enumerate(items)]
            drawn.append(sampler.forked(sampler.origin, keyed, runs, deadline))
    for outputs in map(list, zip(*drawn, strict=True)):
        if len(outputs) > 1 and _keep(outputs) and not _by_chance(outputs):
            _refuse(context, f"it repeats what it gave before ({_examples_of(outputs)})")
        if len({hashes(tabulate(of_one)).tobytes() for of_one in outputs}) == len(outputs) > 1:
            _check_copies(context, outputs, event)


def _runs_wanted(context: Context, result: AuditResult) -> int:
    """Runs on each input: a cache shows in about as many as it took to look like a leak."""
    left = context.left
    # a third for processes that are forked
    allowed = min(max(SAMPLES_SHARE * left, context.to_confirm / 3), left / 3)
    wanted = min(max(result.bet_samples or MAX_WORK, HUNDREDS), MAX_WORK, allowed)
    seconds = context.seconds_to_confirm(_left(context)) / 4  # half of it for either input
    return max(context.runs_within(seconds, int(wanted)), SEVERAL)


def _copied_outputs(
    context: Context, items: Sequence[Input], event: Any, wanted: int, deadline: Deadline
) -> list[Copies]:
    """Outputs of copies on both inputs, which take turns.

    Raises CannotCopy if there are no copies, and OutOfTime if time is up before there are enough.
    """
    most = DOZENS if context.sampler.forks else MANY
    copies = min(most, max(wanted // 4, 4))
    runs = max(wanted // copies, 2)
    outputs: list[Copies] = [[] for _ in items]
    for number in range(copies):
        if number >= SEVERAL and number * runs * leaves_of(tabulate(outputs[0][0][:8])) > MILLION:
            break
        try:
            drawn = [
                context.sampler.afresh(item, runs, (side, number), deadline)
                for side, item in enumerate(items)
            ]
        except OutOfTime:
            break
        for of_item, output in zip(outputs, drawn, strict=True):
            of_item.append(output)
    if len(outputs[0]) < 2:
        raise OutOfTime
    for side, of_item in enumerate(outputs):
        if context.sampler.forks and _draw_alike(of_item):
            longer = max(min(len(of_item) * runs // SEVERAL, MANY), 2)
            both = items[side], items[1 - side]
            outputs[side] = _apart(context, both, event, longer, deadline)
        elif len(of_item) < SEVERAL and _keep(of_item):  # too few to tell
            raise OutOfTime
    return outputs


def _keep(outputs: Copies) -> bool:
    """Whether each copy gives one answer again and again, and not all give the same."""
    texts = [[shown(output) for output in copy] for copy in outputs]
    return all(len(set(copy)) == 1 for copy in texts) and len({copy[0] for copy in texts}) > 1


def _apart(
    context: Context, both: tuple[Input, Input], event: Any, runs: int, deadline: Deadline
) -> Copies:
    """Outputs of processes that share nothing any more of what all of them draw from.

    While something is the same in all of them, it may be a coin that each has thrown once and
    keeps: there are so many that fair ones fall alike with chance alpha at most. Of coins that
    seldom show their other side, that chance is larger.
    """
    outputs, enough = Copies(), max(SEVERAL, 1 + math.ceil(-math.log2(context.alpha)))
    while len(outputs) < SEVERAL or (len(outputs) < enough and _has_constants(outputs, event)):
        outputs.append(_after_others(context, *both, runs, len(outputs), deadline))
    return outputs


def _has_constants(outputs: Copies, event: Any) -> bool:
    """Whether the event, or a part of the output, is the same in all runs."""
    events = _binary_events(tabulate(joined(outputs)), event)
    return any(len(np.unique(inside)) == 1 for inside in events)


def _after_others(
    context: Context, item: Input, other: Input, runs: int, number: int, deadline: Deadline
) -> Outputs:
    """Outputs of a process that went on in what all of them draw from: by runs on other data."""
    if not number or context.sampler.origin is None:
        return context.sampler.afresh(item, runs, (0, number), deadline)
    keyed = [(used, (side, number)) for side, used in enumerate((other, item))]
    drawn = context.sampler.forked(
        context.sampler.origin, keyed, number * runs, deadline, seeds_all=True
    )
    return drawn[1][:runs]


def _draw_alike(outputs: Copies) -> bool:
    """Whether processes draw alike: random bytes in reserve, as of compiled code, are forked.

    Then the n-th outputs of many are the same one, which is rare among the others. How likely it is
    by chance is bounded by its share of these, counted with one more, for any of them.
    """
    texts = np.array([[shown(output) for output in copy[:SEVERAL]] for copy in outputs])
    for run, here in enumerate(texts.T):
        values, counts = np.unique(here, return_counts=True)
        others = np.delete(texts, run, axis=1)
        share = (np.sum(others == values[counts.argmax()]) + 1) / (others.size + 1)
        most = int(counts.max())
        if len(here) * math.comb(len(here), most) * share**most < NOT_IID:
            return True
    return False


def _by_chance(outputs: Copies) -> bool:
    """Whether independent runs might repeat what each copy gave first: a coin soon does."""
    first = surprise([shown(copy[0]) for copy in outputs])
    return (len(outputs[0]) - 1) * first < -math.log(NOT_IID)


def _check(context: Context, copied: Copies, event: Any, original: tuple[int, int]) -> None:
    table, run = _check_copies(context, copied, event), np.arange(len(copied[0]))
    for inside in _binary_events(table, event):
        _refuse_unlike(context, inside, np.tile(run, len(copied)), "runs of each")
    if isinstance(event, Event) and original[1]:
        again, total = int(event.mask(table).sum()), len(table)
        if assumptions.two_samples((original[0], again), (original[1], total)) < NOT_IID:
            _refuse(
                context,
                f"{event} held in {original[0]:,} of {original[1]:,} runs, and in {again:,} of "
                f"{total:,} of copies that started afresh",
            )


def _check_copies(context: Context, copied: Copies, event: Any) -> Table:
    """Refuse outputs that tell which copy they came from; else a table of them."""
    table = tabulate(joined(copied))
    copy = np.repeat(np.arange(len(copied)), len(copied[0]))
    if assumptions.repeats(hashes(table), copy) < NOT_IID:
        _refuse(context, f"it repeats what it gave before ({_examples_of(copied)})")
    for inside in _binary_events(table, event):
        if assumptions.pairs_agree(inside.reshape(len(copied), -1)) < NOT_IID:
            _refuse(
                context,
                f"what a copy of it gave once it gives again ({_examples_of(copied)})",
            )
        _refuse_unlike(context, inside, copy, "copies of it")
    return table


def _refuse_unlike(context: Context, inside: Bools, group: Ints, what: str) -> None:
    """Refuse outputs that are more often in an event in some groups than in others."""
    sizes = np.bincount(group)
    hits = np.bincount(group, inside).astype(np.int64)
    if assumptions.same_in_all_chunks(hits, sizes, MANY)[0] < NOT_IID:
        shares = ", ".join(f"{100 * share:.0f} %" for share in hits[:4] / sizes[:4])
        _refuse(context, f"what the first {what} gave is alike in {shares}, ... of the cases")


def _examples_of(outputs: Copies) -> str:
    """Two outputs each of the first copies."""
    return "; ".join(f"{shown(copy[0])}, {shown(copy[-1])}" for copy in outputs[:3])


def _binary_events(table: Table, event: Any) -> Iterator[Bools]:
    """Which outputs are in the event, and in about the upper half at each place."""
    if isinstance(event, Event):
        yield event.mask(table)
    elif isinstance(event, Attack):
        yield Tally(event, None).hits(table)[0]
    for place in table.places[: MANY // 2]:
        numbers, codes = table.leaf(place)
        is_number = codes == NUMBER
        if is_number.any():
            middle = np.median(numbers[is_number])
            above = is_number & (numbers > middle)
            yield above if above.any() else is_number & (numbers >= middle)
        if not is_number.all():
            values, counts = np.unique(codes[~is_number], return_counts=True)
            yield codes == values[counts.argmax()]


def _refuse(context: Context, seen: str) -> Never:
    """Raise the error of a mechanism that keeps something, with what to claim instead."""
    raise MechanismError(
        f"{context.short_name} keeps something from run to run, so there is no verdict on privacy: "
        f"{seen}. An answer that is drawn once and then repeated keeps its claim, but looks like "
        "missing noise. Claim a function that starts afresh each time it is called: the one "
        "beneath the cache (f.__wrapped__ of functools.lru_cache), or one that makes the object "
        "with the cache, the buffer or the counter anew."
    )
