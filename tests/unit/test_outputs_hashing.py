"""Hashes, equal for equal outputs only, and kept extracts of outputs."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest
from zoo import Colour, Point

from pytest_dp.counterexample import is_constant
from pytest_dp.outputs.features import all_features
from pytest_dp.outputs.paired_outputs import PairedOutputs
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import hashes, tabulate


def test_different_for_different_values():
    different = [
        [], (), {}, set(), np.zeros(0), [[]], None, "", b"", "None", "True", True, False, 0, 1, 2,
        "a", b"a", [0], (0,), [0, 0], [0, 1], [1, 0], [1, 1], [True, 0], [0, True], [None, 1],
        {"a": 1}, {"b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 1}, OrderedDict(a=1), np.array([0, 1]),
        np.zeros((1, 2)), np.zeros((2, 1)), [[0], 0], [0, [0]], Point(0, 0), (0, 0), Colour.RED,
        Colour.BLUE, Raised("KeyError"), Raised("ValueError"), math.nan, math.inf, -math.inf, 1j,
        0.0, np.float32(0), [0.0], [0, 0.0], [np.int8(0)], np.zeros(2, np.float32),
        np.zeros(2, int), np.zeros(2), {"b": 2, "a": 1}, [(0,)], {"a": [1]}, {"a": (1,)},
        2**53, 2**53 + 1, 10**400, 10**400 + 1, [10**400],
        "raises KeyError", ["a", "b"], ["b", "a"], [["a"], "b"], 5e-324, 1 + 2**-52, -1, [1.5],
    ]  # fmt: skip
    assert len(set(hashes(tabulate(different)).tolist())) == len(different)


PROGRAM = """
import sys
sys.path.insert(0, "tests/unit")
from pytest_dp.outputs.table import hashes
from pytest_dp.outputs.table import tabulate
from pytest_dp.outputs.raised import Raised
outputs = [
    "a", "b", None, True, 1.5, [True, "a", 2], {"x": "a", "y": None}, {"b", "a", "c"}, (1, "z"),
    Raised("KeyError"), b"c", [["a"], {"k": frozenset("ab")}],
]
print(hashes(tabulate(outputs)).tolist())
"""


def test_the_same_in_any_process():
    scope: dict[str, object] = {}
    exec(PROGRAM.replace("print(", "found = ("), scope)
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    printed = subprocess.check_output([sys.executable, "-c", PROGRAM], text=True, env=environment)
    assert printed.strip() == str(scope["found"])


RNG = np.random.default_rng(0)
ROWS = RNG.laplace(size=(200, 300))
MIXED = [
    [None if i % 7 == row % 5 else x for i, x in enumerate(numbers[: 290 + row % 3])]
    for row, numbers in enumerate(ROWS.tolist())
]
OUTPUTS = {
    "array": ROWS,
    "mixed": MIXED,
    "dicts": [dict(zip(map(str, range(300)), row, strict=True)) for row in ROWS.tolist()],
}


@pytest.fixture(params=OUTPUTS)
def outputs(request):
    return OUTPUTS[request.param]


def about(outputs):
    return tuple(all_features(tabulate(outputs), np.arange(200) < 100))


@pytest.mark.slow
def test_what_is_kept_is_in_the_order_of_its_batches_whatever_it_is(outputs):
    table, kept = tabulate(outputs), PairedOutputs()
    kept.add(tabulate(outputs[:30]), tabulate(outputs[30:60]), coupled=True)
    kept.table()
    kept.add(tabulate(outputs[60:70]), tabulate(outputs[70:80]), coupled=False)
    kept.add(tabulate(outputs[80:140]), tabulate(outputs[140:]), coupled=False)
    together, on_d = kept.table()
    order = np.r_[0:30, 60:70, 80:140, 30:60, 70:80, 140:200]
    np.testing.assert_array_equal(hashes(together), hashes(table)[order])
    assert on_d.tolist() == [True] * 100 + [False] * 100
    assert (kept.pairs, kept.coupled) == (100, 30)
    kept.keep_only(list(about(outputs)))
    assert kept.table()[0].is_extract
    assert len(kept.table()[0].rows(on_d)) == 100
    np.testing.assert_array_equal(hashes(kept.table()[0]), hashes(table)[order])
    np.testing.assert_array_equal(hashes(kept.examples()), hashes(table)[order])


def test_whether_outputs_are_all_the_same():
    for outputs in (np.ones((5, 400)), [math.nan] * 3, [0.0, -0.0]):
        assert is_constant(tabulate(outputs))
    for outputs in (ROWS, [[1, 2], (1, 2)], []):
        assert not is_constant(tabulate(outputs))
