"""Audits shared out among jobs that do not know of each other: ``--dp-shard=2/5``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import filterfalse
from statistics import median
from typing import Any

import pytest

from pytest_dp.plugin.names import MARKER

_DURATIONS = "dp/durations"
"""In pytest's cache: seconds that each audit took the last time."""


def shard_of(config: pytest.Config) -> tuple[int, int] | None:
    """Which of how many shards this run is; None for all there is.

    Raises
    ------
    pytest.UsageError
        If that makes no sense.
    """
    given = getattr(config.option, "dp_shard", None)
    if given is None:
        return None
    match = re.fullmatch(r"(\d+)/(\d+)", given.strip())
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise pytest.UsageError(
            f"--dp-shard={given}: allowed is the number of this shard and how many there are, such "
            "as 1/5 to 5/5."
        )
    return number, of


def keep_own(config: pytest.Config, items: list[pytest.Item], shard: tuple[int, int]) -> None:
    """Deselect the audits of other shards, and what is no audit except in the first one.

    All shards of the same tests with the same durations come to the same partition.
    """
    number, of = shard
    audits = [item for item in items if item.get_closest_marker(MARKER) is not None]
    cache: Any = getattr(config, "cache", None)
    known = cache.get(_DURATIONS, {}) if cache is not None else {}
    mine = set(partition([item.nodeid for item in audits], known, of)[number - 1])
    audited = set(map(id, audits))

    def belongs_elsewhere(item: pytest.Item) -> bool:
        return item.nodeid not in mine if id(item) in audited else number != 1

    gone = list(filter(belongs_elsewhere, items))
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = filterfalse(belongs_elsewhere, items)


def partition(names: Sequence[str], seconds: dict[str, float], shards: int) -> list[list[str]]:
    """Share names out so that the slowest shard is quick: the longest first, to the emptiest.

    What was never run is taken to be as long as others are on the median.

    References
    ----------
    Graham, "Bounds on multiprocessing timing anomalies", 1969: at most 4/3 of the best.
    """
    usual = median(seconds.values()) if seconds else 1.0
    ordered = sorted(set(names), key=lambda name: (-seconds.get(name, usual), name))
    loads, parts = [0.0] * shards, [list[str]() for _ in range(shards)]
    for name in ordered:
        emptiest = loads.index(min(loads))
        loads[emptiest] += seconds.get(name, usual)
        parts[emptiest].append(name)
    return parts


def remember_durations(config: pytest.Config, reports: Iterable[pytest.TestReport]) -> None:
    """Keep what audits took, beside what is known of those that did not run now."""
    cache: Any = getattr(config, "cache", None)
    took = {report.nodeid: round(report.duration, 1) for report in reports}
    if cache is not None and took:
        cache.set(_DURATIONS, cache.get(_DURATIONS, {}) | took)
