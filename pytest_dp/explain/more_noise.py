"""Lines of which four times the noise would make the counterexample's event less telling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pytest_dp.explain.findings import Finding, format_draw
from pytest_dp.explain.runs import MANY_RUNS, RUNS, UNIFORM, PairRuns, all_at
from pytest_dp.outputs.events import Event
from pytest_dp.outputs.table import tabulate
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.running.catalogue import draw_kind_of
from pytest_dp.running.laws import GEOMETRIC
from pytest_dp.running.laws import UNIFORM as UNIFORM_FAMILY
from pytest_dp.running.requests import Site
from pytest_dp.running.tape import Draw

CLEAR_ERRORS = 3.0
"""Standard errors that chance does not explain. More: leaks are not named; fewer: chance is."""

FIRST_NOISE = 10_000
"""Number of the first noise used here: those below it were used to choose what is looked at."""

_MIDDLES = {UNIFORM_FAMILY: 0.5, GEOMETRIC: 0.0}
"""Around which standard draws become larger, of families without a centre."""


def find_helpful_noise(
    runs: PairRuns, event: Callable[[Any], Any] | None, claim: Guarantee, lower: float
) -> Iterator[Finding]:
    """Yield the line of which more noise lowers an event's excess over the claim the most.

    The event is too likely on D, and `lower` is what is shown to be lost.
    """
    lines = [line for line in runs.lines if event is not None and _is_noise(runs, line)]
    if event is None or not lines:
        return

    def excess(shares: tuple[float, float]) -> float:
        return shares[0] - claim.largest_probability(shares[1])

    counting = FIRST_NOISE + RUNS
    noises = range(FIRST_NOISE, counting)
    line = min(lines, key=lambda line: excess(_shares(runs, event, line, noises)))
    noises = range(counting, counting + MANY_RUNS)
    before, after = (_shares(runs, event, more, noises) for more in (None, line))
    if not after[1] and excess(after) > CLEAR_ERRORS * _error(claim, *after):
        return  # what comes on D alone with any noise is no matter of noise
    error = math.hypot(_error(claim, *before), _error(claim, *after))
    if excess(before) - excess(after) < max(excess(before) / 4, CLEAR_ERRORS * error):
        return
    text = (
        f"with four times the noise of {format_draw(runs.draw_at(line).request)} here, S comes in "
        f"{after[0]:.2g} of the runs on D and {after[1]:.2g} on D'. With the present noise these "
        f"shares are {before[0]:.2g} and {before[1]:.2g} ({MANY_RUNS} runs each)"
    )
    yield Finding("too little noise", line, text, loss=lower)


def _error(claim: Guarantee, here: float, there: float) -> float:
    """Return the standard error of an excess; one run is added, as the event may never come."""
    least, allowed = 1 / MANY_RUNS, claim.largest_probability
    deviation = math.sqrt((there + least) / MANY_RUNS)
    around = allowed(min(there + deviation, 1.0)) - allowed(there)
    return math.hypot(math.sqrt((here + least) / MANY_RUNS), around)


def _is_noise(runs: PairRuns, line: Site) -> bool:
    """Return whether all draws of a line are noise that can be made larger."""
    draws = (draw for run in runs.all_runs() for draw in run.draws_at(line))
    return all(with_more_noise(draw) is not None for draw in draws)


def with_more_noise(draw: Draw, _: Any = None) -> Any:
    """Return a draw with four times its noise; None if its law is unknown, or for decisions."""
    standard_of = draw_kind_of(draw.request).standard
    if standard_of is None or draw.request.method in UNIFORM:
        return None
    try:
        law, scale, location = standard_of(draw.request.arguments)
        middle = _MIDDLES.get(law.family)
        if middle is None and law.family.centre is not None:
            middle = law.family.centre(law.parameter)
        if middle is None or not 0 < np.min(scale) <= np.max(scale) < math.inf:
            return None
        centre = location + np.multiply(scale, middle)
        value = np.asarray(centre + 4.0 * (draw.value - centre))
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    value = value.astype(np.asarray(draw.value).dtype)
    return value if np.ndim(draw.value) else type(draw.value)(value.item())


def _shares(
    runs: PairRuns, event: Callable[[Any], Any], line: Site | None, noises: range
) -> tuple[float, float]:
    """Return the share of runs with an event on D and on D', with more noise at a line."""
    replaced = None if line is None else all_at(line, with_more_noise)
    shares = []
    for side in (0, 1):
        outputs = [runs.run(side, noise, replaced).output for noise in noises]
        if isinstance(event, Event):
            shares.append(float(event.mask(tabulate(outputs)).mean()))
        else:
            shares.append(sum(float(event(output)) for output in outputs) / len(noises))
    return shares[0], shares[1]
