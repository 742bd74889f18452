"""Sharing runs out among processes: in which jobs, and whether what comes back can be used.

A generator that is copied into several processes deals the same numbers in each. `captured.find`
finds those that Python code holds, also where nothing of them is pickled: in a module that workers
import, in an object that makes its generator anew. Those of compiled code, of which a pickle would
show bytes at most, are told by what they give: a trial in each process, and what chunks begin with.
"""

from __future__ import annotations

import math

from pytest_dp.limits import MOMENT
from pytest_dp.sampling.chunks import Chunk
from pytest_dp.sampling.fingerprint import COINCIDENCE_SURPRISE, Fingerprint
from pytest_dp.sampling.measuring import Group, Work
from pytest_dp.sampling.workers import OUT_OF_REACH, CannotShare, Trial


def jobs_of(
    works: list[Work], n_jobs: int, seconds_a_run: float | None
) -> list[tuple[int, list[Group]]]:
    """Cut works into jobs, each with the number of its work: several for every process."""
    runs = sum(chunk.count for _, groups in works for group in groups for chunk in group)
    a_job = min(MOMENT / (seconds_a_run or MOMENT), runs / (4 * n_jobs))
    jobs: list[tuple[int, list[Group]]] = []
    for index, (_, groups) in enumerate(works):
        size = a_job
        for group in groups:
            if size >= a_job:
                jobs.append((index, []))
                size = 0.0
            jobs[-1][1].append(group)
            size += sum(chunk.count for chunk in group)
    return jobs


class Comparison:
    """What processes have given so far, to tell whether they drew the same random numbers.

    `local` is the trial of this process.
    """

    def __init__(self, local: Trial) -> None:
        self.local = local
        self._trials = {local.process: local}
        self._fingerprints: dict[bytes, Chunk] = {}

    def check(self, trial: Trial) -> None:
        """Refuse a worker's outputs if they cannot be used beside those of other processes.

        What replays in this process must give the same in a worker. What does not must give
        something else in each: system entropy does, a generator that was copied does not.
        """
        if self.local.replays:
            if not trial.replays:
                raise CannotShare(OUT_OF_REACH)
            if trial.outputs != self.local.outputs:
                raise CannotShare(
                    "gives other outputs in a worker process (set order, patched modules, "
                    "environment variables): audited in one process"
                )
        else:
            elsewhere = [t for t in self._trials.values() if t.process != trial.process]
            self._trials[trial.process] = trial
            enough = COINCIDENCE_SURPRISE + 2 * math.log(len(self._trials))
            if trial.outputs.surprise < enough:
                raise CannotShare(
                    "draws on randomness that cannot be told from a copy: audited in one process"
                )
            if any(t.outputs == trial.outputs for t in elsewhere):
                raise CannotShare(OUT_OF_REACH)

    def was_seen(self, fingerprint: Fingerprint | None, chunk: Chunk, replayable: bool) -> bool:
        """Whether another chunk began with the very same outputs, beyond coincidence."""
        enough = COINCIDENCE_SURPRISE + 2 * math.log(len(self._fingerprints) + 1)
        if fingerprint is None or fingerprint.surprise < enough:
            return False
        earlier = self._fingerprints.setdefault(fingerprint.digest, chunk)
        if earlier is chunk:
            return False
        return earlier.key != chunk.key or not replayable  # a chunk may be drawn again
