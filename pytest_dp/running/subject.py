"""A mechanism under audit, and the trials that a few runs of its copies are ahead of the audit.

Trials show what a run costs, whether the same random numbers give the same outputs, and whether two
inputs can share them.
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
from pytest_dp.outputs.raised import Raised, all_raised, equal_outputs
from pytest_dp.running.alarm import HUNG_SECONDS, compute_interruptibly
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.chunks import MAX_VECTORIZED, Chunk, Input, Runner, count_fitting
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.coupling import (
    NOTHING_RANDOM,
    TRIAL_RUNS,
    CannotCouple,
    try_per_run,
    try_row_aligned,
)
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.forked import Origin, Start, find_files_written, first_state
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
    """A mechanism under audit, and its trials; a fresh start is a run in its state before all runs.

    `runs` counts its runs and those of its copies; `looked` counts further runs that only served a
    check. `replayable` says whether the same random numbers gave the same outputs so far. The
    `notes` and `hindrances` are those of `note`.
    """

    def __init__(self, call: Call, seed: int) -> None:
        self._pristine = Pristine((call.mechanism, call.params))
        self._first, self._as_first = first_state(call.mechanism, self._pristine), False
        call = replace(call, pristine=self._pristine, made=RunCounter())
        self.call = call.with_mechanism(call.mechanism, call.params)
        self.seed = seed
        self.runs = self.looked = 0
        self._forget_costs()
        self._least = math.inf  # seconds of effort of a run, in the quickest chunk
        self._at_a_time = MAX_VECTORIZED
        self.replayable, self.worked = True, False  # worked: a run of the trial returned
        self._copies = False  # each run gets a copy of its input
        self.origin: Origin | None = None  # a process that waits since before the first run
        self.forks = False  # what has to start afresh runs in forks, not on copies
        self.draws = True  # the mechanism draws random numbers of the seeded sources
        self.imports = False  # each start imports the modules of the project anew
        self._idle: frozenset[int] | None = None  # sources that it never uses; None: unknown
        self.notes: list[str] = []
        self.hindrances: list[str] = []
        if places := self.call.captured.places:
            self.note(f"draws from a generator kept in {', '.join(places)}: reseeded")

    @property
    def name(self) -> str:
        """The name of the mechanism's function."""
        return getattr(self.call.mechanism, "__name__", None) or "the mechanism"

    @property
    def quickest_run(self) -> float:
        """Seconds of effort of one run, in the quickest chunk; 0 before the first."""
        return self._least if math.isfinite(self._least) else 0.0

    @property
    def reads_data(self) -> bool:
        """True if the mechanism holds values besides code, which an import may have drawn."""
        return self._pristine.reads or bool(self._pristine.reason)

    def note(self, text: str, *, hinders: bool = False, first: bool = False) -> None:
        """Add a note for the reader of the result, in place of a note that differs in figures only.

        A note that `hinders` is also a reason why the audit is inconclusive. A `first` note goes
        ahead of all others.
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
        """Measured seconds of effort of one run; None before the first."""
        return self._effort / self._timed if self._timed else None

    @property
    def time_a_run(self) -> float | None:
        """Measured seconds that pass during one run in one process; None before the first."""
        return self._passed / self._timed if self._timed else None

    @property
    def runner(self) -> Runner:
        """The `Runner` that runs the mechanism from now on."""
        return Runner(self.seed, self._copies, self._idle or frozenset(), self.seconds_a_run)

    def fork_origin(self) -> None:
        """Fork a process that waits, and later forks others in its state before the first run."""
        self.origin = Origin(self.call)
        if self._first.pristine is self._pristine:
            self._first.origin = self.origin

    def close(self) -> None:
        """End the process that was forked, unless later audits need it."""
        if self.origin is not None and self._first.origin is self.origin:
            self._first.keep_waiting()
        elif self.origin is not None:
            self.origin.close()

    def import_instead(self) -> bool:
        """Import the project's modules for each fresh start from now on, in forks; return True.

        Returns False, and changes nothing, if that is so already or no process was forked.
        """
        if self.origin is None or self.imports:
            return False
        self.imports = True
        self._use_forks("its modules are imported anew")
        return True

    def _try_out(
        self, copied: tuple[Call, list[Input]], deadline: Deadline, *, may_raise: bool = False
    ) -> None:
        """Run a copy a few times, to set what a run costs and whether it can be replayed.

        Sets also whether the mechanism changes its input and whether it draws. Raises CannotCopy if
        the copy always raises, unless it `may_raise`, and OutOfTime if the deadline passes.
        """
        call, (on_copy,) = copied
        used = self.runner.with_inputs(call, on_copy)

        def draw(count: int) -> tuple[Outputs, bool]:
            """Run the copy on one stream; return its outputs, and whether the last run used it."""
            return self._draw(used, on_copy, [0] * count, deadline)

        outputs, moved = draw(TRIAL_RUNS)
        last = outputs[-1]
        if isinstance(last, Raised) and not may_raise and all_raised(draw(3 * TRIAL_RUNS)[0]):
            raise CannotCopy(f"copies of it raise {last.kind}")
        self._at_a_time = count_fitting(outputs)
        self._forget_costs()
        if on_copy.restore_if_changed():
            self._copy_inputs()
            used = self.runner.with_inputs(call, on_copy)
        self.draws = moved
        if moved:
            self.replayable = all(map(equal_outputs, draw(TRIAL_RUNS)[0], draw(TRIAL_RUNS)[0]))
            if self.replayable and REPLAYS * (self.seconds_a_run or 0.0) < QUICK_SECONDS:
                used = replace(used, made=RunCounter())  # these runs are no samples
                self.replayable = all(map(equal_outputs, draw(REPLAYS)[0], draw(REPLAYS)[0]))
        else:  # then outputs that vary come from elsewhere
            alone = draw(3 * TRIAL_RUNS)[0]
            self.replayable = all(equal_outputs(alone[0], output) for output in (*outputs, *alone))

    def _try_alone(self, dataset: Input, deadline: Deadline) -> Outputs:
        """Run a mechanism that cannot be copied a few times, and return its last outputs.

        Each run has a stream of its own. Sets what a run costs, and that it cannot be replayed if
        outputs differ and runs use none of their stream.
        """
        for first in (0, TRIAL_RUNS):
            self._forget_costs()
            streams = list(range(first, first + TRIAL_RUNS))
            used = self.runner.with_inputs(self.call, dataset)
            outputs, moved = self._draw(used, dataset, streams, deadline)
            if dataset.restore_if_changed():
                self._copy_inputs()
            self.replayable &= moved or all(equal_outputs(outputs[0], output) for output in outputs)
        self._at_a_time = count_fitting(outputs)
        return outputs

    def _draw(
        self, used: Call, dataset: Input, streams: list[int], deadline: Deadline
    ) -> tuple[Outputs, bool]:
        """Run the call once on each of some streams, and count the runs.

        Returns the outputs, and whether the last run used its stream.
        """
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
                self._count(used.made.runs - made, started.effort_seconds(), started.wall_seconds())
            else:
                self.looked += count
            return outputs, bool(runs.used_since(starts))

    def can_couple(self, input1: Input, input2: Input, deadline: Deadline) -> bool:
        """Run copies on two inputs; return whether draws on both may share random numbers.

        If not, a note says why, unless nothing is random or runs cannot be replayed. Raises
        OutOfTime if the deadline passed first.
        """
        if not self.replayable:
            return False
        refused, made = "", self.call.made.runs
        datasets: list[Input] = []
        attempt = try_per_run if self.call.size is None else try_row_aligned
        try:
            call, datasets = self._copy(input1, input2)
            with interruptible(deadline, self.seconds_a_run):
                calls = [
                    (self.runner.with_inputs(call, dataset), dataset.live) for dataset in datasets
                ]
                trial = partial(attempt, calls, stream(self.seed, *TRIAL_KEY), deadline)
                idle = compute_interruptibly(trial)
        except (CannotCopy, CannotCouple) as reason:
            refused = str(reason)
        finally:
            self.runs += self.call.made.runs - made
        changed = [dataset for dataset in datasets if dataset.restore_if_changed()]
        if changed and not self._copies:
            self._copy_inputs()
            return self.can_couple(input1, input2, deadline)
        if not refused:
            self._idle = idle if self._idle is None else self._idle & idle
            return True
        if refused != NOTHING_RANDOM:
            self.note(f"random numbers are not shared between inputs, as {refused}")
        return False

    def run_afresh(
        self, dataset: Input, runs: int, key: tuple[int, ...], deadline: Deadline
    ) -> Outputs:
        """Make one fresh start, run it `runs` times in a row, and return the outputs.

        The start is a new copy. It is a forked process if one waits, and if `forks` is set or there
        can be no copies. A vectorised mechanism is called twice, for half of the runs each. Random
        numbers are those of `key`. Adds the runs to `self.runs`.

        Raises CannotCopy if there is neither copy nor process, or if the process fails or hangs.
        Raises OutOfTime if the deadline passes first.
        """
        if self.origin is not None and (self.forks or self._pristine.reason):
            return self.run_forked([(dataset, key)], runs, deadline)[0]
        made = self.call.made.runs
        try:
            call, (on_copy,) = self._copy(dataset)
            ran = self.runner.run(call, on_copy, self._chunks(runs, key), deadline)
            return join_outputs([done.outputs for done in ran])
        finally:
            self.runs += self.call.made.runs - made

    def run_untried(self, dataset: Input, key: tuple[int, ...], deadline: Deadline) -> Any:
        """Run a new copy once, or the mechanism if it cannot be copied, and return the output.

        Raises OutOfTime if the deadline passes first.
        """
        call = self.call
        with suppress(CannotCopy):
            call, (dataset,) = self._copy(dataset)
        done = self.runner.run_chunk(call, dataset, Chunk(1, key), deadline)
        self._count(1, done.summary.seconds, done.summary.passed)
        return done.outputs[0]

    def run_forked(
        self,
        items: Sequence[tuple[Input, tuple[int, ...]]],
        runs: int,
        deadline: Deadline,
        start: Start = Start.SEEDED,
    ) -> list[Outputs]:
        """Run the mechanism in a new process; return `runs` outputs for each input and key.

        Raises CannotCopy if there is no process, or if its runs fail, and OutOfTime as
        `Origin.run`.
        """
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
        """Return one chunk of all runs; two for a vectorised mechanism, which may repeat itself."""
        calls = [runs] if self.call.size is None else [runs - runs // 2, runs // 2]
        return [Chunk(n, (Purpose.COPY, *key, k)) for k, n in enumerate(calls)]

    def find_written_files(self, dataset: Input, deadline: Deadline) -> list[str]:
        """Run a forked process once; return files it reads that were written since the first run.

        Files that the run has made itself do not count. Raises CannotCopy or OutOfTime if there is
        no such run.
        """
        if self.origin is not None and self.origin.reason:
            raise CannotCopy(self.origin.reason)
        seconds = HUNG_SECONDS + (self.seconds_a_run or 0.0)
        start = Start.IMPORTED if self.imports else Start.AS_IT_WAS
        self._count_elsewhere(1)
        since = self._first.since
        return find_files_written(self.call, self.runner, dataset, deadline, seconds, start, since)

    def in_first_state(self, *, forks: bool = False) -> Subject | None:
        """Return this mechanism in its state before all audits of the process, for fresh starts.

        They run in forks if `forks`, else as copies. None if this audit is the first, or if no
        process of the first audit waits for forks.
        """
        if self._first.pristine is self._pristine or (forks and self._first.origin is None):
            return None
        before = copy.copy(self)
        before.use_first_state(forks=forks)
        return before

    def use_first_state(self, *, forks: bool) -> None:
        """Let fresh starts begin in the state before all audits, in forks if `forks`."""
        self.forks |= forks
        self._pristine, self.origin = self._first.pristine, self._first.origin
        self._as_first = True
        self.call = replace(self.call, pristine=self._pristine)

    def _copy(self, *datasets: Input) -> tuple[Call, list[Input]]:
        """Return copies of the mechanism and of inputs; raise CannotCopy if there are none."""
        call, inputs = self.call.copy(*(dataset.live for dataset in datasets))
        if len(call.captured.generators) != len(self.call.captured.generators):
            raise CannotCopy("its generators cannot be copied")
        if self._as_first:  # which may be another method
            call = call.with_signature(*self.call.call_signature())
        both = zip(datasets, inputs, strict=True)
        return call, [dataset.with_data(data) for dataset, data in both]

    def _use_forks(self, reason: str) -> None:
        """Run all fresh starts in forked processes, not on copies, for this reason."""
        self.forks = True
        self.call = replace(self.call, pristine=Pristine.without_copies(reason))

    def _use_copies(self) -> None:
        """Run all fresh starts on copies again."""
        self.forks = False
        self.call = replace(self.call, pristine=self._pristine)

    def _copy_inputs(self) -> None:
        """Give every run a copy of its input from now on, and note it."""
        self._copies = True
        self.note("changes its input: every run was given a fresh copy")

    def _count_elsewhere(self, runs: int) -> None:
        """Count runs that another process has made."""
        self.call.made.runs += runs
        self.runs += runs

    def _forget_costs(self) -> None:
        """Forget the seconds that runs took so far, as first calls are slow."""
        self._timed, self._effort, self._passed = 0, 0.0, 0.0

    def _count(self, runs: int, seconds: float, passed: float) -> None:
        """Count runs, with seconds of effort and seconds that passed; update the quickest run."""
        self.runs += runs
        self._timed, self._effort = self._timed + runs, self._effort + seconds
        self._passed += passed
        self._least = min(self._least, seconds / max(runs, 1))
