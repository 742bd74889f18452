"""Common random numbers: two inputs have the same noise, and different runs stay independent.

Run by run: before each, every source of random numbers starts afresh. This holds if an output
depends on nothing but the input and the stream.

Row by row, in a vectorised mechanism: if both inputs ask for the same noise and each draw uses only
its own row. Requests for noise are logged; rows of noise are replaced by others to see whether any
other row of the outputs moves.

Both are tried first, and checked while outputs are drawn, on copies of the mechanism, so that the
audited mechanism never gets the same numbers twice.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Outputs
from pytest_dp.outputs.raised import equal_outputs
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import (
    RNG,
    Instrument,
    Source,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.generators import PYTHONS_NUMBER, RunStreams, child, state_of
from pytest_dp.running.laws import NUMPY

TRIED_STREAMS = 3
"""Streams of a trial. More take longer; fewer miss outputs that depend on earlier runs."""
RERUN_SHARE = 0.02
"""Share of the runs of a chunk that are repeated as a check. Smaller misses more."""
CHECKED_SHARE = 0.05
"""Share of vectorised calls that are repeated as a check. Smaller misses more."""
TRIAL_RUNS = 2
"""Runs of the first trial, of which one may take a second. More take longer; fewer show less."""
TRIAL_ROWS = 24
"""Rows of the calls of a trial. Fewer: rare dependence, as by rejection, is seen late."""
ROW_CHILD = 1_000
"""Number of the first child of a chunk's seed sequence that gives rows their noise."""
DIFFERENT_NOISE = "the two inputs ask for different noise"

_FORTH = [(run, side) for side in (0, 1) for run in range(TRIED_STREAMS)]
SCHEDULE = (*_FORTH, *((run, 1 - side) for run, side in reversed(_FORTH)))
"""Streams and inputs of a trial: each stream twice on either input, in another order than before,
so that an output that depends on earlier runs has other ones before it."""
CHECK_CHILD, ANEW_CHILD = 4, 5
"""Children of a chunk's seed sequence after those of `generators.seed_randomness`."""


class CannotCouple(Exception):  # noqa: N818  a way out, not an error
    """Raised if draws on two inputs must not share random numbers; the message says why."""


NOTHING_RANDOM = "nothing random within reach"
"""The one reason that is not shown to users: there is nothing to share."""
DEPENDS_ON_EARLIER_RUNS = "its outputs depend on earlier runs (a buffer, a cache, a counter)"


def _rerun(call: Call, data: Any, runs: RunStreams, run: int) -> Any:
    """Run the mechanism once, from the start of a run's stream, and return the output."""
    return call.draw(data, 1, runs.rng, lambda _: runs.restart(run))[0]


def draw_per_run(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    idle: frozenset[int],
) -> Outputs:
    """Run a chunk, each run from its own stream, and return the outputs; run some again on a copy.

    `idle` are the numbers of sources that the mechanism does not use. If it uses one, the chunk is
    run again, with new random numbers. Raises CannotCouple if an output that was checked depends on
    more than the input and the stream.
    """
    if threading.current_thread() is not threading.main_thread():
        idle -= {PYTHONS_NUMBER}  # others are at work in this process, and may use it at any time
    outputs = _draw_with_idle(call, data, count, sequence, idle)
    if outputs is not None:
        return outputs
    # The mechanism uses a source that it did not use in the trial. Again, with new numbers.
    return draw_per_run(call, data, count, child(sequence, ANEW_CHILD), frozenset())


