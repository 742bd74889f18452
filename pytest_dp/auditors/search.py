"""The search of StatDP: which pair and which event look most suspicious, on samples of its own.

Algorithm 1 of the paper draws 100,000 samples of every pair. Here pairs are compared on few samples
first, and only the suspicious half goes on (successive halving). Nothing found here is evidence:
what comes out is tested on fresh samples.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithms 1 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_dp.auditors.job import Job
from pytest_dp.counterexample import is_constant, simplest
from pytest_dp.errors import MechanismError
from pytest_dp.evidence import statdp
from pytest_dp.inputs import Pair
from pytest_dp.outputs.families import Found, Rank, search
from pytest_dp.outputs.table import Bools, Floats, Ints, Table, tabulate
from pytest_dp.sampling.calling import Outputs, Raised
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.pieces import Input, joined
from pytest_dp.sampling.sampler import Draw

STREAM = 1
"""First part of the keys of all samples drawn here; those of tests have another."""
SEARCH_SHARE = 0.4
"""Share of the samples, and of the time, that goes into the search."""
FIRST_ROUND = 500
"""Samples of each input in the first round of the search, where there are enough in all."""
FEWEST = 20
"""Samples of each input below which a first round tells nothing."""
LUCK = 8.0
"""Log likelihood ratio that choosing the best of many events gives to a claim that holds."""
DECISIVE = 30.0
"""Log likelihood ratio beyond luck at which the search is over."""
SUGGESTIVE = 6.0
"""The same, for a pair to be preferred over a decisive one because it is simpler."""


@dataclass(slots=True)
class Contender:
    """A pair in the search, by the positions of its inputs in the pool.

    `found` is its most suspicious event on `runs` samples of each input; `decided` says that no
    more samples are needed to pick it.
    """

    number: int
    pair: Pair
    first: int
    second: int
    references: list[Any]
    found: Found | None = None
    runs: int = 0
    decided: bool = False


@dataclass(slots=True)
class Pool:
    """Samples of the search: pairs that share an input share its samples."""

    inputs: list[Input] = field(default_factory=list)
    drawn: list[list[Outputs]] = field(default_factory=list)
    position: dict[Any, int] = field(default_factory=dict)

    def add(self, data: Any) -> int:
        given = Input(data)
        key = given.frozen if given.frozen is not None else id(data)
        if key not in self.position:
            self.position[key] = len(self.inputs)
            self.inputs.append(given)
            self.drawn.append([])
        return self.position[key]

    def count(self, which: int) -> int:
        return sum(map(len, self.drawn[which]))


def find_suspect(job: Job, pool: Pool) -> tuple[list[Contender], Contender | None]:
    """Successive halving: a quick look at all pairs, then equal effort for ever fewer of them.

    Returns the pairs that took part, and the one to test, or None if no event is worth a test.
    """
    budget = SEARCH_SHARE * job.max_samples
    contenders = everyone = _line_up(job, pool, budget)
    deadline = job.deadline.sooner(SEARCH_SHARE)
    rank = rank_for(job.claim.eps)
    a_round = budget / (math.ceil(math.log2(len(contenders))) + 1)
    full = max(1, int(a_round / len(pool.inputs)))
    runs = min(FIRST_ROUND, full)
    while True:
        try:
            _draw_up_to(job, pool, contenders, runs, deadline)
        except OutOfTime as out:
            if out.stack or not any(pool.drawn):
                raise
            break  # judge by what there is
        if _all_raise(pool):
            raise _always_raises(job, pool)
        for contender in contenders:
            _look(contender, pool, rank)
        contenders = sorted(contenders, key=_promise)
        best = -_promise(contenders[0])[0]
        if best > DECISIVE:  # among pairs about as suspicious, the first one is the simplest
            near = [c for c in contenders if -_promise(c)[0] > max(SUGGESTIVE, 0.4 * best)]
            contenders = [min(near, key=lambda c: c.number)]
            contenders[0].decided = True
            break
        if runs < full:
            runs = min(4 * runs, full)
        elif len(contenders) == 1:
            break
        else:
            contenders = contenders[: len(contenders) // 2]
            runs += int(a_round / len({i for c in contenders for i in (c.first, c.second)}))
    return everyone, next((c for c in contenders if c.found is not None), None)


def _line_up(job: Job, pool: Pool, budget: float) -> list[Contender]:
    """The pairs that take part: as many as can be given `FEWEST` samples of each input."""
    contenders: list[Contender] = []
    for number, pair in enumerate(job.pairs):
        if number and (len(pool.inputs) + 1) * FEWEST > budget / 2:
            break
        answers = [job.call.noiseless(d, job.claim.eps_param) for d in (pair.d1, pair.d2)]
        references = [answer for answer in answers if answer is not None]
        contenders.append(Contender(number, pair, pool.add(pair.d1), pool.add(pair.d2), references))
    if len(contenders) < len(job.pairs):
        job.sampler.note(
            f"tried {len(contenders)} of {len(job.pairs):,} pairs: raise max_samples or "
            "max_seconds, or name the pairs that matter with pairs="
        )
    return contenders


def _draw_up_to(
    job: Job, pool: Pool, contenders: list[Contender], runs: int, deadline: Deadline
) -> None:
    wanted = sorted({i for c in contenders for i in (c.first, c.second)})
    draws, who = [], []
    for i in wanted:
        missing = runs - pool.count(i)
        if missing > 0:
            draws.append(Draw(pool.inputs[i], missing, (STREAM, i, len(pool.drawn[i]))))
            who.append(i)
    for i, outputs in zip(who, job.sampler.draw(draws, deadline), strict=True):
        pool.drawn[i].append(outputs)


def _table(contender: Contender, pool: Pool) -> tuple[Table, Bools]:
    """The search samples of a pair, as many of either input, and which are of the first."""
    one, two = (joined(pool.drawn[i]) for i in (contender.first, contender.second))
    runs = min(len(one), len(two))
    return tabulate(joined([one[:runs], two[:runs]])), np.arange(2 * runs) < runs


def _look(contender: Contender, pool: Pool, rank_of: Callable[[int], Rank]) -> None:
    """Find the most suspicious event of a pair on all search samples so far."""
    table, first = _table(contender, pool)
    contender.runs = len(first) // 2
    rank = rank_of(contender.runs)
    found = search(table, first, rank, contender.references, most=1)
    contender.found = simplest(found[0], table, first, rank) if found else None


def rank_for(eps: float) -> Callable[[int], Rank]:
    """How suspicious counts are; above 0 if they exceed the claim by more than luck explains.

    Up there it is a log likelihood ratio, an inexpensive stand-in for the p-value by which the
    paper ranks events. Below, events that came out on top by luck would beat those that can prove
    something, so it is how far a cautious bound on the loss stays from the claim.
    """

    def of_runs(runs: int) -> Rank:
        fewest = max(5.0, 0.001 * runs * math.exp(eps))  # the paper's filter of rare events

        def rank(c1: Ints, c2: Ints) -> Floats:
            high, low = np.maximum(c1, c2), np.minimum(c1, c2)
            excess = statdp.score(high, low, runs, eps) - LUCK
            bound = np.log(
                np.maximum(high - 4 * np.sqrt(high), 0.1) / (low + 4 * np.sqrt(low) + 4.0)
            )
            ranks = np.where(excess > 0, excess, np.minimum(bound - eps, 0.0) - 1.0)
            return np.where(c1 + c2 >= min(fewest, runs), ranks, -np.inf)

        return rank

    return of_runs


def _promise(contender: Contender) -> tuple[float, int]:
    rank = contender.found.rank if contender.found is not None else -math.inf
    return -rank, contender.number


def _all_raise(pool: Pool) -> bool:
    return all(
        isinstance(output, Raised)
        for drawn in pool.drawn
        for outputs in drawn
        for output in (outputs if isinstance(outputs, list) else outputs[:1])
    )


def _always_raises(job: Job, pool: Pool) -> MechanismError:
    first = pool.drawn[0][0][0]
    runs = sum(pool.count(i) for i in range(len(pool.inputs)))
    return MechanismError(
        f"{job.short_name} raised in all {runs:,} runs, so there is nothing to audit. The first "
        f"time, on {job.describe(job.pairs[0].d1)}:\n{first.trace}"
    )


def largest_loss(contender: Contender, pool: Pool) -> float:
    """The largest loss that any event had in the search, less two standard errors."""

    def rank(c1: Ints, c2: Ints) -> Floats:
        high, low = np.maximum(c1, c2) + 0.5, np.minimum(c1, c2) + 0.5
        loss = np.log(high / low) - 2 * np.sqrt(1 / high + 1 / low)
        return np.where(high > 50, loss, -np.inf)

    table, first = _table(contender, pool)
    found = search(table, first, rank, contender.references, most=1)
    return found[0].rank if found else 0.0


def never_varies(job: Job, pool: Pool) -> bool:
    """Whether nothing ever varied, which is said: perfectly private, and hardly what was meant."""
    drawn = [outputs for outputs in pool.drawn if outputs]
    if not is_constant(tabulate(joined([outputs[0][:32] for outputs in drawn]))):
        return False
    everything = joined([part for outputs in drawn for part in outputs])
    if len(everything) < 2 or not is_constant(tabulate(everything)):
        return False
    hint = "is a return missing?" if everything[0] is None else "missing noise or a fixed seed?"
    job.sampler.note(f"returned the same value in all {len(everything):,} runs: {hint}")
    return True
