"""Whose code is in a file: the project's, an installed package's, or of a library without noise."""

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
    """Return the top-level package in a module's name; "" for None."""
    return str(name or "").partition(".")[0]


def is_library(name: Any) -> bool:
    """Return whether a module's name is of the standard library, or of a package in `_QUIET`."""
    root = root_of(name)
    return root != "__main__" and (root in sys.stdlib_module_names or root in _QUIET)


def is_installed(module: types.ModuleType | None) -> bool:
    """Return whether a module's file is in site-packages or dist-packages; False without a file."""
    return _is_in_site(getattr(module, "__file__", None) or "")


@functools.cache
def _is_in_site(file: str) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


@functools.cache
def is_project_file(file: str) -> bool:
    """Return whether a file is of the project: not installed, standard library or pytest-dp."""
    return not (_is_in_site(file) or file.startswith((OURS, _STANDARD, "<frozen")))


def is_project_module(name: Any) -> bool:
    """Return whether a module is of the project, by the file of the module or of its package.

    If neither is loaded, every module counts that is not of the standard library.
    """
    root = root_of(name)
    file = getattr(sys.modules.get(name) or sys.modules.get(root), "__file__", None)
    if isinstance(file, str):
        return is_project_file(file)
    return root == "__main__" or root not in sys.stdlib_module_names
