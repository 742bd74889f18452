"""Functions of the user that turn outputs into numbers."""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from searching import values

from pytest_dp.basics.errors import ClaimError
from pytest_dp.outputs.features import (
    user_features,
)
from pytest_dp.outputs.table import tabulate


def total(output):
    return sum(output)


def ends(output):
    return min(output), max(output)


@dataclasses.dataclass  # which makes it unhashable
class Times:
    factor: float

    def __call__(self, output):
        return self.factor * output


ALLOWED = "Allowed: a number, or a list"


@pytest.mark.parametrize(
    ("function", "outputs", "want"),
    [
        (total, [[1.0, 2.0], [3.0]], {"total(output)": [3.0, 3.0]}),
        (
            ends,
            [[1.0, 2.0], [3.0, 0.5]],
            {"ends(output)[0]": [1.0, 0.5], "ends(output)[1]": [2.0, 3.0]},
        ),
        (lambda x: x > 1, [0.0, 2.0], {"<lambda>(output)": [0.0, 1.0]}),
        (lambda x: np.array([x, 1]), [0.0], {f"<lambda>(output)[{i}]": [1.0 * i] for i in (0, 1)}),
        (lambda x: Fraction(1, 2), [None], {"<lambda>(output)": [0.5]}),
        (lambda x: 10**400, [1.0], {"<lambda>(output)": [math.inf]}),
        (lambda x: [[True, 1], (0.5, 2)][x], [0, 1], {"<lambda>(output)[0]": [1.0, 0.5]}),
        (functools.partial(math.pow, 2), [3.0], {"pow(output)": [8.0]}),
        (Times(2.0), [3.0], {"Times(output)": [6.0]}),
    ],
)
def test_functions_of_the_user(function, outputs, want):
    found = {f.text: f for f in user_features(function, tabulate(outputs))}
    assert want.keys() <= found.keys()
    for text, numbers in want.items():
        assert values(found[text], outputs) == numbers
        assert hash(found[text])


NO_NUMBERS = (None, "3", [1, "a"], {"a": 1}, [[1.0]], (), 1j)


@pytest.mark.parametrize(
    ("results", "said"),
    [
        *(([1.0, bad], f"output 1. {ALLOWED}") for bad in NO_NUMBERS),
        *(([bad, 1.0], f"output 0. {ALLOWED}") for bad in NO_NUMBERS),
        ([[1.0, 2.0], [1.0]], "a sequence of 1, but a sequence of 2 for another output"),
        ([1.0, [1.0]], "a sequence of 1, but a single number for another output"),
        ([[1.0], 1.0], "a single number, but a sequence of 1 for another output"),
    ],
)
def test_results_other_than_as_many_numbers_are_refused(results, said):
    def odd(output):
        return results[output]

    outputs = tabulate([0, 0, 1])
    with pytest.raises(ClaimError) as caught:
        user_features(odd, outputs)
    wrong = results[0] if "output 0" in said else results[1]
    assert str(caught.value).startswith(f"The function odd of an output returned {wrong!r}")
    assert said in str(caught.value)
    assert type(wrong).__name__ in str(caught.value) or "another output" in said
    if "output 0" not in said:
        feature = user_features(odd, tabulate([0, 0]))[0]
        for later in (outputs, tabulate([1])):
            with pytest.raises(ClaimError, match=said):
                feature.columns(later)


def test_a_function_that_raises_is_refused():
    def odd(output):
        return 1 / output

    with pytest.raises(ClaimError) as caught:
        user_features(odd, tabulate([2.0, 0.0]))
    assert str(caught.value) == (
        "The function odd of an output raised ZeroDivisionError: float division by zero, for the "
        "output 0.0."
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    feature = user_features(odd, tabulate([2.0]))[0]
    with pytest.raises(ClaimError, match="raised ZeroDivisionError"):
        feature.columns(tabulate([0.0]))
