"""Hashes: equal for equal outputs only, in any table and any process."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zoo import Colour, Point

from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.leaves import NUMBER
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate

leaf = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.floats(),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, 1e400, 10**400, 5e-324]),
    st.sampled_from(["a", "b", "", "True", b"a", "\ud800", np.True_, np.float64(1), Colour.RED]),
    st.sampled_from([Raised("KeyError"), Raised("ValueError", "trace"), Colour.BLUE, 1j]),
)
outputs_of_any_kind = st.lists(
    st.one_of(
        leaf,
        st.lists(leaf, max_size=3),
        st.lists(st.booleans(), max_size=3),
        st.tuples(leaf, leaf),
        st.lists(st.lists(leaf, max_size=2), max_size=2),
        st.dictionaries(st.sampled_from("ab"), leaf, max_size=2),
        st.lists(st.floats(), max_size=3).map(np.array),
        st.just(np.zeros((2, 2))),
        st.builds(Point, st.integers(0, 1), st.integers(0, 1)),
    ),
    min_size=1,
    max_size=10,
)


def contents(table, row):
    """All that is observed of an output; 0.0 is -0.0."""
    structure, names = table.structures[table.structure[row]], list(table.levels)
    leaves = [
        (repr(table.numbers[at] + 0.0), table.types.names[table.types.which[at]])
        if (code := table.codes[at]) == NUMBER
        else names[code]
        for at in range(*table.offsets[row : row + 2])
    ]
    return structure.kind, structure.places, leaves, table.forms.names[table.forms.which[row]]


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(outputs_of_any_kind)
def test_equal_for_equal_outputs_and_no_others(outputs):
    table = tabulate(outputs)
    found = hashes(table)
    assert found.shape == (len(outputs),)
    assert found.dtype == np.int64
    for row in range(len(outputs)):
        alike = [contents(table, other) == contents(table, row) for other in range(len(outputs))]
        assert (found == found[row]).tolist() == alike


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
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.table import tabulate
from pytest_dp.outputs.outcome import Raised
outputs = [
    "a", "b", None, True, 1.5, [True, "a", 2], {"x": "a", "y": None}, {"b", "a", "c"}, (1, "z"),
    Raised("KeyError"), b"c", [["a"], {"k": frozenset("ab")}],
]
print(hashes(tabulate(outputs)).tolist())
"""


def test_the_same_in_any_process():
    scope: dict[str, object] = {}
    exec(PROGRAM.replace("print(", "found = ("), scope)
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    ).stdout
    assert printed.strip() == str(scope["found"])
