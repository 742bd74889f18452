"""Lines to blame in steps of DP-SGD under any notion, and how much more noise is advised."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pytest
from blaming import look, marked

from pytest_dp.data.neighbours import Pair
from pytest_dp.explain import blame_lines, idle_fields
from pytest_dp.oracles.alignment import align
from pytest_dp.privacy import ApproximateDP, GaussianDP, PrivacyProfile, RenyiDP, ZeroConcentratedDP
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline

pytestmark = pytest.mark.slow

GRADIENTS = np.array([[3.0, -4.0, 1.0], [0.2, 0.1, 0.0]])


def clipped(gradients):
    return gradients / np.maximum(np.linalg.norm(gradients, axis=1, keepdims=True), 1)


def no_clipping(gradients, rng):
    return gradients.sum(axis=0) + rng.normal(size=3)  # here


def noise_on_one_layer(gradients, rng):
    total = clipped(gradients).sum(axis=0)  # here
    total[:2] += rng.normal(size=2)
    return total


def noise_on_each_example(gradients, rng):
    noisy = clipped(gradients) + rng.normal(scale=9, size=gradients.shape)  # here
    return noisy.sum(axis=0)


def laplace_step(gradients, rng):
    return clipped(gradients).sum(axis=0) + rng.laplace(scale=0.2, size=3)  # here


STEPS = (no_clipping, noise_on_one_layer, noise_on_each_example, laplace_step)
OF_ONE = GaussianDP(1.0)
NOTIONS = {
    "profile": PrivacyProfile(OF_ONE.delta_at),
    "several orders": RenyiDP(((2.0, 1.0), (8.0, 4.0))),
    "mu": OF_ONE,
    "rho": ZeroConcentratedDP(0.5),
}


@pytest.mark.parametrize(
    ("step", "notion"),
    [
        *((step, "profile") for step in STEPS),
        *((no_clipping, notion) for notion in NOTIONS if notion != "profile"),
    ],
)
def test_broken_steps_of_dp_sgd_are_blamed_under_any_notion(step, notion):
    gone = 2 if step is noise_on_each_example else 1
    blame = look(step, (GRADIENTS, GRADIENTS[gone:]), NOTIONS[notion], 1.1)
    assert marked(step) in [one.line for one in blame[:1]]


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_right_step_of_dp_sgd_is_not_blamed(notion):
    def right_step(gradients, rng):
        return clipped(gradients).sum(axis=0) + rng.normal(size=3)

    assert look(right_step, (GRADIENTS, GRADIENTS[1:]), NOTIONS[notion], 1.0) == ()


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([], "about 1.9 times"),  # 3.7 / 2, rounded up
        ([([1.0, 3.0], [1.0]), ([9.0], [])], "about 4.5 times"),
        ([([9.0], []), ([1.0], ["none"])], "; or use more noise; or claim"),
    ],
    ids=["alone", "farther", "not a number"],
)
def test_advice_of_more_noise_covers_the_pair_that_moves_farthest(pairs, said):
    def too_little(data, rng):
        return sum(data) + rng.laplace(scale=2.0)

    call = Call(too_little, {}, "rng", pristine=Pristine((too_little, {})))
    claim = ApproximateDP(1.0)
    (one, *_) = blame_lines(call, ([3.7], []), claim, 1.01, None, 60.0, pairs=pairs)
    assert one.kind == "too little noise"
    assert said in one.remedy


def test_advice_that_is_followed_keeps_the_claim_on_all_pairs():
    def figures(rows, rng, times):
        counts = [rows.count(kind) + rng.laplace(scale=2.0 * times) for kind in "ab"]
        return {"counts": counts, "all": round(3 * len(rows) + rng.laplace(scale=2.0 * times))}

    def on(pair, times):
        params = {"times": times}
        call = Call(figures, params, "rng", pristine=Pristine((figures, params)))
        return call, align(call, pair, lambda _: False, 40, Deadline(60.0)).bound.pure

    pairs = [("aab", "ab"), ("ab", "abab"), ("", "b")]
    call, loss = on(pairs[0], 1.0)
    assert loss == pytest.approx(0.5 + 1.5)
    (one, *_) = blame_lines(call, pairs[0], ApproximateDP(1.0), 1.5, None, 60.0, pairs=pairs)
    advised = float(one.remedy.partition("about ")[2].partition(" times")[0])
    losses = [on(pair, advised)[1] for pair in pairs]
    assert 0.9 < max(losses) <= 1.0


ROWS = [{"who": f"u{i}", "spent": i, "city": "ab"[i % 2], "age": 30} for i in range(6)]
OTHER = [*ROWS[:3], {"who": "x", "spent": 50, "city": "z", "age": 31}, *ROWS[4:]]


def spent(rows: Any, rng: Any) -> Any:
    return sum(row["spent"] for row in rows) + rng.laplace()


def spent_by_city(rows: Any, rng: Any) -> Any:
    noise = rng.laplace(size=3)
    return {row["city"]: row["spent"] + noise[0] for row in rows}


def product(rows: Any, rng: Any) -> Any:
    """Either of two alone makes no difference, and both do."""
    row = rows[3]
    return (row["spent"] != 3) * (row["age"] != 30) * (row["city"] != "z") + rng.laplace()


def idle(mechanism: Any, d1: Any, d2: Any) -> set[Any]:
    call = Call(mechanism, {}, "rng", pristine=Pristine((mechanism, {})))
    return set(idle_fields(call, Pair(d1, d2), (), 20.0))


@pytest.mark.parametrize(
    ("mechanism", "d1", "d2", "found"),
    [
        (spent, ROWS, OTHER, {"who", "city", "age"}),
        (spent_by_city, ROWS, [*ROWS[:5], OTHER[3]], {"who", "age"}),
        (spent, ROWS, ROWS[:5], {"who", "city"}),  # all are of one age
        (spent, ROWS * 4_000, (ROWS * 4_000)[1:], set()),  # too many to look for them
        (lambda rows, rng: len(rows) + rng.laplace(), ROWS, OTHER, set()),  # not told apart
        (spent, ROWS, [*OTHER[:5], {**ROWS[5], "age": 0}], set()),  # two records
        (lambda rows, rng: spent(rows, rng) + uuid.uuid4().int, ROWS, OTHER, set()),
    ],
)
def test_fields_that_change_nothing(mechanism: Any, d1: Any, d2: Any, found: set[str]) -> None:
    assert idle(mechanism, d1, d2) == found


def test_they_change_nothing_together() -> None:
    found = idle(product, ROWS, [*ROWS[:3], {**ROWS[3], "spent": 50, "age": 31}, *ROWS[4:]])
    assert len(found) == 1
