"""Estimates of a guarantee's parameter, beside the bounds by samples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pytest_dp.results.plain import Unbounded

Mode = Literal["exact", "analytic", "numerical", "sampled"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value of the claim's parameter on some pairs of inputs."""

    value: Unbounded
    """In nats, where the parameter is an eps; infinite where no value holds."""
    error: float
    """By how much it may be off; infinite where no bound is known, as of one that is searched for.
    Of a value by samples, half of a 95 % interval (approximate)."""
    mode: Mode
    """``"exact"``: by all outcomes and their probabilities. ``"analytic"``: by densities of the
    noise. ``"numerical"``: by densities whose largest ratio a search found, which may have missed a
    larger one. ``"sampled"``: by samples."""
    pairs: int = field(default=0, kw_only=True)
    """Pairs of inputs on which it holds, of those that the claim gives."""
    basis: str = field(default="", kw_only=True)
    """What it rests on, such as ``"32 outcomes"``."""
    runs: int = field(default=0, kw_only=True)
    """Real runs that bear it out, where a pass rests on it and nothing is in doubt; else 0."""
    unseen: float = field(default=0.0, kw_only=True)
    """What a mechanism does with plain numbers alone may go unseen in these, with a probability of
    5 %, if it does so in at most this share of its runs."""
