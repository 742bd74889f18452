"""Pairs that are given, inputs that are named, and how they are described."""

from __future__ import annotations

import copy
import itertools
import math
import sys

import numpy as np
import pytest
from neighbours import ADD_REMOVE, pairs, plain, refusal

from pytest_dp import queries, values
from pytest_dp.claiming.claim import expand
from pytest_dp.pairs import resolve_promise


def test_explicit_pairs_that_are_no_neighbours():
    message = refusal(pairs=[([1], []), ([1, 0], [2])], neighbors=ADD_REMOVE)
    assert "pairs[1] is not a pair of neighbours under neighbors='add_remove_one'" in message
    assert "D = [1, 0] and D' = [2]; 2 records only in D and 1 record only in D'" in message
    assert "leave neighbors= out" in message


@pytest.mark.parametrize("same", [[1, 2], np.array([1.0, math.nan])], ids=["list", "array"])
def test_identical_inputs_are_no_pair(same):
    message = refusal(pairs=[(same, copy.deepcopy(same))])
    assert "pairs[0]" in message
    assert "identical" in message
    assert "Write two inputs that differ, such as (" in message


SOURCE = """
records = [[], [1]]
class Group:
    patterns = records
def fails(): raise OSError("no such table")
def array():
    import numpy
    return numpy.array([1])
nothing = None
"""


@pytest.mark.parametrize(
    ("attribute", "parts"),
    [
        ("fails", ["raised OSError: no such table", "called without arguments"]),
        ("array", ["the function returned array([1]), of type", "such as [array([1])] if this"]),
        ("nothing", ["is None, of type NoneType", "values([0, 1])"]),
        ("recods", ["there is no 'recods'", "Did you mean 'records'?", "dpi_errors.py"]),
        ("Group.pattern", ["there is no 'pattern'", "Did you mean 'patterns'?"]),
    ],
)
def test_attributes_that_do_not_work(modules, attribute, parts):
    root = modules(dpi_errors=SOURCE)
    message = refusal(root, inputs=f"dpi_errors:{attribute}", neighbors=ADD_REMOVE)
    assert f"dpi_errors:{attribute}" in message
    for part in parts:
        assert part in message


def test_modules_that_are_not_there(modules):
    root = modules(dpi_here=SOURCE, dpi_pkg__inner=SOURCE)
    message = refusal(root, inputs="dpi_her:records")
    assert "there is no module 'dpi_her'" in message
    assert f"on sys.path and in {root}" in message
    assert "'dpi_here'" in message
    assert "there is no module 'dpi_pkg.iner'" in refusal(root, inputs="dpi_pkg.iner:records")


def test_modules_that_cannot_be_imported(modules):
    root = modules(dpi_raises="1 / 0", dpi_syntax="def", dpi_exits="raise SystemExit(3)")
    for name, said in (
        ("dpi_raises", "ZeroDivisionError: division by zero"),
        ("dpi_syntax", "SyntaxError"),
        ("dpi_exits", "SystemExit: 3"),
    ):
        message = refusal(root, inputs=f"{name}:records")
        assert f"importing '{name}' raised {said}" in message


STATED = [([1], []), ([1, 0], [0])]


def test_pairs_come_from_wherever_inputs_do(modules):
    root = modules(
        dpi_pairs=f"stated = {STATED}\ndef made(): return stated\ndef each(): yield from stated"
    )
    expected = pairs(pairs=STATED)
    assert pairs(pairs=lambda: iter(STATED)) == pairs(pairs=iter(STATED)) == expected
    for name in ("stated", "made", "each"):
        assert pairs(root, pairs=f"dpi_pairs:{name}") == expected
    examples = pairs(inputs=[[1], [1, 0]], neighbors=ADD_REMOVE)
    assert pairs(inputs=lambda: iter([[1], [1, 0]]), neighbors=ADD_REMOVE) == examples
    assert pairs(inputs=lambda: values([0, 1])) == pairs(inputs=values([0, 1]))


