"""Mechanisms that do odd things with their generators: named, never a wrong distribution."""

# ruff: noqa: NPY002

from __future__ import annotations

import copy
import math
import pickle
import random
import threading

import numpy as np
import pytest
from exact import distribution, probabilities

from pytest_dp.known.enumerated import NotExact
from pytest_dp.known.enumerating import enumerated
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.copies import Pristine
from pytest_dp.sampling.deadline import Deadline

HALVES = {True: 0.5, False: 0.5}


class Keeps:
    """A generator, and how often it was asked."""

    def __init__(self):
        self.rng = np.random.default_rng(3)
        self.asked = 0

    def __call__(self, data):
        self.asked += 1
        return self.asked, bool(self.rng.random() < 0.5)


def test_generators_that_are_kept():
    known = probabilities(Keeps())
    assert known == {(1, True): 0.5, (1, False): 0.5}  # each run is one of a new copy


def of_its_bits(x, rng):
    return np.random.Generator(rng.bit_generator).random() < 0.5


def copies(x, rng):
    return copy.deepcopy(rng).random() < 0.5


def pickles(x, rng):
    return len(pickle.dumps(rng))


def state(x, rng):
    return random.getstate()[0]


def unknown_method(x, rng):
    return rng.standard_gamma(2.0) > 1


def shape_of_many(x, rng):
    return bool((rng.random((100, 100)) < 0.5).all())


def swallows(x, rng):
    try:
        return hash(rng.random())
    except BaseException:
        return 0


def scale_that_is_drawn(x, rng):
    return rng.laplace(scale=1 + rng.random()) > 0


REFUSED = {
    of_its_bits: "bit_generator",
    copies: "it copies rng",
    pickles: "it copies rng",
    state: "getstate",
    unknown_method: "standard_gamma is not enumerated",
    shape_of_many: "10,000 draws at once",
    swallows: "hash of a draw",
    scale_that_is_drawn: "the parameter of a draw is a draw",
}


@pytest.mark.parametrize("mechanism", REFUSED, ids=lambda mechanism: mechanism.__name__)
def test_refused_with_a_reason(mechanism):
    with pytest.raises(NotExact, match=REFUSED[mechanism]):
        distribution(mechanism)


def test_draws_of_another_thread_are_not_enumerated():
    def in_a_thread(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(np.random.random()))
        thread.start()
        thread.join()
        return found[0] < 2

    with pytest.raises(NotExact, match="thread"):
        probabilities(in_a_thread)


def test_mechanisms_that_replace_functions_of_modules():
    before = np.random.random, math.log

    def replaces(x, rng):
        np.random.random = lambda: 0.25
        return np.random.random() < 0.5, bool(rng.random() < 0.5)

    assert probabilities(replaces) == {(True, True): 0.5, (True, False): 0.5}
    assert (np.random.random, math.log) == before


def test_exceptions_are_outputs_where_they_are_the_mechanisms():
    def raises(x, rng):
        if rng.random() < 0.25:
            raise ValueError("no budget")
        return 1

    known = distribution(raises)
    assert [repr(outcome) for outcome in known.outcomes] == ["1", "raises ValueError: no budget"]
    assert [float(weight) for weight in known.weights] == [0.75, 0.25]


def test_a_run_that_never_ends_is_given_up():
    def endless(x, rng):
        rng.random()
        while True:
            x = 1 - x

    call = Call(endless, {}, "rng", pristine=Pristine((endless, {})))
    with pytest.raises(NotExact, match="runs take too long"):
        enumerated(call, 0, Deadline(0.2))


def test_what_cannot_be_copied():
    lock = threading.Semaphore()

    def holds(x):
        return lock is not None

    call = Call(holds, {}, pristine=None)
    with pytest.raises(NotExact):
        enumerated(call, 0, Deadline(1.0))


def test_vectorised_mechanisms_are_asked_for_one_row():
    def many(x, rng, size):
        return (rng.random((size, 2)) < 0.5).sum(axis=1)

    call = Call(many, {}, "rng", "size", pristine=Pristine((many, {})))
    known = enumerated(call, 0, Deadline(5.0))
    assert dict(zip(known.outcomes, map(float, known.weights), strict=True)) == {
        0: 0.25,
        1: 0.5,
        2: 0.25,
    }
