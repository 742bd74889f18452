"""Lines to blame in steps of DP-SGD under any notion, and how much more noise is advised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from blaming import look, marked

from pytest_dp.explain import blame_lines
from pytest_dp.oracles.alignment import align
from pytest_dp.privacy import (
    ApproximateDP,
    GaussianDP,
    PrivacyProfile,
    RenyiDP,
    TradeOff,
    ZeroConcentratedDP,
)
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


def one_number_for_all(gradients, rng):
    return clipped(gradients).sum(axis=0) + rng.normal()  # here


def noise_on_each_example(gradients, rng):
    noisy = clipped(gradients) + rng.normal(scale=9, size=gradients.shape)  # here
    return noisy.sum(axis=0)


def laplace_step(gradients, rng):
    return clipped(gradients).sum(axis=0) + rng.laplace(scale=0.2, size=3)  # here


def bounded_step(gradients, rng):
    return clipped(gradients).sum(axis=0) + rng.uniform(-1, 1, size=3)  # here


STEPS = (
    *(no_clipping, noise_on_one_layer, one_number_for_all, noise_on_each_example),
    *(laplace_step, bounded_step),
)
OF_ONE = GaussianDP(1.0)
NOTIONS = {
    "profile": PrivacyProfile(OF_ONE.delta_at),
    "tradeoff": TradeOff(lambda x: 1 - OF_ONE.largest_probability(x)),
    "rdp": RenyiDP(((2.0, 1.0),)),
    "several orders": RenyiDP(((2.0, 1.0), (8.0, 4.0))),
    "mu": OF_ONE,
    "rho": ZeroConcentratedDP(0.5),
}


@pytest.mark.parametrize(
    ("step", "notion"),
    [
        *((step, "profile") for step in STEPS),
        *((no_clipping, notion) for notion in NOTIONS),
        *((laplace_step, notion) for notion in NOTIONS),
    ],
)
def test_broken_steps_of_dp_sgd_are_blamed_under_any_notion(step, notion):
    gone = 2 if step is noise_on_each_example else 1
    blame = look(step, (GRADIENTS, GRADIENTS[gone:]), NOTIONS[notion], 1.1)
    assert marked(step) in [one.line for one in blame[:1]]


def right_step(gradients, rng):
    return clipped(gradients).sum(axis=0) + rng.normal(size=3)


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_right_step_of_dp_sgd_is_not_blame_lines(notion):
    assert look(right_step, (GRADIENTS, GRADIENTS[1:]), NOTIONS[notion], 1.0) == ()


def too_little(data, rng):
    return sum(data) + rng.laplace(scale=2.0)


def in_two_numbers(data, rng):
    return np.array([sum(data), len(data)]) + rng.normal(scale=2.0, size=2)


def remedy(mechanism, pair, claim, pairs=()):
    call = Call(mechanism, {}, "rng", pristine=Pristine((mechanism, {})))
    (one, *_) = blame_lines(call, pair, claim, claim.claimed * 1.01, None, 60.0, pairs=pairs)
    assert one.kind == "too little noise"
    return one.remedy


FACTORS = [
    (too_little, [], "about 1.9 times"),  # 3.7 / 2, rounded up
    (too_little, [([3.7], [])], "about 1.9 times"),
    (too_little, [([1.0, 3.0], [1.0]), ([9.0], [])], "about 4.5 times"),
    (too_little, [([9.0], []), ([1.0], ["none"])], "; or use more noise; or claim"),
]


@pytest.mark.parametrize(
    ("mechanism", "pairs", "said"), FACTORS, ids=["alone", "itself", "farther", "not a number"]
)
def test_advice_of_more_noise_covers_the_pair_that_moves_farthest(mechanism, pairs, said):
    assert said in remedy(mechanism, ([3.7], []), ApproximateDP(1.0), pairs)


def test_advice_covers_moves_in_several_numbers():
    far = ([3.0, 3.0], [])  # by 6 and 2, where the pair moves by 4 and 1
    said = remedy(in_two_numbers, ([4.0], []), GaussianDP(1.0), [far])
    needed = math.hypot(6, 2) / 2
    assert needed <= float(said.partition("about ")[2].split()[0]) <= 1.1 * needed


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
