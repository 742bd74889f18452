"""Draws outputs of a mechanism, in this process or in several, with the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Outputs, join_outputs
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.outputs.raised import Raised, all_raised
from pytest_dp.running import workers
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import (
    Chunk,
    Input,
    Summary,
    Work,
    cut_draw,
    cut_jobs,
    measure_chunks,
)
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.coupling import DIFFERENT_NOISE, CannotCouple
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.subject import Subject
from pytest_dp.statistics.count_tests import NOT_IID

START_WORKERS_FROM = 5.0
"""Seconds of work from which processes are started. Fewer: short work waits for a start."""
NOTICED_SECONDS = 0.25
"""Seconds of work that are shared out to running processes. Fewer: sending takes longer."""
MAX_TRIED = 512
"""Runs on which each process is tried. More take longer; fewer: rare outputs are not compared."""
STREAK = 200
"""Failures in a row that are more than chance. More are seen later; fewer may be chance."""
T = TypeVar("T")

SLOW_RUN = START_WORKERS_FROM / STREAK
"""Seconds a run from which processes are started at once, and every draw is shared out."""
PackedAndTried = tuple[workers.PickledMechanism, workers.Comparison]
"""A mechanism that can be sent to workers, and its trial here, with which theirs are compared."""
Progress = Callable[[int, float, float | None], None]
"""Called with runs, seconds, and the smallest true loss that would be caught, in nats, if known."""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request for `count` outputs on `dataset`, from the stream that `key` names."""

    dataset: Input
    count: int
    key: tuple[int, ...]
    shared: bool = False
    """Whether output i uses the same random numbers as output i of every other shared draw with
    this key, which has to have the same count. Outputs with different i are independent. Ask
    `Sampler.can_couple` first; `CannotCouple` may still be raised later."""


