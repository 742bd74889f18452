"""What noise leaves behind: relations of numbers that share it, grids, values that recur."""

from __future__ import annotations

import math

import numpy as np
import pytest
from searching import best_events

from pytest_dp.outputs.features import all_features
from pytest_dp.outputs.table import tabulate
from pytest_dp.readers.lattices import grids, remainders

pytestmark = pytest.mark.slow

PYTHON = {
    "nan": math.nan,
    "inf": math.inf,
    "isnan": math.isnan,
    "argmax": np.argmax,
}


def sides(draw, runs, seed=0):
    """Outputs on D (1.0) and on D' (0.0), and which are on D."""
    rng = np.random.default_rng(seed)
    return [draw(d, rng) for d in (1.0, 0.0) for _ in range(runs)], np.arange(2 * runs) < runs


def traces(draw, runs, seed=0):
    """The relations and remainders that outputs call for."""
    outputs, first = sides(draw, runs, seed)
    found = all_features(tabulate(outputs), first)
    return [feature for feature in found if feature.kind in ("relation", "remainder")]


def best(draw, runs=16, seed=0):
    """The best event for such outputs; it counts 0 on one side, and reads as Python."""
    outputs, _ = sides(draw, runs, seed)
    [found] = best_events(outputs, all_features)
    assert (found.c1, found.c2) in ((runs, 0), (0, runs))
    fresh, _ = sides(draw, 200, seed + 1)
    mask = found.event.mask(tabulate(fresh))
    for output, inside in zip(fresh, mask.tolist(), strict=True):
        assert found.event(output) == inside
        if found.event.conditions[0].feature.kind in ("relation", "remainder"):
            assert eval(str(found.event), PYTHON | {"output": output}) == inside, str(found.event)
    return str(found.event), mask


def noise(rng, size=None):
    return rng.laplace(scale=20, size=size)


SHARED = {
    "sum and count": lambda d, z, e: {"sum": 3.3 + d + z, "count": 2 + 2 * d + z},
    "a divisor": lambda d, z, e: [(4.2 + d) * math.exp(z / 4), 3 / math.exp(z / 4)],
    "by the data": lambda d, z, e: {"a": (2 + d) * z, "b": 5 + z},
    "nested": lambda d, z, e: ((d + z, e[0]), {"x": [e[1], {"y": 3 * d - z}]}),
    "a total": lambda d, z, e: {"a": e[0], "b": e[1], "all": e[0] + e[1] + d},
    "single precision": lambda d, z, e: np.array([d + z, e[0], 7.7 + z], dtype=np.float32),
    "one of many": lambda d, z, e: [*e[:20], d + z, *e[20:], 5 - z],
    "one of hundreds": lambda d, z, e: np.concatenate([e, [d + z], np.tile(e, 3)[5:] * z, [z]]),
}


@pytest.mark.parametrize("name", SHARED)
def test_noise_that_is_shared_is_taken_off(name):
    def draw(d, rng):
        return SHARED[name](d, noise(rng), noise(rng, 40))

    text, mask = best(draw)
    assert set(mask[:200].tolist()) | set(mask[200:].tolist()) == {True, False}
    assert max(mask[:200].mean(), mask[200:].mean()) == 1
    assert min(mask[:200].mean(), mask[200:].mean()) < 0.02, text


@pytest.mark.parametrize(
    "draw",
    [
        lambda d, rng: (d + noise(rng), 2 * d + noise(rng)),
        lambda d, rng: [2 * (x := d + noise(rng)) + 1, x],  # computed from one noisy answer
        lambda d, rng: {"n": 5.0, "x": d + noise(rng)},
        lambda d, rng: d + noise(rng),
        lambda d, rng: round(d + 0.31 + noise(rng), 1),
        lambda d, rng: 7 + d + round(noise(rng)),
        lambda d, rng: np.exp(noise(rng, 3) + d),
        lambda d, rng: bool(d + noise(rng) > 0),
        lambda d, rng: [None, "a"][int(noise(rng) > d)],
        lambda d, rng: noise(rng, 70) + d,
        lambda d, rng: np.cumsum(noise(rng, 10) + d),
        lambda d, rng: float("nan") if rng.random() < 0.5 else math.inf,
    ],
)
@pytest.mark.parametrize("runs", [12, 200])
def test_outputs_that_show_no_trace_get_no_features(draw, runs):
    assert [traces(draw, runs, seed) for seed in range(2)] == [[]] * 2


STEPS = [0.1, 1.0, 1 / 3, 10.0, 2.0**-7]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("offset", [3.27 + 1.5 + 2.41, -41.877])
def test_noise_that_is_rounded_shows_its_grid(step, offset):
    def draw(d, rng):
        return offset + 0.31 * step * d + step * round(noise(rng) / step)

    text, mask = best(draw)
    assert sorted([mask[:200].mean(), mask[200:].mean()]) == [0, 1], text
    outputs = np.array([draw(1.0, np.random.default_rng(seed)) for seed in range(30)])
    [grid] = grids(outputs[:, None])
    assert grid.step == pytest.approx(step)
    assert abs(math.remainder(grid.offset - offset - 0.31 * step, step)) < 1e-9


def test_continuous_numbers_lie_on_no_grid():
    rng = np.random.default_rng(0)
    for draw in (rng.laplace, rng.normal, rng.random, rng.standard_cauchy):
        assert grids(draw(size=(12, 400))) == [None] * 400
        assert all(grids(column[:, None]) == [None] for column in draw(size=(50, 24)))
    singles = rng.laplace(size=(24, 300)).astype(np.float32).astype(np.float64)
    assert remainders(["x"] * 300, singles[:12], singles[12:]) == []
