"""Random mechanisms whose true loss is known, and what alignments say of them.

Each is made of one to three independent parts, with one to five draws. Of each part, the losses of
events are known in closed form, by distribution functions; they are lower bounds on its true loss,
and attained by most parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.random import Generator, default_rng

from pytest_dp.basics.arrays import Floats

Losses = tuple[float, float]
"""From D to D', and back."""
_LAWS = {
    "laplace": "laplace",
    "logistic": "logistic",
    "normal": "norm",
    "gumbel": "gumbel_r",
    "exponential": "expon",
}
_GRID = np.linspace(-60.0, 60.0, 2401)


def _law(name: str) -> Any:
    """Return the law of a draw; scipy loads its laws when one is asked for."""
    return getattr(scipy.stats, _LAWS[name])


@dataclass(frozen=True)
class Part:
    """A part of a mechanism: what it does on D (0) and on D' (1)."""

    run: Callable[[int, Any], Any]
    losses: Losses
    """Lower bounds on the true loss."""
    draws: int
    alignable: bool
    """Whether a shift of its draws makes up for the difference, at a finite loss."""
    name: str


def _ratios(p: Floats, q: Floats) -> Losses:
    """The largest losses over events with these probabilities on D and on D'."""
    p, q = np.asarray(p, float), np.asarray(q, float)
    keep = (p > 1e-13) & (q > 1e-13)
    with np.errstate(divide="ignore"):
        ratio = np.log(p[keep]) - np.log(q[keep])
    never = bool(((p > 1e-9) & (q == 0)).any()), bool(((q > 1e-9) & (p == 0)).any())
    largest = (max(float(ratio.max(initial=0)), 0.0), max(float((-ratio).max(initial=0)), 0.0))
    return (math.inf if never[0] else largest[0]), (math.inf if never[1] else largest[1])


def _tails(law: Any, centres: tuple[float, float], scale: float, grid: Floats = _GRID) -> Losses:
    p, q = (law.cdf(grid, loc=c, scale=scale) for c in centres)
    s, t = (law.sf(grid, loc=c, scale=scale) for c in centres)
    return _ratios(np.concatenate([p, s]), np.concatenate([q, t]))


def _draw(rng: Any, name: str, scale: float) -> Any:
    return getattr(rng, name)(scale=scale)


def _centres(g: Generator) -> tuple[float, float]:
    centre, move = float(g.integers(-3, 4)), float(g.choice([0.25, 0.5, 1.0, 2.0]))
    return centre, centre + move * float(g.choice([-1, 1]))


def _added(g: Generator) -> Part:
    name = str(g.choice(["laplace", "logistic"]))
    c, scale = _centres(g), float(g.choice([1.0, 2.0, 4.0]))
    after = g.choice(["nothing", "clip", "round", "scaled"])
    post: Callable[[Any], Any] = {
        "nothing": lambda x: x,
        "clip": lambda x: min(max(x, -1.0), 4.0),
        "round": round,
        "scaled": lambda x: 3.0 * x - 1.0,
    }[str(after)]
    grid = np.arange(-60.0, 60.0) + 0.5 if after == "round" else _GRID
    grid = np.linspace(-1.0, 3.99, 100) if after == "clip" else grid
    losses = _tails(_law(name), c, scale, grid)
    return Part(
        lambda d, rng: post(c[d] + _draw(rng, name, scale)), losses, 1, True, f"{name} {after}"
    )


def _two_sided(g: Generator) -> Part:
    c, name = _centres(g), str(g.choice(["exponential", "gumbel"]))
    law = scipy.stats.laplace if name == "exponential" else scipy.stats.logistic
    run = lambda d, rng: c[d] + _draw(rng, name, 2.0) - _draw(rng, name, 2.0)  # noqa: E731
    return Part(run, _tails(law, c, 2.0), 2, True, f"difference of two {name}")


def _geometric(g: Generator) -> Part:
    start, move, p = int(g.integers(5)), int(g.choice([-2, -1, 1, 2])), float(g.choice([0.3, 0.6]))
    c = (start, start + move)
    loss = abs(move) * -math.log(1 - p)
    run = lambda d, rng: c[d] + rng.geometric(p) - rng.geometric(p)  # noqa: E731
    return Part(run, (loss, loss), 2, True, "two geometric")


def _one_sided(g: Generator) -> Part:
    c, name = _centres(g), str(g.choice(["exponential", "gumbel"]))
    losses = (math.inf, math.inf)
    run = lambda d, rng: c[d] + _draw(rng, name, 2.0)  # noqa: E731
    return Part(run, losses, 1, False, f"one {name}")


def _shared(g: Generator) -> Part:
    c = _centres(g)
    other = c[1] - c[0] if g.random() < 0.5 else c[1] - c[0] + 0.5
    e = (1.0, 1.0 + other)
    same = other == c[1] - c[0]
    losses = _tails(scipy.stats.laplace, c, 2.0) if same else (math.inf, math.inf)

    def run(d: int, rng: Any) -> Any:
        z = rng.laplace(scale=2.0)
        return c[d] + z, e[d] + z

    return Part(run, losses, 1, same, "one draw in two sums")


def _twice(g: Generator) -> Part:
    c, fits = _centres(g), g.random() < 0.5
    move = c[1] - c[0]
    e = (0.0, 2 * move if fits else move)
    losses = _tails(scipy.stats.laplace, c, 2.0) if fits else (math.inf, math.inf)

    def run(d: int, rng: Any) -> Any:
        z = rng.laplace(scale=2.0)
        return [c[d] + z, e[d] + 2 * z]

    return Part(run, losses, 1, bool(fits), "a draw used twice")


