"""The table of claims, as all reports show it, and what it comes to in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import wrap

from pytest_dp.limits import FAIR, STRONG
from pytest_dp.report import numbers
from pytest_dp.report.record import Record
from pytest_dp.report.statuses import STATUSES
from pytest_dp.report.text import estimated, proven
from pytest_dp.reprs import counted

_STOOD = ("no violation", "unchanged")
_LOUD = ("violated", "error")
POOR = ("blind", "weak")
_FINDS = "{}: 19 of 20 such audits find noise {:g} times too small on what they try."
_WORTH = {
    "strong": _FINDS.format("strong", STRONG),
    "fair": _FINDS.format("fair", FAIR),
    "weak": f"weak: noise {FAIR:g} times too small may go unseen.",
}


def heads(records: Iterable[Record]) -> list[str]:
    """What stands above `cells`."""
    of = {record.parameter for record in records if record.parameter}
    named = f"{of.pop()} " if len(of) == 1 and "scale" not in of else ""
    return ["promised", f"would catch {named}from", "a leak from 1 run in", "runs", "time"]


def cells(record: Record) -> tuple[str, ...]:
    """What is promised, what would be caught, how rare a leak may be, runs and time."""
    ran, seconds = record.samples > 0, record.seconds
    return (
        _promised(record) or "-",
        _catches(record),
        _leaks(record),
        numbers.short_count(record.samples) if ran else "-",
        numbers.seconds(seconds, compact=True) if ran or seconds > 0.1 else "-",
    )


def _promised(record: Record) -> str:
    """The claim; of computed numbers three digits, where a bound above it still reads as larger."""
    violated = record.status == "violated" and record.claimed is not None
    bound = _bound(record) if violated else ""

    def shorter(number: re.Match[str]) -> str:
        value = float(number[0])
        text = numbers.claimed(value, 3)
        closest = value == record.claimed and bound and float(bound.replace(",", "")) <= float(text)
        return numbers.claimed(value) if closest else text

    claim = re.sub(r"\d*\.\d{7,}(e[+-]?\d+)?", shorter, record.claim)
    in_words = record.parameter not in ("rdp", "scale")
    return claim.replace("=", " ").replace("-delta ", ", delta ") if in_words else claim


def outcome(record: Record) -> str:
    """The status with what makes it telling: ``"no violation (strong)"``."""
    claimed, parameter = record.claimed, record.parameter
    if record.status == "violated" and claimed is not None:
        bound = _bound(record)
        sign, number = (">=", bound) if bound else (">", numbers.claimed(claimed))
        return f"violated, {numbers.value(parameter, number, sign)}"
    since = f" since {record.unchanged_since[:10]}" if record.unchanged_since else ""
    said = record.status + since + (f" ({record.strength})" if record.strength else "")
    return said if record.beyond is None else f"{said}; {record.beyond.headline}"


def _bound(record: Record) -> str:
    """What is proven of a broken claim; empty if that reads no larger than what is claimed."""
    claimed, lower = record.claimed or 0.0, proven(record)
    return numbers.claim_and_bound(claimed, lower)[1] if lower > claimed else ""


def total(records: Sequence[Record], *, loud: bool = False) -> str:
    """How many claims there are, and what is wrong with how many: ``"5 claims, 1 violated"``."""
    audited = [record for record in records if record.status != "weakened"]
    open_ones = [record for record in audited if not record.expected]
    counts = {
        status: sum(record.status == status for record in open_ones)
        for status in ("violated", "error", "inconclusive")
    }
    blind, weak = (sum(record.strength == grade for record in audited) for grade in POOR)
    counts["inconclusive"] -= blind
    said = [
        (n, status.upper() if loud and status in _LOUD else STATUSES[status].words)
        for status, n in counts.items()
    ]
    said += [
        (weak, "weak"),
        (sum(bool(record.too_little) for record in audited), "less than asked for"),
        (blind, "blind"),
        (sum(record.status == "unchanged" for record in audited), "unchanged"),
        (sum(record.beyond is not None for record in audited), "broken beyond the examples"),
        (len(audited) - len(open_ones), "broken as expected"),
        (len(records) - len(audited), "not as on record"),
    ]
    is_red = any(counts.values()) or blind or any(record.too_little for record in audited)
    found = [] if is_red else ["no violation found"]
    return ", ".join(
        [counted(len(audited), "claim"), *found, *(f"{n} {words}" for n, words in said if n)]
    )


def table(records: Sequence[Record], width: int = 80) -> list[tuple[str, str]]:
    """The table of claims, in the order given: (line, status), the status empty for other lines.

    A name that is too long for its column has a line of its own, where it is whole; so has a
    promise that would take more than a third of the width.
    """
    if not records:
        return []
    above = [_stacked(head) for head in heads(records)]
    columns, promises = [], []
    for promise, *others in map(cells, records):
        is_long = len(promise) > width // 3
        columns.append(("below" if is_long else promise, *others))
        promises.append(f"promised: {promise}" if is_long else "")
    states = [_state(record) for record in records]
    names = _names(records)
    filled = zip(above, zip(*columns, strict=True), strict=True)
    sizes = [max(map(len, (*head, *column))) for head, column in filled]
    room = width - sum(size + 2 for size in sizes) - 2 - max(map(len, states))
    beside = max(len("claim"), *(len(name) for name in names if len(name) <= room), 0)

    def line(name: str, values: Iterable[str], state: str) -> str:
        figures = "".join(f"  {value:>{n}}" for value, n in zip(values, sizes, strict=True))
        return f"{name:{beside}}{figures}  {state}".rstrip()

    *upper, last = zip(*above, strict=True)
    lines = [(line("", row, ""), "") for row in upper] + [(line("claim", last, "verdict"), "")]
    rows = zip(records, names, columns, states, promises, strict=True)
    for record, name, values, state, promise in rows:
        fits = len(name) <= beside
        colour = "inconclusive" if record.strength in POOR else record.status
        lines += [] if fits else [(name, colour)]
        lines.append((line(name if fits else "", values, state), colour))
        lines += [
            (f"  {text}", status)
            for said, status in ((promise, ""), *_below(record))
            for text in wrap(said, width - 2)
        ]
    lines.append(("", ""))
    lines += [(text, "") for said in legend(records) for text in wrap(said, width)]
    return lines


def _stacked(head: str) -> list[str]:
    """A heading on three lines, as columns of figures are narrow."""
    words = wrap(head, max(len("promised"), len(head) // 3))
    return [""] * (3 - len(words)) + words


def _below(record: Record) -> Iterable[tuple[str, str]]:
    """What there is to say of a claim beside its row, each with the status that colours it."""
    yield record.reason, "inconclusive"
    if record.over_now:
        yield numbers.may_lose(record.may_lose, record.parameter), "inconclusive"
    yield estimated(record), ""
    if record.beyond is not None:
        yield record.beyond.headline, "beyond"
    if record.outside and record.status == "violated":
        yield f"beyond your examples: {record.outside}", "violated"


def legend(records: Iterable[Record]) -> list[str]:
    """What words of the table mean; only those that these records need."""
    records = list(records)
    states = {record.status for record in records}
    grades = {record.strength for record in records}
    said = [words for grade, words in _WORTH.items() if grade in grades]
    for grade, by in (("exact", "all outcomes"), ("analytic", "densities of the noise")):
        if grade in grades:
            said.append(
                f"{grade}: the loss on all pairs of the claim is known by {by}, and stands in "
                "place of what would be caught; so many runs look as derived."
            )
    if any(record.over_now for record in records):
        said.append(
            "may lose now: no violation is proven, but the outputs leave room for so much; more "
            "samples tell more."
        )
    said += _untold(records)
    outside = any(record.status == "violated" and record.outside for record in records)
    if outside or any(record.beyond for record in records):
        said.append(
            "beyond your examples: broken on inputs that they do not give, such as other values. "
            + ("It fails where that is wanted." if outside else "Nothing fails for it.")
        )
    if "unchanged" in states:
        said.append(
            "unchanged: not audited in this run. It passed then, as the line tells, and its code, "
            "claim, settings and packages are the same; files that it reads are not looked at."
        )
    if "error" in states:
        said.append("ERROR: the audit did not run, so nothing is known about this claim.")
    if states & {*_STOOD}:
        said.append("No test can prove privacy.")
    return said


def _untold(records: list[Record]) -> list[str]:
    """What it means that claims are inconclusive."""
    untold = [record for record in records if record.status == "inconclusive"]
    suspects = [record for record in untold if "suspect: " in record.reason]
    blind = [record for record in untold if record.strength == "blind"]
    said = []
    if len(untold) > len(suspects) + len(blind):
        said.append("inconclusive: the audit could tell nothing, neither good nor bad.")
    if suspects:
        said.append(
            "suspect: traced runs say that the claim is broken, and no run confirms it yet. That "
            "is no failure, unless with --dp-at-least=weak."
        )
    if blind:
        said.append("blind: nothing that was tried tells the two inputs of any pair apart.")
    return said


def _catches(record: Record) -> str:
    if record.status not in _STOOD:
        return "-"
    if record.resolution is None:
        return "nothing"
    return numbers.upper(record.resolution) + " times" * (record.parameter == "scale")


def _leaks(record: Record) -> str:
    """How rare an output may be that comes on one input only, and would have been seen."""
    if record.status not in _STOOD or record.rarest is None:
        return "-"
    return "unseen" if record.rarest >= 1 else numbers.seldom(record.rarest)


def _state(record: Record) -> str:
    said = outcome(replace(record, beyond=None))
    return said.replace(record.status, record.status.upper()) if record.status in _LOUD else said


def _names(records: Sequence[Record]) -> list[str]:
    """The names, with the file where those of two files are the same."""
    files: dict[str, set[str]] = {}
    for record in records:
        files.setdefault(record.name, set()).add(record.path)
    return [
        f"{record.path}::{record.name}" if len(files[record.name]) > 1 else record.name
        for record in records
    ]
