"""Numbers and strings in a mechanism's code, and in the project's functions that it calls."""

from __future__ import annotations

import functools

import numpy as np

from pytest_dp.proposers.constants import constants_of

LIMIT = 417
EDGES = np.array([0.5, 12.25])
NAMES = {"vip": 3.75}


def helper(x, most=91):
    return x > LIMIT or x in NAMES or x < most


class Model:
    weight = 66

    def __init__(self):
        self.cut = 43

    def __call__(self, data):
        return sum(data) > self.cut - self.weight

    def of(self, data):
        return self(data)


def values_of(mechanism, **params):
    return constants_of(mechanism, params)


def test_what_a_comparison_is_made_with_comes_first():
    def mechanism(data):
        scale = 8.5
        return sum(data) / scale if data[0] >= 613 else 0

    assert values_of(mechanism)[0] == 613
    assert 8.5 in values_of(mechanism)


def test_variables_helpers_defaults_and_members_are_followed():
    def mechanism(data):
        return np.histogram(data, EDGES), helper(data)

    found = values_of(mechanism)
    assert {417, 91, "vip", 3.75, 0.5, 12.25} <= set(found)


def test_closures_partials_objects_and_arguments():
    inner = 58

    def mechanism(data, more):
        return data == inner or "ab" + more

    assert {58, "ab", "of x", 77} <= set(values_of(functools.partial(mechanism, more="of x"), k=77))
    assert {43, 66} <= set(values_of(Model()))
    assert {43, 66} <= set(values_of(Model().of))
