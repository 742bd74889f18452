"""Draws outputs of a mechanism, in this process or in several, with the same outcome."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.sampling import hidden, workers
from pytest_dp.sampling.alignment import FIRST, LARGER, UNLIKE
from pytest_dp.sampling.calling import Call, Made, Outputs, same
from pytest_dp.sampling.copies import CannotCopy, Pristine
from pytest_dp.sampling.coupling import tried
from pytest_dp.sampling.deadline import Deadline, interruptible
from pytest_dp.sampling.fingerprint import SURPRISE, Fingerprint
from pytest_dp.sampling.measuring import Group, Summary, Work, grouped, measured, summarised
from pytest_dp.sampling.noiseless import noiseless
from pytest_dp.sampling.pieces import (
    MOST_A_PIECE,
    MOST_A_VECTORIZED_PIECE,
    Done,
    Input,
    Piece,
    at_a_time,
    cut,
    joined,
    on,
    run_all,
)
from pytest_dp.sampling.restarting import NOTHING, CannotCouple, Runs
from pytest_dp.sampling.streams import stream

T = TypeVar("T")

START_WORKERS = 5.0
"""Estimated seconds of work from which starting processes, with their imports, pays."""
EXPECTED = 250
"""Runs that an audit takes at least, as a rule: processes are not started for one draw only."""
SLOW = START_WORKERS / EXPECTED
"""Seconds a run from which processes are thus started at once, and every draw is shared out."""
USE_WORKERS = 0.25
"""Estimated seconds of work from which handing it to running processes pays."""

A_JOB = 0.1
"""Estimated seconds of work that are handed over at a time: little overhead, visible progress."""

STREAK = 200
"""Runs in a row that raise, after many that did not, before a mechanism counts as used up."""

AFRESH = 8
"""First part of the keys of what copies draw."""
TRIED = 2
"""Runs at a time by which a mechanism is first looked at: one may take a second..."""
TRIED_ALONE = 6
"""...and where it uses none of the streams, and may draw on others."""

_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*(e[-+]?\d+)?( m?s\b)?")
"""A number in a note, with its unit if that is of time."""

Progress = Callable[[int, float, float | None], None]
"""Is told runs, seconds, and the smallest true loss that would be caught by now, where known."""


@dataclass(frozen=True, slots=True)
class Draw:
    """A wish for `count` outputs on `given`, from the stream that `key` names.

    Attributes
    ----------
    given : Input
    count : int
    key : tuple of int
    shared : bool
        Whether output i uses the same random numbers as output i of every other shared draw with
        this key, which has to have the same count. Outputs with different i are independent. Ask
        `Sampler.can_couple` first; `CannotCouple` may still be raised later.
    """

    given: Input
    count: int
    key: tuple[int, ...]
    shared: bool = False


class Sampler:
    """Draws outputs of one mechanism until the deadline.

    Parameters
    ----------
    call : Call
    seed : int
    n_jobs : int
        Processes at most.
    explicit_jobs : bool
        Whether `n_jobs` was asked for; if so, a mechanism that cannot be sent to another process
        is an error, else it just runs in this one.
    progress : callable, optional
        ``progress(runs, seconds, caught)``, called now and then.
    """

    def __init__(
        self,
        call: Call,
        seed: int,
        n_jobs: int = 1,
        explicit_jobs: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self.call = replace(call, pristine=Pristine((call.mechanism, call.params)), made=Made())
        self.seed, self.n_jobs = seed, n_jobs
        self.explicit_jobs, self.progress = explicit_jobs, progress
        self.hidden = hidden.find(call.mechanism, call.params)
        self.runs = self._timed_runs = 0
        self.seconds = 0.0
        self._at_a_time = MOST_A_VECTORIZED_PIECE
        self.replayable = True
        self.notes: list[str] = []
        self.hindrances: list[str] = []
        self._slow: bool | None = None  # unknown
        self._fastest = math.inf
        self._packed: workers.Packed | None = None
        self._copies = False
        self._idle: frozenset[int] | None = None  # unknown
        self._draws = True
        self._refused, self._rows = "", FIRST
        self._noises: dict[Piece, bytes] = {}
        self._worked: dict[Input, tuple[int, int, int]] = {}
        self._trial: workers.Trial | None = None
        self._trials: dict[int, workers.Trial] = {}
        self._fingerprints: dict[bytes, Piece] = {}
        self.caught: float | None = None  # for the progress: an auditor may know
        self._reported = self._started = time.monotonic()
        if self.hidden.places:
            self.note(f"draws from a generator kept in {', '.join(self.hidden.places)}: reseeded")

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return getattr(self.call.mechanism, "__name__", None) or "the mechanism"

    @property
    def keeps_data(self) -> bool:
        """Whether the mechanism used a container with something in it before this audit."""
        return self.call.pristine is not None and self.call.pristine.holds

    def note(self, text: str, *, hinders: bool = False) -> None:
        """Remember something that the reader of the result should know, once.

        Of notes that differ in nothing but their figures, the last one stays. `hinders` says that
        it kept the audit from telling anything; such a note says what to do about it.
        """
        text = " ".join(text.split())
        form = _FIGURE.sub("#", text)
        for notes in (self.notes, self.hindrances) if hinders else (self.notes,):
            same_form = [i for i, other in enumerate(notes) if _FIGURE.sub("#", other) == form]
            if same_form:
                notes[same_form[0]] = text
            else:
                notes.append(text)

    @property
    def seconds_a_run(self) -> float | None:
        """Measured cost of one run in one process; None before the first."""
        return self.seconds / self._timed_runs if self._timed_runs else None

    def warm_up(self, given: Input, deadline: Deadline) -> None:
        """Find out what a run costs and whether it can be replayed, by a few runs of a copy."""
        try:
            call, (on_copy,), generators = self._copied(given)
        except CannotCopy:  # then every run has numbers of its own
            for k in range(2):
                self._timed_runs, self.seconds = 0, 0.0  # first calls are slow
                outputs = self._outputs(given, Piece(TRIED, (0, k)), deadline)
                self._at_a_time = at_a_time(outputs)
            return

        used = on(call, on_copy, self._copies)

        def drawn(count: int) -> tuple[Outputs, bool]:
            """Outputs, all of the same stream, and whether the last of them made use of it."""
            with Runs(stream(self.seed, 0), count, generators, frozenset()) as runs:
                runs.restart(0)
                before, made, started = runs.states(), call.made.runs, time.perf_counter()
                with interruptible(deadline, None):
                    outputs = used.draw(on_copy.live, count, runs.rng, lambda _: runs.restart(0))
                self._count(call.made.runs - made, time.perf_counter() - started)
                return outputs, runs.states() != before

        outputs, moved = drawn(TRIED)
        self._at_a_time = at_a_time(outputs)
        self._timed_runs, self.seconds = 0, 0.0  # first calls are slow
        if not on_copy.unchanged():
            self._use_copies()
            used = on(call, on_copy, True)
        self._draws = moved
        if moved:
            self.replayable = all(map(same, drawn(TRIED)[0], drawn(TRIED)[0]))
        else:  # then outputs that vary come from elsewhere
            alone = drawn(TRIED_ALONE)[0]
            self.replayable = all(same(alone[0], output) for output in (*outputs, *alone))

    def pieces(self, draw: Draw) -> list[Piece]:
        """The pieces that a draw is cut into."""
        vectorized, slow = self.call.size is not None, self._slow or False
        most = self._at_a_time
        return cut(draw.count, draw.key, vectorized, draw.shared, slow=slow, most=most)

    def can_couple(
        self, one: Input, other: Input, deadline: Deadline, rows: int | None = None
    ) -> bool:
        """Whether draws on two inputs may share their random numbers, by a few runs of a copy.

        Parameters
        ----------
        one, other : Input
        deadline : Deadline
        rows : int, optional
            Draws in each call, of a vectorised mechanism.

        Raises
        ------
        OutOfTime
            If the deadline passed first.
        """
        self._foresee()
        if not self.replayable:
            return False
        refused, made = "", self.call.made.runs
        givens: list[Input] = []
        try:
            call, givens, generators = self._copied(one, other)
            with interruptible(deadline, self.seconds_a_run):
                calls = [(on(call, g, self._copies), g.live) for g in givens]
                idle = tried(calls, self.seed, generators, deadline, rows)
        except (CannotCopy, CannotCouple) as reason:
            refused = str(reason)
        finally:
            self.runs += self.call.made.runs - made
        if not self._copies and not _unchanged(givens):
            self._use_copies()
            return self.can_couple(one, other, deadline, rows)
        if not refused:
            self._idle = idle if self._idle is None else self._idle & idle
            return True
        self._refused = refused
        if refused != NOTHING:
            self.note(f"random numbers are not shared between inputs, as {refused}")
        return False

    def _try_larger(self, draws: list[Draw], deadline: Deadline) -> None:
        """Try calls that are many times larger than all before, ahead of drawing by them."""
        shared = [draw for draw in draws if draw.shared]
        if self.call.size is None or len(shared) < 2:
            return
        rows = max(piece.count for d in shared for piece in self.pieces(d))
        if rows < LARGER * self._rows:
            return
        self._rows = rows
        for one, other in pairwise(shared):
            if not self.can_couple(one.given, other.given, deadline, rows):
                raise CannotCouple(self._refused)

    def noiseless(self, data: Any, eps_param: str | None) -> Any:
        """The answer without noise, or None; only of mechanisms that replay and have some."""
        if not self.replayable or not self._draws:
            return None
        made = self.call.made.runs
        answer = noiseless(self.call, data, eps_param)
        self.runs += self.call.made.runs - made
        return answer

    def afresh(self, given: Input, runs: int, key: tuple[int, ...], deadline: Deadline) -> Outputs:
        """Outputs of a copy that was never run before, with random numbers of its own.

        Raises
        ------
        CannotCopy
            If there is none.
        OutOfTime
            If the deadline passes first.
        """
        call, (on_copy,), generators = self._copied(given)
        vectorized = self.call.size is not None
        pieces = [Piece(n, (AFRESH, *key, k)) for k, n in enumerate(_calls(runs, vectorized))]
        made = self.call.made.runs
        try:
            ran = run_all(
                call, on_copy, pieces, self.seed, generators, self._copies, deadline, None
            )
            return joined([done.outputs for done in ran])
        finally:
            self.runs += self.call.made.runs - made

    def _copied(self, *givens: Input) -> tuple[Call, list[Input], hidden.Hidden]:
        """A copy of the mechanism, the inputs for it, and its generators."""
        call, inputs, generators = self.call.copied(*(given.live for given in givens))
        if len(generators.generators) != len(self.hidden.generators):
            raise CannotCopy("its generators cannot be copied")
        found = [
            given if data is given.live else Input(data)
            for given, data in zip(givens, inputs, strict=True)
        ]
        return call, found, generators

    def _foresee(self) -> None:
        """Decide, once and for all, whether the mechanism is slow; workers start up meanwhile.

        By the piece that was fastest: on a busy machine any mechanism is slow now and then.
        """
        if self._slow is None and self.runs:
            self._slow = self.call.size is None and self._fastest >= SLOW
            if self._slow and self.n_jobs > 1:
                workers.start(self.n_jobs)

    def _use_copies(self) -> None:
        self._copies = True
        self.note("changes its input: every run was given a fresh copy")

    def _outputs(self, given: Input, piece: Piece, deadline: Deadline) -> Outputs:
        return self._in_process([(given, [[piece]])], _themselves, deadline)[0][0]

    def draw(self, draws: list[Draw], deadline: Deadline) -> list[Outputs]:
        """The outputs of each draw.

        Raises
        ------
        OutOfTime
            If the deadline passed before all of them were done.
        MechanismError
            If the mechanism hangs or takes its process down.
        """
        return [joined(parts) for parts in self.measure(draws, _themselves, deadline)]

    def measure(
        self, draws: list[Draw], function: Callable[[Outputs], T], deadline: Deadline
    ) -> list[list[T]]:
        """What a function says of the outputs of each draw, group by group; they are not kept.

        Parameters
        ----------
        draws : list of Draw
        function : callable
            Takes the outputs of a few thousand runs; is called in several processes, so it should
            depend on nothing else. Where it cannot be pickled, all is done in this process.
        deadline : Deadline

        Returns
        -------
        list of list
            For each draw, one result for every group of its outputs, in order. How outputs are
            grouped depends on the draw alone, and they are those that `draw` would give.

        Raises
        ------
        OutOfTime
            If the deadline passed before all of them were done.
        MechanismError
            If the mechanism hangs or takes its process down.
        Exception
            What the function raises.
        """
        self._foresee()
        self._try_larger(draws, deadline)
        works = [self._work(draw) for draw in draws]
        if self._worth_sharing(sum(d.count for d in draws)):
            packed = self._pack(draws[0].given, deadline)
            if packed is not None:
                try:
                    return self._in_workers(packed, works, function, deadline)
                except workers.CannotShare as reason:
                    self.n_jobs = 1
                    self.note(str(reason))
        return self._in_process(works, function, deadline)

    def _work(self, draw: Draw) -> Work:
        return draw.given, grouped(self.pieces(draw), self.call.size is not None, self._at_a_time)

    def _in_process(
        self, works: list[Work], function: Callable[[Outputs], T], deadline: Deadline
    ) -> list[list[T]]:
        return [self._here(given, groups, function, deadline) for given, groups in works]

    def _here(
        self,
        given: Input,
        groups: list[Group],
        function: Callable[[Outputs], T],
        deadline: Deadline,
    ) -> list[T]:
        pieces = [piece for group in groups for piece in group]
        running = iter(pieces)

        def heed(done: Done) -> None:
            self._heed(given, next(running), summarised(done))

        ran = run_all(
            self.call,
            given,
            pieces,
            self.seed,
            self.hidden,
            self._copies,
            deadline,
            self.seconds_a_run,
            self._idle or frozenset(),
        )
        return list(measured(ran, groups, function, heed, deadline))

    def _in_workers(
        self,
        packed: workers.Packed,
        works: list[Work],
        function: Callable[[Outputs], T],
        deadline: Deadline,
    ) -> list[list[T]]:
        order = workers.Order(
            packed,
            packed.beside(function),
            self.seed,
            self._copies,
            self.seconds_a_run,
            self._idle or frozenset(),
        )
        jobs = self._jobs(works)
        results: list[list[T]] = [[] for _ in works]
        todo = [(works[index][0], groups) for index, groups in jobs]
        with closing(workers.share_out(order, todo, self.n_jobs, deadline)) as done:
            for (index, groups), shared in zip(jobs, done, strict=True):
                if shared.trial is not None:
                    self._check_trial(shared.trial)
                pieces = [piece for group in groups for piece in group]
                ran = list(zip(pieces, shared.summaries, strict=False))  # it may end early
                if any(self._was_seen(summary.fingerprint, piece) for piece, summary in ran):
                    raise workers.CannotShare(workers.OUT_OF_REACH)
                for piece, summary in ran:
                    self._heed(works[index][0], piece, summary)
                if shared.error is not None:
                    raise shared.error
                results[index] += shared.values
        return results

    def _jobs(self, works: list[Work]) -> list[tuple[int, list[Group]]]:
        """Cut works into jobs, each with the number of its work: several for every process."""
        runs = sum(piece.count for _, groups in works for group in groups for piece in group)
        a_job = min(A_JOB / (self.seconds_a_run or A_JOB), runs / (4 * self.n_jobs))
        jobs: list[tuple[int, list[Group]]] = []
        for index, (_, groups) in enumerate(works):
            size = a_job
            for group in groups:
                if size >= a_job:
                    jobs.append((index, []))
                    size = 0.0
                jobs[-1][1].append(group)
                size += sum(piece.count for piece in group)
        return jobs

    def _check_trial(self, trial: workers.Trial) -> None:
        """Refuse a worker's outputs if they cannot be used beside those of other processes.

        What replays in this process must give the same in a worker. What does not must give
        something else in each: system entropy does, a generator that was copied does not.
        """
        assert self._trial is not None
        if self._trial.replays:
            if not trial.replays:
                raise workers.CannotShare(workers.OUT_OF_REACH)
            if trial.outputs != self._trial.outputs:
                raise workers.CannotShare(
                    "gives other outputs in a worker process (set order, patched modules, "
                    "environment variables): audited in one process"
                )
        else:
            self.replayable = False
            others = [t for t in self._trials.values() if t.process != trial.process]
            self._trials[trial.process] = trial
            enough = SURPRISE + 2 * math.log(len(self._trials))
            if trial.outputs.surprise < enough:
                raise workers.CannotShare(
                    "draws on randomness that cannot be told from a copy: audited in one process"
                )
            if any(other.outputs == trial.outputs for other in others):
                raise workers.CannotShare(workers.OUT_OF_REACH)

    def _was_seen(self, fingerprint: Fingerprint | None, piece: Piece) -> bool:
        """Whether another piece began with the very same outputs, beyond coincidence."""
        enough = SURPRISE + 2 * math.log(len(self._fingerprints) + 1)
        if fingerprint is None or fingerprint.surprise < enough:
            return False
        first = self._fingerprints.setdefault(fingerprint.digest, piece)
        if first is piece:
            return False
        return first.key != piece.key or not self.replayable  # a piece may be drawn again

    def _worth_sharing(self, runs: int) -> bool:
        if self.n_jobs == 1 or not runs:
            return False
        if self._packed is not None:
            return runs * (self.seconds_a_run or 0.0) > USE_WORKERS
        return max(runs, EXPECTED) * (self.seconds_a_run or 0.0) > START_WORKERS

    def _pack(self, given: Input, deadline: Deadline) -> workers.Packed | None:
        if self._packed is None:
            cost = self.seconds_a_run or 0.0
            count = min(MOST_A_PIECE, max(1, int(0.05 / cost) if cost else MOST_A_PIECE))
            piece = Piece(count, (0, 0))
            try:
                self._packed = workers.pack(self.call, given, piece)
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
            self._trial = workers.tried(
                self.call, given, piece, self.seed, self.hidden, deadline, self.seconds_a_run
            )
            self._trials[self._trial.process] = self._trial
        return self._packed

    def _heed(self, given: Input, piece: Piece, summary: Summary) -> None:
        """Account for a piece, and look whether the mechanism is still usable."""
        if summary.noise and self._noises.setdefault(piece, summary.noise) != summary.noise:
            raise CannotCouple(UNLIKE)
        self._count(summary.runs, summary.seconds)
        if summary.changed_input and not self._copies:
            self._use_copies()
        self._usable(given, summary)
        now = time.monotonic()
        if self.progress is not None and now - self._reported > 0.1:
            self._reported = now
            self.progress(self.runs, now - self._started, self.caught)

    def _count(self, runs: int, seconds: float) -> None:
        self.runs += runs
        self._timed_runs += runs
        self.seconds += seconds
        self._fastest = min(self._fastest, seconds / max(runs, 1))

    def _usable(self, given: Input, summary: Summary) -> None:
        """Refuse a mechanism that worked and then stopped: its runs are not independent."""
        worked, raised, streak = self._worked.get(given, (0, 0, 0))
        worked, raised = worked + summary.worked, raised + summary.raised
        streak = summary.streak + (0 if summary.worked else streak)
        self._worked[given] = worked, raised, streak
        # Half of the runs worked before: independent runs would end like this once in 1e10 audits.
        if summary.last is not None and streak >= STREAK and worked >= max(50, raised - streak):
            raise MechanismError(
                f"{self.name} worked {worked:,} times and then raised {summary.last.kind} in every "
                "run: it keeps state between runs, such as a privacy budget that is used up. Claim "
                "a function that starts afresh each time it is called.\n"
                f"{summary.last.trace}".rstrip()
            )


def _calls(runs: int, vectorized: bool) -> list[int]:
    """Two calls of a vectorised mechanism, as it may repeat what it gave in an earlier one."""
    return [runs - runs // 2, runs // 2] if vectorized else [runs]


def _unchanged(givens: list[Input]) -> bool:
    changed = [given for given in givens if not given.unchanged()]  # all are mended
    return not changed


def _themselves(outputs: Outputs) -> Outputs:
    return outputs
