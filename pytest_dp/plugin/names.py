"""Names that the whole plugin uses, and how options are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_dp.claiming.setting_fields import OPTIONS

MARKER = "dp_claim"
_CLAIMS = "__dp_claims__"


def ini(config: pytest.Config, name: str) -> Any:
    """Return the value of an ini key; None if it is not set."""
    try:
        return config.getini(f"dp_{name}")
    except (pytest.UsageError, TypeError, ValueError) as error:
        is_flag = name in OPTIONS and OPTIONS[name].kind == "flag"
        allowed = " Allowed: true or false." if is_flag else ""
        raise pytest.UsageError(f"ini key dp_{name}: {error}.{allowed}") from None


def claims_path(config: pytest.Config) -> Path:
    """Return the file of this run: beside the ini file, or at the root of the tests.

    Its name is fixed: else a change of settings could put a file of weaker claims in its place.
    """
    root = config.inipath.parent if config.inipath is not None else config.rootpath
    return root / "dp-claims.json"


def option_or_ini(config: pytest.Config, name: str) -> Any:
    """Return the value of an option or, if it is not given, of its ini key."""
    option = getattr(config.option, f"dp_{name}", None)
    return ini(config, name) if option is None else option


def reports(config: pytest.Config) -> list[Path]:
    """Return the files of the options, and those of the ini key, which are relative to the root."""
    typed = map(Path, getattr(config.option, "dp_report", None) or ())
    return [*typed, *(config.rootpath / line for line in ini(config, "report") or ())]


def has_claims(obj: object) -> bool:
    """Return whether an object has a claim or, if it is a class, something in its body has one.

    Asks carefully: mocks make up any attribute, and proxies may raise anything when touched.
    """
    try:
        if type(getattr(obj, _CLAIMS, None)) is tuple:
            return True
        inside = list(vars(obj).values()) if issubclass(type(obj), type) else []
        inside += [value.__func__ for value in inside if type(value) in (classmethod, staticmethod)]
        return any(type(getattr(value, _CLAIMS, None)) is tuple for value in inside)
    except Exception:  # whatever it raises, it was not made by @dp_claim
        return False
