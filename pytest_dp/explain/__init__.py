"""Explanations of a violation: lines of code that leak, and fields of a record that change nothing.

The mechanism is run on D and D' with the same random numbers, and with some of them replaced.
Checks compare these runs, in this order: seeded generators; missing or shared noise; scale against
movement; values that come too often; lines where runs part; more noise. Each finding holds in the
runs; without one, no line is blamed. The verdict stays unchanged.

Idle fields belong to the record in which D and D' differ: other values in them change no output.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import re
import textwrap
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data import kind_of, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.equality import key
from pytest_dp.data.fields import ABSENT, Change, changed_records, fields_of, record_of, with_field
from pytest_dp.data.neighbours import Pair
from pytest_dp.data.record_pool import RecordPool
from pytest_dp.explain.counted import find_helpful_noise, find_parting, find_unequal_values
from pytest_dp.explain.missing_noise import (
    find_missing_noise,
    find_seeded_generators,
    find_shared_noise,
)
from pytest_dp.explain.runs import (
    ENDS,
    Finding,
    PairRuns,
    changed_leaves,
)
from pytest_dp.explain.scale_and_movement import (
    LOSS_ERROR,
    ROUNDING,
    compare_with_movement,
    measure_noise,
)
from pytest_dp.outputs.leaves import as_float
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.proposers.interesting_values import may_be_constant, reachable
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
CHECKED_NOISES = 8
"""Runs in which idle fields change nothing. Fewer: fields that seldom matter are called idle."""
MAX_RECORDS = 20_000
"""Records of an input, at most, for its fields to be tried. More take longer."""
MAX_OTHERS = 1_000
"""Records of an example that values are taken from. Fewer miss values that matter."""
FIRST_NOISES = 2
"""Runs by which each field is tried alone. With fewer, the last check fails more often."""


def explain(violation: Violation, seconds: float) -> Explanation:
    """Run the mechanism to find the lines at which it leaks, and the fields that change nothing.

    Each of the two searches takes about `seconds` at most; both may return nothing.
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
    """Run the mechanism, and return up to `MAX_FINDINGS` lines at which it leaks on two inputs.

    `lower` is a proven lower bound on the parameter of the violated `claim`; `event`, if any, is
    too likely on the first input. Files inside `root`, by default the current directory, are shown
    relative to it. The advice on more noise covers all of the `pairs`. Empty if no check finds a
    line, or if the mechanism cannot be run with replaced draws.
    """
    lines: list[Blame] = []
    with suppress(*ENDS):
        budget = written_budget(call.mechanism, call.params, claim.claimed)
        for finding in _run_checks(
            PairRuns(call, pair, Deadline(seconds)), claim, event, lower, pairs
        ):
            if finding.certain or not _is_within_budget(finding, budget, claim, lower):
                blame = _make_blame(finding, root or Path.cwd())
                if not any(_is_near(blame, other) for other in lines):
                    lines.append(blame)
            if len(lines) == MAX_FINDINGS:
                break
    return tuple(lines)


def _run_checks(
    runs: PairRuns,
    claim: Guarantee,
    event: Callable[[Any], Any] | None,
    lower: float,
    pairs: Sequence[tuple[Any, Any]],
) -> Iterator[Finding]:
    """Yield the findings of the first check that has any; the most conclusive checks come first.

    Nothing if runs on the same noise differ. Raises the exceptions of `ENDS`.
    """
    if not runs.is_repeatable:
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
    """Return whether a loss above the claim is within the `budget` written in the code."""
    loss = max(finding.loss, lower)
    return budget > claim.claimed * (1 + ROUNDING) and loss <= budget * (1 + LOSS_ERROR)


def _make_blame(finding: Finding, root: Path) -> Blame:
    path = Path(finding.line.file)
    with suppress(OSError, ValueError):
        path = path.resolve().relative_to(root.resolve())
    function, line = function_at(finding.line), finding.line.line
    return Blame(path.as_posix(), line, function, finding.kind, finding.text, finding.remedy)


def function_at(line: Site) -> str:
    """Return the name of the function around a line.

    For a line in a lambda or comprehension, that is the nearest function above that is indented
    less; without any, ``<lambda>`` or the like.
    """
    if not line.function.startswith("<"):
        return line.function
    *above, own = linecache.getlines(line.file)[: line.line] or [""]
    for text in reversed(above):
        found = re.match(r"\s*(?:async )?def (\w+)", text)
        if found and len(text) - len(text.lstrip()) < len(own) - len(own.lstrip()):
            return found[1]
    return line.function


