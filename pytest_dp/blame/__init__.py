"""Where privacy leaks: after a violation, lines of code and what holds of them.

The mechanism is run on D and D' with the same random numbers, and with some of them changed. Each
finding was seen to hold in such runs; where nothing holds, there is none. The verdict is known by
then, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_dp.blame.affine import affine
from pytest_dp.blame.alignment import alignment
from pytest_dp.blame.budgets import written_budget
from pytest_dp.blame.control_flow import control_flow
from pytest_dp.blame.draw_counts import draw_counts
from pytest_dp.blame.findings import Finding
from pytest_dp.blame.flow import Flow
from pytest_dp.blame.insufficient_noise import insufficient_noise
from pytest_dp.blame.measured_noise import measured_noise
from pytest_dp.blame.missing_noise import coarse, no_noise, seeded
from pytest_dp.blame.more_noise import by_more_noise
from pytest_dp.blame.origins import function_at
from pytest_dp.blame.presence import presence
from pytest_dp.blame.runs import Runs, TooLong
from pytest_dp.blame.selection import by_probabilities, by_uniforms
from pytest_dp.blame.shared_draw import shared_draw
from pytest_dp.limits import FEW
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.results.blame import Blame
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime


def blamed(
    call: Call,
    pair: tuple[Any, Any],
    claim: Guarantee,
    lower: float,
    event: Callable[[Any], Any] | None,
    seconds: float,
    root: Path | None = None,
) -> tuple[Blame, ...]:
    """Lines at which a mechanism leaks on two inputs, the most telling first.

    It was shown to violate `claim`, of whose parameter `lower` was shown, perhaps by an event that
    is too likely on the first input. Files inside `root`, by default the current directory, are
    shown relative to it.
    """
    lines: list[Blame] = []
    with suppress(CannotInstrument, CannotCopy, OutOfTime, TooLong, MemoryError, RecursionError):
        budget = written_budget(call.mechanism, call.params, claim.claimed)
        for finding in _findings(Flow(Runs(call, pair, Deadline(seconds))), claim, event, lower):
            if finding.certain or not _as_written(finding, budget, claim, lower):
                blame = _blame(finding, root or Path.cwd())
                if not any(_near(blame, other) for other in lines):
                    lines.append(blame)
            if len(lines) == FEW:
                break
    return tuple(lines)


def _findings(
    flow: Flow, claim: Guarantee, event: Callable[[Any], Any] | None, lower: float
) -> Iterator[Finding]:
    """The findings of the first check that has any; the most conclusive checks come first."""
    if not flow.repeats:
        return
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: seeded(flow),
        lambda: no_noise(flow),
        lambda: coarse(flow),
        lambda: presence(flow, claim, lower),
        lambda: _of_affine(flow, claim),
        lambda: measured_noise(flow, claim, lower),
        lambda: by_probabilities(flow, claim),
        lambda: by_uniforms(flow, claim),
        lambda: alignment(flow, claim, lower),
        lambda: control_flow(flow),
        lambda: shared_draw(flow),
        lambda: by_more_noise(flow, event, claim, lower) if event is not None else iter(()),
        lambda: draw_counts(flow),
    )
    yield from next((findings for check in checks if (findings := list(check()))), ())


def _of_affine(flow: Flow, claim: Guarantee) -> Iterator[Finding]:
    leaves = affine(flow)
    return iter(()) if leaves is None else insufficient_noise(flow, leaves, claim)


def _near(one: Blame, other: Blame) -> bool:
    """Whether a reader of one line sees the other as well."""
    return one.file == other.file and abs(one.line - other.line) <= 1


def _as_written(finding: Finding, budget: float, claim: Guarantee, lower: float) -> bool:
    """Whether the mechanism may lose no more than its code says, and only its claim says less."""
    loss = max(finding.loss, lower)
    return budget > claim.claimed * (1 + 1e-9) and loss <= budget * (1 + 1e-6)


def _blame(finding: Finding, root: Path) -> Blame:
    path = Path(finding.line.file)
    with suppress(OSError, ValueError):
        path = path.resolve().relative_to(root.resolve())
    return Blame(
        path.as_posix(), finding.line.line, function_at(finding.line), finding.kind, finding.text
    )
