"""Explanations of a violation: lines of code that leak, and fields of a record that change nothing.

The mechanism is run on D and D' with the same random numbers, and with some of them replaced. Five
kinds of checks look at these runs: missing, seeded or shared noise, scale against movement, values
that come too often on one input, the line where runs part, and more noise. Each finding holds in
the runs; where nothing holds, there is none. The verdict is known by then, and stays as it is.
"""

from __future__ import annotations

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
from pytest_dp.explain.scale_and_movement import LOSS_ERROR, ROUNDING, compare_with_movement
from pytest_dp.explain.source import function_at, written_budget
from pytest_dp.explain.tracing import find_parting
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.protocols import Explanation, Violation
from pytest_dp.results.outcome import Blame
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline

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
