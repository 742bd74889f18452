"""The list of faults does not rot: each still fits the code, and names a test that there is."""

from __future__ import annotations

import ast
from collections import Counter

import pytest
from faults import ROOT
from mutants import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_fits_the_code_and_names_a_test(fault):
    spoiled = fault.spoiled()  # raises if what is right is not there, or more than once
    assert fault.right != fault.wrong
    ast.parse(spoiled)
    file, _, test = fault.test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert test.partition("[")[0] in functions


def test_names_are_used_once():
    assert max(Counter(fault.name for fault in FAULTS).values()) == 1
    assert len(FAULTS) >= 40
