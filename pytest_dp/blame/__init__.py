"""Where privacy leaks: after a violation, lines of code and what holds of them.

The mechanism is run on D and D' with the same random numbers, and with some of them changed. Four
questions are asked. Is noise missing, or made of a seed? Which draw loses the most? Where does more
noise help? Where do runs part? Each finding was seen to hold in such runs; where nothing holds,
there is none. The verdict is known by then, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_dp.blame.decided import find_deciding_draws
from pytest_dp.blame.dependence import dependent_on_data, draw_counts
from pytest_dp.blame.elsewhere import also_without_noise
from pytest_dp.blame.findings import Finding
from pytest_dp.blame.missing_noise import coarse, find_seeded_generators, no_noise, presence
from pytest_dp.blame.more_noise import by_more_noise
from pytest_dp.blame.movement import measured_noise, too_little_noise
from pytest_dp.blame.parting import control_flow
from pytest_dp.blame.runs import ENDS, Runs
from pytest_dp.blame.shared_noise import shared_noise
from pytest_dp.blame.source import function_at, written_budget
from pytest_dp.limits import EQUAL, FEW, NEARLY_EQUAL
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.results.outcome import Blame
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.deadline import Deadline


def blamed(  # noqa: PLR0913  an audit's result, piece by piece
    call: Call,
    pair: tuple[Any, Any],
    claim: Guarantee,
    lower: float,
    event: Callable[[Any], Any] | None,
    seconds: float,
    root: Path | None = None,
    pairs: Sequence[tuple[Any, Any]] = (),
) -> tuple[Blame, ...]:
    """Lines at which a mechanism leaks on two inputs, the most telling first.

    It was shown to violate `claim`, of whose parameter `lower` was shown, perhaps by an event that
    is too likely on the first input. Files inside `root`, by default the current directory, are
    shown relative to it. How much more noise is needed follows from all of the `pairs` as well.
    """
    lines: list[Blame] = []
    with suppress(*ENDS):
        budget = written_budget(call.mechanism, call.params, claim.claimed)
        runs = Runs(call, pair, Deadline(seconds))
        for finding in _findings(runs, claim, event, lower, pairs):
            if finding.certain or not _as_written(finding, budget, claim, lower):
                blame = _blame(finding, root or Path.cwd(), finding.remedy)
                if finding.kind == "no noise" and not lines:
                    also = also_without_noise(runs, [data for pair in pairs for data in pair])
                    blame = replace(blame, message=f"{blame.message}{also}")
                if not any(_near(blame, other) for other in lines):
                    lines.append(blame)
            if len(lines) == FEW:
                break
    return tuple(lines)


def _findings(
    runs: Runs,
    claim: Guarantee,
    event: Callable[[Any], Any] | None,
    lower: float,
    pairs: Sequence[tuple[Any, Any]],
) -> Iterator[Finding]:
    """The findings of the first check that has any; the most conclusive come first."""
    if not runs.repeats:
        return
    checks: tuple[Iterator[Finding], ...] = (
        *(
            find_seeded_generators(runs),
            no_noise(runs, claim),
            coarse(runs),
            presence(runs, claim, lower),
        ),
        shared_noise(runs),
        *(too_little_noise(runs, claim, lower, pairs), dependent_on_data(runs)),
        measured_noise(runs, claim, lower),
        find_deciding_draws(runs, claim),
        control_flow(runs),
        by_more_noise(runs, event, claim, lower),
        draw_counts(runs),
    )
    yield from next((findings for check in checks if (findings := list(check))), ())


def _near(one: Blame, other: Blame) -> bool:
    """Return whether a reader of one line sees the other as well."""
    return one.file == other.file and abs(one.line - other.line) <= 1


def _as_written(finding: Finding, budget: float, claim: Guarantee, lower: float) -> bool:
    """Return whether the loss is within the budget of the code, and only the claim is smaller."""
    loss = max(finding.loss, lower)
    return budget > claim.claimed * (1 + EQUAL) and loss <= budget * (1 + NEARLY_EQUAL)


def _blame(finding: Finding, root: Path, remedy: str) -> Blame:
    path = Path(finding.line.file)
    with suppress(OSError, ValueError):
        path = path.resolve().relative_to(root.resolve())
    function = function_at(finding.line)
    return Blame(path.as_posix(), finding.line.line, function, finding.kind, finding.text, remedy)
