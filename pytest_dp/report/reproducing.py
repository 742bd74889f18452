"""How to run an audit again."""

from __future__ import annotations

import shlex

from pytest_dp.basics.reprs import LINE_WIDTH
from pytest_dp.report import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.results.result import Result


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
    from pytest_dp.claiming.setting_fields import FIELDS
    from pytest_dp.claiming.settings import NO_LIMIT, NO_MARGIN, settings_for

    vectorized = result.claim.arguments.vectorized is not None
    written = settings_for(result.claim.effort, vectorized=vectorized)
    options = []
    if result.method != written.method.name:
        options.append(f"--dp-method={result.method}")
    if result.alpha != written.alpha:
        options.append(f"--dp-alpha={result.alpha!r}")
    if result.max_samples not in (None, written.max_samples):
        options.append(f"--dp-max-samples={result.max_samples}")
    if result.max_seconds not in (None, written.max_seconds):
        seconds = "none" if result.max_seconds == NO_LIMIT else f"{result.max_seconds:g}"
        options.append(f"--dp-max-seconds={seconds}")
    has_margin = result.method in FIELDS["margin"].methods
    if has_margin and result.margin not in (None, written.margin):
        margin = "none" if result.margin == NO_MARGIN else f"{result.margin:g}"
        options.append(f"--dp-margin={margin}")
    return [*options, "--dp-accumulate"] if result.earlier_runs else options
