"""Common random numbers, row by row: row i of the outputs uses row i of the noise, or else.

Two inputs can share their random numbers in a vectorised mechanism if both ask for the same noise
and each draw uses only its own row. What is asked is logged; rows of noise are replaced by others
to see whether any other row of the outputs moves. It has to ask the generator that it is given, and
for all rows at once.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Outputs
from pytest_dp.outputs.raised import same
from pytest_dp.running.calling import Call
from pytest_dp.running.catalogue import NUMPY
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import Instrument, stand_in, was_drawn_unasked
from pytest_dp.running.generators import RunStreams, state_of
from pytest_dp.running.per_run import CHECK_CHILD, NOTHING_RANDOM, CannotCouple
from pytest_dp.running.requests import RNG, Source
from pytest_dp.running.streams import child

CHECKED_SHARE = 0.05
"""Share of shared calls that are checked again. Larger takes longer; smaller misses more."""
TRIAL_RUNS = 2
"""Runs that are made before anything is known: one may take a second. More take longer; fewer show
less."""

ROW_CHILD = 1_000
"""The lowest of the children of a chunk's sequence from which rows get their noise. Given by those
that are used otherwise: it is far above."""

DIFFERENT_NOISE = "the two inputs ask for different noise"


class Log(Instrument):
    """A log of the draws that a mechanism asks for in one call of many rows.

    Rows that are `replaced` get other noise.
    """

    def __init__(
        self, sequence: np.random.SeedSequence, rows: int, replaced: Bools | None = None
    ) -> None:
        super().__init__()
        self._sequence, self.rows, self._replaced = sequence, rows, replaced
        self._own, self._other = (
            np.random.Generator(np.random.Philox(child(sequence, ROW_CHILD + k))) for k in range(2)
        )
        self._calls = hashlib.sha256()
        self._asked = False
        self.recorder: np.random.Generator = stand_in(self, RNG)

    def replacing(self, rows: Bools) -> Log:
        """Return a log for the same call again, with other noise in these rows."""
        return Log(self._sequence, self.rows, rows)

    def attribute(self, source: Source, name: str) -> Any:
        self.is_over()  # whether this is another thread
        if name in NUMPY and NUMPY[name].rows is not None:
            return partial(self._noise, name)
        self.note(f"it uses {source.name}.{name}")
        return getattr(self._own, name)

    def _noise(self, name: str, *args: Any, **keywords: Any) -> Any:
        values = getattr(self._own, name)(*args, **keywords)
        self._asked = True
        if not isinstance(values, np.ndarray) or values.shape[:1] != (self.rows,):
            self.note("the first axis of its noise is not the number of draws")
            return values
        if name == "choice" and not keywords.get("replace", args[2:3] != (False,)):
            self.note("it calls rng.choice with replace=False")
        if "out" in keywords:
            self.note(f"it calls rng.{name} with out=")
        self._calls.update(f"{name} {values.shape} {values.dtype};".encode())
        if NUMPY[name].rows == "bound":
            try:
                self._calls.update(pickle.dumps((args, keywords)))
            except Exception:  # whatever pickling raises
                self.note(DIFFERENT_NOISE)
        if self._replaced is not None:
            replacement = getattr(self._other, name)(*args, **keywords)
            values[self._replaced] = replacement[self._replaced]
        return values

    def digest(self) -> bytes:
        """Return a digest of the noise that was asked for.

        Raises CannotCouple if it is unknown which draw used which noise.
        """
        if was_drawn_unasked():
            self.note("it takes numbers past the methods of rng")
        if self.refusal:
            raise CannotCouple(self.refusal)
        if not self._asked:
            raise CannotCouple(NOTHING_RANDOM)
        self._calls.update(pickle.dumps(state_of(self._own)))
        return self._calls.digest()


def draw_row_aligned(
    call: Call, data: Any, count: int, sequence: np.random.SeedSequence
) -> tuple[Outputs, bytes]:
    """Return the outputs of a chunk, and a digest of its noise that is equal on every input.

    Raises CannotCouple if a draw uses more than its row of the noise, or if this is unclear.
    """
    log = Log(sequence, count)
    with _guarded_sources(call, sequence) as runs:
        outputs, digest = _logged_call(call, data, log, runs)
    choose = _check_of(sequence)
    if choose is not None:
        copied, data = call.spare(data)
        replaced = _half(count, choose)
        with _guarded_sources(copied, sequence) as runs:
            again, _ = _logged_call(copied, data, log.replacing(replaced), runs)
        _check_rows(outputs, again, ~replaced)
    return outputs, digest


def _check_of(sequence: np.random.SeedSequence) -> np.random.Generator | None:
    """Return the generator that chooses rows to draw again with other noise; None if none are."""
    choose = np.random.default_rng(child(sequence, CHECK_CHILD))
    return choose if choose.random() < CHECKED_SHARE else None


def try_row_aligned(
    calls: Sequence[tuple[Call, Any]],
    sequence: np.random.SeedSequence,
    deadline: Deadline,
    count: int,
) -> frozenset[int]:
    """Try whether two inputs ask for the same noise, and draws use only their rows of it.

    As `per_run.try_per_run`, by calls of `count` draws; no source is known to be idle.
    """
    choose = np.random.default_rng(child(sequence, CHECK_CHILD))
    logs = [Log(sequence, count) for _ in calls]
    with _guarded_sources(calls[0][0], sequence) as runs:
        drawn = [_logged_call(*call, log, runs) for call, log in zip(calls, logs, strict=True)]
        if drawn[0][1] != drawn[1][1]:
            raise CannotCouple(DIFFERENT_NOISE)
        for call, log, (outputs, _) in zip(calls, logs, drawn, strict=True):
            if deadline.remaining() <= 0:
                raise OutOfTime
            even = np.arange(count) % 2 == 0
            replaced = even if count == 2 * TRIAL_RUNS else _half(count, choose)
            again, _ = _logged_call(*call, log.replacing(replaced), runs)
            _check_rows(outputs, again, ~replaced)
    return frozenset()


def _half(count: int, choose: np.random.Generator) -> Bools:
    chosen: Bools = choose.permutation(count) < (count + 1) // 2
    return chosen


def _guarded_sources(call: Call, sequence: np.random.SeedSequence) -> RunStreams:
    """Return runs that refuse all sources, as a log gives the mechanism its noise."""
    sources = range(1, 3 + len(call.captured.generators))
    return RunStreams(sequence, 1, call.captured, frozenset(sources))


def _logged_call(call: Call, data: Any, log: Log, runs: RunStreams) -> tuple[Outputs, bytes]:
    """Return the outputs of a call, and a digest of the noise in it."""
    was_drawn_unasked()  # by what ran before
    outputs = call.rows(data, log.rows, log.recorder)
    if not runs.are_idle():
        log.note("its vectorised calls draw on more than rng")
    return outputs, log.digest()


def _check_rows(outputs: Outputs, again: Outputs, same_noise: Bools) -> None:
    """Raise CannotCouple if rows with the same noise differ."""
    if isinstance(outputs, np.ndarray) and isinstance(again, np.ndarray):
        agree = same(outputs[same_noise], again[same_noise])
    else:
        agree = all(same(outputs[row], again[row]) for row in np.flatnonzero(same_noise).tolist())
    if not agree:
        raise CannotCouple("a draw depends on the noise of others, or on earlier calls")
