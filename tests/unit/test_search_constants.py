"""Numbers and strings in a mechanism's code, and in the project's functions that it calls."""

from __future__ import annotations

import functools

import numpy as np
import pytest

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
    return [constant.value for constant in constants_of(mechanism, params)]


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


def refuse(*_, **__):
    raise RuntimeError("nobody may look")


ODD = ("__getattr__", "__getattribute__", "__iter__", "__eq__", "__len__", "__bool__", "items")
HUGE = 10**400


@pytest.mark.parametrize("base", [object, dict, list, set, str, int, float, np.ndarray, type])
def test_objects_that_do_not_let_look_are_left_alone(base):
    """Nothing that a user wrote for other ends is called, whatever it would do."""
    members = dict.fromkeys((*ODD, "__hash__", "__str__", "__repr__", "__int__"), refuse)
    members |= {"__class__": property(refuse), "__wrapped__": property(refuse)}
    odd = type("Odd", (base,), {**members, "__module__": __name__})
    thing = odd.__new__(odd, *{np.ndarray: [3], type: ["T", (), {}]}.get(base, []))
    lazy = type("Lazy", (), {"__dict__": property(refuse), "__slots__": ("kept", "empty")})()
    lazy.kept = 29

    def mechanism(data):
        return data > 613 or (thing, odd, lazy, HUGE)

    found = values_of(mechanism, k=thing)
    assert {613, 29} <= set(found)
    assert all(type(one) in (int, float, str) for one in found)


def test_a_constant_says_where_it_stands():
    def mechanism(data):
        return data[0] >= 6

    line = mechanism.__code__.co_firstlineno + 1
    (constant,) = (one for one in constants_of(mechanism, {}) if one.value == 6)
    assert constant.origin == f"a constant in test_search_constants.py:{line}"


def test_libraries_are_not_followed():
    def mechanism(data):
        return np.linalg.norm(data) and functools.reduce(max, data)

    assert len(values_of(mechanism)) < 5


def test_no_flags_no_nan_no_docstring():
    def mechanism(data):
        """Words."""
        return (data, True, float("nan"), None)

    assert values_of(mechanism) == ["nan"]
