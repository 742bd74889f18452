"""Pairs on which a mechanism takes other ways: runs on stand-ins, and what z3 makes of them.

Ding et al. 2018, section 4 (their Algorithm 4): arguments on which as many branches as possible
differ between D and D', where the noise is the same on both, and least. Here inputs are found in
the same way; each answer is run again, and what it meets is asked for next.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import z3

from pytest_dp.basics.faults import note_fault
from pytest_dp.basics.reprs import LINE_WIDTH, on_one_line
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.proposers.clock import Clock
from pytest_dp.proposers.input_leaves import Seen
from pytest_dp.proposers.running import trace_run
from pytest_dp.proposers.solving import QUESTION_SECONDS, Questions
from pytest_dp.proposers.staging import Stage, StagingError, Strategy, seen_in
from pytest_dp.proposers.trace import Branch, Instruction, Trace
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
MAX_PROPOSED = 48
"""Pairs that are proposed, beside those that part at most branches. More take samples from the
others."""
MAX_MET = 3
"""Inputs for a branch. More share the search; fewer may miss what leaks."""


@dataclass(frozen=True, slots=True)
class FoundPair:
    """A pair, whether it is proposed even if it shows nothing new, and looked at before others."""

    pair: Pair
    certain: bool = False
    first: bool = False


@dataclass(frozen=True, slots=True)
class _Runs:
    """A pair as stand-ins, and runs on either side with the same noise."""

    stage: Stage
    d1: Trace
    d2: Trace

    def before(self, trace: Trace, at: int) -> list[Any]:
        """Return the conditions under which a run comes to its branch of this number."""
        facts = [fact for since, fact in trace.facts if since <= at]
        return facts + [branch.taken for branch in trace.branches[:at]]

    @property
    def facts(self) -> list[Any]:
        """Conditions that inputs have to fulfil, whichever way the runs go."""
        return [*self.stage.facts, *(fact for _, fact in (*self.d1.facts, *self.d2.facts))]


class BySymbols:
    """Proposes pairs that part at a branch, or that both go another way than the claim's pairs."""

    name = "symbolic runs"

    def __init__(
        self,
        call: Call,
        pairs: Sequence[Pair],
        relation: Relation | None,
        generated: Generated | None,
        clock: Clock,
    ) -> None:
        call = replace(call, pristine=Pristine((call.mechanism, call.params)))
        self._explorer = Explorer(call, relation, generated, lambda: clock.remaining)
        found = self._explorer.found(pairs, lambda: clock.remaining > 0)
        self._pairs, self._error = self._choose(clock.timed(found)), ""

    def notes(self) -> list[str]:
        """Return what a person may want to know of the runs."""
        return [*self._explorer.notes(), *filter(None, [self._error])]

    def propose(self) -> Iterator[Pair]:
        """Return the pairs that are left, the same whatever was learned."""
        return self._pairs

    def _choose(self, found: Iterator[FoundPair]) -> Iterator[Pair]:
        proposed = 0
        try:
            for one in found:
                proposed += not one.certain
                if one.certain or proposed <= MAX_PROPOSED:
                    yield one.pair
        except OutOfTime:
            raise
        except Exception as error:  # what z3 or a library says of stand-ins; nothing hangs on it
            note_fault(error, "symbolic runs")
            said = on_one_line(str(error), LINE_WIDTH)
            self._error = f"symbolic runs ended: {type(error).__name__}: {said}"


