"""Lines at which runs on D and on D' go different ways, though their noise is the same."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_dp.blame.finding import Finding
from pytest_dp.blame.reach import Reach, changed
from pytest_dp.blame.watching import source, watched
from pytest_dp.randomness.requests import Site

RUNS = 100
"""On either input, of which every line is looked at."""
LEAST = 5
"""Runs in which the outputs differ, and in which they do not."""
_COMPREHENSIONS = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"}


def parting(reach: Reach) -> Iterator[Finding]:
    """Where the outputs differ in the runs that part there, or come by, and in no others."""
    differs: list[bool] = []
    parted: list[Site | None] = []
    through: list[frozenset[Site]] = []
    order: dict[Site, None] = {}
    for noise in range(RUNS):
        ways = []
        outputs = []
        for side in (0, 1):
            with watched() as lines:
                outputs.append(reach.runs.run(side, noise))
            ways.append([line for line in lines if line.function not in _COMPREHENSIONS])
        if not all(ways):
            return
        differs.append(bool(changed(*outputs)))
        parted.append(_parted(*ways))
        through.append(frozenset(ways[0]) | frozenset(ways[1]))
        order |= dict.fromkeys((*ways[0], *ways[1]))
    many = sum(differs)
    if many < LEAST or RUNS - many < LEAST:
        return
    conditions = {line for line in parted if line is not None}
    where = "; the outputs differ in these, and in no others"
    if [line is not None for line in parted] == differs and len(conditions) == 1:
        (line,) = conditions
        text = (
            f"on the same noise, {many} of {RUNS} runs on D and D' part here, at `{source(line)}`"
        )
        yield Finding("parting", line, text + where)
        return
    for line in order:
        if [line in way for way in through] == differs:
            text = (
                f"on the same noise, {many} of {RUNS} runs on D or D' come by here, "
                f"`{source(line)}`"
            )
            yield Finding("parting", line, text + where)
            return


def _parted(one: list[Site], other: list[Site]) -> Site | None:
    """The last line before two ways differ; None if they do not."""
    for number, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            return one[number - 1] if number else here
    if len(one) == len(other):
        return None
    return min(one, other, key=len)[-1]
