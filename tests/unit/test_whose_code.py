"""Whose code a file is: names of folders are compared whole."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest_dp
from pytest_dp.basics.whose_code import is_project_file

OURS = Path(pytest_dp.__file__).parent
STANDARD = Path(functools.__file__).parent
FILES = {
    "this package": (OURS / "claiming/claim.py", False),
    "a folder beside this package": (OURS.with_name("pytest_dp_stats") / "count.py", True),
    "a file beside this package": (OURS.with_name("pytest_dp_count.py"), True),
    "the standard library": (STANDARD / "random.py", False),
    "a folder beside the standard library": (Path(f"{STANDARD}_stats", "count.py"), True),
    "an installed package": (STANDARD / "site-packages/shop/count.py", False),
}


def test_code_of_the_project():
    for case, (file, expected) in FILES.items():
        assert is_project_file(str(file)) is expected, case