class Explorer:
    """Asks for pairs that part at each branch, and for pairs that both go its other way.

    `asked` counts questions and `answered` answers; `concrete` what became concrete. `left` tells
    how many seconds there are for questions.
    """

    def __init__(
        self,
        call: Call,
        relation: Relation | None,
        generated: Generated | None = None,
        left: Callable[[], float] = lambda: QUESTION_SECONDS,
    ) -> None:
        self._call, self._relation, self._generated = call, relation, generated
        self._met: Counter[Any] = Counter()
        self._known: set[frozenset[bytes]] = set()
        self.asked = self.answered = 0
        self.concrete: Counter[str] = Counter()
        self.refused = ""
        self._questions = Questions(left)
        self._quiet: Mapping[str, Any] = {}
        self._seen: Mapping[Any, Seen] = {}
        self._more: Callable[[], bool] = lambda: True

    def notes(self) -> list[str]:
        """Return what was asked, and what was not followed, in words."""
        asked = f"symbolic runs asked z3 {self.asked:,} times, which found {self.answered:,} pairs"
        said = [asked] * bool(self.asked)
        if self._questions.unanswered:
            said.append(f"z3 gave no answer in time {self._questions.unanswered:,} times")
        if self.refused:
            said.append(f"symbolic runs: {self.refused}")
        lost = ", ".join(what for what, _ in self.concrete.most_common(MAX_MET))
        return said + [f"symbolic runs went on with plain values after {lost}"] * bool(lost)

    def found(self, pairs: Sequence[Pair], more: Callable[[], bool]) -> Iterator[FoundPair]:
        """Yield pairs around those given, until nothing new is met, or the effort is used up.

        `more` tells whether there is time.
        """
        try:
            yield from self._find(pairs, more)
        finally:
            self._questions.close()

    def _find(self, pairs: Sequence[Pair], more: Callable[[], bool]) -> Iterator[FoundPair]:
        self._known |= {pair.content for pair in pairs}
        self._more = more
        if self._generated is not None:
            self._seen = seen_in([*pairs, *self._generated.pool])
        chosen = sorted(pairs, key=_distance)[:MAX_STARTS]
        for seed in (None, 1):
            ahead = deque(chosen)
            while ahead and self._may_ask():
                pair = ahead.popleft()
                for found in self._around(pair, seed):
                    digest = found.pair.content
                    if digest not in self._known and len(digest) > 1:
                        self._known.add(digest)
                        self.answered += 1
                        (ahead.appendleft if found.first else ahead.append)(found.pair)
                        yield found

    def _around(self, pair: Pair, seed: int | None) -> Iterator[FoundPair]:
        runs = self._run(pair, seed)
        if runs is None:
            return
        if runs.stage.params and not self._met["noise"] and (quietest := self._quietest(runs)):
            yield FoundPair(quietest, True, True)
            return
        for kind, place, model in self._answers(runs):
            if made := runs.stage.answer(model):
                yield FoundPair(replace(made, origin=f"symbolic: {place}"), kind == "most")

    def _quietest(self, runs: _Runs) -> Pair | None:
        """Return the pair with the least noise; later pairs keep its parameters.

        Return None if no noise is found.
        """
        scales = [*runs.d1.scales, *runs.d2.scales]
        if not scales:
            return None
        self._met["noise"] += 1
        total = z3.Sum([z3.If(scale < 0, -scale, scale) for scale in scales])
        model = self._questions.least(runs.facts, total)
        if model is None:
            return None
        self._quiet = runs.stage.params_in(total, model)
        made = runs.stage.answer(model)
        return made and replace(made, origin="symbolic: the least noise")

    def _run(self, pair: Pair, seed: int | None) -> _Runs | None:
        deadline = Deadline(MAX_RUN_SECONDS)
        try:
            stage = self._stage(pair)
            if stage is None:
                return None
            d1 = trace_run(self._call, stage.d1, deadline, seed)
            d2 = trace_run(self._call, stage.d2, deadline, seed)
        except StagingError as error:
            self.refused = f"nothing stands in for data of type {error}"
            return None
        if d1 is None or d2 is None:
            self.refused = "no copy of the mechanism could be run on stand-ins"
            return None
        self.concrete += d1.concrete + d2.concrete
        return _Runs(stage, d1, d2)

    def _stage(self, pair: Pair) -> Stage | None:
        """Return a pair as stand-ins; None of one that the strategy did not make."""
        if self._generated is None:
            return Stage(pair, self._relation, None, self._quiet)
        drawn = self._generated.drawn(pair)
        if drawn is None:
            return None
        strategy = Strategy(drawn, self._generated.redrawn, self._seen)
        return Stage(pair, self._relation, strategy, self._quiet)

    def _answers(self, runs: _Runs) -> Iterator[tuple[str, Instruction, Any]]:
        yield from self._arguments(runs)
        other = {branch.key: at for at, branch in enumerate(runs.d2.branches)}
        for at, branch in enumerate(runs.d1.branches):
            matched = other.get(branch.key)
            twin = None if matched is None else runs.d2.branches[matched]
            alone = runs.before(runs.d1, at)
            before = alone if matched is None else alone + runs.before(runs.d2, matched)
            found = False
            for kind, condition in _questions_at(branch, twin):
                model = self._ask((branch.place, kind, branch.held), runs, before, condition)
                if model is not None:
                    found = True
                    yield kind, branch.place, model
            if not found and twin is not None:  # D and D' part before, such as in a sort
                key = branch.place, "alone", branch.held
                model = self._ask(key, runs, alone, branch.other)
                if model is not None:
                    yield "alone", branch.place, model

    def _may_ask(self) -> bool:
        return self.asked < MAX_QUESTIONS and self._more()

    def _ask(self, key: tuple[Any, ...], runs: _Runs, before: list[Any], condition: Any) -> Any:
        if self._met[key] >= MAX_MET or not self._may_ask():
            return None
        self.asked += 1
        model = self._questions.any([*runs.stage.facts, *before, condition], runs.stage.known)
        self._met[key] += model is not None
        self._met[(*key, "asked")] += 1
        if self._met[(*key, "asked")] >= MAX_ASKED:
            self._met[key] = MAX_MET
        return model

    def _arguments(self, runs: _Runs) -> Iterator[tuple[str, Instruction, Any]]:
        """Yield values for which as many branches as possible part."""
        other = {branch.key: branch for branch in runs.d2.branches}
        both = [(branch, other[branch.key]) for branch in runs.d1.branches if branch.key in other]
        enough = MAX_WITH_PARAMS if runs.stage.params else MAX_MET
        if both and self._met["most"] < enough:
            self._met["most"] += 1
            parting = [z3.Xor(a.condition, b.condition) for a, b in both]
            model = self._questions.most(runs.facts, parting, runs.stage.known)
            if model is not None:
                yield "most", both[0][0].place, model


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
