"""The list of faults does not rot: each still fits the code, and names a test that there is."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

from faults import ROOT
from mutants import FAULTS


@cache
def functions_of(file):
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_faults_fit_the_code_and_name_tests():
    wrong = []
    for fault in FAULTS:
        try:
            ast.parse(fault.spoiled())  # raises if the code is not there, or more than once
        except (OSError, SyntaxError, ValueError) as error:
            wrong.append(f"{fault.name}: {error}")
        file, _, test = fault.test.partition("::")
        if test.partition("[")[0] not in functions_of(file):
            wrong.append(f"{fault.name}: there is no test {fault.test}")
        if fault.right == fault.wrong:
            wrong.append(f"{fault.name}: nothing is changed")
    assert wrong == []


def test_names_are_used_once():
    names = Counter(fault.name for fault in FAULTS)
    assert [name for name, times in names.items() if times > 1] == []
