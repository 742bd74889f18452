"""Where privacy leaks: after a violation, lines of code and what holds of them.

The mechanism is run on D and D' with the same random numbers, and with some of them changed. What
is said was seen to hold in such runs; where nothing holds, nothing is said. The verdict is known by
then, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_dp.blame.affine import affine
from pytest_dp.blame.aligning import aligned
from pytest_dp.blame.appearing import appearing
from pytest_dp.blame.budgets import most_written
from pytest_dp.blame.choosing import by_probabilities, by_uniforms
from pytest_dp.blame.counting import numbers_drawn
from pytest_dp.blame.covering import uncovered
from pytest_dp.blame.finding import Finding
from pytest_dp.blame.more_noise import by_more_noise
from pytest_dp.blame.origins import function_at
from pytest_dp.blame.parting import parting
from pytest_dp.blame.reach import Reach
from pytest_dp.blame.runs import Runs, TooLong
from pytest_dp.blame.sharing import one_draw
from pytest_dp.blame.spread import moved
from pytest_dp.blame.without import coarse, no_noise, seeded
from pytest_dp.privacy.guarantees import Guarantee
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.results.blame import Blame
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime

MOST = 3
"""Lines that are told at most."""
NEAR = 1
"""Lines so near to each other are one place."""


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

    Parameters
    ----------
    call : Call
    pair : tuple of two objects
    claim : Guarantee
        Which it was shown to violate.
    lower : float
        What was shown of the claim's parameter.
    event : callable, optional
        Too likely on the first of the inputs.
    seconds : float
        That this may take.
    root : Path, optional
        Files inside are told relative to it; by default, to the current directory.
    """
    told: list[Blame] = []
    with suppress(CannotInstrument, CannotCopy, OutOfTime, TooLong, MemoryError, RecursionError):
        written = most_written(call.mechanism, call.params, claim.claimed)
        for found in _found(Reach(Runs(call, pair, Deadline(seconds))), claim, event, lower):
            if found.certain or not _as_written(found, written, claim, lower):
                one = _blame(found, root or Path.cwd())
                if not any(_near(one, other) for other in told):
                    told.append(one)
            if len(told) == MOST:
                break
    return tuple(told)


def _found(
    reach: Reach, claim: Guarantee, event: Callable[[Any], Any] | None, lower: float
) -> Iterator[Finding]:
    """What holds, looked for in this order: what explains all of the leak ends the search."""
    if not reach.repeats:
        return
    looks: tuple[Callable[[], Iterator[Finding]], ...] = (
        lambda: seeded(reach),
        lambda: no_noise(reach),
        lambda: coarse(reach),
        lambda: appearing(reach, claim, lower),
        lambda: _of_affine(reach, claim),
        lambda: moved(reach, claim, lower),
        lambda: by_probabilities(reach, claim),
        lambda: by_uniforms(reach, claim),
        lambda: aligned(reach, claim, lower),
        lambda: parting(reach),
        lambda: one_draw(reach),
        lambda: by_more_noise(reach, event, claim, lower) if event is not None else iter(()),
        lambda: numbers_drawn(reach),
    )
    for look in looks:
        found = list(look())
        yield from found
        if found:
            return


def _of_affine(reach: Reach, claim: Guarantee) -> Iterator[Finding]:
    known = affine(reach)
    if known is not None:
        yield from uncovered(reach, known, claim)


def _near(one: Blame, other: Blame) -> bool:
    """Whether a reader of one line sees the other as well."""
    return one.file == other.file and abs(one.line - other.line) <= NEAR


def _as_written(found: Finding, written: float, claim: Guarantee, lower: float) -> bool:
    """Whether the mechanism may lose no more than its code says, and only its claim says less."""
    lost = max(found.loss, lower)
    return written > claim.claimed * (1 + 1e-9) and lost <= written * (1 + 1e-6)


def _blame(found: Finding, root: Path) -> Blame:
    path = Path(found.line.file)
    with suppress(OSError, ValueError):
        path = path.resolve().relative_to(root.resolve())
    return Blame(path.as_posix(), found.line.line, function_at(found.line), found.kind, found.text)
