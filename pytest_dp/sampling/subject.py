"""A mechanism under audit, and what a few runs of copies tell of it ahead of the audit.

What a run costs, whether the same random numbers give the same outputs, whether two inputs can
share them, what the answer without noise is: all is tried on copies, so that what is audited never
sees the same random numbers twice.
"""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from typing import Any

from pytest_dp.arrays import Outputs, joined
from pytest_dp.outputs.outcome import same
from pytest_dp.sampling.calling import Call, Made
from pytest_dp.sampling.chunks import (
    MAX_VECTORIZED_CHUNK,
    Chunk,
    Input,
    at_a_time,
)
from pytest_dp.sampling.copies import CannotCopy, Pristine
from pytest_dp.sampling.coupling import try_coupling
from pytest_dp.sampling.deadline import Deadline, interruptible
from pytest_dp.sampling.noiseless import noiseless
from pytest_dp.sampling.per_run import NOTHING_RANDOM, CannotCouple, Runs
from pytest_dp.sampling.runner import Runner
from pytest_dp.sampling.streams import stream
from pytest_dp.sampling.twister import GLOBAL

COPY_KEY = 10
"""First part of the keys of what is drawn by copies that start afresh."""
TRIAL_RUNS = 2
"""Runs at a time by which a mechanism is first looked at: one may take a second. By hand..."""
TRIAL_RUNS_ALONE = 6
"""...and where it uses none of the streams, and may draw on others."""

_FIGURE = re.compile(r"(?<![\w.])\d[\d,.]*(e[-+]?\d+)?( m?s\b)?")
"""A number in a note, with its unit if that is of time."""


