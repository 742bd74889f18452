"""Whose code it is: the project's, an installed package's, or a library's that has no noise."""

from __future__ import annotations

import functools
import os
import sys
import types
from pathlib import Path
from typing import Any

OURS = str(Path(__file__).parents[1]) + os.sep
"""With this, the name of each file of this package begins."""
_STANDARD = str(Path(functools.__file__).parent) + os.sep
_QUIET = {"numpy", "scipy", "pandas", "sklearn", "joblib", "hypothesis"}
_QUIET |= {"pytest", "_pytest", "pytest_dp"}
"""Packages that keep neither noise nor constants of a mechanism."""


def root_of(name: Any) -> str:
    """Return the package of a module, by its name."""
    return str(name or "").partition(".")[0]


def is_library(name: Any) -> bool:
    """Return whether a module is of the standard library, or of a library that keeps no noise."""
    root = root_of(name)
    return root != "__main__" and (root in sys.stdlib_module_names or root in _QUIET)


def is_installed(module: types.ModuleType | None) -> bool:
    """Return whether a module is part of an installed package, as far as its place can tell."""
    return _is_in_site(getattr(module, "__file__", None) or "")


@functools.cache
def _is_in_site(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


@functools.cache
def is_project_file(file: str) -> bool:
    """Return whether the code in a file is of the project, by the file's name."""
    return not (_is_in_site(file) or file.startswith((OURS, _STANDARD, "<frozen")))


def is_project_module(name: Any) -> bool:
    """Return whether a module is of the project; one that is not loaded, by its package."""
    root = root_of(name)
    file = getattr(sys.modules.get(name) or sys.modules.get(root), "__file__", None)
    if isinstance(file, str):
        return is_project_file(file)
    return root == "__main__" or root not in sys.stdlib_module_names
