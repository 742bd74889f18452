"""The table of claims, as all reports show it, and what it comes to in one line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from pytest_dp.basics.reprs import plural
from pytest_dp.report import numbers
from pytest_dp.report.record import Record
from pytest_dp.report.statuses import STATUSES
from pytest_dp.report.text import proven_bound

_STOOD = ("no violation", "unchanged")
_LOUD = ("violated", "error")
POOR = ("blind", "weak")
HEADS = ("promised", "result", "runs", "time")
"""The headings of `row_cells`."""
MIN_NAME = 16
"""Columns that a claim's name keeps; fewer would not tell claims apart."""
DECIMALS = 9
"""Decimals of a loss that is known; with more, errors of rounding make 1.01 of a loss of 1."""
WIDE = 100
"""Columns from which the table says over how many pairs a loss was computed."""


def row_cells(record: Record) -> tuple[str, str, str, str]:
    """Return what is promised, what was found, runs and time."""
    ran, seconds = record.samples > 0, record.seconds
    return (
        _short_claim(record) or "-",
        short_finding(record),
        numbers.short_count(record.samples) if ran else "-",
        numbers.format_seconds(seconds, compact=True) if ran or seconds > 0.1 else "-",
    )


def verdict(record: Record) -> str:
    """Return the verdict in a word: ``"pass"``, ``"weak"``, ``"violated"``."""
    if record.status not in _STOOD:
        return STATUSES[record.status].words
    return "weak" if record.strength == "weak" else "pass"


def short_finding(record: Record) -> str:
    """Return what was found, in a few words: ``"detects eps >= 1.18"``; empty of an error."""
    if record.status == "violated":
        return _proof(record)
    if record.status == "inconclusive":
        if record.strength == "blind":
            return "nothing tells D from D'"
        is_suspect = any(said in record.reason for said in ("suspect: ", "looks violated"))
        return "looks violated" if is_suspect else "nothing is known"
    return _worth(record) if record.status in _STOOD else ""


def _proof(record: Record) -> str:
    """Return what is proven of a broken claim."""
    claimed, bound = record.claimed, _bound(record)
    if record.one_sided or claimed is None:
        return "S comes on D only"
    sign, number = (">=", bound) if bound else (">", numbers.claimed_number(claimed))
    return _value(record, f"{sign} {number}")


def _worth(record: Record) -> str:
    """Return what a pass is worth: a loss that is known, or the smallest that is detected."""
    if record.unchanged_since:
        return f"unchanged since {record.unchanged_since[:10]}"
    if record.over_now:
        if record.may_lose is None or math.isinf(record.may_lose):
            return "nothing ruled out"
        return f"up to {numbers.format_upper(record.may_lose)} not ruled out"
    if record.far_below is not None:
        return f"strongest attack {numbers.format_upper(record.far_below)}"
    if record.resolution is None:
        return "detects nothing"
    mode, limit = _known_mode(record), record.resolution
    if mode:
        limit = round(limit, DECIMALS)
    shown = numbers.format_upper(limit)
    if mode == "exact":
        return f"{_value(record, shown, name='loss')}, computed"
    if mode == "aligned":
        return _value(record, f"at most {shown}", name="loss")
    return f"detects {_value(record, f'>= {shown}')}"


def _known_mode(record: Record) -> str:
    """Return how the loss is known that a pass rests on, whatever its grade; else empty."""
    if record.strength in ("exact", "aligned"):
        return record.strength
    if record.status not in _STOOD or record.estimate is None or not record.estimate.runs:
        return ""
    return record.estimate.mode


def _value(record: Record, value: str, name: str = "eps") -> str:
    """Return a value of the claim's parameter with its name, that of ε being `name`."""
    if record.parameter == "scale":
        return f"{value} times the claim"
    return f"{name if record.parameter == 'eps' else record.parameter} {value}"


def _short_claim(record: Record) -> str:
    """Return the claim; of computed numbers three digits, unless a bound is closer than these."""
    violated = record.status == "violated" and record.claimed is not None
    bound = _bound(record) if violated else ""

    def shorter(number: re.Match[str]) -> str:
        value = float(number[0])
        text = numbers.claimed_number(value, 3)
        closest = value == record.claimed and bound and float(bound.replace(",", "")) <= float(text)
        return numbers.claimed_number(value) if closest else text

    claim = re.sub(r"\d*\.\d{7,}(e[+-]?\d+)?", shorter, record.claim)
    in_words = record.parameter not in ("rdp", "scale")
    return claim.replace("=", " ").replace("-delta ", ", delta ") if in_words else claim


def _bound(record: Record) -> str:
    """Return what is proven of a broken claim; empty if that reads no larger than the claim."""
    claimed, lower = record.claimed or 0.0, proven_bound(record)
    return numbers.claim_and_bound(claimed, lower)[1] if lower > claimed else ""


