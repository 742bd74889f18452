"""Confirm a violation, before it is reported, on copies of the mechanism that start afresh.

Evidence counts runs as independent. A mechanism that draws once for each input and then repeats its
answer keeps its claim, and yet its runs on two inputs differ as if it had no noise. So copies of
the mechanism, made before its first run, are run a few times each. If runs are independent, it is
all the same which copy an output came from, how many came before, and whether it came from a copy
at all. What differs beyond chance keeps something, and there is no verdict on it. Missing noise and
fixed seeds are the same in all copies.

Nothing here can make a violation, so it takes nothing from the validity of one.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Never

import numpy as np

from pytest_dp.arrays import Bools, Ints, Outputs, joined
from pytest_dp.attacks.counting import Tally
from pytest_dp.attacks.scores import Attack
from pytest_dp.auditors.context import MIN_COPY_RUNS, NOT_IID, Context
from pytest_dp.auditors.paired_outputs import leaves_of
from pytest_dp.auditors.result import AuditResult
from pytest_dp.errors import MechanismError
from pytest_dp.evidence import homogeneity
from pytest_dp.inputs import Pair
from pytest_dp.outputs.columns import NUMBER
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.reprs import shown
from pytest_dp.sampling import fresh_process
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime

MAX_COPIES = 64
"""Copies at most: more tell better what differs from copy to copy, and take time to make. By
hand."""
MIN_RUNS, MAX_RUNS = 256, 8_192
"""Runs on each input, as many as the evidence took within these bounds: fewer than it took may not
show what it rests on, more only take longer. Chosen by hand..."""
LEFT_SHARE = 0.25
"""...and within this share of what is left, or what was set aside for it."""
OVERTIME_SHARE = 0.05
"""Share of max_seconds that this may take when there is none left. Chosen by hand."""
COPIES_ELSEWHERE = 24
"""Copies that are made in another process: one answer may be chance, so many that never vary are
none. Chosen by hand."""
MIN_COPIES, MAX_COPIED_NUMBERS = 8, 1_000_000
"""Copies up to which outputs may be of any length, and numbers on an input up to which there are
more: one long output tells as much as many short ones. Chosen by hand."""
MAX_COMPARED_PLACES = 32
"""Numbers in an output that are looked at one by one, as each is a test that takes time. By
hand."""

_REMEMBERING: weakref.WeakSet[Any] = weakref.WeakSet()
"""Mechanisms whose runs turned out to depend on each other: what they keep makes copies agree."""


def confirmed(context: Context, result: AuditResult) -> AuditResult:
    """The result, once copies have confirmed it if it is a violation.

    Raises
    ------
    MechanismError
        If copies of the mechanism that start afresh do not give independent runs like its own.
    """
    if not result.violated:
        return result
    if _is_known(context.call.mechanism):
        _refuse(context, "an earlier audit found that its runs depend on each other")
    example = result.counterexample
    pair, event = context.pairs[0], None
    if example:
        pair, event = Pair(example.d1, example.d2, params=example.params), example.event
    wanted = _runs_wanted(context, result)
    deadline = Deadline(
        max(context.deadline.remaining(), OVERTIME_SHARE * context.settings.max_seconds)
    )
    try:
        for side, data in enumerate(pair.inputs):
            original = (example.counts[side], example.runs[side]) if example else (0, 0)
            copied = _copied_outputs(context, Input(data), side, wanted, deadline)
            if copied is not None:
                _check(context, copied, event, original)
    except (CannotCopy, OutOfTime):
        pass
    _check_elsewhere(context, pair.inputs)
    return replace(result, samples=context.sampler.runs)


def _check_elsewhere(context: Context, pair: tuple[Any, Any]) -> None:
    """Refuse a mechanism that always answers the same here, and other things in a new process."""
    if not context.sampler.keeps_data:
        return
    for side, data in enumerate(pair):
        try:
            here = context.sampler.afresh(Input(data), 2, (side, MAX_COPIES), context.deadline)
        except (CannotCopy, OutOfTime):
            return
        if shown(here[0]) != shown(here[1]):
            return  # not the same again and again
        texts = fresh_process.repeated(context.call, data, context.seed, COPIES_ELSEWHERE)
        if texts and all(text == again for text, again in texts) and len({t for t, _ in texts}) > 1:
            _refuse(
                context,
                f"it answered {shown(here[0])} again and again, and "
                f"{', '.join(text for text, _ in texts[:3])} where nobody had asked before",
            )


def _runs_wanted(context: Context, result: AuditResult) -> int:
    """Runs on each input: a cache shows in about as many as it took to look like a leak."""
    left = context.max_samples - context.sampler.runs
    allowed = min(max(LEFT_SHARE * left, context.to_confirm / 2), left / 2)
    wanted = min(max(result.bet_samples or MAX_RUNS, MIN_RUNS), MAX_RUNS, allowed)
    return max(
        context.runs_within(OVERTIME_SHARE * context.settings.max_seconds, int(wanted)),
        MIN_COPY_RUNS,
    )


@dataclass(frozen=True, slots=True)
class _Copied:
    """Outputs of copies, with the number of the copy and of the run in it."""

    outputs: list[Outputs]
    copy: Ints
    run: Ints


def _copied_outputs(
    context: Context, item: Input, side: int, wanted: int, deadline: Deadline
) -> _Copied | None:
    copies = min(MAX_COPIES, max(wanted // 4, 4))
    runs = max(wanted // copies, 2)
    outputs: list[Outputs] = []
    for number in range(copies):
        if (
            number >= MIN_COPIES
            and number * runs * leaves_of(tabulate(outputs[0][:8])) > MAX_COPIED_NUMBERS
        ):
            break
        try:
            outputs.append(context.sampler.afresh(item, runs, (side, number), deadline))
        except OutOfTime:
            break
    if len(outputs) < 2:
        return None
    copy = np.repeat(np.arange(len(outputs)), runs)
    return _Copied(outputs, copy, np.tile(np.arange(runs), len(outputs)))


def _check(context: Context, copied: _Copied, event: Any, original: tuple[int, int]) -> None:
    table = tabulate(joined(copied.outputs))
    copies, runs = int(copied.copy[-1]) + 1, int(copied.run[-1]) + 1
    if homogeneity.repeats(hashes(table), copied.copy) < NOT_IID:
        _refuse(context, f"it repeats what it gave before ({_examples_of(copied.outputs)})")
    for inside in _binary_events(table, event):
        if homogeneity.pairs_agree(inside.reshape(copies, runs)) < NOT_IID:
            _refuse(
                context,
                f"what a copy of it gave once it gives again ({_examples_of(copied.outputs)})",
            )
        by_copy = np.bincount(copied.copy, inside, copies).astype(np.int64)
        by_run = np.bincount(copied.run, inside, runs).astype(np.int64)
        for hits, size, what in ((by_copy, runs, "copies of it"), (by_run, copies, "runs of each")):
            if homogeneity.p_value(hits, np.full(len(hits), size), MAX_COPIES)[0] < NOT_IID:
                shares = ", ".join(f"{100 * share:.0f} %" for share in hits[:4] / size)
                _refuse(
                    context, f"what the first {what} gave is alike in {shares}, ... of the cases"
                )
    if isinstance(event, Event) and original[1]:
        again, total = int(event.mask(table).sum()), len(table)
        if homogeneity.two_samples((original[0], again), (original[1], total)) < NOT_IID:
            _refuse(
                context,
                f"{event} held in {original[0]:,} of {original[1]:,} runs, and in {again:,} of "
                f"{total:,} of copies that started afresh",
            )


def _examples_of(outputs: list[Outputs]) -> str:
    """Two outputs each of the first copies."""
    return "; ".join(f"{shown(copy[0])}, {shown(copy[-1])}" for copy in outputs[:3])


def _binary_events(table: Table, event: Any) -> Iterator[Bools]:
    """Which outputs are in the event, and in about the upper half at each place."""
    if isinstance(event, Event):
        yield event.mask(table)
    elif isinstance(event, Attack):
        yield Tally(event, None).hits(table)[0]
    for place in table.places[:MAX_COMPARED_PLACES]:
        numbers, codes = table.leaf(place)
        is_number = codes == NUMBER
        if is_number.any():
            middle = np.median(numbers[is_number])
            above = is_number & (numbers > middle)
            yield above if above.any() else is_number & (numbers >= middle)
        if not is_number.all():
            values, counts = np.unique(codes[~is_number], return_counts=True)
            yield codes == values[counts.argmax()]


def _is_known(mechanism: Any) -> bool:
    try:
        return mechanism in _REMEMBERING
    except TypeError:  # it can be neither hashed nor referred to
        return False


def _refuse(context: Context, seen: str) -> Never:
    """Raise the error of a mechanism that keeps something, with what to claim instead."""
    with suppress(TypeError):
        _REMEMBERING.add(context.call.mechanism)
    raise MechanismError(
        f"{context.short_name} keeps something from run to run, so there is no verdict on privacy: "
        f"{seen}. An answer that is drawn once and then repeated keeps its claim, but looks like "
        "missing noise. Claim a function that starts afresh each time it is called: the one "
        "beneath the cache (f.__wrapped__ of functools.lru_cache), or one that makes the object "
        "with the cache, the buffer or the counter anew."
    )
