"""What is read out of texts, exceptions and huge whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp.outputs.features import features
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.readers.text_features import Reading, readings


def test_texts_that_recur_are_only_categories():
    table = tabulate(["yes", "no", "perhaps"] * 100)
    assert readings("output", table) == []
    assert [feature.text for feature in features(table)] == ["output"]


@pytest.mark.parametrize(
    ("what", "argument", "output", "wanted"),
    [
        ("len", 0, "abc", 3),
        ("float", 0, " 1e3 ", 1000),
        ("float", 0, "1e3 x", np.nan),
        ("numbers", 0, "a1b-2.5c1e3", 3),
        ("number", 1, "a1b-2.5c1e3", -2.5),
        ("number", 3, "a1b-2.5c1e3", np.nan),
        ("character", 1, "abc", ord("b")),
        ("character", -1, "abc", ord("c")),
        ("character", 3, "abc", np.nan),
        ("count", "a", "abca", 2),
        ("has", "bc", "abca", 1),
        ("starts", "bc", "abca", 0),
    ],
)
def test_readings_against_python(what, argument, output, wanted):
    for family, given in (("str", output), ("bytes", output.encode())):
        one = Reading("output", family, what, argument)
        values = one.values(tabulate([given, 1.0, None, given]))
        np.testing.assert_array_equal(values, [wanted, np.nan, np.nan, wanted])


def test_exceptions_are_told_apart_by_their_messages():
    kinds = [Raised("KeyError", "", m) for m in ("", "1", "2")] + [Raised("OSError", "", "1")]
    assert len(set(hashes(tabulate(kinds)).tolist())) == 4
    traced = [Raised("KeyError", trace, "1") for trace in ("one", "another")]
    assert len(set(hashes(tabulate(traced)).tolist())) == 1