def _draw_with_idle(
    call: Call,
    data: Any,
    count: int,
    sequence: np.random.SeedSequence,
    idle: frozenset[int],
) -> Outputs | None:
    """Run a chunk as `draw_per_run` does; return None if a source that should be idle was used."""
    choose = np.random.default_rng(child(sequence, CHECK_CHILD))
    checked = choose.integers(count, size=int(RERUN_SHARE * count + 0.25 + choose.random()))
    with RunStreams(sequence, count, call.captured, idle) as runs:
        outputs = call.draw(data, count, runs.rng, runs.restart)
        if not runs.are_idle():
            return None
        if len(checked) and not call.captured.generators:
            copied, data = call.reusable_copy(data)  # which draws on the same sources
            _check(copied, data, outputs, checked.tolist(), runs)
            runs.are_idle()
    if len(checked) and call.captured.generators:
        copied, data = call.reusable_copy(data)
        with RunStreams(sequence, count, copied.captured, idle) as runs:
            _check(copied, data, outputs, checked.tolist(), runs)
    return outputs


def _check(call: Call, data: Any, outputs: Outputs, checked: list[int], runs: RunStreams) -> None:
    """Run the `checked` runs again; raise CannotCouple if one of them gives another output."""
    for run in checked:
        if not equal_outputs(outputs[run], _rerun(call, data, runs, run)):
            raise CannotCouple(DEPENDS_ON_EARLIER_RUNS)


def try_per_run(
    calls: Sequence[tuple[Call, Any]], sequence: np.random.SeedSequence, deadline: Deadline
) -> frozenset[int]:
    """Run copies in the order of `SCHEDULE`, and return the numbers of the sources that stay idle.

    `calls` are two calls of copies, which have no other use, each with its input. Raises
    CannotCouple if outputs depend on more than the input and the stream, or if a run uses no source
    that can be restarted, and OutOfTime if the deadline passes first.
    """
    captured = calls[0][0].captured
    touched: set[int] = set()
    drawing: set[int] = set()  # inputs on which the mechanism has drawn
    seen: dict[tuple[int, int], tuple[Any, dict[int, Any]]] = {}
    with RunStreams(sequence, TRIED_STREAMS, captured, frozenset()) as runs:
        for run, side in SCHEDULE:
            if deadline.remaining() <= 0:
                raise OutOfTime
            output, ends = _trace_run(*calls[side], runs, run)
            earlier, earlier_ends = seen.setdefault((run, side), (output, ends))
            if ends != earlier_ends or not equal_outputs(output, earlier):
                raise CannotCouple(DEPENDS_ON_EARLIER_RUNS)
            if not ends:  # whether a pure function draws at all depends on the input alone
                raise CannotCouple(DEPENDS_ON_EARLIER_RUNS if side in drawing else NOTHING_RANDOM)
            drawing.add(side)
            touched |= ends.keys()
    return frozenset(range(3 + len(captured.generators))) - touched


def _trace_run(call: Call, data: Any, runs: RunStreams, run: int) -> tuple[Any, dict[int, Any]]:
    """Run the mechanism once; return the output, and the new states of the sources it used."""
    runs.restart(run)
    starts = runs.states()
    output = _rerun(call, data, runs, run)
    return output, runs.used_since(starts)


class Log(Instrument):
    """An instrument that answers and logs the draws of one vectorised call.

    `recorder` is the generator that the mechanism gets. The rows of the mask `replaced` get other
    noise.
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
        """Return a log for a repetition of the call, with other noise in the rows of a mask."""
        return Log(self._sequence, self.rows, rows)

    def attribute(self, source: Source, name: str) -> Any:
        """Return an attribute of the generator; a method that draws row by row also logs its draws.

        Any other attribute refuses the run without an error, and is returned without a log.
        """
        self.is_over()  # whether this is another thread
        if name in NUMPY and NUMPY[name].rows is not None:
            return partial(self._noise, name)
        self.note(f"it uses {source.name}.{name}")
        return getattr(self._own, name)

    def _noise(self, name: str, *args: Any, **keywords: Any) -> Any:
        """Draw by a method of numpy, log the request, and return the noise.

        Refuses the run if rows of the noise do not belong to rows of outputs.
        """
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
        """Return a hash of all requests so far, which is equal for equal noise.

        Raises CannotCouple if nothing was drawn, or if it is unknown which row used which noise.
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
    """Run one call of `count` rows; return the outputs, and a hash of the noise that it asked for.

    A share `CHECKED_SHARE` of calls is repeated on a copy, with other noise in half of the rows.
    Raises CannotCouple if a draw uses more than its row of the noise, or if that is unknown.
    """
    log = Log(sequence, count)
    with _guarded_sources(call, sequence) as runs:
        outputs, digest = _logged_call(call, data, log, runs)
    choose = _chooser_of_rows(sequence)
    if choose is not None:
        copied, data = call.reusable_copy(data)
        replaced = _random_half(count, choose)
        with _guarded_sources(copied, sequence) as runs:
            again, _ = _logged_call(copied, data, log.replacing(replaced), runs)
        _check_rows(outputs, again, ~replaced)
    return outputs, digest