def written_budget(mechanism: Any, params: dict[str, Any], claimed: float) -> float:
    """Return the privacy budget in the code: the sum of numbers called ``eps``, ``budget``, ....

    The numbers are arguments of the mechanism, and variables, attributes and defaults that it
    reaches in the project. Return `claimed` if a number equals it, and 0 without any number.
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
    """Yield names and values of numbers in the source of a function, decorators left out.

    Raises OSError, TypeError, SyntaxError or ValueError if there is no source to read.
    """
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


def idle_fields(
    call: Call, pair: Pair, examples: Iterable[Any], seconds: float
) -> tuple[Hashable, ...]:
    """Run the mechanism; return the names of fields of a record whose values change no output.

    The record is the only one in which D and D' differ. If it is replaced, its fields get the
    values in D'; if D or D' lacks it, those of another record, there or in `examples`. Outputs on
    equal noise are compared in `CHECKED_NOISES` runs with all idle fields changed. Empty if no
    field is idle, if several records differ, after `seconds`, or if noise cannot be repeated.
    """
    with suppress(*ENDS):
        return tuple(_find_idle_fields(call, pair, examples, Deadline(seconds)))
    return ()


def _find_idle_fields(
    call: Call, pair: Pair, examples: Iterable[Any], deadline: Deadline
) -> list[Hashable]:
    """Run the mechanism, and return the idle fields; raises the exceptions of `ENDS`."""
    change = _find_only_change(pair)
    if change is None:
        return []
    added = change.before is ABSENT
    dataset = pair.d2 if added else pair.d1
    pool = RecordPool([dataset])
    others = [change.after]
    if added or change.after is ABSENT:
        kin = (data for data in examples if kind_of(data) == kind_of(dataset))
        others = [*pool.records, *(row for data in kin for row in records_of(data)[:MAX_OTHERS])]
    mine = pool.records[change.at]
    new = {
        name: value for name in fields_of(mine) for value in _find_other_value(mine, name, others)
    }
    both = PairRuns(call, pair.inputs, deadline)
    if len(fields_of(mine)) < 2 or not new or not _is_noise_captured(both):
        return []

    def runs_on(fields: Sequence[Hashable]) -> PairRuns:
        at = pool.add(reduce(lambda row, name: with_field(row, name, new[name]), fields, mine))
        places = range(len(pool.records))
        data = pool.dataset((*places[: change.at], at, *places[change.at + 1 : count]))
        return PairRuns(call, replace(pair, d1=data, d2=data).inputs, deadline)

    count = len(pool.records)
    usual = runs_on(())

    def are_outputs_equal(fields: Sequence[Hashable], many: int) -> bool:
        try:
            runs = runs_on(fields)
        except ClaimError:  # no such dataset can hold it
            return False
        pairs = ((usual.cached_run(0, at), runs.cached_run(0, at)) for at in range(many))
        return not any(changed_leaves(*both) for both in pairs)

    idle: list[Hashable] = []
    for name in new:
        if are_outputs_equal([*idle, name], FIRST_NOISES):
            idle.append(name)
    named = dict(zip(fields_of(mine), fields_of(record_of(dataset, mine)), strict=True))
    return (
        [named[name] for name in idle] if idle and are_outputs_equal(idle, CHECKED_NOISES) else []
    )


def _find_only_change(pair: Pair) -> Change | None:
    """Return the only record in which D and D' differ; None if several do, or inputs are too long.

    None also for inputs that are no datasets of one type.
    """
    of_a_kind = kind_of(pair.d1) and kind_of(pair.d1) == kind_of(pair.d2)
    if not of_a_kind or max(length(pair.d1), length(pair.d2)) > MAX_RECORDS:
        return None
    found = changed_records(pair.d1, pair.d2) or ()
    return found[0] if len(found) == 1 else None


def _is_noise_captured(runs: PairRuns) -> bool:
    """Return whether equal noise gives equal outputs, and D and D' differ in some run."""
    return runs.is_repeatable and any(
        changed_leaves(*runs.run_both(noise)) for noise in range(CHECKED_NOISES)
    )


def _find_other_value(mine: Any, name: Hashable, others: Sequence[Any]) -> list[Any]:
    """Return, in a list, a different value of the field in another record; [] without any."""
    value = key(fields_of(mine)[name])
    for other in others:
        theirs = fields_of(other)
        if name in theirs and key(theirs[name]) != value:
            return [theirs[name]]
    return []
