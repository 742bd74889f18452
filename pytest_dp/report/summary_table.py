"""The table of claims, as all reports show it, its total in a line, and the facts that -v shows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from pytest_dp.basics.reprs import LINE_WIDTH, plural
from pytest_dp.report import numbers
from pytest_dp.report.alarms import STATUSES
from pytest_dp.report.pair import field
from pytest_dp.report.record import Record
from pytest_dp.report.violation import risk_sentence
from pytest_dp.results.outcome import MAX_FAIR, MAX_STRONG

_STOOD = ("no violation", "unchanged")
_LOUD = ("violated", "error")
POOR = ("blind", "weak")
HEADS = ("promised", "result", "runs", "time")
"""The headings of `row_cells`."""
MIN_NAME = 16
"""Columns that a claim's name keeps; fewer would not tell claims apart."""
DECIMALS = 9
"""Decimals of a loss that is known; with more, errors of rounding make 1.01 of a loss of 1."""


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
    """Return the claim, its computed numbers in six digits."""
    claim = re.sub(
        r"\d*\.\d{7,}(e[+-]?\d+)?",
        lambda number: numbers.claimed_number(float(number[0])),
        record.claim,
    )
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

    def count(status: str) -> int:
        return sum(r.status == status and r.strength != "blind" for r in open_ones)

    blind = sum(record.strength == "blind" for record in audited)
    too_little = sum(bool(record.too_little) for record in audited)
    alarms = [
        (count(status), status.upper() if loud and status in _LOUD else STATUSES[status].words)
        for status in ("violated", "error", "inconclusive")
    ]
    others = [
        (sum(record.strength == "weak" for record in audited), "weak"),
        (too_little, "less than asked for"),
        (blind, "blind"),
        (count("unchanged"), "unchanged"),
        (sum(record.beyond is not None for record in audited), STATUSES["beyond"].words),
        (len(audited) - len(open_ones), "broken as expected"),
        (len(records) - len(audited), "not as on record"),
    ]
    is_red = any(n for n, _ in alarms) or blind or too_little
    said = [f"{n} {words}" for n, words in (*alarms, *others) if n]
    found = [] if is_red else ["no violation found"]
    return ", ".join([plural(len(audited), "claim"), *found, *said])


def table(records: Sequence[Record], width: int = 80) -> list[tuple[str, str]]:
    """Return the table of claims, in the order given: (line, status), empty for other lines.

    Each claim has one line, and others only for what somebody has to do. A name that is too long is
    cut at its start; a promise that would take more than a third of the width has its own line.
    """
    if not records:
        return []
    rows, promises = [], []
    for record in records:
        promise, found, runs, time = row_cells(record)
        is_long = len(promise) > width // 3
        promises.append(f"promised: {promise}" if is_long else "")
        rows.append(["below" if is_long else promise, _result(record, found), runs, time])
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
        lines.append(
            (line(name if len(name) <= beside else f"...{name[3 - beside :]}", values), colour)
        )
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


def _result(record: Record, found: str) -> str:
    """Return the verdict and what was found, as the terminal shows them."""
    said = verdict(record)
    said = said.upper() if record.status in _LOUD else said
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


def proven_bound(record: Record) -> float:
    """Return the lower bound of a record, which may be infinite."""
    return math.inf if record.lower is None else record.lower


def verbose(record: Record) -> list[str]:
    """Return the lines that ``-v`` adds about one claim."""
    lines = [record.name, *(f"  {line}" for line in wrap(record.headline, LINE_WIDTH - 2))]
    for name, text in facts(record):
        lines += [f"  {line}" for line in field(f"{name:<12} ", text, LINE_WIDTH - 2)]
    return lines


def facts(record: Record) -> list[tuple[str, str]]:
    """Return the facts about a claim besides its headline, by name."""
    alpha = "" if record.alpha is None else f"{record.alpha:g}"
    samples = numbers.format_count(record.samples)
    known = (
        ("method", record.method and f"{record.method}, alpha {alpha} (chance of a false alarm)"),
        ("pairs tried", _pairs_text(record)),
        ("screened", _screening_text(record)),
        ("strongest", record.strongest),
        ("known", estimate_text(record)),
        ("grade", _grade_text(record)),
        ("rare leaks", _rare_leaks(record)),
        ("p-value", _p_value(record)),
        ("e-value", _e_value(record)),
        ("spent", _spent_text(record)),
        ("samples", record.samples and f"{samples} in {numbers.format_seconds(record.seconds)}"),
        ("seed", record.seed),
        ("reason", record.reason),
        *((risk.record, risk_sentence(risk)) for risk in record.risks),
        *(("note", note) for note in record.notes if note != record.reason),
    )
    return [(name, text) for name, text in known if text]


