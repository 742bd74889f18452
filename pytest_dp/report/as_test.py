"""A counterexample as a file that runs as a test: red while its claim is broken."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_dp.basics.whose_code import is_project_module
from pytest_dp.data.python_source import MOST_VALUES, SHORT_NAMES, Code, source_of
from pytest_dp.report.reproducing import options
from pytest_dp.results.result import Counterexample, Result

NOT_OF_A_PAIR = ("inputs", "pairs", "params", "neighbors", "composes", "search", "beyond")
"""Keywords of a claim that say nothing of a test on one pair."""
NO_SOURCE = f"there is no source that makes {{}}, of type {{}}, in {MOST_VALUES:,} values or fewer"
UP = 2
"""Given: the file is in ``.dp/pairs/`` of the project."""


class NoTest(Exception):  # noqa: N818  told, not an error
    """Why there is no such file."""


def as_test(
    result: Result, mechanism: Any, keywords: Mapping[str, Any], file: str, root: Path
) -> str:
    """Return the text of a test of a mechanism on the pair that broke its claim.

    `keywords` are those of the claim, and `file` is where the test will be, relative to `root`. All
    source in it was evaluated and compared. Raises NoTest where there is none.
    """
    example = result.counterexample
    assert example is not None
    called = _code(mechanism, f"{_name(mechanism)} cannot be imported by its name")
    inputs = [
        _code(data, NO_SOURCE.format(name, type(data).__name__), lines=True)
        for name, data in (("D", example.d1), ("D'", example.d2))
    ]
    said = {
        name: _code(value, f"there is no source for {name}= of the claim")
        for name, value in _keywords(result, keywords, example).items()
    }
    modules = frozenset[str]().union(*(c.modules for c in (called, *inputs, *said.values())))
    shown = ", ".join(f"{name}={code.text}" for name, code in said.items())
    name = re.sub(r"\W+", "_", _name(mechanism))
    command = " ".join(["pytest", file, *options(result)])
    text = f"""\
# D and D' on which {_on_one_line(result.name)} broke its claim: red until it is fixed.
# Run it by: {command}
# It is written anew by each run that finds such a pair, and removed by one that passes.
{_imports(modules, root)}
D = {inputs[0].text}
D_PRIME = {inputs[1].text}


@pytest.mark.dp_claim({shown}, pairs=[(D, D_PRIME)])
def test_{name}(dp_check):
    dp_check({called.text})
"""
    return text.encode("utf-8", "backslashreplace").decode()


def _on_one_line(text: str) -> str:
    """Return a text that stays within a comment: characters that end a line are escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _code(value: Any, otherwise: str, *, lines: bool = False) -> Code:
    code = source_of(value, lines=lines)
    if code is None:
        raise NoTest(otherwise)
    return code


def _name(mechanism: Any) -> str:
    return str(getattr(mechanism, "__name__", type(mechanism).__name__))


def _keywords(
    result: Result, keywords: Mapping[str, Any], example: Counterexample
) -> dict[str, Any]:
    """Return the keywords of a claim on one pair, with one value of each parameter."""
    said = {name: value for name, value in keywords.items() if name not in NOT_OF_A_PAIR}
    if result.claim.promise.group > 1:  # which the guarantee is for
        said["neighbors"] = keywords["neighbors"]
    params = {**result.claim.arguments.params, **example.params}
    return said | ({"params": {name: [value] for name, value in params.items()}} if params else {})


def _imports(modules: Iterable[str], root: Path) -> str:
    """Return statements that import these modules, those of the project from their folders."""
    ours = sorted(name for name in modules if is_project_module(name))
    places = sorted({place for place in (_place(name, root) for name in ours) if place is not None})
    others = sorted({*modules, "pytest", *(["pathlib", "sys"] if places else [])} - set(ours))
    ahead = [
        f"sys.path.insert(0, str(pathlib.Path(__file__).parents[{UP}] / {place!r}))"
        for place in places
    ]
    blocks = [map(_import, others), [*ahead, *map(_import, ours)]]
    return "\n".join(f"\n{line}" for line in map("\n".join, blocks) if line) + "\n"


def _import(module: str) -> str:
    short = SHORT_NAMES.get(module)
    return f"import {module}" if short is None else f"import {module} as {short}"


def _place(module: str, root: Path) -> str | None:
    """Return the folder a module is imported from, relative to the root; None if outside."""
    file = getattr(sys.modules[module], "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    if path.name == "__init__.py":
        path = path.parent
    with suppress(ValueError, IndexError):
        return path.parents[module.count(".")].relative_to(root.resolve()).as_posix()
    return None
