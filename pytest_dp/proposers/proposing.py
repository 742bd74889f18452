"""Pairs on which a mechanism takes other branches: runs on stand-ins, and what z3 makes of them.

As in Ding et al. 2018, section 4 (their Algorithm 4), inputs are found on which as many branches as
possible differ between D and D' with the same, least noise. Each answer is run again, for further
branches. Inputs of strategies stay unchanged: only parameters are chosen.

z3 ignores some of its limits, and alarms: it answers in a process that can be killed. Each question
gets a context of its own, so that equal questions have equal answers.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import z3
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool

from pytest_dp.basics import clocks
from pytest_dp.basics.errors import note_fault
from pytest_dp.basics.reprs import LINE_WIDTH, on_one_line
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.proposers.by_movement import Clock
from pytest_dp.proposers.staging import Range, Stage, StagingError, Values, ranges_of_params
from pytest_dp.proposers.trace import Branch, Instruction, Trace, trace_run
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime

if TYPE_CHECKING:  # with Hypothesis, which claims about examples do without
    from pytest_dp.pairs.generated import Generated

MAX_RUN_SECONDS = 1.0
"""Seconds of one run on stand-ins. With fewer, slow mechanisms are not followed."""
MAX_QUESTIONS = 256
"""Questions to z3. More take longer; fewer leave branches unmet."""
USUAL_LENGTH = 3
"""Records of a dataset that runs begin with. Fewer miss what needs several."""
MAX_ASKED = 24
"""Questions about one branch. More take longer; fewer leave it unmet."""
MAX_WITH_PARAMS = 8
"""Inputs for a branch, where parameters are drawn. Fewer may miss what leaks."""
MAX_STARTS = 8
"""Pairs from which runs on stand-ins start. More take longer; fewer are much alike."""
MAX_PROPOSED = 64
"""Pairs that are proposed. More take samples from the others."""
MAX_MET = 3
"""Inputs for a branch. More share the search; fewer may miss what leaks."""

STARTING_SECONDS = 25.0
"""Seconds for z3's process to start. With fewer, slow machines fail."""
QUESTION_SECONDS = 2.0
"""Seconds for a question. With fewer, a slow machine finds less; most take a tenth."""
MAX_STEPS = 2_000_000
"""Steps of z3 for a question. With fewer, conditions on several values have no answer."""

LEAST_NOISE = "symbolic: the least noise"
"""The origin of the pair whose parameters later ones keep."""


@dataclass(frozen=True, slots=True)
class _Runs:
    """A pair as stand-ins, and the traces of a run on D and of one on D' with the same noise."""

    stage: Stage
    d1: Trace
    d2: Trace

    @property
    def facts(self) -> list[Any]:
        """Conditions that inputs have to fulfil, whichever branches the runs take."""
        return [*self.stage.facts, *(fact for _, fact in (*self.d1.facts, *self.d2.facts))]


