"""Explanations of a violation: lines of code that leak, and fields of a record that change nothing.

The mechanism is run on D and D' with the same random numbers, and with some of them replaced. Five
kinds of checks look at these runs: missing, seeded or shared noise, scale against movement, values
that come too often on one input, the line where runs part, and more noise. Each finding holds in
the runs; where nothing holds, there is none. The verdict is known by then, and stays as it is.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import re
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_dp.explain.counted import find_helpful_noise, find_unequal_values
from pytest_dp.explain.findings import Finding
from pytest_dp.explain.idle import idle_fields
from pytest_dp.explain.missing_noise import (
    find_missing_noise,
    find_seeded_generators,
    find_shared_noise,
)
from pytest_dp.explain.runs import ENDS, PairRuns
from pytest_dp.explain.scale_and_movement import (
    LOSS_ERROR,
    ROUNDING,
    compare_with_movement,
    measure_noise,
)
from pytest_dp.explain.tracing import find_parting
from pytest_dp.outputs.leaves import as_float
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.proposers.constants import may_be_constant, reachable
from pytest_dp.protocols import Explanation, Violation
from pytest_dp.results.outcome import Blame
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import Site

NAMES = ("id", "attr", "arg")
"""Attributes of variables, attributes and keywords in syntax that hold their names."""
_BUDGET = re.compile(r"(?:^|[^a-z])(eps|epsilon|rho|mu|budget|privacy|loss)(?:[^a-z]|$)", re.I)
"""Names of budgets, such as ``EPS_AGE``."""
MAX_FINDINGS = 3
"""Lines that are named. More hide the most telling one."""


def explain(violation: Violation, seconds: float) -> Explanation:
    """Return the lines at which a mechanism leaks, and the fields that change nothing.

    Each of both takes at most about this number of seconds.
    """
    call, pair = violation.call, violation.pair
    about = violation.claim, violation.lower, violation.event
    lines = blame_lines(call, pair.inputs, *about, seconds, violation.root, violation.others)
    return Explanation(lines, idle_fields(call, pair, violation.examples, seconds))


def blame_lines(  # noqa: PLR0913  an audit's result, piece by piece
    call: Call,
    pair: tuple[Any, Any],
    claim: Guarantee,
    lower: float,
    event: Callable[[Any], Any] | None,
    seconds: float,
    root: Path | None = None,
    pairs: Sequence[tuple[Any, Any]] = (),
) -> tuple[Blame, ...]:
    """Return lines at which a mechanism leaks on two inputs, the most telling first.

    It violates `claim`, of whose parameter `lower` was shown, perhaps by an event that is too
    likely on the first input. Files inside `root`, by default the current directory, are shown
    relative to it. The advice on more noise covers all of the `pairs`.
    """
    lines: list[Blame] = []
    with suppress(*ENDS):
        budget = written_budget(call.mechanism, call.params, claim.claimed)
        for finding in _findings(
            PairRuns(call, pair, Deadline(seconds)), claim, event, lower, pairs
        ):
            if finding.certain or not _is_within_budget(finding, budget, claim, lower):
                blame = _blame_of(finding, root or Path.cwd())
                if not any(_is_near(blame, other) for other in lines):
                    lines.append(blame)
            if len(lines) == MAX_FINDINGS:
                break
    return tuple(lines)


def _findings(
    runs: PairRuns,
    claim: Guarantee,
    event: Callable[[Any], Any] | None,
    lower: float,
    pairs: Sequence[tuple[Any, Any]],
) -> Iterator[Finding]:
    """Yield the findings of the first check that has any; the most conclusive come first."""
    if not runs.repeats:
        return
    checks = (
        find_seeded_generators(runs),
        find_missing_noise(runs, claim),
        find_shared_noise(runs),
        compare_with_movement(runs, claim, lower, pairs),
        measure_noise(runs, claim, lower),
        find_unequal_values(runs, claim, lower),
        find_parting(runs),
        find_helpful_noise(runs, event, claim, lower),
    )
    yield from next((findings for check in checks if (findings := list(check))), ())


def _is_near(one: Blame, other: Blame) -> bool:
    """Return whether a reader of one line sees the other as well."""
    return one.file == other.file and abs(one.line - other.line) <= 1


def _is_within_budget(finding: Finding, budget: float, claim: Guarantee, lower: float) -> bool:
    """Return whether the loss is within the budget of the code, and only the claim is smaller."""
    loss = max(finding.loss, lower)
    return budget > claim.claimed * (1 + ROUNDING) and loss <= budget * (1 + LOSS_ERROR)


def _blame_of(finding: Finding, root: Path) -> Blame:
    path = Path(finding.line.file)
    with suppress(OSError, ValueError):
        path = path.resolve().relative_to(root.resolve())
    function, line = function_at(finding.line), finding.line.line
    return Blame(path.as_posix(), line, function, finding.kind, finding.text, finding.remedy)


def function_at(line: Site) -> str:
    """Return the name of the function that a line is in, also where it is in a comprehension."""
    if not line.function.startswith("<"):
        return line.function
    try:
        tree = ast.parse("".join(linecache.getlines(line.file)))
    except (SyntaxError, ValueError, RecursionError):
        return line.function
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line.line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else line.function


def written_budget(mechanism: Any, params: dict[str, Any], claimed: float) -> float:
    """Return the sum of the numbers that are called ``eps``, ``EPS_AGE``, ``budget`` or the like.

    They are arguments of the mechanism, and variables, attributes and defaults that it can reach in
    the project. Where one of them is what is claimed, it is that; where there is none, 0.
    """
    numbers: dict[str, float] = {}
    for value, place in reachable(mechanism, params):
        if may_be_constant(value) and not isinstance(value, str):
            numbers[place.rpartition(" ")[2]] = as_float(value)
        elif type(value) is types.FunctionType:
            with suppress(OSError, TypeError, SyntaxError, ValueError):
                numbers = dict(_numbers_in_source(value)) | numbers
    budgets = [value for name, value in numbers.items() if _BUDGET.search(name) and value > 0]
    is_claimed = any(math.isclose(budget, claimed) for budget in budgets)
    return claimed if is_claimed else sum(budgets)


def _numbers_in_source(function: types.FunctionType) -> Iterator[tuple[str, float]]:
    """Yield numbers that have a name in the source of a function, but for those of its claims."""
    for parameter in inspect.signature(function).parameters.values():
        if isinstance(parameter.default, int | float):
            yield parameter.name, as_float(parameter.default)
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for definition in tree.body:
        if isinstance(definition, ast.FunctionDef):
            definition.decorator_list = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.keyword) or not isinstance(
            node.value, ast.Constant
        ):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node]
        if type(node.value.value) in (int, float):
            for target in targets:
                name = next(filter(None, (getattr(target, of, "") for of in NAMES)), "")
                yield name, as_float(node.value.value)
