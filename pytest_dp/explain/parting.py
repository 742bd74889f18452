"""Where runs on D and D' part."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from pytest_dp.explain.findings import Finding
from pytest_dp.explain.runs import PairRuns, changed_leaves
from pytest_dp.explain.tracing import traced_lines
from pytest_dp.running.requests import Site

TRACED_RUNS = 80
"""Runs on the same noise that are traced, which makes each many times slower. More take longer;
fewer miss where runs part seldom."""
MIN_PARTED = 5
"""Runs that part at a line, and that do not. Fewer may be chance; more: lines are not named."""

_COMPREHENSIONS = {"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"}
"""Functions whose lines are left out: how often they run says nothing of the path."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """Runs on D and on D' with the same noise."""

    differs: bool
    """Whether their outputs do."""
    paths: tuple[list[Site], list[Site]]
    """The lines of either run, in order."""

    @property
    def parting(self) -> Site | None:
        """The last line before the paths differ; None if they do not."""
        one, other = self.paths
        for number, (here, there) in enumerate(zip(one, other, strict=False)):
            if here != there:
                return one[number - 1] if number else here
        return None if len(one) == len(other) else min(one, other, key=len)[-1]


def find_parting(runs: PairRuns) -> Iterator[Finding]:
    """Yield the line where runs part, or come by, whenever outputs differ, and at no other time."""
    pairs = []
    for noise in range(TRACED_RUNS):
        pairs.append(_pair(runs, noise))
        if not all(pairs[-1].paths):
            return
    differs = [pair.differs for pair in pairs]
    count = sum(differs)
    if count < MIN_PARTED or TRACED_RUNS - count < MIN_PARTED:
        return
    partings = [pair.parting for pair in pairs]
    lines = list({line for line in partings if line is not None})
    kind, said = "parting", "D and D' take different ways from this line,"
    if [line is not None for line in partings] != differs or len(lines) != 1:
        visited = [set(chain(*pair.paths)) for pair in pairs]
        in_order = dict.fromkeys(chain.from_iterable(chain(*pair.paths) for pair in pairs))
        lines = [line for line in in_order if [line in path for path in visited] == differs]
        kind, said = "passing", "D or D' reach this line,"
    for line in lines[:1]:
        source = linecache.getline(line.file, line.line).strip()
        text = (
            f"with the same random numbers, {count} of {TRACED_RUNS} runs on {said} `{source}`. "
            "The outputs differ in these runs, and in no others"
        )
        yield Finding(kind, line, text)


def _pair(runs: PairRuns, noise: int) -> _Pair:
    paths, outputs = [], []
    for side in (0, 1):
        with traced_lines() as lines:
            outputs.append(runs.run(side, noise))
        paths.append([line for line in lines if line.function not in _COMPREHENSIONS])
    return _Pair(bool(changed_leaves(*outputs)), (paths[0], paths[1]))
