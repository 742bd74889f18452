"""Numbers of an output that use the same random numbers, so that these can be taken off again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pytest_dp.explain.findings import Finding, format_draw, format_number
from pytest_dp.explain.runs import LOOK_RUNS, PairRuns, place_of
from pytest_dp.outputs.noise_relations import without_noise
from pytest_dp.running.requests import Site

MAX_COMPARED = 32
"""How many numbers of an output are compared, of those that vary. More take longer; noise that only
others share goes unnoticed."""


def find_shared_noise(runs: PairRuns) -> Iterator[Finding]:
    """Yield the line at which the random numbers come from that several numbers use."""
    places = [
        place
        for place, value in runs.usual(0, 0).leaves.items()
        if isinstance(value, float) and runs.lines_of(place)
    ][:MAX_COMPARED]
    if len(places) < 2:
        return
    sides = [
        np.array([[_number(run.leaves.get(place)) for place in places] for run in on_side])
        for on_side in ([runs.usual(side, n) for n in range(2 * LOOK_RUNS)] for side in (0, 1))
    ]
    shared = without_noise(places, *sides)
    if shared is None:
        return
    line = _of_equal_seeds(runs)
    said = "" if line is None else ", as generators have the same seed here"
    if line is None:
        lines = frozenset.intersection(*map(runs.lines_of, shared.relation.places))
        line = next((line for line in runs.lines if line in lines), None)
        if line is None:
            return
        said = f", such as {format_draw(runs.draw_at(line).request)}"
    text = (
        f"{shared}{said}; it is {format_number(shared.on_d)} on D and "
        f"{format_number(shared.on_d2)} on D'"
    )
    yield Finding("shared noise", line, text, certain=True)


def _number(value: object) -> float:
    return value if isinstance(value, float) else np.nan


def _of_equal_seeds(runs: PairRuns) -> Site | None:
    """Return the line at which a generator gets a seed that one of the same run had before."""
    known: set[tuple[type, str]] = set()
    for seeded in runs.usual(0, 0).seeded:
        key = seeded.source.kind, repr(seeded.seed)
        if seeded.seed and seeded.stack and key in known:
            return place_of(seeded.stack)
        known.add(key)
    return None