def _chooser_of_rows(sequence: np.random.SeedSequence) -> np.random.Generator | None:
    """Return the generator that chooses the rows to check; None if this call is not checked."""
    choose = np.random.default_rng(child(sequence, CHECK_CHILD))
    return choose if choose.random() < CHECKED_SHARE else None


def try_row_aligned(
    calls: Sequence[tuple[Call, Any]], sequence: np.random.SeedSequence, deadline: Deadline
) -> frozenset[int]:
    """Run copies on two inputs, and again with other noise in half of the rows.

    Raises CannotCouple if the inputs ask for different noise, or if a row depends on the noise of
    another, and OutOfTime. Returns an empty set, as no source is known to be idle. Arguments are
    those of `try_per_run`.
    """
    logs = [Log(sequence, TRIAL_ROWS) for _ in calls]
    with _guarded_sources(calls[0][0], sequence) as runs:
        drawn = [_logged_call(*call, log, runs) for call, log in zip(calls, logs, strict=True)]
        if drawn[0][1] != drawn[1][1]:
            raise CannotCouple(DIFFERENT_NOISE)
        for call, log, (outputs, _) in zip(calls, logs, drawn, strict=True):
            if deadline.remaining() <= 0:
                raise OutOfTime
            replaced = np.arange(TRIAL_ROWS) % 2 == 0
            again, _ = _logged_call(*call, log.replacing(replaced), runs)
            _check_rows(outputs, again, ~replaced)
    return frozenset()


def _random_half(count: int, choose: np.random.Generator) -> Bools:
    """Return a random mask of half of `count` rows."""
    chosen: Bools = choose.permutation(count) < (count + 1) // 2
    return chosen


def _guarded_sources(call: Call, sequence: np.random.SeedSequence) -> RunStreams:
    """Return streams of which `are_idle` says whether a call used any source but its log."""
    sources = range(1, 3 + len(call.captured.generators))
    return RunStreams(sequence, 1, call.captured, frozenset(sources))


def _logged_call(call: Call, data: Any, log: Log, runs: RunStreams) -> tuple[Outputs, bytes]:
    """Run a call with a log as its generator; return the outputs, and the log's digest.

    Raises CannotCouple as `Log.digest` does, also if the call draws on another generator.
    """
    was_drawn_unasked()  # by what ran before
    outputs = call.draw_rows(data, log.rows, log.recorder)
    if not runs.are_idle():
        log.note("its vectorised calls draw on more than rng")
    return outputs, log.digest()


def _check_rows(outputs: Outputs, again: Outputs, same_noise: Bools) -> None:
    """Raise CannotCouple if rows in the mask `same_noise` differ between two calls."""
    if isinstance(outputs, np.ndarray) and isinstance(again, np.ndarray):
        agree = equal_outputs(outputs[same_noise], again[same_noise])
    else:
        agree = all(
            equal_outputs(outputs[row], again[row]) for row in np.flatnonzero(same_noise).tolist()
        )
    if not agree:
        raise CannotCouple("a draw depends on the noise of others, or on earlier calls")
