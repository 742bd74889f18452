"""Draws of which four times the noise would keep the event from telling so much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.blame.families import family_of, written
from pytest_dp.blame.finding import Finding
from pytest_dp.blame.reach import NOISES, Reach, at_line
from pytest_dp.blame.runs import place_of
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.requests import Site
from pytest_dp.randomness.tape import Draw

CHOOSING, RUNS = 200, 800
"""Runs on either input that choose a line, as they are and for each; and those that then count."""
FIRST = 10_000
"""Number of the first of these noises: the others have chosen what is looked at."""
TIMES = 4.0
LEAST, SURE = 0.25, 3.0
"""Share of what the claim does not allow that has to go, and how many standard errors that is."""


def by_more_noise(
    reach: Reach, event: Callable[[Any], Any], claim: Guarantee, lost: float
) -> Iterator[Finding]:
    """The line of which more noise takes the most of what an event tells.

    Parameters
    ----------
    reach : Reach
    event : callable
        Too likely on D.
    claim : Guarantee
    lost : float
        What is shown to be lost.
    """
    lines = [line for line in reach.lines if _is_noise(reach, line)]
    if not lines:
        return
    times = math.exp(claim.eps or 0.0)

    def seen(line: Site | None, noises: range) -> _Seen:
        return _Seen(*_shares(reach, event, line, noises), times, len(noises))

    line = lines[0]
    if len(lines) > 1:
        noises = range(FIRST, FIRST + CHOOSING)
        line = min(lines, key=lambda one: seen(one, noises).excess)
    noises = range(FIRST + CHOOSING, FIRST + CHOOSING + RUNS)
    before, after = seen(None, noises), seen(line, noises)
    gone = before.excess - after.excess
    if gone < max(LEAST * before.excess, SURE * math.hypot(before.error, after.error)):
        return
    draw = reach.draw_at(line)
    text = (
        f"with four times the noise of {written(draw.request)} here, S comes in {after.here:.2g} "
        f"of the runs on D and {after.there:.2g} on D', and with the noise as it is in "
        f"{before.here:.2g} and {before.there:.2g} (of {RUNS} runs each)"
    )
    yield Finding("too little noise", line, text, loss=lost)


@dataclass(frozen=True, slots=True)
class _Seen:
    """In which share of the runs an event came, on D and on D'; and how often it may, of D'."""

    here: float
    there: float
    times: float
    runs: int

    @property
    def excess(self) -> float:
        """What is more on D than the claim allows."""
        return self.here - self.times * self.there

    @property
    def error(self) -> float:
        """The standard error of that; one more run counts, as there may be none."""
        least = 1 / self.runs
        return math.sqrt((self.here + least + self.times**2 * (self.there + least)) / self.runs)


def _is_noise(reach: Reach, line: Site) -> bool:
    """Whether all draws of a line are noise that can be made larger."""
    draws = [
        draw
        for noise in range(NOISES)
        for run in reach.both(noise)
        for draw in run.draws
        if place_of(draw.stack) == line
    ]
    return all(_centre(draw) is not None for draw in draws)


def _centre(draw: Draw) -> Any:
    if np.ndim(draw.value) == 0:
        family = family_of(draw, None)
        return None if family is None else family.centre
    families = [family_of(draw, index) for index in range(np.size(draw.value))]
    if any(family is None for family in families):
        return None
    centres = [family.centre for family in families if family is not None]
    return np.reshape(centres, np.shape(draw.value))


def _larger(draw: Draw, _: Any) -> Any:
    centre = _centre(draw)
    if centre is None:
        return draw.value
    value = centre + TIMES * (draw.value - centre)
    return value if np.ndim(value) else type(draw.value)(value)


def _shares(
    reach: Reach, event: Callable[[Any], Any], line: Site | None, noises: range
) -> tuple[float, float]:
    """In which share of the runs an event comes, on D and on D', with more noise at a line."""
    replaced = None if line is None else at_line(line, _larger)
    shares = []
    for side in (0, 1):
        outputs = [reach.runs.run(side, noise, replaced).output for noise in noises]
        if isinstance(event, Event):
            shares.append(float(event.mask(tabulate(outputs)).mean()))
        else:
            shares.append(sum(float(event(output)) for output in outputs) / len(noises))
    return shares[0], shares[1]
