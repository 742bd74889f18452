"""Whose code a file is: names of folders are compared whole."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

import pytest_dp
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.running.requests import stack

OURS = Path(pytest_dp.__file__).parent
STANDARD = Path(functools.__file__).parent
NUMPY = Path(np.__file__).parent
FILES = {
    "this package": (OURS / "claiming/claim.py", False),
    "a folder beside this package": (OURS.with_name("pytest_dp_stats") / "count.py", True),
    "a file beside this package": (OURS.with_name("pytest_dp_count.py"), True),
    "the standard library": (STANDARD / "random.py", False),
    "a folder beside the standard library": (Path(f"{STANDARD}_stats", "count.py"), True),
    "an installed package": (STANDARD / "site-packages/shop/count.py", False),
}


@pytest.mark.parametrize("case", FILES)
def test_code_of_the_project(case):
    file, expected = FILES[case]
    assert is_project_file(str(file)) is expected


DRAWING = {
    "NumPy": (NUMPY / "random/drawing.py", False),
    "a package whose name begins with NumPy's": (NUMPY.with_name("numpyro") / "drawing.py", True),
    "a file beside NumPy": (NUMPY.with_name("numpy_noise.py"), True),
    "a folder beside this package": (OURS.with_name("pytest_dp_stats") / "drawing.py", True),
    "a module with the name of a standard one before its own": (
        Path(f"{STANDARD}/random.pyx"),
        True,
    ),
}


@pytest.mark.parametrize("case", DRAWING)
def test_lines_that_lead_to_a_draw(case):
    file, expected = DRAWING[case]
    space = {"stack": stack}
    exec(compile("def draw():\n    return stack()\n", str(file), "exec"), space)
    assert (str(file) in {site.file for site in space["draw"]()}) is expected
