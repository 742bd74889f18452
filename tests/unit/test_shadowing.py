"""Names that functions of a copy find: in all of its own functions, and nowhere else."""

from __future__ import annotations

import functools
import statistics

from pytest_dp.running.copies import Pristine
from pytest_dp.running.shadowing import shadow

NAMES = {"float": lambda value: f"traced {value}", "int": lambda value: "never found"}


def int(value):  # noqa: A001  a variable of this name is the module's own
    return "its own"


def helper(value):
    return float(value)


class Mechanism:
    def __init__(self, inner):
        self.inner = inner

    @staticmethod
    def static(value):
        return helper(value)

    def __call__(self, value):
        return self.static(value), self.inner(value), int(value)


def around(function):
    @functools.wraps(function)
    def inner(value):
        return function(value)

    return inner


def test_all_functions_of_a_copy_find_them():
    for mechanism in (
        helper,
        around(helper),
        functools.partial(helper),
        Mechanism.static,
        Mechanism(helper).static,
        lambda value: max(helper(each) for each in [value]),
    ):
        copied, _ = Pristine(mechanism).fresh()
        assert copied(2) == 2.0
        shadow(copied, NAMES)
        assert copied(2) == "traced 2"
        assert mechanism(2) == 2.0
    assert "float" not in globals()


def test_variables_of_that_name_are_kept():
    copied, _ = Pristine(Mechanism(helper)).fresh()
    shadow(copied, NAMES)
    assert copied(2) == ("traced 2", "traced 2", "its own")


def test_libraries_are_left_alone():
    copied, _ = Pristine(lambda value: (statistics.fmean([value]), helper(value))).fresh()
    shadow(copied, NAMES)
    assert copied(2) == (2.0, "traced 2")
    assert "float" not in vars(statistics)
    shadow(helper, NAMES)
    assert "float" not in globals()
