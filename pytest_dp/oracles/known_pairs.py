"""Losses on a pair of inputs that are known without a sample, and why they may be wrong."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from pytest_dp.basics.arrays import Floats, Outputs
from pytest_dp.basics.reach import functions_of, names_in, reach
from pytest_dp.betting.binning import Binning
from pytest_dp.oracles.aligned_pair import AlignedPair
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import Mode
from pytest_dp.running.calling import Call, Made
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.generators import seed_randomness
from pytest_dp.running.modules import are_originals
from pytest_dp.running.stand_ins import CannotInstrument

ROUNDING = 1e-9
"""Relative error after a few operations. Larger: other numbers count as equal; smaller: rounding
makes a difference."""

Excess = tuple[float, tuple[float, float], float, Binning | None]
"""ε, the probabilities of a set of outputs on D and D', by what they exceed the claim, and the set;
None where it has no binning."""


class KnownPair(Protocol):
    """The loss between the outputs on D and on D', as far as it is known.

    What is derived may be wrong, as of code that treats numbers differently that are traced. So it
    is held against outputs of real runs before anybody is told.
    """

    @property
    def mode(self) -> Mode: ...

    @property
    def basis(self) -> str:
        """Return the basis of the loss, in words."""
        ...

    @property
    def mu(self) -> float | None:
        """Return a distance of two Gaussians that are at least as easy to tell apart, or None."""
        ...

    @property
    def checked(self) -> int:
        """How many real outputs it can be held against at most."""
        ...

    @property
    def by_rounding(self) -> bool:
        """Return whether outputs are counted as different that differ by rounding alone.

        Such as 0.3 and 0.1 + 0.2: the true loss may be smaller.
        """
        ...

    def eps_at(self, delta: float) -> tuple[float, float]:
        """The smallest ε in nats with which the pair is (ε, δ)-private, and its error.

        Raises CannotInstrument where it does not follow.
        """
        ...

    def delta_at(self, eps: float) -> tuple[float, float]:
        """Bounds on the smallest δ."""
        ...

    def excesses(self, guarantee: Guarantee) -> Iterator[Excess]:
        """Sets of outputs that break a claim."""
        ...

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """The logarithm of an e-value against it, by independent runs on one input.

        Raises CannotInstrument where outputs cannot be compared.
        """
        ...


def parameter_of(known: KnownPair, guarantee: Guarantee) -> tuple[float, float]:
    """The parameter of a guarantee on a pair, and its error; CannotInstrument if unknown."""
    if isinstance(known, AlignedPair):
        return known.parameter_of(guarantee), 0.0
    if guarantee.parameter == "eps":
        value, error = known.eps_at(guarantee.delta)
        if guarantee.delta and value > guarantee.claimed:  # a leak of delta may round to more
            value, error = known.eps_at(guarantee.delta * (1 + ROUNDING))
        return value, error
    if known.mu is None or guarantee.delta or guarantee.parameter not in {"mu", "rho"}:
        raise CannotInstrument(f"a claim of {guarantee.parameter}")
    value = known.mu if guarantee.parameter == "mu" else known.mu**2 / 2
    return value, 1e-11 * value


def differ_by_rounding(numbers: Floats) -> bool:
    """Return whether any two of the numbers are equal but for errors of floating point."""
    ordered = np.unique(numbers[np.isfinite(numbers)])
    if not len(ordered) or (ordered % 1 == 0).all():
        return False
    return bool((np.diff(ordered) <= ROUNDING * np.abs(ordered).max()).any())


def larger(bounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Bounds on the largest of several numbers."""
    return max(lower for lower, _ in bounds), max(upper for _, upper in bounds)


# What a mechanism keeps from run to run: later runs may differ from those that were traced

RUNS = 2
"""Runs of the copy that is looked at. With one, what only the second run changes goes unseen."""
KEEPS = "it keeps something from run to run"


def doubt_about(call: Call, data: Any, deadline: Deadline) -> str:
    """Return why traced runs may not tell what later ones do; empty if nothing speaks for it.

    Raises what the mechanism raises, and OutOfTime if the deadline passes.
    """
    if not are_originals():
        return "functions that draw were replaced"
    copied, (on_copy,) = call.copied(data)
    copied = replace(copied, made=Made())  # these are no samples
    before, around = content_of(copied), _around(copied)
    sequence = np.random.SeedSequence(0)
    with interruptible(deadline, None), seed_randomness(sequence, copied.captured) as rng:
        for _ in range(RUNS):
            copied.one(on_copy, rng)
    has_cached = any(cache.cache_info().currsize for cache in _caches(copied))
    if has_cached or content_of(copied) != before or _around(copied) != around:
        return KEEPS
    return ""


def content_of(call: Call) -> bytes:
    """Return a mechanism and its parameters as text: the same as long as nothing changes."""
    return Pristine((call.mechanism, call.params)).content


def _around(call: Call) -> dict[str, dict[str, int]]:
    """Return the ids of all that modules hold which the mechanism's code names."""
    named = {
        id(module): module
        for function in functions_of(call.mechanism)
        for name in names_in(function.__code__)
        if isinstance(module := function.__globals__.get(name), types.ModuleType)
    }
    return {
        module.__name__: {name: id(value) for name, value in vars(module).items()}
        for module in named.values()
    }


def _caches(call: Call) -> Iterator[Any]:
    for value, _ in reach((call.mechanism, "")):
        if isinstance(value, functools._lru_cache_wrapper):  # noqa: SLF001
            yield value
