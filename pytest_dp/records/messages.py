"""What became of claims on record, as text that a person reads in a log or beside a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

from pytest_dp.limits import LINE
from pytest_dp.records.comparing import WEAKER, Change
from pytest_dp.records.entries import promise_text
from pytest_dp.records.judging import (
    FAILING,
    GONE,
    HIDDEN,
    KEPT,
    NEW,
    RENAMED,
    STRONGER,
    WEAKENED,
    Judgement,
    mechanism_of,
)

_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
KEYWORDS = {
    "promise": ("eps", "delta", "rho", "mu", "guarantee", "composes"),
    "neighbours": ("neighbors",),
    "group": ("neighbors",),
    **dict.fromkeys(("classifier", "coupled", "c"), ("method",)),
    "inputs": ("inputs", "pairs"),
}
"""By what has changed, the keywords of a claim that may say it; of all else, its own name."""


def message(judgement: Judgement, file: str, hint: str = "") -> str:
    """Why a claim fails: in one line, then what has changed, then what to do.

    `hint` is what else is known, as a sentence.
    """
    room = " " * len("WeakenedClaim: ")  # which comes before it
    lines = wrap(room + _headline(judgement, file), LINE, **_WHOLE_WORDS)
    lines[0] = lines[0].strip()
    details = [*_renamed(judgement), *_table(judgement.changes)]
    if details:
        lines += ["", *details]
    if hint:
        lines += ["", *wrap(hint, LINE, **_WHOLE_WORDS)]
    return "\n".join([*lines, "", *what_to_do(file)])


def what_to_do(file: str) -> list[str]:
    """The last lines of each message."""
    return [f"If that is meant:  pytest --dp-claims=update  and commit {file}."]


def _headline(judgement: Judgement, file: str) -> str:
    collected = judgement.collected
    if judgement.kind == WEAKENED:
        lost = _lost(judgement)
        is_less = "is less than" if lost[0].verdict == WEAKER else "is not what"
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        return f"{_short_text(lost[0])}{more} {is_less} {file} has on record"
    if judgement.kind == HIDDEN and collected is not None:
        return f"not audited ({collected.hidden}); {file} has it on record"
    if judgement.kind == GONE:
        return f"gone: no test is about this claim, which {file} has on record"
    assert collected is not None
    assert collected.entry is not None
    return f"not on record: {file} has no such claim ({promise_text(collected.entry['promise'])})"


def _lost(judgement: Judgement) -> list[Change]:
    """What fails a claim: first what is weaker, then what cannot be compared."""
    lost = [change for change in judgement.changes if change.loses]
    return sorted(lost, key=lambda change: change.verdict != WEAKER)


def _short_text(change: Change) -> str:
    if change.what == "promise":
        return f"{change.before} -> {change.after}"
    return str(change)


def _renamed(judgement: Judgement) -> list[str]:
    collected = judgement.collected
    if collected is None or mechanism_of(judgement.id) == mechanism_of(collected.id):
        return []
    return [f"  renamed: {judgement.id}", f"       to: {collected.id}"]


def _table(changed: Sequence[Change]) -> list[str]:
    width = max((len(change.what) for change in changed), default=0)
    lines = []
    for change in changed:
        said = f"{change.before} -> {change.after}  ({change.verdict})"
        room = max(LINE - width - 4, 30)
        start, *rest = wrap(said, room, break_on_hyphens=False)
        lines.append(f"  {change.what:<{width}}  {start}")
        lines += [f"  {'':<{width}}  {text}" for text in rest]
    return lines


def summary(judged: Iterable[Judgement], file: str) -> list[str]:
    """What is said of all claims at the end of a run; failures have said it for themselves."""
    judged = list(judged)
    counts = {kind: sum(judgement.kind == kind for judgement in judged) for kind in _WORDS}
    counted = [f"{count} {_WORDS[kind]}" for kind, count in counts.items() if count]
    lines = [f"{file}: {', '.join(counted)}"] if counted else []
    for judgement in judged:
        if judgement.kind == RENAMED and judgement.collected is not None:
            lines += [f"  renamed: {judgement.id}", f"       to: {judgement.collected.id}"]
        elif judgement.kind == STRONGER and judgement.collected is not None:
            said = "; ".join(map(_short_text, judgement.changes)) or "it is audited again"
            line = f"  stronger: {judgement.id}: {said}"
            lines += wrap(line, LINE, subsequent_indent="    ", **_WHOLE_WORDS)
    if any(judgement.kind in (RENAMED, STRONGER) for judgement in judged) and not any(
        judgement.kind in FAILING for judgement in judged
    ):
        lines.append(f"To put that on record:  pytest --dp-claims=update  and commit {file}.")
    return lines


_WORDS = {
    KEPT: "as on record",
    STRONGER: "stronger",
    RENAMED: "renamed",
    WEAKENED: "weakened",
    HIDDEN: "hidden",
    GONE: "gone",
    NEW: "not on record",
}


def keywords_of(judgement: Judgement) -> tuple[str, ...]:
    """The keywords of a claim where what has changed may stand."""
    lost = [change.what for change in judgement.changes if change.loses]
    return tuple(
        name for what in lost[:1] for name in KEYWORDS.get(what, (what.partition("[")[0],))
    )