def _pairs_text(record: Record) -> str:
    if not record.pairs_available:
        return ""
    said = _share(record.pairs_tried, record.pairs_available)
    more = record.pairs_proposed
    return f"{said}, and {numbers.format_count(more)} more that a search proposed" if more else said


def _share(some: int, of: int) -> str:
    return f"{numbers.format_count(some)} of {numbers.format_count(of)}"


def _screening_text(record: Record) -> str:
    """Return on how many pairs a mechanism ran without noise, and where its answer moves most."""
    if not record.screened:
        return ""
    said = f"{plural(record.screened, 'pair')}, by runs without noise"
    if not record.largest_pair:
        return said
    if record.largest_movement is None or math.isinf(record.largest_movement):
        return f"{said}. Something without noise differs on {record.largest_pair}"
    loss = f"an estimated loss of {record.largest_movement:.3g}"
    return f"{said}. The answer differs most on {record.largest_pair}: {loss}"


def estimate_text(record: Record) -> str:
    """Return the loss that is known on pairs of inputs, and its basis; empty if none is known."""
    known = record.estimate
    if known is None:
        return ""
    number = numbers.known_number(known.value, known.error)
    beside = f" at delta = {numbers.claimed_number(record.delta)}" if record.delta else ""
    if known.mode == "aligned":
        name = "loss" if record.parameter in ("eps", "scale") else record.parameter
        over = plural(known.pairs, "pair")
        if record.screened:
            over += f" of {numbers.format_count(record.screened)} screened"
        said = f"{name} at most {number}{beside}, by alignment ({over}; {known.basis})"
    else:
        is_part = known.pairs < record.pairs_available
        where = f"{_share(known.pairs, record.pairs_available)}" if is_part else "these"
        basis = f" ({known.basis})" if known.basis else ""
        said = f"{known.mode} on {where} pairs: {numbers.value(record.parameter, number)}"
        said += f"{beside}{basis}"
        said += f", checked against {numbers.format_count(known.runs)} runs" if known.runs else ""
    if not known.unseen:
        return said
    often = numbers.format_count(int(1 / known.unseen))
    return f"{said}; what happens in fewer than 1 of {often} runs may go unseen"


def _grade_text(record: Record) -> str:
    """Return why a pass is not worth more; empty if its reason or a computed loss says so."""
    if record.far_below is not None or record.strength not in ("weak", "fair"):
        return ""
    if record.over_now:
        return "weak: a loss above the claim is not ruled out"
    if record.strength == "weak":
        return f"weak: noise {MAX_FAIR:g} times too small might have passed"
    if record.unreached:
        return "at most fair: not all of its code ran"
    leaks = ", or a leak ten times as likely as delta," if record.delta else ""
    return f"fair: noise {MAX_STRONG:g} times too small{leaks} might have passed"


def _rare_leaks(record: Record) -> str:
    if record.status != "no violation" or record.rarest is None:
        return ""
    if record.rarest >= 1:
        return "an output that only one input gives might go unseen"
    often = numbers.seldom(record.rarest)
    return f"an output that only one input gives would be found if it came in 1 of {often} runs"


def _p_value(record: Record) -> str:
    if record.p_value is None:
        return ""
    counted = record.method in ("dpsniper", "dpfinder")
    floor = counted and record.p_value <= 0.011 * (record.alpha or 0.0)
    whose = "" if record.e_value is None else ", by the bets"
    return ("<= " if floor else "") + numbers.format_p_value(record.p_value) + whose


def _e_value(record: Record) -> str:
    if record.e_value is None or not record.bet_samples:
        return ""
    samples = numbers.format_count(record.bet_samples)
    return f"{numbers.format_e_value(record.e_value)} after {samples} samples"


def _spent_text(record: Record) -> str:
    """Return the largest loss that was computed or proven, besides the claimed one."""
    lower, known = proven_bound(record), record.estimate
    if known is not None and known.mode == "exact" and known.error < known.value:
        lower = max(lower, known.value - known.error)
    if not record.strength or lower <= 0 or record.claimed is None:
        return ""
    spent, claimed = numbers.format_lower(lower), numbers.claimed_number(record.claimed)
    if record.parameter == "scale":
        return numbers.value("scale", spent, ">=")
    what = "loss" if record.parameter == "eps" else record.parameter
    return f"{what} at least {spent} of the {claimed} that is claimed"
