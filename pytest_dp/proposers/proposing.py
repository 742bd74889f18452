"""Pairs on which a mechanism takes other ways: runs on stand-ins, and what z3 makes of them.

Ding et al. 2018, section 4 (their Algorithm 4): arguments on which as many branches as possible
differ between D and D', where the noise is the same on both, and least. Here inputs are found in
the same way; each answer is run again, and what it meets is asked for next.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import z3

from pytest_dp.basics.errors import note_fault
from pytest_dp.basics.reprs import LINE_WIDTH, on_one_line
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.proposers.by_movement import Clock
from pytest_dp.proposers.solving import Questions, Values
from pytest_dp.proposers.staging import Range, Stage, StagingError, ranges_of
from pytest_dp.proposers.trace import Branch, Instruction, Trace, trace_run
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime

if TYPE_CHECKING:  # with Hypothesis, which claims about examples do without
    from pytest_dp.pairs.generated import Generated

MAX_RUN_SECONDS = 1.0
"""Seconds of one run on stand-ins. More: slow mechanisms hold up the search; fewer: they are not
followed."""
MAX_QUESTIONS = 256
"""Questions to z3. More take longer; fewer leave branches unmet."""
USUAL_LENGTH = 3
"""Records of a dataset that runs on stand-ins begin with. More take longer; fewer miss what needs
several."""
MAX_ASKED = 24
"""Questions about one branch. More take longer; fewer leave it unmet."""
MAX_WITH_PARAMS = 8
"""Inputs for a branch, where parameters are drawn as well. More share the search; fewer may miss
what leaks."""
MAX_STARTS = 8
"""Pairs from which runs on stand-ins start. More take longer; fewer are much alike."""
MAX_PROPOSED = 64
"""Pairs that are proposed. More take samples from the others."""
MAX_MET = 3
"""Inputs for a branch. More share the search; fewer may miss what leaks."""

LEAST_NOISE = "symbolic: the least noise"
"""The origin of the pair whose parameters later ones keep."""


@dataclass(frozen=True, slots=True)
class _Runs:
    """A pair as stand-ins, and runs on either side with the same noise."""

    stage: Stage
    d1: Trace
    d2: Trace

    @property
    def facts(self) -> list[Any]:
        """Conditions that inputs have to fulfil, whichever way the runs go."""
        return [*self.stage.facts, *(fact for _, fact in (*self.d1.facts, *self.d2.facts))]


class BySymbols:
    """Proposes pairs that part at a branch, or that both go another way than the claim's pairs.

    `asked` counts questions, and `answered` the pairs that are found.
    """

    name = "symbolic runs"

    def __init__(
        self,
        call: Call,
        pairs: Sequence[Pair],
        relation: Relation | None,
        generated: Generated | None,
        clock: Clock,
    ) -> None:
        self._call = replace(call, pristine=Pristine((call.mechanism, call.params)))
        self._relation, self._generated, self._clock = relation, generated, clock
        self.asked = self.answered = 0
        self._questions = Questions(lambda: clock.remaining)
        self._concrete: Counter[str] = Counter()
        self._met: Counter[Any] = Counter()
        self._decided: Mapping[str, Any] = {}
        """Parameters that the noise depends on, with the values at which it is least."""
        self._ranges: Mapping[Hashable, Range] = {}
        self._refused = ""
        self._pairs = clock.timed(self._find(pairs))

    def notes(self) -> list[str]:
        """Return what was asked, and what was not followed, in words."""
        asked = f"symbolic runs asked z3 {self.asked:,} times, which found {self.answered:,} pairs"
        said = [asked] * bool(self.asked)
        if self._questions.unanswered:
            said.append(f"z3 gave no answer in time {self._questions.unanswered:,} times")
        if self._refused:
            said.append(f"symbolic runs: {self._refused}")
        lost = ", ".join(what for what, _ in self._concrete.most_common(MAX_MET))
        return said + [f"symbolic runs went on with plain values after {lost}"] * bool(lost)

    def propose(self) -> Iterator[Pair]:
        """Return the pairs that are left, the same whatever was learned."""
        return self._pairs

    def _find(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        """Yield pairs around those given, until nothing new is met, or the effort is used up."""
        if self._generated is not None:
            self._ranges = ranges_of([*pairs, *self._generated.pool])
        known = {pair.content for pair in pairs}
        ahead = deque(sorted(pairs, key=_distance)[:MAX_STARTS])
        try:
            while ahead and self._may_ask():
                for found in self._around(ahead.popleft()):
                    if found.content in known or len(found.content) < 2:
                        continue
                    known.add(found.content)
                    self.answered += 1
                    if found.origin == LEAST_NOISE:
                        ahead.appendleft(found)
                    else:
                        ahead.append(found)
                    yield found
        except OutOfTime:
            raise
        except Exception as error:  # what z3 or a library says of stand-ins; nothing hangs on it
            note_fault(error, "symbolic runs")
            said = on_one_line(str(error), LINE_WIDTH)
            self._refused = f"ended by {type(error).__name__}: {said}"
        finally:
            self._questions.close()

    def _around(self, pair: Pair) -> Iterator[Pair]:
        runs = self._run(pair)
        if runs is None:
            return
        if runs.stage.params and not self._met["noise"] and (quietest := self._quietest(runs)):
            yield quietest
            return
        for place, values in self._answers(runs):
            if made := runs.stage.answer(values):
                yield replace(made, origin=f"symbolic: {place}")

    def _quietest(self, runs: _Runs) -> Pair | None:
        """Return the pair with the least noise; later pairs keep its parameters.

        Return None if no noise is found.
        """
        scales = [*runs.d1.scales, *runs.d2.scales]
        if not scales:
            return None
        self._met["noise"] += 1
        total = z3.Sum([z3.If(scale < 0, -scale, scale) for scale in scales])
        values = self._questions.least(runs.facts, total)
        if values is None:
            return None
        self._decided = runs.stage.params_in(total, values)
        made = runs.stage.answer(values)
        return made and replace(made, origin=LEAST_NOISE)

    def _run(self, pair: Pair) -> _Runs | None:
        deadline = Deadline(MAX_RUN_SECONDS)
        if self._generated is not None and self._generated.drawn(pair) is None:
            return None  # the strategy did not make it
        try:
            stage = Stage(pair, self._relation, self._generated, self._ranges, self._decided)
            d1 = trace_run(self._call, stage.d1, deadline)
            d2 = trace_run(self._call, stage.d2, deadline)
        except StagingError as error:
            self._refused = f"nothing stands in for data of type {error}"
            return None
        if d1 is None or d2 is None:
            self._refused = "no copy of the mechanism could be run on stand-ins"
            return None
        self._concrete += d1.concrete + d2.concrete
        return _Runs(stage, d1, d2)

    def _answers(self, runs: _Runs) -> Iterator[tuple[Instruction, Values]]:
        """Yield values for which as many branches as possible part, then for one way of each."""
        yield from self._most_parting(runs)
        other = {branch.key: at for at, branch in enumerate(runs.d2.branches)}
        for at, branch in enumerate(runs.d1.branches):
            matched = other.get(branch.key)
            twin = None if matched is None else runs.d2.branches[matched]
            alone = runs.d1.before(at)
            before = alone if matched is None else alone + runs.d2.before(matched)
            found = False
            for kind, condition in _questions_at(branch, twin):
                values = self._ask((branch.place, kind, branch.held), runs, before, condition)
                if values is not None:
                    found = True
                    yield branch.place, values
            if not found and twin is not None:  # D and D' part before, such as in a sort
                key = branch.place, "alone", branch.held
                values = self._ask(key, runs, alone, branch.other)
                if values is not None:
                    yield branch.place, values

    def _most_parting(self, runs: _Runs) -> Iterator[tuple[Instruction, Values]]:
        """Yield values for which as many branches as possible part."""
        other = {branch.key: branch for branch in runs.d2.branches}
        both = [(branch, other[branch.key]) for branch in runs.d1.branches if branch.key in other]
        enough = MAX_WITH_PARAMS if runs.stage.params else MAX_MET
        if both and self._met["most"] < enough:
            self._met["most"] += 1
            parting = [z3.Xor(a.condition, b.condition) for a, b in both]
            values = self._questions.most(runs.facts, parting, runs.stage.known)
            if values is not None:
                yield both[0][0].place, values

    def _may_ask(self) -> bool:
        has_room = self.asked < MAX_QUESTIONS and self.answered < MAX_PROPOSED
        return has_room and self._clock.remaining > 0

    def _ask(
        self, key: tuple[Any, ...], runs: _Runs, before: list[Any], condition: Any
    ) -> Values | None:
        asked = (*key, "asked")
        if self._met[key] >= MAX_MET or self._met[asked] >= MAX_ASKED or not self._may_ask():
            return None
        self.asked += 1
        self._met[asked] += 1
        values = self._questions.most([*runs.stage.facts, *before, condition], (), runs.stage.known)
        self._met[key] += values is not None
        return values


def _questions_at(branch: Branch, twin: Branch | None) -> Iterator[tuple[str, Any]]:
    """Yield what to ask at a branch: that both runs go the other way, or that they part."""
    if twin is None:
        yield "other", branch.other
        return
    if branch.held == twin.held:
        yield "both", z3.And(branch.other, twin.other)
    yield "part", z3.Xor(branch.condition, twin.condition)


def _distance(pair: Pair) -> int:
    """Return how far from the sizes that are easiest to think about."""
    sizes = [len(data) if hasattr(data, "__len__") else 1 for data in (pair.d1, pair.d2)]
    return abs(max(sizes) - USUAL_LENGTH) + 2 * (min(sizes) == 0)
