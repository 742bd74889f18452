"""Lines of which four times the noise would make the counterexample's event less telling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.blame.findings import Finding, format_draw
from pytest_dp.blame.noise import noise_of
from pytest_dp.blame.runs import Runs, all_at, indices
from pytest_dp.limits import CLEAR_ERRORS, MANY_RUNS, RUNS, THOUSAND
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw

FIRST_NOISE = 10 * THOUSAND
"""Number of the first noise used here: those below it were used to choose what is looked at."""


def by_more_noise(
    runs: Runs, event: Callable[[Any], Any], claim: Guarantee, lower: float
) -> Iterator[Finding]:
    """The line of which more noise lowers an event's excess over the claim the most.

    The event is too likely on D, and `lower` is what is shown to be lost.
    """
    lines = [line for line in runs.lines if _is_noise(runs, line)]
    if not lines:
        return

    def frequencies(line: Site | None, noises: range) -> _Frequencies:
        return _Frequencies(*_shares(runs, event, line, noises), claim, len(noises))

    counting = FIRST_NOISE + RUNS
    noises = range(FIRST_NOISE, counting)
    line = min(lines, key=lambda line: frequencies(line, noises).excess)
    noises = range(counting, counting + MANY_RUNS)
    before, after = frequencies(None, noises), frequencies(line, noises)
    error = math.hypot(before.error, after.error)
    if not after.there and after.excess > CLEAR_ERRORS * after.error:
        return  # what comes on D alone with any noise is no matter of noise
    if before.excess - after.excess < max(before.excess / 4, CLEAR_ERRORS * error):
        return
    text = (
        f"with four times the noise of {format_draw(runs.draw_at(line).request)} here, S comes in "
        f"{after.here:.2g} of the runs on D and {after.there:.2g} on D', and with the noise as it "
        f"is in {before.here:.2g} and {before.there:.2g} (of {MANY_RUNS} runs each)"
    )
    yield Finding("too little noise", line, text, loss=lower)


@dataclass(frozen=True, slots=True)
class _Frequencies:
    """Shares of runs in which an event came on D and on D'."""

    here: float
    there: float
    claim: Guarantee
    runs: int

    @property
    def excess(self) -> float:
        """By how much the share on D is more than the claim allows."""
        return self.here - self.claim.largest_probability(self.there)

    @property
    def error(self) -> float:
        """The standard error of the excess; one run is added, as the event may never come."""
        least = 1 / self.runs
        deviation = math.sqrt((self.there + least) / self.runs)
        allowed = self.claim.largest_probability
        around = allowed(min(self.there + deviation, 1.0)) - allowed(self.there)
        return math.hypot(math.sqrt((self.here + least) / self.runs), around)


def _is_noise(runs: Runs, line: Site) -> bool:
    """Whether all draws of a line are noise that can be made larger."""
    return all(_centres(draw) is not None for run in runs.all_runs() for draw in run.draws_at(line))


def _centres(draw: Draw) -> Any:
    """The centre of each number of a draw, of its shape; None if it is no known noise."""
    noises = [noise_of(draw, index) for index in indices(draw)]
    centres = [noise.centre for noise in noises if noise is not None]
    if len(centres) < len(noises):
        return None
    return np.reshape(centres, np.shape(draw.value)) if np.ndim(draw.value) else centres[0]


def _larger(draw: Draw, _: Any) -> Any:
    """A replacement: the same draw with four times its noise."""
    centre = _centres(draw)
    if centre is None:
        return draw.value
    value = centre + 4.0 * (draw.value - centre)
    return value if np.ndim(value) else type(draw.value)(value)


def _shares(
    runs: Runs, event: Callable[[Any], Any], line: Site | None, noises: range
) -> tuple[float, float]:
    """The share of runs in which an event comes, on D and on D', with more noise at a line."""
    replaced = None if line is None else all_at(line, _larger)
    shares = []
    for side in (0, 1):
        outputs = [runs.run(side, noise, replaced).output for noise in noises]
        if isinstance(event, Event):
            shares.append(float(event.mask(tabulate(outputs)).mean()))
        else:
            shares.append(sum(float(event(output)) for output in outputs) / len(noises))
    return shares[0], shares[1]