class BySymbols:
    """A search by runs on z3 variables for pairs that take other branches, D or D' or both.

    `asked` counts questions to z3, and `answered` the pairs that were found.
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
        self._ranges: Mapping[str, Range] = {}
        self._refused = ""
        self._pairs = clock.count_time(self._find_pairs(pairs))

    def notes(self) -> list[str]:
        """Return notes for people: on questions to z3, lost formulas, and why the search ended.

        Empty if there is nothing to note.
        """
        asked = f"symbolic runs asked z3 {self.asked:,} times, which found {self.answered:,} pairs"
        said = [asked] * bool(self.asked)
        if self._questions.unanswered:
            said.append(f"z3 gave no answer in time {self._questions.unanswered:,} times")
        if self._refused:
            said.append(f"symbolic runs: {self._refused}")
        lost = ", ".join(what for what, _ in self._concrete.most_common(MAX_MET))
        return said + [f"symbolic runs went on with plain values after {lost}"] * bool(lost)

    def propose(self) -> Iterator[Pair]:
        """Return the iterator of pairs that were not proposed yet: each call returns this one."""
        return self._pairs

    def _find_pairs(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        """Yield new pairs around those given, until none is found, or the effort is used up.

        Errors end the search with a note, but OutOfTime is raised.
        """
        if self._generated is not None:
            self._ranges = ranges_of_params([*pairs, *self._generated.pool])
        known = {pair.content for pair in pairs}
        ahead = deque(sorted(pairs, key=_distance_from_usual)[:MAX_STARTS])
        try:
            while ahead and self._may_ask():
                for found in self._pairs_around(ahead.popleft()):
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

    def _pairs_around(self, pair: Pair) -> Iterator[Pair]:
        """Run a pair as stand-ins; yield the pairs that z3 finds from its branches."""
        runs = self._trace_pair(pair)
        if runs is None:
            return
        if (
            runs.stage.params
            and not self._met["noise"]
            and (quietest := self._find_least_noise(runs))
        ):
            yield quietest
            return
        for place, values in self._solve_branches(runs):
            if made := runs.stage.make_pair(values):
                yield replace(made, origin=f"symbolic: {place}")

    def _find_least_noise(self, runs: _Runs) -> Pair | None:
        """Return the pair with the least noise, and let later pairs keep its parameters.

        None if no noise depends on the input, or z3 finds no values.
        """
        scales = [*runs.d1.scales, *runs.d2.scales]
        if not scales:
            return None
        self._met["noise"] += 1
        total = z3.Sum([z3.If(scale < 0, -scale, scale) for scale in scales])
        values = self._questions.solve_least(runs.facts, total)
        if values is None:
            return None
        self._decided = runs.stage.params_in(total, values)
        made = runs.stage.make_pair(values)
        return made and replace(made, origin=LEAST_NOISE)

    def _trace_pair(self, pair: Pair) -> _Runs | None:
        """Run the mechanism on stand-ins for D and D'; None, noting why, if that is impossible.

        None also for pairs of a strategy without parameters.
        """
        deadline = Deadline(MAX_RUN_SECONDS)
        try:
            stage = Stage(pair, self._relation, self._generated, self._ranges, self._decided)
            if self._generated is not None and not stage.params:
                self._refused = "inputs of strategies are left to the search 'guided'"
                return None
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

    def _solve_branches(self, runs: _Runs) -> Iterator[tuple[Instruction, Values]]:
        """Yield a place and z3's values: for most branches that differ, then for each branch."""
        yield from self._solve_most_parting(runs)
        other = {branch.key: at for at, branch in enumerate(runs.d2.branches)}
        for at, branch in enumerate(runs.d1.branches):
            matched = other.get(branch.key)
            twin = None if matched is None else runs.d2.branches[matched]
            alone = runs.d1.conditions_before(at)
            before = alone if matched is None else alone + runs.d2.conditions_before(matched)
            found = False
            for kind, condition in _questions_at(branch, twin):
                values = self._ask((branch.place, kind, branch.held), runs, before, condition)
                if values is not None:
                    found = True
                    yield branch.place, values
            if not found and twin is not None:  # D and D' part before, such as in a sort
                key = branch.place, "alone", branch.held
                values = self._ask(key, runs, alone, branch.other_condition)
                if values is not None:
                    yield branch.place, values

    def _solve_most_parting(self, runs: _Runs) -> Iterator[tuple[Instruction, Values]]:
        """Yield values for which D and D' differ at as many branches as possible, a few times."""
        other = {branch.key: branch for branch in runs.d2.branches}
        both = [(branch, other[branch.key]) for branch in runs.d1.branches if branch.key in other]
        enough = MAX_WITH_PARAMS if runs.stage.params else MAX_MET
        if both and self._met["most"] < enough:
            self._met["most"] += 1
            parting = [z3.Xor(a.condition, b.condition) for a, b in both]
            values = self._questions.solve_most(runs.facts, parting, runs.stage.kept_conditions)
            if values is not None:
                yield both[0][0].place, values

    def _may_ask(self) -> bool:
        """Return whether there are questions, pairs and time left."""
        has_room = self.asked < MAX_QUESTIONS and self.answered < MAX_PROPOSED
        return has_room and self._clock.remaining > 0

    def _ask(
        self, key: tuple[Any, ...], runs: _Runs, before: list[Any], condition: Any
    ) -> Values | None:
        """Return z3's values for a condition, behind those `before` it; count the question.

        None if there are none, and where questions of this `key` were asked often enough.
        """
        asked = (*key, "asked")
        if self._met[key] >= MAX_MET or self._met[asked] >= MAX_ASKED or not self._may_ask():
            return None
        self.asked += 1
        self._met[asked] += 1
        values = self._questions.solve_most(
            [*runs.stage.facts, *before, condition], (), runs.stage.kept_conditions
        )
        self._met[key] += values is not None
        return values


def _questions_at(branch: Branch, twin: Branch | None) -> Iterator[tuple[str, Any]]:
    """Yield conditions at a branch, by kind: both runs take the other outcome, or they differ.

    `twin` is the branch in the other run; without one, that D's run takes the other outcome.
    """
    if twin is None:
        yield "other", branch.other_condition
        return
    if branch.held == twin.held:
        yield "both", z3.And(branch.other_condition, twin.other_condition)
    yield "part", z3.Xor(branch.condition, twin.condition)