def total(records: Sequence[Record], *, loud: bool = False) -> str:
    """Return how many claims there are, and what is wrong: ``"5 claims, 1 violated"``."""
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
        (
            sum(record.beyond is not None for record in audited),
            "broken outside the declared inputs",
        ),
        (len(audited) - len(open_ones), "broken as expected"),
        (len(records) - len(audited), "not as on record"),
    ]
    is_red = any(counts.values()) or blind or any(record.too_little for record in audited)
    found = [] if is_red else ["no violation found"]
    return ", ".join(
        [plural(len(audited), "claim"), *found, *(f"{n} {words}" for n, words in said if n)]
    )


def table(records: Sequence[Record], width: int = 80) -> list[tuple[str, str]]:
    """Return the table of claims, in the order given: (line, status), empty for other lines.

    Each claim has one line, and others only for what somebody has to do. A name that is too long is
    cut in its middle; a promise that would take more than a third of the width has its own line.
    """
    if not records:
        return []
    rows, promises = [], []
    for record in records:
        promise, found, runs, time = row_cells(record)
        is_long = len(promise) > width // 3
        promises.append(f"promised: {promise}" if is_long else "")
        rows.append(["below" if is_long else promise, _result(record, found, width), runs, time])
    sizes = [max(map(len, column)) for column in zip(HEADS, *rows, strict=True)]
    names = [plain_name(record) for record in records]
    room = max(width - sum(sizes) - 2 * len(sizes), MIN_NAME)
    beside = min(max(map(len, ("claim", *names))), room)

    def line(name: str, values: Sequence[str]) -> str:
        left = [value.ljust(n) for value, n in zip(values[:2], sizes[:2], strict=True)]
        right = [value.rjust(n) for value, n in zip(values[2:], sizes[2:], strict=True)]
        return "  ".join([name.ljust(beside), *left, *right]).rstrip()

    lines = [(line("claim", HEADS), "")]
    for record, name, values, promise in zip(records, names, rows, promises, strict=True):
        colour = "inconclusive" if record.strength in POOR else record.status
        lines.append((line(_shorten_name(name, beside), values), colour))
        lines += [
            (f"  {text}", status)
            for said, status in ((promise, ""), *_below(record))
            for text in wrap(said, width - 2)
        ]
    lines.append(("", ""))
    lines += [(text, "") for text in wrap(" ".join(legend(records)), width)]
    return lines


def plain_name(record: Record) -> str:
    """Return the id of a claim without its promise: ``"shop/stats.py::noisy_count"``."""
    return record.nodeid.replace(f"[{record.claim}]", "").replace(f"[{record.claim}-", "[")


def _shorten_name(name: str, size: int) -> str:
    """Return as much of a name as there is room for: without folders, then the function alone.

    A function that is still too long is cut in its middle.
    """
    file, _, function = name.partition("::")
    function, folders = function or name, file.split("/")[:-1]
    shorter = [f".../{name.split('/', n + 1)[-1]}" for n in range(len(folders))]
    for candidate in (name, *shorter, function):
        if len(candidate) <= size:
            return candidate
    end = (size - 3) // 2
    return f"{function[: size - 3 - end]}...{function[-end:]}"


def _result(record: Record, found: str, width: int) -> str:
    """Return the verdict and what was found, as the terminal shows them."""
    said = verdict(record)
    said = said.upper() if record.status in _LOUD else said
    if width >= WIDE and _known_mode(record) and record.screened:
        found += f" ({plural(record.screened, 'pair')})"
    return f"{said:4}  {found}".rstrip()


def _below(record: Record) -> Iterable[tuple[str, str]]:
    """Return what somebody may have to do about a claim, each with the status that colours it."""
    if record.status == "inconclusive" or record.too_little:
        yield record.reason or record.too_little, "inconclusive"
    if record.beyond is not None:
        yield record.beyond.headline, "beyond"
    if record.outside and record.status == "violated":
        yield f"outside the declared inputs: {record.outside}", "violated"


def legend(records: Iterable[Record]) -> list[str]:
    """Return what words of the table mean; only those that these records need."""
    records = list(records)
    stood = [record for record in records if record.status in _STOOD]
    found = {short_finding(record).partition(" ")[0] for record in stood}
    said = []
    if "detects" in found:
        said.append("detects: 19 of 20 audits find a loss that large.")
    if any(map(_known_mode, stood)):
        said.append("loss: known for the pairs tried only.")
    if any(record.strength == "weak" for record in stood):
        said.append("weak: -v says why.")
    if any(record.beyond for record in records):
        said.append("outside the declared inputs: fails no test.")
    if stood:
        said.append("No test can prove privacy.")
    return said