class Sampler(Subject):
    """A mechanism under audit that draws outputs until the deadline, in up to `n_jobs` processes.

    With `explicit_jobs`, a mechanism that cannot be sent to another process is an error; without,
    all its runs are in this process. `progress` is called now and then.
    """

    def __init__(
        self,
        call: Call,
        seed: int,
        n_jobs: int = 1,
        explicit_jobs: bool = False,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(call, seed)
        self.n_jobs, self.explicit_jobs, self.progress = n_jobs, explicit_jobs, progress
        self._slow: bool | None = None  # unknown
        self._packed: PackedAndTried | None = None
        self._noises: dict[Chunk, bytes] = {}
        self._worked: dict[Input, tuple[int, int, int]] = {}
        self._kind = ""
        self.calls: dict[Input, set[int]] = {}
        """The numbers of runs of the chunks on each input."""
        self.caught: float | None = None  # the smallest loss that would be caught, for the progress
        self._reported, self._started = clocks.seconds(), clocks.Stopwatch()

    def warm_up(self, dataset: Input, deadline: Deadline) -> None:
        """Run the mechanism a few times, to set what a run costs and whether it can be replayed.

        Forks a process that waits, and decides whether the mechanism is copied or runs in forks.
        Raises OutOfTime if the deadline passes, and errors that copies and the mechanism both
        raise.
        """
        self.fork_origin()
        copied = False
        try:
            on_copy = self._copy(dataset)
            copied = True
            self._try_out(on_copy, deadline)
        except CannotCopy as reason:
            self._use_forks(str(reason))
        except (ClaimError, MechanismError):  # the mechanism's own, if it raises them as well
            self._use_forks("copies of it raise an error")
        else:
            return
        if all_raised(self._try_alone(dataset, deadline)) and copied:  # copies raise as well
            self._use_copies()
            self._try_out(self._copy(dataset), deadline, may_raise=True)

    def chunks(self, draw: SampleRequest) -> list[Chunk]:
        """Return the chunks of a request."""
        whole = Chunk(draw.count, draw.key, draw.shared)
        vectorized, slow = self.call.size is not None, self._slow or False
        return cut_draw(whole, vectorized, slow=slow, limit=self._at_a_time)

    def _decide_if_slow(self) -> None:
        """Decide, once and for all, whether runs of the mechanism take `SLOW_RUN` seconds or more.

        By the fastest chunk: on a busy machine any mechanism is slow now and then. A vectorised one
        never is.
        """
        if self._slow is None and self.runs:
            self._slow = self.call.size is None and self._least >= SLOW_RUN

    def draw(self, draws: list[SampleRequest], deadline: Deadline) -> list[Outputs]:
        """Run the mechanism, and return the outputs of each draw; errors are those of `measure`."""
        return [join_outputs(parts) for parts in self.measure(draws, _identity, deadline)]

    def measure(
        self, draws: list[SampleRequest], function: Callable[[Outputs], T], deadline: Deadline
    ) -> list[list[T]]:
        """Run the mechanism, and return a function's value for each chunk of outputs of each draw.

        The outputs are those of `draw`, and are not kept. The function takes outputs of one chunk,
        at most some thousand. It should depend on them alone, as it may run in several processes;
        if it cannot be pickled, all is done in this process, with a note. Raises OutOfTime if the
        deadline passed first, MechanismError if the mechanism hangs, ends its process or only
        raises from now on, ClaimError and CannotCouple as `_account`, and errors of the function.
        """
        self._decide_if_slow()
        works = [(draw.dataset, self.chunks(draw)) for draw in draws]
        if self._worth_sharing(sum(d.count for d in draws)):
            packed = self._pack(draws[0].dataset, deadline)
            if packed is not None:
                try:
                    return self._in_workers(*packed, works, function, deadline)
                except workers.CannotShare as reason:
                    self.n_jobs = 1
                    self.note(str(reason))
        return [self._measure_here(*work, function, deadline) for work in works]

    def _measure_here(
        self,
        dataset: Input,
        chunks: list[Chunk],
        function: Callable[[Outputs], T],
        deadline: Deadline,
    ) -> list[T]:
        """Run chunks in this process, account for each, and return the function's values."""
        running = iter(chunks)

        def account(summary: Summary) -> None:
            self._account(dataset, next(running), summary)

        ran = self.runner.run(self.call, dataset, chunks, deadline)
        return list(measure_chunks(ran, function, account, deadline))

    def _in_workers(
        self,
        packed: workers.PickledMechanism,
        comparison: workers.Comparison,
        works: list[Work],
        function: Callable[[Outputs], T],
        deadline: Deadline,
    ) -> list[list[T]]:
        """Run all works in worker processes, account for each chunk, and return the values.

        Raises CannotShare if a worker's trial does not agree with this process, and errors of
        `measure`.
        """
        order = workers.JobSpec(packed, packed.pickle_beside(function), self.runner)
        jobs = cut_jobs(works, self.n_jobs, self.time_a_run)
        results: list[list[T]] = [[] for _ in works]
        todo = [(works[index][0], chunks) for index, chunks in jobs]
        with closing(workers.share_out(order, todo, self.n_jobs, deadline)) as done:
            for (index, chunks), shared in zip(jobs, done, strict=True):
                if shared.trial is not None:
                    self.replayable &= comparison.local.replays
                    comparison.check(shared.trial)
                # A job may end early.
                for chunk, summary in zip(chunks, shared.chunks, strict=False):
                    self._account(works[index][0], chunk, summary)
                if shared.error is not None:
                    raise shared.error
                results[index] += shared.values
        return results

    def _worth_sharing(self, runs: int) -> bool:
        """Return whether `runs` runs take long enough to be shared out to processes.

        They have to take `NOTICED_SECONDS` if processes are there or asked for, else
        `START_WORKERS_FROM`.
        """
        if self.n_jobs == 1 or not runs:
            return False
        if self._packed is not None or self.explicit_jobs:
            return runs * (self.time_a_run or 0.0) > NOTICED_SECONDS
        return max(runs, STREAK) * (self.time_a_run or 0.0) > START_WORKERS_FROM

    def _pack(self, dataset: Input, deadline: Deadline) -> PackedAndTried | None:
        """Pickle the mechanism and try it here, once; None, with a note, if it cannot be pickled.

        Raises ClaimError instead of the note if several processes were asked for.
        """
        if self._packed is None:
            cost = self.time_a_run or 0.0
            count = min(MAX_TRIED, max(1, int(0.05 / cost) if cost else MAX_TRIED))
            chunk = Chunk(count, (0, 0))
            try:
                packed = workers.pickle_mechanism(self.call, dataset, chunk)
            except Exception as error:  # whatever pickling raises
                reason = f"{type(error).__name__}: {error}"
                if self.explicit_jobs:
                    raise ClaimError(
                        f"The mechanism cannot be sent to {self.n_jobs} processes, because its "
                        f"state cannot be pickled ({reason}). Ask for one process (--dp-jobs=1, "
                        "n_jobs=1), or keep locks, files and connections out of its reach."
                    ) from None
                self.n_jobs = 1
                self.note(f"audited in one process, as its state cannot be pickled ({reason})")
                return None
            trial = workers.trial_of(self.runner, self.call, dataset, chunk, deadline)
            self._packed = packed, workers.Comparison(trial)
        return self._packed

    def count_raised(self, dataset: Input) -> tuple[int, int]:
        """Return the number of runs on an input that raised, and of all runs on it.

        Counts runs on all inputs if there was no run on this one. Runs of vectorised mechanisms
        that return arrays do not count.
        """
        counts = [
            (raised, worked + raised)
            for item, (worked, raised, _) in self._worked.items()
            if item.frozen == dataset.frozen
        ] or [(raised, worked + raised) for worked, raised, _ in self._worked.values()]
        return sum(raised for raised, _ in counts), sum(runs for _, runs in counts)

    def _account(self, dataset: Input, chunk: Chunk, summary: Summary) -> None:
        """Count the runs of a chunk, and report progress; raise an error if it breaks a condition.

        Raises CannotCouple if the inputs asked for different noise, ClaimError if calls return
        arrays of several kinds, and MechanismError if the mechanism has stopped to work.
        """
        if summary.noise and self._noises.setdefault(chunk, summary.noise) != summary.noise:
            raise CannotCouple(DIFFERENT_NOISE)
        self._count(summary.runs, summary.seconds, summary.passed)
        self.calls.setdefault(dataset, set()).add(chunk.count)
        self.replayable &= not summary.unseeded
        if summary.changed_input and not self._copies:
            self._copy_inputs()
        self._refuse_used_up(dataset, summary)
        self._refuse_other_kind(summary)
        now = clocks.seconds()
        if self.progress is not None and now - self._reported > 0.1:
            self._reported = now
            self.progress(self.runs, self._started.effort_seconds(), self.caught)

    def _refuse_other_kind(self, summary: Summary) -> None:
        """Raise ClaimError if calls return arrays of different kinds, such as numbers and texts."""
        self._kind = self._kind or summary.kind
        if summary.kind and summary.kind != self._kind:
            raise ClaimError(
                f"vectorized={self.call.size!r}: {self.name} returned an array of {self._kind} in "
                f"one call and of {summary.kind} in another, so that what a draw looks like "
                "depends on the others. Return a list, or np.array(..., dtype=object)."
            )

    def _refuse_used_up(self, dataset: Input, summary: Summary) -> None:
        """Raise MechanismError if the mechanism worked, and then raised `STREAK` times in a row.

        Only if chance hardly explains that all its errors came last.
        """
        worked, raised, streak = self._worked.get(dataset, (0, 0, 0))
        worked, raised = worked + summary.worked, raised + summary.raised
        streak = summary.streak + (0 if summary.worked else streak)
        self._worked[dataset] = worked, raised, streak
        if summary.last is None or streak < STREAK:
            return
        from pytest_dp.statistics.count_tests import chance_all_come_before  # it loads SciPy

        chance = chance_all_come_before(streak, worked, worked + raised)
        if chance < NOT_IID**2:  # squared, as it is asked often
            raise used_up(self.name, f"{worked:,} times", summary.last)


def used_up(name: str, worked: str, raised: Raised) -> MechanismError:
    """Return the error for a mechanism that worked, as ``"3 times"``, and then always raised."""
    return MechanismError(
        f"{name} worked {worked} and then raised {raised.kind} in every run: it keeps state "
        "between runs, such as a privacy budget that is used up. Claim a function that keeps "
        f"nothing between calls.\n{raised.trace}".rstrip()
    )


def _identity(outputs: Outputs) -> Outputs:
    return outputs
