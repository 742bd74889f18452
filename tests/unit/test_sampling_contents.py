"""What objects hold, and what is read out of iterators."""

from __future__ import annotations

import itertools
import threading
import types

import numpy as np
import pytest
from zoo import Colour

from pytest_dp.outputs.attributes import attributes
from pytest_dp.outputs.iterators import MAX_ELEMENTS, read_out, was_cut
from pytest_dp.outputs.outcome import Raised
from pytest_dp.running.calling import Call


class Public:
    kind = "of the class"

    def __init__(self):
        self.value, self._hidden = 1, 2


class Private:
    __slots__ = ("__value", "_never_set")

    def __init__(self):
        self.__value = 3


class Both(Private):
    def __init__(self):
        super().__init__()
        self.value = 4


class Asked(Public):
    def __call__(self):
        return 5


def test_attributes():
    assert attributes(Public()) == {"value": 1}
    assert attributes(Private()) == {"_Private__value": 3}
    assert attributes(Both()) == {"value": 4}
    assert attributes(types.SimpleNamespace(b=1, a=2)) == {"a": 2, "b": 1}
    for opaque in (Asked(), Colour.RED, Public, len, threading.Lock(), object(), 1.5, "a", types):
        assert attributes(opaque) is None


def failing():
    yield 1
    raise ValueError("no more")


@pytest.mark.parametrize(
    ("output", "wanted", "kind"),
    [
        ((i for i in range(3)), [0, 1, 2], "generator"),
        (map(str, [1]), ["1"], "map"),
        (zip([1], [2], strict=True), [(1, 2)], "zip"),
        (reversed([1, 2]), [2, 1], "list_reverseiterator"),
        ({"a": 1}.keys(), ["a"], "dict_keys"),
        ({"a": 1}.items(), [("a", 1)], "dict_items"),
        (itertools.repeat(0), [0] * MAX_ELEMENTS, "repeat"),
        (failing(), [1, Raised("ValueError", message="no more")], "generator"),
    ],
)
def test_iterators_are_read_out(output, wanted, kind):
    found = read_out(output)
    assert (found, found.kind) == (wanted, kind)
    assert read_out(found) is found


def test_iterators_are_read_where_they_are_run():
    drawn = []

    def mechanism(data):
        drawn.append("called")
        yield len(drawn)
        drawn.append("read")
        yield len(drawn)

    outputs = Call(mechanism, {}).draw([], 3, None)
    assert outputs == [[1, 2], [3, 4], [5, 6]]


def test_an_object_that_is_used_again_is_copied():
    kept = types.SimpleNamespace()
    mine = Public()
    count = itertools.count()

    def mechanism(data):
        kept.value = mine.value = next(count)
        return mine

    assert len({output.value for output in Call(mechanism, {}).draw([], 5, None)}) == 5


def goes_on(length):
    def mechanism(data, rng):
        noisy = (sum(data) + rng.laplace() for _ in range(1))
        rest = itertools.repeat(0.0) if length is None else itertools.repeat(0.0, length - 1)
        return itertools.chain(noisy, rest)

    return mechanism


@pytest.mark.parametrize(
    ("length", "cut"), [(10, False), (1_000, False), (1_001, True), (None, True)]
)
def test_an_iterator_that_goes_on_is_known(length, cut):
    outputs = Call(goes_on(length), {}, "rng").draw([1], 3, np.random.default_rng(0))
    assert [was_cut(output) for output in outputs] == [cut] * 3
