"""How to run an audit again, and its counterexample as source: for a claim, and as a test."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_dp.basics.reprs import LINE_WIDTH
from pytest_dp.basics.whose_code import is_project_module
from pytest_dp.report import numbers
from pytest_dp.report.pair import wrap_lines

TYPE_CHECKING = False
if TYPE_CHECKING:  # no claim that passes needs its inputs as source
    from pytest_dp.data.python_source import Code
    from pytest_dp.results.result import Result

TO_ADD = "If the mechanism takes such data, add an example, and the same audit is red:"
NEVER_GETS = 'If it never gets any, write beyond="off" into the claim.'
NOT_OF_A_PAIR = ("inputs", "pairs", "params", "neighbors", "composes", "search", "beyond")
"""Keywords of a claim that say nothing of a test on one pair."""
UP = 2
"""Given: the file of a test is in ``.dp/pairs/`` of the project."""


def reproduce(result: Result) -> list[str]:
    """Return how to run this audit again; the command is never broken, so that it can be pasted."""
    label = "Reproduce:" if result.replayable else "Run again:"
    line = f"{label}  {replay_command(result)}"
    return [line] if len(line) <= LINE_WIDTH else [label, f"  {replay_command(result)}"]


def replay_command(result: Result) -> str:
    """Return the command that runs this audit again; with the seed where that repeats it."""
    seed = numbers.seed(result.seed)
    if "::" in result.name:
        name = result.name
        quoted = shlex.quote(name) if set(name) & set('"$`\\!') else f'"{name}"'
        seeded = [f"--dp-seed={seed}"] if result.replayable else []
        return " ".join([f"pytest {quoted}", *seeded, *options(result)])
    return f"audit(..., seed=0x{seed})" if result.replayable else "audit(...)"


def options(result: Result) -> list[str]:
    """Return options without which it would be another audit."""
    from pytest_dp.claiming.setting_fields import FIELDS, flag_of
    from pytest_dp.claiming.settings import NO_LIMIT, NO_MARGIN, settings_for

    vectorized = result.claim.arguments.vectorized is not None
    written = settings_for(result.claim.effort, vectorized=vectorized)
    said = [f"--dp-method={result.method}"] if result.method != written.method.name else []
    for name in ("alpha", "max_samples", "max_seconds", "margin"):
        value = getattr(result, name)
        if result.method in FIELDS[name].methods and value not in (None, getattr(written, name)):
            is_open = value == {"max_seconds": NO_LIMIT, "margin": NO_MARGIN}.get(name)
            text = str(value) if isinstance(value, int) else f"{value:.12g}"
            said.append(f"{flag_of(name)}={'none' if is_open else text}")
    return [*said, "--dp-accumulate"] if result.earlier_runs else said


def keep(result: Result) -> list[str]:
    """Return the pair as source for a test of its own, if it is short, and the file that has it."""
    said = [*as_source_lines(result)]
    if result.pair_file:
        line = f"As a file:  {result.pair_file}"
        said += [line] if len(line) <= LINE_WIDTH else ["As a file:", f"  {result.pair_file}"]
    return said


def as_source_lines(result: Result) -> list[str]:
    """Return the pair as keywords of a claim; nothing if the claim names it, or it is long."""
    from pytest_dp.data.describing import whole
    from pytest_dp.data.python_source import as_source

    example, room = result.counterexample, 4 * LINE_WIDTH
    if example is None or result.claim.promise.pairs is not None:
        return []
    if result.outside:
        more = [as_source(data) or "" for data in result.to_add if whole(data, room)]
        line = f"  inputs=[..., {', '.join(more)}]"
        if more and all(more) and len(line) <= room:
            return [*wrap_lines(TO_ADD), line, *wrap_lines(NEVER_GETS)]
    if whole(example.d1, room) is None or whole(example.d2, room) is None:
        return []  # nor is its source short
    sources = as_source(example.d1), as_source(example.d2)
    line = f"pairs=[({sources[0]}, {sources[1]})]"
    params = {name: as_source(value) for name, value in example.params.items()}
    if params:
        line += f", params={{{', '.join(f'{name!r}: {value}' for name, value in params.items())}}}"
    if None in (*sources, *params.values()) or len(line) > room:
        return []
    label = "As a test:  "
    return [f"{label}{line}"] if len(label + line) <= LINE_WIDTH else [label.rstrip(), f"  {line}"]


class NoTest(Exception):  # noqa: N818  shown as a note, not as an error
    """Why a counterexample has no file that runs as a test."""


def as_test(
    result: Result, mechanism: Any, keywords: Mapping[str, Any], file: str, root: Path
) -> str:
    """Return the text of a test of a mechanism on the pair that broke its claim.

    `keywords` are those of the claim, and `file` is where the test will be, relative to `root`. All
    source in it was evaluated and compared. Raises NoTest where there is none.
    """
    example = result.counterexample
    assert example is not None
    function = str(getattr(mechanism, "__name__", type(mechanism).__name__))
    called = _code(mechanism, f"{function} cannot be imported by its name")
    inputs = [
        _code(data, f"there is no source that makes {name}, of type {type(data).__name__}")
        for name, data in (("D", example.d1), ("D'", example.d2))
    ]
    said = {name: value for name, value in keywords.items() if name not in NOT_OF_A_PAIR}
    if result.claim.promise.group > 1:  # which the guarantee is for
        said["neighbors"] = keywords["neighbors"]
    params = {**result.claim.arguments.params, **example.params}
    if params:
        said["params"] = {name: [value] for name, value in params.items()}
    source = {
        name: _code(value, f"there is no source for {name}= of the claim")
        for name, value in said.items()
    }
    modules = frozenset[str]().union(*(c.modules for c in (called, *inputs, *source.values())))
    claimed = ", ".join(f"{name}={code.text}" for name, code in source.items())
    name = re.sub(r"\W+", "_", function)
    # characters that end a line are escaped, to stay within a comment
    claim = "".join(char if char.isprintable() else repr(char)[1:-1] for char in result.name)
    text = f"""\