def _scaled_by_data(g: Generator) -> Part:
    c, scales = _centres(g), (2.0, float(g.choice([2.0, 2.5])))
    same = scales[0] == scales[1]
    losses = _tails(scipy.stats.laplace, c, 2.0) if same else (math.inf, math.inf)
    run = lambda d, rng: c[d] + rng.laplace(scale=scales[d])  # noqa: E731
    return Part(run, losses, 1, same, "scale by data")


def _ratio(g: Generator) -> Part:
    c, e = _centres(g), _centres(g)

    def run(d: int, rng: Any) -> Any:
        above, below = c[d] + rng.laplace(scale=2.0), e[d] + rng.laplace(scale=4.0)
        return above / below, below

    first, second = _tails(scipy.stats.laplace, c, 2.0), _tails(scipy.stats.laplace, e, 4.0)
    return Part(run, (first[0] + second[0], first[1] + second[1]), 2, True, "ratio")


def _largest(g: Generator) -> Part:
    c = [_centres(g) for _ in range(int(g.integers(2, 4)))]
    run = lambda d, rng: max([each[d] + rng.laplace(scale=4.0) for each in c])  # noqa: E731
    law = scipy.stats.laplace
    logs = [sum(law.logcdf(_GRID, loc=each[d], scale=4.0) for each in c) for d in (0, 1)]
    below = _ratios(np.exp(logs[0]), np.exp(logs[1]))
    above = _ratios(-np.expm1(logs[0]), -np.expm1(logs[1]))
    losses = max(below[0], above[0]), max(below[1], above[1])
    return Part(run, losses, len(c), True, "noisy max")


def _winner(g: Generator) -> Part:
    name = str(g.choice(["laplace", "exponential", "gumbel"]))
    c, law = [_centres(g) for _ in range(3)], _law(name)

    def run(d: int, rng: Any) -> Any:
        if name == "gumbel":
            return int(np.argmax(np.array([each[d] for each in c]) + rng.gumbel(scale=4.0, size=3)))
        noisy = [each[d] + _draw(rng, name, 4.0) for each in c]
        return max(range(3), key=noisy.__getitem__)

    grid = np.linspace(-100.0, 250.0, 70_001)

    def shares(d: int) -> Floats:
        cdfs = [law.cdf(grid, loc=each[d], scale=4.0) for each in c]
        return np.array(
            [
                np.trapezoid(
                    law.pdf(grid, loc=c[j][d], scale=4.0)
                    * np.prod([cdfs[k] for k in range(3) if k != j], axis=0),
                    grid,
                )
                for j in range(3)
            ]
        )

    p, q = shares(0), shares(1)
    ratio = np.log(p / q)
    slack = 1e-3  # of the quadrature
    losses = max(float(ratio.max()) - slack, 0.0), max(float((-ratio).max()) - slack, 0.0)
    return Part(run, losses, 3, True, f"winner by {name}")


def _branch(g: Generator) -> Part:
    c, e, t = _centres(g), _centres(g), float(g.integers(-2, 3))

    def run(d: int, rng: Any) -> Any:
        if c[d] + rng.laplace(scale=4.0) > t:
            return "above", e[d] + rng.laplace(scale=4.0)
        return "below", -e[d] + rng.laplace(scale=2.0)

    above = [scipy.stats.laplace.sf(t, loc=c[d], scale=4.0) for d in (0, 1)]
    move = abs(e[1] - e[0])
    first = math.log(above[0] / above[1]) + move / 4, math.log(above[1] / above[0]) + move / 4
    p, q = 1 - above[0], 1 - above[1]
    other = math.log(p / q) + move / 2, math.log(q / p) + move / 2
    return Part(run, (max(first[0], other[0]), max(first[1], other[1])), 2, True, "branch")


def _leak(g: Generator) -> Part:
    c, often = _centres(g), float(g.choice([0.02, 0.05, 0.2]))

    def run(d: int, rng: Any) -> Any:
        noisy = c[d] + rng.laplace(scale=2.0)
        return c[d] if rng.random() < often else noisy

    return Part(run, (math.inf, math.inf), 2, False, f"exact in a share of {often:g}")


_PARTS = (
    *(_added, _added, _added, _two_sided, _geometric, _one_sided, _shared, _twice),
    *(_scaled_by_data, _ratio, _largest, _winner, _branch, _leak),
)
MAX_DRAWS = 5


@dataclass(frozen=True)
class Mechanism:
    """A random mechanism, of data that is 0 for D and 1 for D'."""

    parts: tuple[Part, ...]

    def __call__(self, data: int, rng: Generator) -> Any:
        return [part.run(data, rng) for part in self.parts]

    @property
    def loss(self) -> float:
        """A lower bound on the true loss, in nats."""
        return max(sum(part.losses[side] for part in self.parts) for side in (0, 1))

    @property
    def alignable(self) -> bool:
        return all(part.alignable for part in self.parts)

    def __str__(self) -> str:
        return ", ".join(part.name for part in self.parts)


def mechanism(seed: int) -> Mechanism:
    """The random mechanism of a seed."""
    g = default_rng(seed)
    parts: list[Part] = []
    while not parts or (len(parts) < 3 and g.random() < 0.5):
        part = _PARTS[int(g.integers(len(_PARTS)))](g)
        if sum(each.draws for each in parts) + part.draws <= MAX_DRAWS:
            parts.append(part)
    return Mechanism(tuple(parts))
