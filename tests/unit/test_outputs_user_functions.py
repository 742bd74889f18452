"""Functions of the user that turn outputs into numbers."""

from __future__ import annotations

import dataclasses
import functools
import math
from fractions import Fraction

import numpy as np
import pytest
from searching import values

from pytest_dp.errors import ClaimError
from pytest_dp.outputs.events import Between, Event
from pytest_dp.outputs.features import (
    user_features,
)
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate


def total(output):
    return sum(output)


def ends(output):
    return min(output), max(output)


class Calls:
    def __init__(self, function):
        self.function, self.count, self.__name__ = function, 0, "counted"

    def __call__(self, output):
        self.count += 1
        return self.function(output)


@dataclasses.dataclass  # which makes it unhashable
class Times:
    factor: float

    def __call__(self, output):
        return self.factor * output


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
        (lambda x: np.array([x > 1, True]), [0.0], {"<lambda>(output)[0]": [0.0]}),
        (lambda x: [x], [3.0], {"<lambda>(output)[0]": [3.0]}),
        (lambda x: Fraction(1, 2), [None], {"<lambda>(output)": [0.5]}),
        (lambda x: np.float32(x), np.array([1, 2]), {"<lambda>(output)": [1.0, 2.0]}),
        (lambda x: 10**400, [1.0], {"<lambda>(output)": [math.inf]}),
        (lambda x: [[True, 1], (0.5, 2)][x], [0, 1], {"<lambda>(output)[0]": [1.0, 0.5]}),
        (functools.partial(math.pow, 2), [3.0], {"pow(output)": [8.0]}),
        (Times(2.0), [3.0], {"Times(output)": [6.0]}),
        (str.__len__, ["ab", "c"], {"__len__(output)": [2.0, 1.0]}),
    ],
)
def test_functions_of_the_user(function, outputs, want):
    found = {f.text: f for f in user_features(function, tabulate(outputs))}
    assert want.keys() <= found.keys()
    for text, numbers in want.items():
        assert values(found[text], outputs) == numbers
        assert hash(found[text])


def test_a_function_is_called_once_for_each_output():
    function = Calls(ends)
    table = tabulate([[float(i), 3.0] for i in range(50)])
    found = user_features(function, table)
    looked_at = function.count
    assert looked_at <= 51
    for feature in [*found, *user_features(function, table)]:
        feature.columns(table)
    part = table.rows(np.arange(50) % 2 == 0)
    assert found[0].columns(part)[0].tolist() == [min(i, 3.0) for i in range(0, 50, 2)]
    assert found[1].columns(part.rows(np.arange(25) > 23))[0].tolist() == [48.0]
    assert function.count <= looked_at + 1


def test_nan_is_a_number_and_a_run_that_raised_has_no_output():
    function = Calls(lambda x: x)
    outputs = [Raised("ValueError"), math.nan, 2.0]
    (feature,) = user_features(function, tabulate(outputs))
    numbers, codes = feature.columns(tabulate(outputs))
    assert codes.tolist() == [ABSENT, NUMBER, NUMBER]
    assert np.isnan(numbers[:2]).all()
    assert not Event((Between(feature, low=0.0),))(Raised("ValueError"))
    assert values(feature, [Raised("ValueError")]) == [None]
    assert user_features(function, tabulate([Raised("ValueError")])) == []
    assert user_features(function, tabulate([])) == []


def test_a_function_of_the_user_in_an_event():
    (feature,) = user_features(total, tabulate([[1.0, 2.0]]))
    event = Event((Between(feature, low=4.0),))
    assert str(event) == "total(output) >= 4.0"
    assert event([2.0, 3.0])
    assert not event([2.0, 1.0])


@pytest.mark.parametrize("result", [None, "3", [1, "a"], {"a": 1}, [[1.0]], (), 1j])
@pytest.mark.parametrize("from_the_start", [True, False])
def test_results_that_are_not_numbers_are_refused(result, from_the_start):
    def odd(output):
        return result if output == 7.0 or from_the_start else 1.0

    with pytest.raises(ClaimError) as caught:
        user_features(odd, tabulate([1.0, 7.0]))
    said = str(caught.value)
    assert "odd" in said
    assert f"returned {result}" in said or repr(result) in said
    assert type(result).__name__ in said
    assert ("output 1.0" if from_the_start else "output 7.0") in said
    assert "Allowed: a number" in said


@pytest.mark.parametrize(
    ("results", "said"),
    [
        (
            [[1.0, 2.0], [1.0]],
            "a sequence of 1, but a sequence of 2 for another output",
        ),
        ([1.0, [1.0]], "a sequence of 1, but a single number for another output"),
        ([[1.0], 1.0], "a single number, but a sequence of 1 for another output"),
    ],
)
def test_results_of_several_lengths_are_refused(results, said):
    def odd(output):
        return results[output]

    outputs = tabulate([0, 0, 1])
    with pytest.raises(ClaimError, match=said) as caught:
        user_features(odd, outputs)
    assert "function odd" in str(caught.value)
    assert f"returned {results[1]} for the output 1" in str(caught.value)
    feature = user_features(odd, tabulate([0, 0]))[0]
    with pytest.raises(ClaimError, match=said):
        feature.columns(outputs)
    with pytest.raises(ClaimError, match=said):
        feature.columns(tabulate([1]))


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
