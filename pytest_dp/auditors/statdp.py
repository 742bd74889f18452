"""StatDP: look for the most suspicious event on some samples, test it on fresh ones.

Algorithm 1 of the paper draws 100,000 samples of every pair to choose an event and 500,000 to test
it. Here the same two steps stop where they know enough: pairs are compared on few samples first and
only the suspicious half goes on (successive halving), and the fresh sample is as large as the
search says it must be. Both decisions rest on search samples only, and a single event is tested,
once, on samples that nobody has looked at; so the p-value is exact whatever the search did.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithms 1 to 4; the p-value is that of `pytest_dp.evidence.statdp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_dp.auditors.job import Job
from pytest_dp.auditors.result import AuditResult, Counterexample, Verdict
from pytest_dp.counterexample import diagnose, is_constant, simplest
from pytest_dp.errors import MechanismError
from pytest_dp.evidence import clopper_pearson, combined, homogeneity, statdp
from pytest_dp.inputs import Pair
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.families import Found, Rank, search
from pytest_dp.outputs.table import Bools, Floats, Ints, Table, tabulate
from pytest_dp.sampling.calling import Outputs, Raised
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.pieces import Input, cut, joined
from pytest_dp.sampling.sampler import Draw

SEARCH_SHARE = 0.4
"""Share of the samples, and of the time, that goes into the search."""
FIRST_ROUND = 500
"""Samples of each input in the first round of the search, where there are enough in all."""
FEWEST = 50
"""Samples of each input below which a first round tells nothing."""
LUCK = 8.0
"""Log likelihood ratio that choosing the best of many events gives to a claim that holds."""
DECISIVE = 30.0
"""Log likelihood ratio beyond luck at which the search is over."""
SUGGESTIVE = 6.0
"""The same, for a pair to be preferred over a decisive one because it is simpler."""
CLUMPED = 1e-9
"""p-value (approximate) below which runs do not count as independent."""
FEWEST_TESTED = 1_000

_SEARCH, _TEST = 1, 2  # streams: what is tested has never been searched


@dataclass(slots=True)
class _Contender:
    """A pair in the search, by the positions of its inputs."""

    number: int
    pair: Pair
    first: int
    second: int
    references: list[Any]
    found: Found | None = None
    runs: int = 0
    decided: bool = False


@dataclass(slots=True)
class _Pool:
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


def audit(job: Job) -> AuditResult:
    """Audit one claim with StatDP.

    Parameters
    ----------
    job : Job

    Returns
    -------
    AuditResult
        ``violated`` exactly if the p-value is at most alpha; ``inconclusive`` if there were too few
        samples to catch anything.

    Raises
    ------
    MechanismError
        If every run of the mechanism raises, or if it hangs.
    """
    pool = _Pool()
    try:
        job.sampler.warm_up(pool.inputs[pool.add(job.pairs[0].d1)], job.deadline)
        job.limit_to_time()
        contenders, best = _search(job, pool)
        tested = _test(job, pool, best) if best is not None else None
    except OutOfTime as out:
        if out.stack:
            raise job.hung(out) from None
        job.sampler.note(f"stopped after max_seconds={job.settings.max_seconds:g}, before the test")
        return job.result("inconclusive")
    _note_constant(job, pool)
    tried = len(contenders), len(job.pairs)
    if best is None or tested is None:
        return job.result("inconclusive", pairs=tried)
    return _conclude(job, pool, best, tested, tried)


def _search(job: Job, pool: _Pool) -> tuple[list[_Contender], _Contender | None]:
    """Successive halving: a quick look at all pairs, then equal effort for ever fewer of them."""
    budget = SEARCH_SHARE * job.max_samples
    contenders = everyone = _line_up(job, pool, budget)
    deadline = job.deadline.sooner(SEARCH_SHARE)
    rank = _rank(job.claim.eps)
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


def _line_up(job: Job, pool: _Pool, budget: float) -> list[_Contender]:
    """The pairs that take part: as many as can be given `FEWEST` samples of each input."""
    pairs = job.pairs[: max(1, int(budget / 4 / FEWEST))]
    contenders = []
    for number, pair in enumerate(pairs):
        answers = [job.call.noiseless(d, job.claim.eps_param) for d in (pair.d1, pair.d2)]
        references = [answer for answer in answers if answer is not None]
        contenders.append(
            _Contender(number, pair, pool.add(pair.d1), pool.add(pair.d2), references)
        )
    if len(pairs) < len(job.pairs):
        job.sampler.note(
            f"tried {len(pairs)} of {len(job.pairs):,} pairs: raise max_samples or max_seconds "
            "to try more"
        )
    return contenders


def _draw_up_to(
    job: Job, pool: _Pool, contenders: list[_Contender], runs: int, deadline: Deadline
) -> None:
    wanted = sorted({i for c in contenders for i in (c.first, c.second)})
    draws, who = [], []
    for i in wanted:
        missing = runs - pool.count(i)
        if missing > 0:
            draws.append(Draw(pool.inputs[i], missing, (_SEARCH, i, len(pool.drawn[i]))))
            who.append(i)
    for i, outputs in zip(who, job.sampler.draw(draws, deadline), strict=True):
        pool.drawn[i].append(outputs)


def _table(contender: _Contender, pool: _Pool) -> tuple[Table, Bools]:
    """The search samples of a pair, as many of either input, and which are of the first."""
    one, two = (joined(pool.drawn[i]) for i in (contender.first, contender.second))
    runs = min(len(one), len(two))
    return tabulate(joined([one[:runs], two[:runs]])), np.arange(2 * runs) < runs


def _look(contender: _Contender, pool: _Pool, rank_of: Callable[[int], Rank]) -> None:
    """Find the most suspicious event of a pair on all search samples so far."""
    table, first = _table(contender, pool)
    contender.runs = len(first) // 2
    rank = rank_of(contender.runs)
    found = search(table, first, rank, contender.references, most=1)
    contender.found = simplest(found[0], table, first, rank) if found else None


def _rank(eps: float) -> Callable[[int], Rank]:
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


def _promise(contender: _Contender) -> tuple[float, int]:
    rank = contender.found.rank if contender.found is not None else -math.inf
    return -rank, contender.number


def _all_raise(pool: _Pool) -> bool:
    return all(
        isinstance(output, Raised)
        for drawn in pool.drawn
        for outputs in drawn
        for output in (outputs if isinstance(outputs, list) else outputs[:1])
    )


def _always_raises(job: Job, pool: _Pool) -> MechanismError:
    first = pool.drawn[0][0][0]
    runs = sum(pool.count(i) for i in range(len(pool.inputs)))
    return MechanismError(
        f"{job.short_name} raised in all {runs:,} runs, so there is nothing to audit. The first "
        f"time, on {job.describe(job.pairs[0].d1)}:\n{first.trace}"
    )


@dataclass(frozen=True, slots=True)
class _Tested:
    counts: tuple[int, int]
    runs: int
    constant: tuple[bool, bool]
    clumps: tuple[float, ...] = ()
    """Shares of the event in stretches of runs on one input, if they differ beyond chance."""


def _test(job: Job, pool: _Pool, best: _Contender) -> _Tested | None:
    """Count the event in fresh samples, as many as the search says are needed."""
    assert best.found is not None
    runs = _runs_of_test(job, best)
    if runs < 1:
        return None
    draws = [
        Draw(pool.inputs[i], runs, (_TEST, i, side))
        for side, i in enumerate((best.first, best.second))
    ]
    tables = [tabulate(outputs) for outputs in job.sampler.draw(draws, job.deadline)]
    hits = [best.found.event.mask(table) for table in tables]
    sizes = [piece.count for piece in cut(runs, (), job.call.size is not None)]
    clumped = [shares for p, shares in (homogeneity.p_value(h, sizes) for h in hits) if p < CLUMPED]
    return _Tested(
        (int(hits[0].sum()), int(hits[1].sum())),
        runs,
        (is_constant(tables[0]), is_constant(tables[1])),
        tuple(clumped[0]) if clumped else (),
    )


def _runs_of_test(job: Job, best: _Contender) -> int:
    assert best.found is not None
    eps, alpha = job.claim.eps, job.alpha
    most = int(min(job.max_samples - job.sampler.runs, job.affordable())) // 2
    if not best.decided:
        return most
    high, low = max(best.found.c1, best.found.c2), min(best.found.c1, best.found.c2)
    p1 = clopper_pearson.lower(high, best.runs, 0.01)
    p2 = clopper_pearson.upper(low, best.runs, 0.01)
    enough = statdp.runs_for_power(p1, p2, eps, alpha / 2, power=0.999, most=max(most, 1))
    return most if enough is None else min(most, max(2 * enough, FEWEST_TESTED))


def _conclude(
    job: Job, pool: _Pool, best: _Contender, tested: _Tested, tried: tuple[int, int]
) -> AuditResult:
    assert best.found is not None
    event, (c1, c2), runs = best.found.event, tested.counts, tested.runs
    pair, constant = best.pair, tested.constant
    if best.found.c2 > best.found.c1:  # which way to look is for the search to say
        c1, c2, pair, constant = c2, c1, pair.reversed(), constant[::-1]
    eps, alpha = job.claim.eps, job.alpha
    p_value = combined.p_value(c1, c2, runs, eps)
    eps_lower = combined.eps_lower(c1, c2, runs, alpha)
    if c2 > c1:  # StatDP's test looks the other way as well
        c1, c2, pair, constant = c2, c1, pair.reversed(), constant[::-1]
    violated = p_value <= alpha
    if violated and tested.clumps:
        raise _clumps(job, event, tested.clumps)
    resolution = _resolution(c1, c2, runs, eps, alpha, _largest_loss(best, pool))
    counterexample = None
    if violated:
        counterexample = Counterexample(
            d1=pair.d1,
            d2=pair.d2,
            event=event,
            counts=(c1, c2),
            runs=(runs, runs),
            intervals=(
                clopper_pearson.interval(c1, runs, alpha / 2),
                clopper_pearson.interval(c2, runs, alpha / 2),
            ),
            p_value=statdp.p_value_both(c1, c2, runs, eps),
            eps_clopper_pearson=clopper_pearson.eps_lower(c1, runs, c2, runs, alpha / 2),
            difference=pair.difference,
            diagnosis=diagnose(event, (c1, c2), runs, eps, constant),
        )
    verdict: Verdict = "violated" if violated else "no violation"
    if not violated and math.isinf(resolution):
        verdict = "inconclusive"
    return job.result(
        verdict,
        eps_lower=eps_lower,
        p_value=p_value,
        resolution=resolution,
        counterexample=counterexample,
        strongest=_describe(event, c1, c2, runs),
        pairs=tried,
    )


def _clumps(job: Job, event: Event, shares: tuple[float, ...]) -> MechanismError:
    shown = ", ".join(f"{100 * share:.0f} %" for share in shares[:6])
    return MechanismError(
        f"{job.short_name}: its runs are not independent, so there is no verdict on privacy. On "
        f"one input, {event} held in {shown}, ... of the runs, stretch by stretch: more than "
        "chance explains. A vectorised mechanism must draw all of its noise anew for every output "
        "(shape (size, ...)); others may keep something from run to run, such as a cache, a quota "
        "or a running total."
    )


def _resolution(c1: int, c2: int, runs: int, eps: float, alpha: float, largest: float) -> float:
    """The smallest true ε that this audit would have caught with 95 % power (approximate).

    The test gets 99 %, which leaves a share for the search to fail. Of an event that has nearly
    the mechanism's full loss, the likelier side is seldom above one half. Where there is little to
    find, the event that was tested may have less than the `largest` loss that was seen; a larger ε
    is then needed in the same proportion.
    """
    caught = statdp.smallest_eps(min(c1 / runs, 0.5), runs, eps, alpha / 2, power=0.99)
    loss = math.log((c1 + 0.5) / (c2 + 0.5))
    return caught * max(1.0, largest / max(loss, 1e-3))


def _largest_loss(contender: _Contender, pool: _Pool) -> float:
    """The largest loss that any event had in the search, less two standard errors."""

    def rank(c1: Ints, c2: Ints) -> Floats:
        high, low = np.maximum(c1, c2) + 0.5, np.minimum(c1, c2) + 0.5
        loss = np.log(high / low) - 2 * np.sqrt(1 / high + 1 / low)
        return np.where(high > 50, loss, -np.inf)

    table, first = _table(contender, pool)
    found = search(table, first, rank, contender.references, most=1)
    return found[0].rank if found else 0.0


def _describe(event: Event, c1: int, c2: int, runs: int) -> str:
    return f"{event}: {c1:,} against {c2:,} of {runs:,}"


def _note_constant(job: Job, pool: _Pool) -> None:
    """Say so if nothing ever varied: perfectly private, and hardly what was meant."""
    drawn = [outputs for outputs in pool.drawn if outputs]
    if not is_constant(tabulate(joined([outputs[0][:32] for outputs in drawn]))):
        return
    everything = joined([part for outputs in drawn for part in outputs])
    if len(everything) > 1 and is_constant(tabulate(everything)):
        job.sampler.note(
            f"returned the same value in all {len(everything):,} runs: missing noise or a fixed "
            "seed?"
        )