def test_what_generators_yield_without_end_is_taken_in_part():
    def stated():
        return (([number], []) for number in itertools.count())

    def made():
        return ([number] for number in itertools.count())

    for keywords, said in (
        ({"pairs": stated}, "only the first 512 pairs that pairs="),
        ({"inputs": made, "neighbors": ADD_REMOVE}, "only the first 64 datasets that inputs="),
    ):
        notes = []
        promise = resolve_promise(expand({"eps": 1.0, **keywords})[0].promise, None, notes)
        assert len(promise.pairs or promise.inputs) == (512 if "pairs" in keywords else 64)
        assert notes[0].startswith(said)
    message = refusal(pairs=stated())
    assert "yields more than 512 pairs. Write the function itself" in message


def raising():
    yield ([1], [])
    raise OSError("no such table")


@pytest.mark.parametrize(
    ("given_as", "message"),
    [
        (lambda: 3, "the function returned 3, of type int. Allowed: a non-empty list of pairs"),
        (lambda: 1 / 0, "raised ZeroDivisionError: division by zero. It is called without"),
        (raising, "pairs=raising: the function raised OSError: no such table"),
        ("nowhere:pairs", "pairs='nowhere:pairs': there is no module 'nowhere'"),
        ("pairs", "Invalid pairs='pairs'. Allowed: \"module:attribute\""),
        (lambda: [([1], []), ([1, 2, 3], [])], "pairs[1] is not a pair of neighbours"),
    ],
)
def test_pairs_that_cannot_be_taken(given_as, message):
    assert message in refusal(pairs=given_as, neighbors=ADD_REMOVE)


def test_a_foreign_package_of_the_same_name_does_not_hide_the_project(tmp_path, monkeypatch):
    foreign, project = tmp_path / "installed", tmp_path / "project"
    for folder in (foreign, project):
        (folder / "checks_of_others").mkdir(parents=True)
    (foreign / "checks_of_others" / "__init__.py").touch()
    (project / "checks_of_others" / "dp_inputs.py").write_text("records = [[0], [0, 1]]\n")
    (project / "checks_of_others" / "broken.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(foreign))
    made = pairs(project, inputs="checks_of_others.dp_inputs:records", neighbors=ADD_REMOVE)
    assert len(made) > 1
    message = refusal(project, inputs="checks_of_others.broken:records", neighbors=ADD_REMOVE)
    assert "ZeroDivisionError" in message
    assert "checks_of_others.broken" not in sys.modules


def test_queries_are_the_patterns_of_statdp_table_1():
    assert plain(pairs(inputs=queries(5))) == [
        ([1, 1, 1, 1, 1], [2, 1, 1, 1, 1]),
        ([1, 1, 1, 1, 1], [0, 1, 1, 1, 1]),
        ([1, 1, 1, 1, 1], [2, 0, 0, 0, 0]),
        ([1, 1, 1, 1, 1], [0, 2, 2, 2, 2]),
        ([1, 1, 1, 1, 1], [0, 0, 0, 2, 2]),
        ([1, 1, 1, 1, 1], [2, 2, 2, 2, 2]),
        ([1, 1, 1, 1, 1], [0, 0, 0, 0, 0]),
        ([1, 1, 0, 0, 0], [0, 0, 1, 1, 1]),
    ]


def test_queries_without_lengths_are_those_published():
    assert [len(pair.d1) for pair in pairs(inputs=queries())] == [5] * 8 + [10] * 8


def test_query_lengths_are_whole_numbers_and_values_need_two():
    for length in (0, 2.0):
        said = f"Invalid length {length!r} in queries(5, {length!r})"
        assert said in refusal(inputs=queries(5, length))
    for options in ([], [1, 1]):
        assert f"{values(options)!r} holds" in refusal(inputs=values(options))
