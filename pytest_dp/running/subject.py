"""A mechanism under audit, and what a few runs of copies tell of it ahead of the audit.

What a run costs, whether the same random numbers give the same outputs, and whether two inputs can
share them is tried on copies, so that what is audited never sees the same random numbers twice.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Outputs, join_outputs
from pytest_dp.outputs.raised import Raised, all_raised, same
from pytest_dp.running.alarm import HUNG_SECONDS, compute_interruptibly
from pytest_dp.running.calling import Call, Made
from pytest_dp.running.chunks import MAX_VECTORIZED, Chunk, Input, Runner, at_a_time
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.coupling import (
    NOTHING_RANDOM,
    TRIAL_RUNS,
    CannotCouple,
    try_per_run,
    try_row_aligned,
)
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.forked import Origin, Start, files_kept, first_state
from pytest_dp.running.generators import Purpose, RunStreams, stream

REPLAYS = 12
"""Runs on one stream that show whether it decides all. More take longer; fewer miss what is
rare."""
QUICK_SECONDS = 0.1
"""Seconds that these runs may take. More: slow mechanisms wait; fewer: less is seen of them."""

TRIAL_KEY = (Purpose.TRIAL, 0, 0)
"""Key of the streams on which mechanisms are tried."""
_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*(e[-+]?\d+)?( m?s\b)?")
"""A number in a note, with its unit if that is of time."""


class Subject:
    """A mechanism that is tried out: the one that a `Sampler` draws from.

    `runs` counts those of copies too, apart from a few that were only `looked` at. `seconds` is
    what they took, those apart that do not tell what a run costs. `replayable` says whether the
    same random numbers give the same outputs, as far as is known. The `notes` and `hindrances` are
    those of `note`.
    """

    def __init__(self, call: Call, seed: int) -> None:
        self._pristine = Pristine((call.mechanism, call.params))
        self._first, self._as_first = first_state(call.mechanism, self._pristine), False
        call = replace(call, pristine=self._pristine, made=Made())
        self.call = call.of(call.mechanism, call.params)
        self.seed = seed
        self.runs = self.looked = 0
        self._forget_costs()
        self._least = math.inf  # effort of a run, of which runs of a chunk have the average
        self._at_a_time = MAX_VECTORIZED
        self.replayable, self.worked = True, False  # worked: when it was tried out
        self._copies = False
        self.origin: Origin | None = None  # waits since before the first run
        self.forks = False  # as it cannot be copied
        self.draws = True  # random numbers of the seeded sources
        self.imports = False  # each start imports the modules of the project anew
        self._idle: frozenset[int] | None = None  # unknown
        self.notes: list[str] = []
        self.hindrances: list[str] = []
        if places := self.call.captured.places:
            self.note(f"draws from a generator kept in {', '.join(places)}: reseeded")

    @property
    def name(self) -> str:
        return getattr(self.call.mechanism, "__name__", None) or "the mechanism"

    @property
    def quickest_run(self) -> float:
        """Seconds a run, in the quickest chunk of runs; 0 if there was none yet."""
        return self._least if math.isfinite(self._least) else 0.0

    @property
    def reads_data(self) -> bool:
        """True if the mechanism holds values besides code, which an import may have drawn."""
        return self._pristine.reads or bool(self._pristine.reason)

    def note(self, text: str, *, hinders: bool = False, first: bool = False) -> None:
        """Remember something that the reader of the result should know, once.

        Of notes that differ in nothing but their figures, the last one stays. `hinders` says that
        it kept the audit from telling anything; such a note says what to do about it. The `first`
        one is the reason that is shown.
        """
        text = " ".join(text.split())
        form = _FIGURE.sub("#", text)
        for notes in (self.notes, self.hindrances) if hinders else (self.notes,):
            same_form = [i for i, noted in enumerate(notes) if _FIGURE.sub("#", noted) == form]
            if same_form:
                notes[same_form[0]] = text
            else:
                notes.insert(0 if first else len(notes), text)

    @property
    def seconds_a_run(self) -> float | None:
        """Measured effort of one run; None before the first."""
        return self._effort / self._timed if self._timed else None

    @property
    def time_a_run(self) -> float | None:
        """Measured time of one run in one process, with what it waits; None before the first."""
        return self._passed / self._timed if self._timed else None

    @property
    def runner(self) -> Runner:
        return Runner(self.seed, self._copies, self._idle or frozenset(), self.seconds_a_run)

    def begin(self) -> None:
        """Let a process wait that is as this one before the first run, until this is closed."""
        self.origin = Origin(self.call)
        if self._first.pristine is self._pristine:
            self._first.origin = self.origin

    def close(self) -> None:
        """End the process that was forked, unless later audits need it."""
        if self.origin is not None and self._first.origin is self.origin:
            self._first.wait()
        elif self.origin is not None:
            self.origin.close()

    def import_instead(self) -> bool:
        """Import the modules of the project for each start; return whether it was otherwise."""
        if self.origin is None or self.imports:
            return False
        self.imports = True
        self._fork("its modules are imported anew")
        return True

    def _try_out(
        self, copied: tuple[Call, list[Input]], deadline: Deadline, *, may_raise: bool = False
    ) -> None:
        """Find out what a run costs and whether it can be replayed, by a few runs of a copy.

        Raises CannotCopy if the copy always raises, unless it may.
        """
        call, (on_copy,) = copied
        used = self.runner.on(call, on_copy)

        def drawn(count: int) -> tuple[Outputs, bool]:
            """Return outputs of one stream, and whether the last of them used it."""
            return self._draw(used, on_copy, [0] * count, deadline)

        outputs, moved = drawn(TRIAL_RUNS)
        last = outputs[-1]
        if isinstance(last, Raised) and not may_raise and all_raised(drawn(3 * TRIAL_RUNS)[0]):
            raise CannotCopy(f"copies of it raise {last.kind}")
        self._at_a_time = at_a_time(outputs)
        self._forget_costs()
        if not on_copy.unchanged():
            self._use_copies()
            used = self.runner.on(call, on_copy)
        self.draws = moved
        if moved:
            self.replayable = all(map(same, drawn(TRIAL_RUNS)[0], drawn(TRIAL_RUNS)[0]))
            if self.replayable and (REPLAYS) * (self.seconds_a_run or 0.0) < QUICK_SECONDS:
                used = replace(used, made=Made())  # to look at: these are no samples
                self.replayable = all(map(same, drawn(REPLAYS)[0], drawn(REPLAYS)[0]))
        else:  # then outputs that vary come from elsewhere
            alone = drawn(3 * TRIAL_RUNS)[0]
            self.replayable = all(same(alone[0], output) for output in (*outputs, *alone))

    def _try_alone(self, dataset: Input, deadline: Deadline) -> Outputs:
        """Try a mechanism that cannot be copied; no stream is used twice. Returns some outputs.

        Its randomness cannot be seeded if outputs differ that make use of no stream.
        """
        for first in (0, TRIAL_RUNS):
            self._forget_costs()
            streams = list(range(first, first + TRIAL_RUNS))
            used = self.runner.on(self.call, dataset)
            outputs, moved = self._draw(used, dataset, streams, deadline)
            if not dataset.unchanged():
                self._use_copies()
            self.replayable &= moved or all(same(outputs[0], output) for output in outputs)
        self._at_a_time = at_a_time(outputs)
        return outputs

    def _draw(
        self, used: Call, dataset: Input, streams: list[int], deadline: Deadline
    ) -> tuple[Outputs, bool]:
        """Return an output of each of some streams, and whether the last made use of its own."""
        count, made = len(streams), used.made.runs
        starts: list[Any] = []
        with RunStreams(stream(self.seed, 0), max(streams) + 1, used.captured, frozenset()) as runs:

            def restart(number: int) -> None:
                runs.restart(streams[number])
                if number == count - 1:
                    starts[:] = runs.states()

            restart(count - 1)
            started = clocks.Stopwatch()
            with interruptible(deadline, None):
                outputs = used.draw(dataset.live, count, runs.rng, restart)
            self.worked |= not all_raised(outputs)
            if used.made is self.call.made:
                self._count(used.made.runs - made, started.spent(), started.passed())
            else:
                self.looked += count
            return outputs, bool(runs.used_since(starts))

    def can_couple(self, input1: Input, input2: Input, deadline: Deadline) -> bool:
        """Return whether draws on two inputs may share random numbers, by a few runs of a copy.

        Raises OutOfTime if the deadline passed first.
        """
        if not self.replayable:
            return False
        refused, made = "", self.call.made.runs
        datasets: list[Input] = []
        attempt = try_per_run if self.call.size is None else try_row_aligned
        try:
            call, datasets = self._copy(input1, input2)
            with interruptible(deadline, self.seconds_a_run):
                calls = [(self.runner.on(call, dataset), dataset.live) for dataset in datasets]
                trial = partial(attempt, calls, stream(self.seed, *TRIAL_KEY), deadline)
                idle = compute_interruptibly(trial)
        except (CannotCopy, CannotCouple) as reason:
            refused = str(reason)
        finally:
            self.runs += self.call.made.runs - made
        changed = [dataset for dataset in datasets if not dataset.unchanged()]  # all are mended
        if changed and not self._copies:
            self._use_copies()
            return self.can_couple(input1, input2, deadline)
        if not refused:
            self._idle = idle if self._idle is None else self._idle & idle
            return True
        if refused != NOTHING_RANDOM:
            self.note(f"random numbers are not shared between inputs, as {refused}")
        return False

    def afresh(
        self, dataset: Input, runs: int, key: tuple[int, ...], deadline: Deadline
    ) -> Outputs:
        """Return outputs of a mechanism that was never run before, with random numbers of its own.

        That is a copy, or, where it cannot be copied, a process. Raises CannotCopy if there is
        none, and OutOfTime if the deadline passes first.
        """
        if self.origin is not None and (self.forks or self._pristine.reason):
            return self.forked([(dataset, key)], runs, deadline)[0]
        made = self.call.made.runs
        try:
            call, (on_copy,) = self._copy(dataset)
            ran = self.runner.run(call, on_copy, self._chunks(runs, key), deadline)
            return join_outputs([done.outputs for done in ran])
        finally:
            self.runs += self.call.made.runs - made

    def run_untried(self, dataset: Input, key: tuple[int, ...], deadline: Deadline) -> Any:
        """Return one output of an unused copy, or of the mechanism if it cannot be copied."""
        call = self.call
        with suppress(CannotCopy):
            call, (dataset,) = self._copy(dataset)
        done = self.runner.once(call, dataset, Chunk(1, key), deadline)
        self._count(1, done.told.seconds, done.told.passed)
        return done.outputs[0]

    def forked(
        self,
        items: Sequence[tuple[Input, tuple[int, ...]]],
        runs: int,
        deadline: Deadline,
        start: Start = Start.SEEDED,
    ) -> list[Outputs]:
        """Return the outputs of one process, for each input with its key; see `Origin.run`."""
        if self.origin is None:
            raise CannotCopy("no process was forked before its first run")
        works = [(dataset, self._chunks(runs, key)) for dataset, key in items]
        total = runs * len(items)
        seconds = HUNG_SECONDS + 50 * total * (self.seconds_a_run or 0.0)
        start = Start.IMPORTED if self.imports else start
        outputs = self.origin.run(self.call, self.runner, works, deadline, seconds, start=start)
        self._count_elsewhere(total)
        return outputs

    def _chunks(self, runs: int, key: tuple[int, ...]) -> list[Chunk]:
        """Return two calls of a vectorised mechanism, as it may repeat what it gave before."""
        calls = [runs] if self.call.size is None else [runs - runs // 2, runs // 2]
        return [Chunk(n, (Purpose.COPY, *key, k)) for k, n in enumerate(calls)]

    def written_files(self, dataset: Input, deadline: Deadline) -> list[str]:
        """Return files that the mechanism reads, and that were written since it was first run.

        What a run reads of what it wrote itself never counts. Raises CannotCopy or OutOfTime if
        that cannot be seen.
        """
        if self.origin is not None and self.origin.reason:
            raise CannotCopy(self.origin.reason)
        seconds = HUNG_SECONDS + (self.seconds_a_run or 0.0)
        start = Start.IMPORTED if self.imports else Start.AS_IT_WAS
        self._count_elsewhere(1)
        since = self._first.since
        return files_kept(self.call, self.runner, dataset, deadline, seconds, start, since)

    def before_all(self, *, forks: bool = False) -> Subject | None:
        """Return the mechanism as before all audits, or in forks; None if this is the first."""
        if self._first.pristine is self._pristine or (forks and self._first.origin is None):
            return None
        before = copy.copy(self)
        before.use_first_state(forks=forks)
        return before

    def use_first_state(self, *, forks: bool) -> None:
        """Go on with the mechanism as it was then."""
        self.forks |= forks
        self._pristine, self.origin = self._first.pristine, self._first.origin
        self._as_first = True
        self.call = replace(self.call, pristine=self._pristine)

    def _copy(self, *datasets: Input) -> tuple[Call, list[Input]]:
        call, inputs = self.call.copied(*(dataset.live for dataset in datasets))
        if len(call.captured.generators) != len(self.call.captured.generators):
            raise CannotCopy("its generators cannot be copied")
        if self._as_first:  # which may be another method
            call = call.in_manner(*self.call.manner())
        return call, [dataset.like(data) for dataset, data in zip(datasets, inputs, strict=True)]

    def _fork(self, reason: str) -> None:
        """Use no copies: what is to start afresh is forked."""
        self.forks = True
        self.call = replace(self.call, pristine=Pristine.refused(reason))

    def _unfork(self) -> None:
        self.forks = False
        self.call = replace(self.call, pristine=self._pristine)

    def _use_copies(self) -> None:
        self._copies = True
        self.note("changes its input: every run was given a fresh copy")

    def _count_elsewhere(self, runs: int) -> None:
        """Count runs of another process; those that could not be made do not count."""
        self.call.made.runs += runs
        self.runs += runs

    def _forget_costs(self) -> None:
        """Forget what runs took together: first calls are slow."""
        self._timed, self._effort, self._passed = 0, 0.0, 0.0

    def _count(self, runs: int, seconds: float, passed: float) -> None:
        self.runs += runs
        self._timed, self._effort = self._timed + runs, self._effort + seconds
        self._passed += passed
        self._least = min(self._least, seconds / max(runs, 1))
