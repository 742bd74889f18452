"""Refute a claim by runs each of which starts afresh, where a mechanism keeps something.

The evidence of an audit counts runs as independent. Those of a mechanism that keeps something from
run to run are not, and what they show is no violation. First runs of mechanisms that start afresh
are independent if their outputs depend on nothing but the input and random numbers of their own.
Replays certify that: made again in another process with the same random numbers, they have to give
exactly the same outputs.

An event is looked for among some of these runs, and tested on others, at alpha. So a mechanism
whose first answer keeps the claim is called violated with probability alpha at most, whatever the
audit saw before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from pytest_dp.arrays import Outputs, join_outputs
from pytest_dp.attacks.expected_bounds import Choice, PlannedTest, choice_of, likelier_first
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.result import AuditResult
from pytest_dp.auditors.witness import by_bound, readable
from pytest_dp.counterexample import diagnose
from pytest_dp.inputs import Pair
from pytest_dp.limits import NEARLY
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.features import features
from pytest_dp.outputs.outcome import same
from pytest_dp.outputs.table import tabulate
from pytest_dp.results.result import Counterexample
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.forked import ASKED, Starts, record_opened_files
from pytest_dp.statistics.counts import Counts
from pytest_dp.statistics.proofs import SHARP, Bound

REPLAYED = 24
"""Runs on either input that are made again. Fewer miss mechanisms that seldom use what they keep or
what nobody can seed; more take longer, as each is a process of its own."""
SEARCHED = 96
"""Runs on either input among which an event is looked for. Fewer find worse events, more take
longer."""
MAX_TESTED = 1_000
"""Runs on either input to test the event, whatever is left of `max_samples`. Fewer refute less,
more take longer, and exceed that limit by more."""

Start = Callable[[Input, tuple[int, ...]], Any]
"""Return the first output of a mechanism that starts afresh, with the random numbers of a key."""
Both = tuple[Outputs, Outputs]
"""Outputs on both inputs."""


def refuted_by_fresh_runs(context: Context, pair: Pair) -> AuditResult | None:
    """Return the result if fresh runs on a pair refute the claim, else None."""
    items = [Input(data) for data in pair.inputs]
    deadline = Deadline(max(context.before_the_limit(), 0.0))
    try:
        with record_opened_files() as files:
            certified = _certify_starts(context, items, deadline)
            if certified is None:
                return None
            start, first = certified
            more = _drawn(start, items, range(len(first[0]), SEARCHED))
            searched = join_outputs([first[0], more[0]]), join_outputs([first[1], more[1]])
            event, choice = _most_promising(context.plan(2 * MAX_TESTED), searched)
            chances = choice.p1, choice.p2
            runs = SHARP.runs(*chances, context.guarantee, context.alpha, MAX_TESTED)
            if event is None or runs is None:
                return None
            outputs = _drawn(start, items, range(SEARCHED, SEARCHED + runs))
        if _may_share(context, items, files, deadline):
            return None
    except (CannotCopy, OutOfTime):
        return None
    hits = [int(event.mask(tabulate(of_one)).sum()) for of_one in outputs]
    counts = Counts(*_put_likelier_first(choice, (hits[0], runs), (hits[1], runs)))
    if all(hit in (0, runs) for hit in hits):  # so no random numbers of the runs decide it
        return None
    bound = SHARP.bound("event", counts, context.guarantee, context.alpha)
    if bound.p_value > context.alpha:
        return None
    return _result(context, pair, event, choice, bound, searched)


def _certify_starts(
    context: Context, items: Sequence[Input], deadline: Deadline
) -> tuple[Start, Both] | None:
    """Return how to start afresh so that nothing but random numbers decides outputs, or None.

    With it come the outputs that were made again. It is by forks, whose outputs have to be the same
    in other forks: those of an interpreter that imports the module anew, if there is a module. It
    is by copies where these give the same as forks.
    """
    sampler = context.sampler
    origin, anew = sampler.first_starts, sampler.anew
    if origin is None or anew is None or sampler.seconds_a_start:  # each start takes an import
        return None
    runs = 1 if sampler.call.size is None else 2  # two calls, of which the first one counts

    def started(starts: Starts) -> Start:
        return lambda item, key: sampler.forked(
            starts, [(item, key)], runs, deadline, seeds_all=True
        )[0][0]

    def copied(item: Input, key: tuple[int, ...]) -> Any:
        return sampler.afresh(item, runs, key, deadline)[0]

    def replays(start: Start) -> bool:
        again = _drawn(start, items, range(REPLAYED))
        return all(map(same, join_outputs(list(forked)), join_outputs(list(again))))

    forked = _drawn(started(origin), items, range(REPLAYED))
    if not anew.imports:
        again = [replays(started(origin))]
    elif anew.starts() < REPLAYED:
        return None
    else:  # not in the first, which may be the origin
        again = [replays(started(anew)) for _ in islice(anew.each(1), 1)]
    if not all(again):
        return None
    can_copy = origin is sampler.origin and not sampler.forks
    return copied if can_copy and replays(copied) else started(origin), forked


def _may_share(
    context: Context, items: Sequence[Input], files: Sequence[str], deadline: Deadline
) -> bool:
    """Return whether starts may have something in common: a file that was written, or a server."""
    sampler = context.sampler
    starts = [starts for starts in (sampler.first_starts, sampler.anew) if starts is not None]
    if ASKED in {*files, *(file for one in starts for file in one.files)}:
        return True
    return any(sampler.files_kept(item, deadline, rewritten=True) for item in items)


def _drawn(start: Start, items: Sequence[Input], numbers: range) -> Both:
    """Return outputs on both inputs, one of each start."""
    one, other = ([start(item, (n, side, 4)) for n in numbers] for side, item in enumerate(items))
    return join_outputs([one]), join_outputs([other])


def _most_promising(planned: PlannedTest, outputs: Both) -> tuple[Event | None, Choice]:
    """Return the event of which most is to be expected, and its chances as far as is known."""
    table, runs = tabulate(join_outputs(list(outputs))), len(outputs[0])
    on_d = np.arange(len(table)) < runs
    about = features(table, [], on_d)
    event = readable(table, on_d, about, by_bound(planned), NEARLY)
    inside = on_d if event is None else event.mask(table)
    c1, c2 = int((inside & on_d).sum()), int((inside & ~on_d).sum())
    return event, choice_of(c1, runs, c2, runs, planned)


def _put_likelier_first(choice: Choice, on_d: Any, on_other: Any) -> Any:
    """Return the counts on the likelier input, then those on the other one."""
    one, other = likelier_first(choice.sign, on_d, on_other)
    return (*one, *other)


def _result(
    context: Context, pair: Pair, event: Event, choice: Choice, bound: Bound, searched: Both
) -> AuditResult:
    """Return the result of a claim that fresh runs refute."""
    counts, guarantee = bound.counts, context.guarantee
    pair = likelier_first(choice.sign, pair, pair.reversed())[0]
    tables = likelier_first(choice.sign, *map(tabulate, searched))
    example = Counterexample(
        d1=pair.d1,
        d2=pair.d2,
        event=event,
        **bound.counterexample_fields(),
        difference=pair.difference,
        params=pair.params,
        diagnosis=diagnose(event, counts.hits, counts.runs, guarantee, tables),
    )
    context.sampler.note(
        f"keeps something from run to run: what is shown was counted in {counts.n1:,} runs on "
        "either input each of which started afresh"
    )
    return context.result(
        "violated",
        lower=bound.lower,
        p_value=context.agreeing(min(bound.p_value, 1.0), violated=True),
        loss=bound.loss,
        counterexample=example,
        outside=pair.beyond,
        to_add=context.source.bounds.to_add(pair),
    )
