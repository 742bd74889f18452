"""Chunks of runs, one after the other, in whichever process this is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pytest_dp.basics import clocks
from pytest_dp.outputs.raised import all_equal
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import Chunk, Done, Input, Summary, finish_chunk
from pytest_dp.running.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.running.generators import seed_randomness, states
from pytest_dp.running.per_run import CannotCouple, draw_per_run
from pytest_dp.running.row_aligned import draw_row_aligned
from pytest_dp.running.streams import stream

CHECK_TIME = 0.1
"""Share of the time that looking for changes of an input may take. Larger takes longer; smaller
sees them later."""


@dataclass(frozen=True, slots=True)
class Runner:
    """How a mechanism is run; the same in every process."""

    seed: int
    copies: bool = False
    """Whether every run gets a copy of its input, as the mechanism changes what it is given."""
    idle: frozenset[int] = frozenset()
    """Sources of random numbers that a trial found unused; see `generators.RunStreams`."""
    seconds_a_run: float | None = None
    """Measured so far."""

    def on(self, call: Call, dataset: Input) -> Call:
        """Return the call, with a fresh input for every run if the mechanism changes it."""
        return replace(call, input=dataset.fresh) if self.copies else call

    def run(
        self, call: Call, dataset: Input, chunks: list[Chunk], deadline: Deadline
    ) -> Iterator[Done]:
        """Run chunks in order.

        Raises OutOfTime if the deadline passes first, and CannotCouple if a shared chunk turns out
        not to be a function of its input and its streams.
        """
        runner = self
        unchecked: list[tuple[Chunk, Done]] = []
        runs, spent, since = 0, 0.0, 0.0
        for chunk in chunks:
            ran = runner.attempt(call, dataset, chunk, deadline)
            unchecked.append((chunk, ran))
            seconds, changed = ran.told.seconds, ran.told.changed_input
            runs, spent, since = runs + chunk.count, spent + seconds, since + seconds
            runner = replace(runner, seconds_a_run=spent / runs)
            if not runner.copies:
                seldom = CHECK_TIME * since < dataset.cost and chunk is not chunks[-1]
                if seldom and not changed:
                    continue
                if changed or not dataset.unchanged():  # none of these can be trusted
                    runner = replace(runner, copies=True)
                    again = [runner.once(call, dataset, c, deadline) for c, _ in unchecked]
                    unchecked = [
                        (
                            c,
                            replace(
                                new, told=replace(new.told, runs=old.told.runs + new.told.runs)
                            ),
                        )
                        for (c, old), new in zip(unchecked, again, strict=True)
                    ]
            yield from (ran for _, ran in unchecked)
            unchecked, since = [], 0.0

    def attempt(self, call: Call, dataset: Input, chunk: Chunk, deadline: Deadline) -> Done:
        """Return a chunk, without its outputs if they could not be had as the input was changed."""
        made = call.made.runs
        try:
            return self.once(call, dataset, chunk, deadline)
        except CannotCouple:
            if self.copies or dataset.unchanged():
                raise
            return Done([], Summary(call.made.runs - made, 0.0, changed_input=True))

    def once(self, call: Call, dataset: Input, chunk: Chunk, deadline: Deadline) -> Done:
        """Return a chunk, whatever becomes of the input."""
        if deadline.remaining() <= 0:
            raise OutOfTime
        sequence = stream(self.seed, *chunk.key)
        used, noise, made = self.on(call, dataset), None, call.made.runs
        started, unseeded = clocks.Stopwatch(), False
        if chunk.shared:
            with interruptible(deadline, self.seconds_a_run):
                if used.size is None:
                    outputs = draw_per_run(used, dataset.live, chunk.count, sequence, self.idle)
                else:
                    outputs, noise = draw_row_aligned(used, dataset.live, chunk.count, sequence)
            seconds, passed = started.spent(), started.passed()
        else:
            with seed_randomness(sequence, call.captured) as generator:
                before = states(generator, call.captured)
                started = clocks.Stopwatch()
                with interruptible(deadline, self.seconds_a_run):
                    outputs = used.draw(dataset.live, chunk.count, generator)
                seconds, passed = started.spent(), started.passed()
                untouched = states(generator, call.captured) == before
                unseeded = untouched and not all_equal(outputs)
        told = Summary(call.made.runs - made, seconds, self.copies, noise, unseeded, passed=passed)
        return finish_chunk(outputs, told)