def _distance_from_usual(pair: Pair) -> int:
    """Return by how many records a pair differs from `USUAL_LENGTH`; 2 more for an empty input."""
    sizes = [len(data) if hasattr(data, "__len__") else 1 for data in (pair.d1, pair.d2)]
    return abs(max(sizes) - USUAL_LENGTH) + 2 * (min(sizes) == 0)


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """Values that fulfil conditions, if any were found, and the processor seconds for them."""

    values: Values | None
    seconds: float


class Questions:
    """A z3 solver in another process, which starts at the first question.

    `left` returns how many seconds there are for all questions; `unanswered` counts those that were
    given up. `close` ends the process.
    """

    def __init__(self, left: Callable[[], float] = lambda: QUESTION_SECONDS) -> None:
        self._left, self.unanswered = left, 0
        self._process: ProcessPoolExecutor | None = None

    def solve_most(
        self, hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]
    ) -> Values | None:
        """Return values for all `hard`, most `wanted`, then most `soft` conditions (MaxSMT).

        None if there are none, or if z3 takes too long.
        """
        return self._ask("most", hard, wanted, soft)

    def solve_least(self, hard: Sequence[Any], objective: Any) -> Values | None:
        """Return values that fulfil all `hard` conditions and make the objective the smallest.

        None if there are none, or if z3 takes too long.
        """
        smallest = z3.Const("smallest", objective.sort())
        return self._ask("least", hard, [smallest == objective], ())

    def close(self) -> None:
        """End the other process."""
        if self._process is not None:
            self._process.shutdown(kill_workers=True)
            self._process = None

    def _ask(
        self, kind: str, hard: Sequence[Any], wanted: Sequence[Any], soft: Sequence[Any]
    ) -> Values | None:
        """Return the answer of the other process to a question; start it if it is not running.

        If it takes too long or dies: end it, count the question as unanswered, and return None.
        """
        solver = z3.Solver()
        solver.add(*hard, *wanted, *soft)
        seconds = clocks.WALL_FACTOR * min(QUESTION_SECONDS, self._left())
        if self._process is None:
            self._process = ProcessPoolExecutor(1)
            seconds += STARTING_SECONDS
        question = kind, solver.to_smt2(), len(hard), len(wanted)
        try:
            answered: SolverAnswer = self._process.submit(_solve_question, *question).result(
                seconds
            )
        except (TimeoutError, BrokenProcessPool):
            self.unanswered += 1
            self.close()
            return None
        clocks.add_process_seconds(answered.seconds)
        return answered.values


def _solve_question(kind: str, text: str, hard: int, wanted: int) -> SolverAnswer:
    """Ask z3 a question in SMT-LIB text; return its values, and the processor seconds used.

    The first `hard` conditions have to hold. For the kind "most", z3 fulfils as many as it can of
    the next `wanted` conditions, then of the rest. For "least", the wanted condition is ``smallest
    == objective``, and z3 makes `smallest` least. The values are None if z3 finds none within
    `MAX_STEPS`.
    """
    started, context = time.process_time(), z3.Context()
    conditions = [*z3.parse_smt2_string(text, ctx=context)]
    desired, soft = conditions[hard : hard + wanted], conditions[hard + wanted :]
    optimizer = z3.Optimize(ctx=context)
    optimizer.set("rlimit", MAX_STEPS)
    optimizer.add(*conditions[:hard])
    if kind == "least":
        optimizer.add(*desired)
        optimizer.minimize(desired[0].arg(0))
    for condition in desired if kind == "most" else ():
        optimizer.add_soft(condition, len(soft) + 1)
    for condition in soft:
        optimizer.add_soft(condition, 1)
    values = None
    if optimizer.check() == z3.sat:
        model = optimizer.model()
        found = ((variable.name(), model[variable]) for variable in model.decls())
        values = {name: _plain(value) for name, value in found if z3.is_expr(value)}
    return SolverAnswer(values, time.process_time() - started)


def _plain(value: Any) -> bool | str:
    """Return a value of z3 as a truth, or as the text of a fraction."""
    if z3.is_bool(value):
        return bool(z3.is_true(value))
    value = value.approx(20) if z3.is_algebraic_value(value) else value
    return str(value.as_fraction() if z3.is_real(value) else value.as_long())
