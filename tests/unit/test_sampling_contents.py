"""What objects hold, and what is read out of iterators."""

from __future__ import annotations

import itertools

import pytest

from pytest_dp.outputs.iterators import MAX_ELEMENTS, read_out
from pytest_dp.outputs.outcome import Raised


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