# D and D' on which {claim} broke its claim: red until it is fixed.
# Run it by: {" ".join(["pytest", file, *options(result)])}
# It is written anew by each run that finds such a pair, and removed by one that passes.
{_imports(modules, root)}
D = {inputs[0].text}
D_PRIME = {inputs[1].text}


@pytest.mark.dp_claim({claimed}, pairs=[(D, D_PRIME)])
def test_{name}(dp_check):
    dp_check({called.text})
"""
    return text.encode("utf-8", "backslashreplace").decode()


def _code(value: Any, otherwise: str) -> Code:
    from pytest_dp.data.python_source import source_of

    code = source_of(value, lines=True)
    if code is None:
        raise NoTest(otherwise)
    return code


def _imports(modules: Iterable[str], root: Path) -> str:
    """Return statements that import these modules, those of the project from their folders."""
    from pytest_dp.data.python_source import SHORT_NAMES

    def import_line(module: str) -> str:
        return f"import {module}" + (f" as {SHORT_NAMES[module]}" if module in SHORT_NAMES else "")

    ours = sorted(name for name in modules if is_project_module(name))
    folders = sorted({place for name in ours if (place := _folder_of(name, root)) is not None})
    others = sorted({*modules, "pytest", *(["pathlib", "sys"] if folders else [])} - set(ours))
    ahead = [
        f"sys.path.insert(0, str(pathlib.Path(__file__).parents[{UP}] / {place!r}))"
        for place in folders
    ]
    blocks = [map(import_line, others), [*ahead, *map(import_line, ours)]]
    return "\n".join(f"\n{line}" for line in map("\n".join, blocks) if line) + "\n"


def _folder_of(module: str, root: Path) -> str | None:
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
