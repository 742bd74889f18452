"""Draw outputs of a mechanism that starts afresh: of copies, or of forked processes.

Forks have what nobody can seed in common: random bytes in reserve, as of compiled code. Those that
draw alike go on from different places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pytest_dp.auditors.budget import Budget
from pytest_dp.basics.arrays import Bools, Outputs, join_outputs
from pytest_dp.basics.reprs import safe_repr
from pytest_dp.betting.bars import Tally
from pytest_dp.betting.scores import Attack
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.paired_outputs import mean_leaves
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.forked import MAX_STARTS
from pytest_dp.running.sampler import Sampler
from pytest_dp.running.sharing import surprise
from pytest_dp.running.subject import Subject
from pytest_dp.statistics.assumptions import NOT_IID

LEAST_RUNS = 64
"""Runs for which there is time in any case. More: audits end later; fewer: violations of slow
mechanisms are not confirmed."""
COPIED_RUNS = 128
"""Runs of copies on either input, if so many are left. More take longer; fewer miss what differs
between copies by little."""
RUNS_A_COPY = 4
"""Runs of each copy. More see what repeats late; fewer make copies, which take time."""
MIN_COPIED = 32
"""Runs of copies on either input, if half of those that are left are as many. More: small efforts
are exceeded; fewer: chance explains what copies repeat."""
MIN_COPIES = 8
"""Copies, and runs of a copy, that show what repeats, at least. Fewer: chance repeats as well;
more take longer."""
LEAST_COPIES = 2
"""The same where copies give no answer again and again, and time is up."""
SURE_STARTS = 64
"""Starts of copies, at most. More take longer; fewer miss what differs between starts."""
MIN_PROCESSES = 2
"""Other processes for which runs are left, where few are. More: copies are fewer; fewer: what
differs between processes is not seen."""
MAX_APART = 64
"""Runs of each of two inputs that start apart, where processes draw alike. More take longer; fewer
show less."""
MAX_PLACES = 32
"""Places of an output that are looked at for dependence. More take longer; fewer miss it."""
MAX_NUMBERS = 1_000_000
"""Numbers of the outputs that are kept. More take memory; fewer: long outputs are compared by
fewer copies."""
FORKED_RUNS = 512
"""Runs on either input of processes that start afresh. Fewer miss a pool of some hundred noises, of
which few are drawn twice; more take longer, and exceed `max_samples`."""
Copies = list[Outputs]
"""Outputs of copies, as many of each."""


def coins_enough(alpha: float) -> int:
    """Return how many fair coins fall alike with chance alpha at most."""
    return 1 + math.ceil(-math.log2(alpha))


def outputs_of_starts(
    subject: Subject, dataset: Input, starts: int, runs: int, deadline: Deadline
) -> list[Outputs]:
    """Return outputs of each of some that start afresh; of fewer, where time is short."""
    found: list[Outputs] = []
    while len(found) < starts:
        try:
            found.append(subject.afresh(dataset, runs, (starts, len(found)), deadline))
        except OutOfTime:
            if len(found) < 2:
                raise
            break
    return found


def _plan_copies(sampler: Sampler, budget: Budget) -> tuple[int, int]:
    """Return how many copies are run on each input, and how often each."""
    starts = SURE_STARTS
    left = max(budget.left - 2 * MIN_PROCESSES * RUNS_A_COPY, 0)
    runs = max(min(COPIED_RUNS, left // 3), min(MIN_COPIED, left // 2), MIN_COPIES)
    if sampler.forks:  # a few runs too many are better than red for answers that are kept
        starts, runs = MAX_STARTS, FORKED_RUNS
    copies = min(starts, max(runs // RUNS_A_COPY, 4))
    return copies, max(runs // copies, 2)


def copied_outputs(
    sampler: Sampler, budget: Budget, items: Sequence[Input], event: Any, deadline: Deadline
) -> list[Copies]:
    """Return outputs of copies on both inputs, which take turns.

    Where time ends it, a note says so. Raises CannotCopy if there are no copies, and OutOfTime if
    time is up before there are enough.
    """
    copies, runs = _plan_copies(sampler, budget)
    outputs: list[Copies] = [[] for _ in items]
    soon = budget.confirming_deadline(LEAST_COPIES * 2 * runs)
    while len(outputs[0]) < copies:
        number = len(outputs[0])
        if (
            number >= MIN_COPIES
            and number * runs * mean_leaves(tabulate(outputs[0][0][:8])) > MAX_NUMBERS
        ):
            break
        if (
            not budget.has_time(soon)
            and number >= LEAST_COPIES
            and (number >= MIN_COPIES or not any(keep_answers(o) or by_chance(o) for o in outputs))
        ):
            note_few(sampler, number, copies)
            break
        try:
            drawn = [
                sampler.afresh(item, runs, (side, number), deadline)
                for side, item in enumerate(items)
            ]
        except OutOfTime:
            if number < 2:
                raise
            note_few(sampler, number, copies)
            break
        for of_item, output in zip(outputs, drawn, strict=True):
            of_item.append(output)
    for side, of_item in enumerate(outputs):
        if sampler.forks and _draw_alike(of_item):
            longer = max(min(len(of_item) * runs // MIN_COPIES, MAX_APART), 2)
            both = items[side], items[1 - side]
            outputs[side] = _apart(sampler, budget, both, event, longer, deadline)
        elif len(of_item) < min(MIN_COPIES, copies) and keep_answers(of_item):  # too few to tell
            raise OutOfTime
    return outputs


def note_few(sampler: Sampler, done: int, planned: int, what: str = "copies") -> None:
    """Note that time has ended a step that confirms a violation."""
    sampler.note(f"time was up when {done} of {planned} {what} had confirmed the violation")


def keep_answers(outputs: Copies) -> bool:
    """Return whether each copy gives one answer again and again, and not all give the same."""
    texts = [[safe_repr(output) for output in copy] for copy in outputs]
    return all(len(set(copy)) == 1 for copy in texts) and len({copy[0] for copy in texts}) > 1


def _apart(
    sampler: Sampler,
    budget: Budget,
    both: tuple[Input, Input],
    event: Any,
    runs: int,
    deadline: Deadline,
) -> Copies:
    """Return outputs of processes that share nothing any more of what all of them draw from.

    While something is the same in all of them, it may be a coin that each has thrown once and
    keeps: there are so many that fair ones fall alike with chance alpha at most. Of coins that
    seldom show their other side, that chance is larger.
    """
    outputs, enough = Copies(), max(MIN_COPIES, coins_enough(budget.alpha))
    while len(outputs) < MIN_COPIES or (len(outputs) < enough and _has_constants(outputs, event)):
        outputs.append(_after_others(sampler, *both, runs, len(outputs), deadline))
    return outputs


def _has_constants(outputs: Copies, event: Any) -> bool:
    """Return whether the event, or a part of the output, is the same in all runs."""
    events = binary_events(tabulate(join_outputs(outputs)), event)
    return any(len(np.unique(inside)) == 1 for inside in events)


def _after_others(
    sampler: Sampler, item: Input, other: Input, runs: int, number: int, deadline: Deadline
) -> Outputs:
    """Return outputs of a process that first made `number` * `runs` runs on other data."""
    if not number:
        return sampler.afresh(item, runs, (0, number), deadline)
    keyed = [(used, (side, number)) for side, used in enumerate((other, item))]
    drawn = sampler.forked(keyed, number * runs, deadline)
    return drawn[1][:runs]


def _draw_alike(outputs: Copies) -> bool:
    """Return whether processes draw the same values, as forks of a reserve of random bytes do.

    Compiled code may keep such a reserve. The n-th outputs of many processes are then one value,
    which is rare among the others. Its chance is bounded by its share of the other outputs, counted
    with one more, for any of these values.
    """
    texts = np.array([[safe_repr(output) for output in copy[:MIN_COPIES]] for copy in outputs])
    for run, here in enumerate(texts.T):
        values, counts = np.unique(here, return_counts=True)
        others = np.delete(texts, run, axis=1)
        share = (np.sum(others == values[counts.argmax()]) + 1) / (others.size + 1)
        most = int(counts.max())
        if len(here) * math.comb(len(here), most) * share**most < NOT_IID:
            return True
    return False


def by_chance(outputs: Copies) -> bool:
    """Return whether independent runs might repeat what each copy gave first: a coin soon does."""
    first = surprise([safe_repr(copy[0]) for copy in outputs])
    return (len(outputs[0]) - 1) * first < -math.log(NOT_IID)


def binary_events(table: Table, event: Any) -> Iterator[Bools]:
    """Yield which outputs are in the event, and in about the upper half at each place."""
    if isinstance(event, Event):
        yield event.mask(table)
    elif isinstance(event, Attack):
        yield Tally(event).hits(table)[0]
    for place in table.places[:MAX_PLACES]:
        numbers, codes = table.leaf(place)
        is_number = codes == NUMBER
        if is_number.any():
            middle = np.median(numbers[is_number])
            above = is_number & (numbers > middle)
            yield above if above.any() else is_number & (numbers >= middle)
        if not is_number.all():
            values, counts = np.unique(codes[~is_number], return_counts=True)
            yield codes == values[counts.argmax()]
