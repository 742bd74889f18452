"""Datasets whose records keep a constraint, and what is true on them, without sampling.

Inside are all datasets of the examples' records, none more often than an example has it, as many as
examples have if their number is public; in order if these are, without a repeated id if they have
none. The loss of a mechanism on two of
them follows from one run on each, in which draws say how they are distributed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import Twins
from pytest_dp.data import key, rebuild, records_of

ADD, REPLACE = "add_remove_one", "replace_one"


@dataclass(frozen=True, slots=True)
class Constrained(Twins):
    """Twins that are declared by examples.

    Attributes
    ----------
    beyond : tuple of two datasets
        Neighbours, one of which holds what no example does: both twins break the claim on them.
    order : callable or None
        By what the records of all that counts as inside are sorted.
    ids : callable or None
        What of a record no other one has in all that counts as inside.
    """

    beyond: tuple[Any, Any] = (None, None)
    order: Callable[[Any], Any] | None = None
    ids: Callable[[Any], Any] | None = None


Make = Callable[[bool], Callable[..., Any]]


def entered(
    zoo: list[Constrained], neighbors: str, inputs: Any, **more: Any
) -> Callable[[Make], Make]:
    """Add twins to a zoo, with their examples and what else they are declared by."""

    def add(make: Make) -> Make:
        name = make.__name__.replace("_", " ")
        zoo.append(Constrained(name, make, inputs, neighbors, **more))
        return make

    return add


Counts = tuple[int, ...]
"""How often a dataset holds each of the examples' records."""


def inside(twins: Constrained, *, stated: bool = False) -> Iterator[tuple[Any, Any]]:
    """All neighbours inside, or only those of the examples."""
    counted = [Counter(map(key, records_of(example))) for example in twins.inputs]
    records = {key(record): record for example in twins.inputs for record in records_of(example)}
    most = [max(counts[which] for counts in counted) for which in records]
    like = max(twins.inputs, key=lambda example: len(records_of(example)))
    examples = {tuple(counts[which] for which in records) for counts in counted}
    sizes = sorted(map(sum, examples)) if twins.neighbors == REPLACE else [0, sum(most)]
    datasets: dict[Counts, Any] = {}
    for counts in itertools.product(*(range(n + 1) for n in most)):
        if not sizes[0] <= sum(counts) <= sizes[-1]:
            continue
        chosen = [r for r, n in zip(records.values(), counts, strict=True) for _ in range(n)]
        if twins.order is not None:
            chosen.sort(key=twins.order)
        if twins.ids is None or len(set(map(twins.ids, chosen))) == len(chosen):
            datasets[counts] = rebuild(like, chosen)
    for counts in examples if stated else datasets:
        for other in _neighbours(counts, twins.neighbors):
            if other in datasets:
                yield datasets[counts], datasets[other]


def _neighbours(counts: Counts, neighbors: str) -> Iterator[Counts]:
    for at, n in enumerate(counts):
        if n:
            fewer = (*counts[:at], n - 1, *counts[at + 1 :])
            if neighbors == ADD:
                yield fewer
                continue
            for other in set(range(len(counts))) - {at}:
                yield (*fewer[:other], fewer[other] + 1, *fewer[other + 1 :])


def loss(twins: Constrained, mechanism: Callable[..., Any], d1: Any, d2: Any) -> float:
    """The privacy loss on two datasets: eps, or mu where that is claimed."""
    parts = list(_parts(_answered(mechanism, d1), _answered(mechanism, d2)))
    return math.hypot(*parts) if "mu" in twins.keywords else sum(parts)


@dataclass(frozen=True, slots=True)
class _Noisy:
    """A number with noise of this scale around it."""

    centre: float
    scale: float

    def __add__(self, other: float) -> _Noisy:
        return _Noisy(self.centre + other, self.scale)

    __radd__ = __add__


class _Draws:
    """A generator whose draws say how they are distributed."""

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: int | None = None) -> Any:
        return _Noisy(loc, scale) if size is None else np.array([_Noisy(loc, scale)] * size)

    normal = laplace

    def choice(self, options: Any, p: Any) -> Any:
        return frozenset(zip(options, p, strict=True))


_SEQUENCES = list, tuple, np.ndarray


def _answered(mechanism: Callable[..., Any], data: Any) -> Any:
    try:
        return mechanism(data, rng=_Draws())
    except Exception as error:
        return type(error)


def _parts(a: Any, b: Any) -> Iterator[float]:
    """What each draw adds to the loss, and infinity for what is told without noise."""
    if isinstance(a, _Noisy) and isinstance(b, _Noisy) and a.scale == b.scale:
        gap = abs(a.centre - b.centre) / a.scale
        yield 0.0 if key(a.centre) == key(b.centre) else math.inf if math.isnan(gap) else gap
    elif isinstance(a, frozenset) and isinstance(b, frozenset):
        p, q = dict(a), dict(b)
        yield max(abs(math.log(p[o] / q[o])) for o in p) if p.keys() == q.keys() else math.inf
    elif isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for name in a:
            yield from _parts(a[name], b[name])
    elif isinstance(a, _SEQUENCES) and isinstance(b, _SEQUENCES) and len(a) == len(b):
        for one, other in zip(a, b, strict=True):
            yield from _parts(one, other)
    else:
        yield 0.0 if key(a) == key(b) else math.inf