class Subject:
    """A mechanism that is tried out: the one that a `Sampler` draws from.

    Parameters
    ----------
    call : Call
    seed : int

    Attributes
    ----------
    runs : int
        So far, with those of copies.
    seconds : float
        That they took, those apart that do not tell what a run costs.
    replayable : bool
        Whether the same random numbers give the same outputs, as far as is known.
    notes, hindrances : list of str
        See `note`.
    """

    def __init__(self, call: Call, seed: int) -> None:
        GLOBAL.forget()
        pristine = Pristine((call.mechanism, call.params))
        call = replace(call, pristine=pristine, made=Made())
        self.call = call.of(call.mechanism, call.params)
        self.seed = seed
        self.runs = self._timed_runs = 0
        self.seconds = 0.0
        self._fastest = math.inf
        self._at_a_time = MAX_VECTORIZED_CHUNK
        self.replayable = True
        self._copies = False
        self._draws = True
        self._idle: frozenset[int] | None = None  # unknown
        self._refused = ""
        self.notes: list[str] = []
        self.hindrances: list[str] = []
        if places := self.call.captured.places:
            self.note(f"draws from a generator kept in {', '.join(places)}: reseeded")

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
            same_form = [i for i, noted in enumerate(notes) if _FIGURE.sub("#", noted) == form]
            if same_form:
                notes[same_form[0]] = text
            else:
                notes.append(text)

    @property
    def seconds_a_run(self) -> float | None:
        """Measured cost of one run in one process; None before the first."""
        return self.seconds / self._timed_runs if self._timed_runs else None

    @property
    def runner(self) -> Runner:
        """How the mechanism is run, by what is known of it."""
        return Runner(self.seed, self._copies, self._idle or frozenset(), self.seconds_a_run)

    def _try_out(self, call: Call, on_copy: Input, deadline: Deadline) -> None:
        """Find out what a run costs and whether it can be replayed, by a few runs of a copy."""
        used = self.runner.on(call, on_copy)

        def drawn(count: int) -> tuple[Outputs, bool]:
            """Outputs, all of the same stream, and whether the last of them made use of it."""
            with Runs(stream(self.seed, 0), count, call.captured, frozenset()) as runs:
                runs.restart(0)
                starts, made, started = runs.starts(), call.made.runs, time.perf_counter()
                with interruptible(deadline, None):
                    outputs = used.draw(on_copy.live, count, runs.rng, lambda _: runs.restart(0))
                self._count(call.made.runs - made, time.perf_counter() - started)
                return outputs, bool(runs.ends(starts))

        outputs, moved = drawn(TRIAL_RUNS)
        self._at_a_time = at_a_time(outputs)
        self._timed_runs, self.seconds = 0, 0.0  # first calls are slow
        if not on_copy.unchanged():
            self._use_copies()
            used = self.runner.on(call, on_copy)
        self._draws = moved
        if moved:
            self.replayable = all(map(same, drawn(TRIAL_RUNS)[0], drawn(TRIAL_RUNS)[0]))
        else:  # then outputs that vary come from elsewhere
            alone = drawn(TRIAL_RUNS_ALONE)[0]
            self.replayable = all(same(alone[0], output) for output in (*outputs, *alone))

    def can_couple(
        self, input1: Input, input2: Input, deadline: Deadline, rows: int | None = None
    ) -> bool:
        """Whether draws on two inputs may share their random numbers, by a few runs of a copy.

        Parameters
        ----------
        input1, input2 : Input
        deadline : Deadline
        rows : int, optional
            Draws in each call, of a vectorised mechanism.

        Raises
        ------
        OutOfTime
            If the deadline passed first.
        """
        if not self.replayable:
            return False
        refused, made = "", self.call.made.runs
        datasets: list[Input] = []
        try:
            call, datasets = self._copied(input1, input2)
            with interruptible(deadline, self.seconds_a_run):
                calls = [(self.runner.on(call, dataset), dataset.live) for dataset in datasets]
                idle = try_coupling(calls, self.seed, deadline, rows)
        except (CannotCopy, CannotCouple) as reason:
            refused = str(reason)
        finally:
            self.runs += self.call.made.runs - made
        if not self._copies and not _unchanged(datasets):
            self._use_copies()
            return self.can_couple(input1, input2, deadline, rows)
        if not refused:
            self._idle = idle if self._idle is None else self._idle & idle
            return True
        self._refused = refused
        if refused != NOTHING_RANDOM:
            self.note(f"random numbers are not shared between inputs, as {refused}")
        return False

    def noiseless(self, data: Any, privacy_param: str | None) -> Any:
        """The answer without noise, or None; only of mechanisms that replay and have some."""
        if not self.replayable or not self._draws:
            return None
        made = self.call.made.runs
        answer = noiseless(self.call, data, privacy_param)
        self.runs += self.call.made.runs - made
        return answer

    def afresh(
        self, dataset: Input, runs: int, key: tuple[int, ...], deadline: Deadline
    ) -> Outputs:
        """Outputs of a copy that was never run before, with random numbers of its own.

        Raises
        ------
        CannotCopy
            If there is none.
        OutOfTime
            If the deadline passes first.
        """
        call, (on_copy,) = self._copied(dataset)
        vectorized = self.call.size is not None
        chunks = [Chunk(n, (COPY_KEY, *key, k)) for k, n in enumerate(_calls(runs, vectorized))]
        made = self.call.made.runs
        try:
            ran = self.runner.run(call, on_copy, chunks, deadline)
            return joined([done.outputs for done in ran])
        finally:
            self.runs += self.call.made.runs - made

    def _copied(self, *datasets: Input) -> tuple[Call, list[Input]]:
        """A copy of the mechanism, and the inputs for it."""
        call, inputs = self.call.copied(*(dataset.live for dataset in datasets))
        if len(call.captured.generators) != len(self.call.captured.generators):
            raise CannotCopy("its generators cannot be copied")
        return call, [dataset.like(data) for dataset, data in zip(datasets, inputs, strict=True)]

    def _use_copies(self) -> None:
        self._copies = True
        self.note("changes its input: every run was given a fresh copy")

    def _count(self, runs: int, seconds: float) -> None:
        self.runs += runs
        self._timed_runs += runs
        self.seconds += seconds
        self._fastest = min(self._fastest, seconds / max(runs, 1))


def _calls(runs: int, vectorized: bool) -> list[int]:
    """Two calls of a vectorised mechanism, as it may repeat what it gave in an earlier one."""
    return [runs - runs // 2, runs // 2] if vectorized else [runs]


def _unchanged(datasets: list[Input]) -> bool:
    changed = [dataset for dataset in datasets if not dataset.unchanged()]  # all are mended
    return not changed
