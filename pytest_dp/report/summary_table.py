"""The table of claims, as all reports show it, its total in a line, and the facts that -v shows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from pytest_dp.basics.reprs import LINE_WIDTH, plural, shorten_line
from pytest_dp.report import numbers
from pytest_dp.report.pair import field_lines
from pytest_dp.report.record import Record
from pytest_dp.report.violation import ONE_SIDED, pass_worth, risk_sentence
from pytest_dp.results.outcome import MAX_FAIR, MAX_STRONG


@dataclass(frozen=True, slots=True)
class StatusLook:
    """A set of words, signs and colours by which reports show a status."""

    words: str
    """Of one claim: ``"not audited"``."""
    sign: str
    style: str
    """The class of a page's style sheet: ``"bad"``, ``"warn"`` or ``"good"``."""
    level: str = ""
    """On GitHub and in SARIF: ``"error"``, ``"warning"`` or ``"note"``; empty where all is well."""
    severity: str = ""
    """From 0.0 to 10.0, as GitHub's code scanning takes it."""
    gitlab: str = ""
    """The severity in GitLab's code quality reports."""
    advice: str = ""

    @property
    def colour(self) -> dict[str, bool]:
        """The style of pytest's terminal, as keywords."""
        return _COLOURS[self.style]


_COLOURS = {"bad": {"red": True, "bold": True}, "warn": {"yellow": True}, "good": {"green": True}}
STATUSES = {
    "violated": StatusLook(
        *("violated", "❌", "bad", "error", "8.0", "critical"),
        "Two neighbouring inputs and an event show that the mechanism loses more privacy than "
        "it claims. Compare the noise with the sensitivity between exactly these two inputs.",
    ),
    "weakened": StatusLook(
        *("not as on record", "❌", "bad", "error", "6.0", "major"),
        "The claim is less than dp-claims.json has on record, hidden, gone, or not on record. "
        "If this is intended, run pytest --dp-claims=update and commit the file.",
    ),
    "error": StatusLook(
        *("not audited", "❌", "bad", "error", "5.0", "major"),
        "The claim or the mechanism raised an error, so nothing is known about it.",
    ),
    "inconclusive": StatusLook(
        *("inconclusive", "⚠️", "warn", "warning", "2.0", "minor"),
        "The message says why, and what to do.",
    ),
    "no violation": StatusLook("no violation found", "✅", "good"),
    "unchanged": StatusLook("unchanged", "✅", "good"),
    "beyond": StatusLook(
        *("broken outside the declared inputs", "⚠️", "warn", "note", "1.0", "info"),
        "If the mechanism takes such data, add it to the claim's inputs and fix the "
        'mechanism. If it never gets any, write beyond="off" into the claim.',
    ),
}
"""The statuses of a record, the most alarming first, but for `beyond`, which is told beside one."""
ORDER = list(STATUSES)
PASSING = ("no violation", "unchanged")
"""The statuses of claims that passed."""
_LOUD = ("violated", "error")
LOW_CONFIDENCE = ("blind", "weak")
"""Grades that reports show like a warning."""
HEADS = ("promised", "result", "time")
"""The headings of `table_cells`."""
MIN_NAME = 16
"""Columns that a claim's name keeps; fewer would not tell claims apart."""


def table_cells(record: Record) -> tuple[str, str, str]:
    """Return the cells below `HEADS`: promise, finding, and seconds; "-" for an empty one."""
    ran, seconds = record.samples > 0, record.seconds
    return (
        _short_claim(record) or "-",
        short_finding(record),
        numbers.format_seconds(seconds, compact=True) if ran or seconds > 0.1 else "-",
    )


def look_of(record: Record) -> StatusLook:
    """Return how reports show a claim: passes of low confidence as inconclusive ones."""
    return STATUSES["inconclusive" if record.strength in LOW_CONFIDENCE else record.status]


def verdict(record: Record) -> str:
    """Return the verdict in words: ``"pass"``, ``"weak"``, or the words of the status."""
    if record.status not in PASSING:
        return STATUSES[record.status].words
    return "weak" if record.strength == "weak" else "pass"


def short_finding(record: Record) -> str:
    """Return what was found, in a few words: ``"detects eps >= 1.18"``; empty for an error."""
    if record.unchanged_since:
        return f"unchanged since {record.unchanged_since[:10]}"
    if record.status in PASSING:
        return pass_worth(record)
    if record.status == "violated":
        return _proven_loss(record)
    if record.status != "inconclusive":
        return ""
    if record.strength == "blind":
        return "nothing tells D from D'"
    is_suspect = any(text in record.reason for text in ("suspect: ", "looks violated"))
    return "looks violated" if is_suspect else "nothing is known"


def _proven_loss(record: Record) -> str:
    """Return what is proven of a broken claim: ``"eps >= 1.79"``."""
    claimed, lower = record.claimed, math.inf if record.lower is None else record.lower
    if record.one_sided or claimed is None:
        return ONE_SIDED
    if lower > claimed:
        bound = numbers.format_claim_and_bound(claimed, lower)[1]
        return numbers.parameter_text(record.parameter, bound, ">=")
    return numbers.parameter_text(record.parameter, numbers.format_claimed(claimed), ">")


def _short_claim(record: Record) -> str:
    """Return the promise of a record: ``"eps 1.0, delta 1e-06"``, long numbers in six digits."""
    claim = re.sub(
        r"\d*\.\d{7,}(e[+-]?\d+)?",
        lambda number: numbers.format_claimed(float(number[0])),
        record.claim,
    )
    in_words = record.parameter not in ("rdp", "scale")
    return claim.replace("=", " ").replace("-delta ", ", delta ") if in_words else claim


def total(records: Sequence[Record], *, loud: bool = False) -> str:
    """Return counts of claims by what is wrong with them: ``"5 claims, 1 violated"``.

    "no violation found" without an alarm. With `loud`, violations and errors are in capitals.
    """
    audited = [record for record in records if record.status != "weakened"]
    unexpected = [record for record in audited if not record.expected]

    def count(status: str) -> int:
        return sum(r.status == status and r.strength != "blind" for r in unexpected)

    def words(status: str) -> str:
        text = STATUSES[status].words
        return text.upper() if loud and status in _LOUD else text

    alarms = {words(status): count(status) for status in ("violated", "error", "inconclusive")}
    alarms["blind"] = sum(record.strength == "blind" for record in audited)
    alarms["less than asked for"] = sum(bool(record.too_little) for record in audited)
    others = {
        "weak": sum(record.strength == "weak" for record in audited),
        "unchanged": count("unchanged"),
        STATUSES["beyond"].words: sum(record.beyond is not None for record in audited),
        "broken as expected": len(audited) - len(unexpected),
        "not as on record": len(records) - len(audited),
    }
    found = [] if any(alarms.values()) else ["no violation found"]
    counted = [f"{n} {words}" for words, n in (alarms | others).items() if n]
    return ", ".join([plural(len(audited), "claim"), *found, *counted])


def table(records: Sequence[Record], width: int = 80) -> list[tuple[str, str]]:
    """Return the lines of the table, each with the status that colours it, or ``""``.

    Empty without records. Each claim has one line, and others only for what somebody has to do. A
    name that is too long is cut at its start, a promise at its end.
    """
    if not records:
        return []
    rows = []
    for record in records:
        promise, found, time = table_cells(record)
        word = verdict(record).upper() if record.status in _LOUD else verdict(record)
        rows.append([shorten_line(promise, width // 3), f"{word:4}  {found}".rstrip(), time])
    sizes = [max(map(len, column)) for column in zip(HEADS, *rows, strict=True)]
    names = [name_without_promise(record) for record in records]
    room = max(width - sum(sizes) - 2 * len(sizes), MIN_NAME)
    beside = min(max(map(len, ("claim", *names))), room)

    def line(name: str, cells: Sequence[str]) -> str:
        short = name if len(name) <= beside else f"...{name[3 - beside :]}"
        promise, found, time = cells
        columns = promise.ljust(sizes[0]), found.ljust(sizes[1]), time.rjust(sizes[2])
        return "  ".join([short.ljust(beside), *columns]).rstrip()

    lines = [(line("claim", HEADS), "")]
    for record, name, cells in zip(records, names, rows, strict=True):
        colour = "inconclusive" if record.strength in LOW_CONFIDENCE else record.status
        lines.append((line(name, cells), colour))
        lines += [
            (f"  {text}", status)
            for remark, status in _remarks_below(record)
            for text in wrap(remark, width - 2)
        ]
    lines.append(("", ""))
    lines += [(text, "") for text in wrap(" ".join(legend(records)), width)]
    return lines


def name_without_promise(record: Record) -> str:
    """Return the id of a claim without its promise: ``"shop/stats.py::noisy_count"``."""
    return record.nodeid.replace(f"[{record.claim}]", "").replace(f"[{record.claim}-", "[")


def _remarks_below(record: Record) -> Iterable[tuple[str, str]]:
    """Yield remarks on what to do about a claim, each with the status that colours it."""
    if record.status == "inconclusive" or record.too_little:
        yield record.reason or record.too_little, "inconclusive"
    if record.beyond is not None:
        yield record.beyond.headline, "beyond"
    if record.outside and record.status == "violated":
        yield f"outside the declared inputs: {record.outside}", "violated"


def legend(records: Iterable[Record]) -> list[str]:
    """Return sentences on the words that occur in the table; empty if they need none."""
    records = list(records)
    passed = [record for record in records if record.status in PASSING]
    meanings = []
    if any(short_finding(record).startswith("detects") for record in passed):
        meanings.append("detects: 19 of 20 audits find a loss that large.")
    if any(record.estimate is not None and record.estimate.runs for record in passed):
        meanings.append("loss: known for the pairs tried only.")
    if any(record.strength == "weak" for record in passed):
        meanings.append("weak: -v says why.")
    if any(record.beyond for record in records):
        meanings.append("outside the declared inputs: fails no test.")
    return [*meanings, "No test can prove privacy."] if passed else meanings


def verbose_lines(record: Record) -> list[str]:
    """Return the lines that ``-v`` adds about one claim."""
    lines = [record.name, *(f"  {line}" for line in wrap(record.headline, LINE_WIDTH - 2))]
    for name, text in facts(record):
        lines += [f"  {line}" for line in field_lines(f"{name:<12} ", text, LINE_WIDTH - 2)]
    return lines


def facts(record: Record) -> list[tuple[str, str]]:
    """Return (name, text) for each fact about a claim besides its headline; no empty texts."""
    alpha = "" if record.alpha is None else f"{record.alpha:g}"
    samples = numbers.format_count(record.samples)
    known = (
        ("method", record.method and f"{record.method}, alpha {alpha} (chance of a false alarm)"),
        ("pairs tried", _pairs_text(record)),
        ("strongest", record.strongest),
        ("known", known_loss_text(record)),
        ("grade", _grade_text(record)),
        ("rare leaks", _rare_leaks(record)),
        ("e-value", _e_value(record)),
        ("samples", record.samples and f"{samples} in {numbers.format_seconds(record.seconds)}"),
        ("seed", record.seed),
        ("reason", record.reason),
        *((risk.record, risk_sentence(risk)) for risk in record.risks),
        *(("note", note) for note in record.notes if note != record.reason),
    )
    return [(name, text) for name, text in known if text]


def _pairs_text(record: Record) -> str:
    """Return how many pairs were tried; empty if the claim gives none."""
    if not record.pairs_available:
        return ""
    tried, available = map(numbers.format_count, (record.pairs_tried, record.pairs_available))
    more = record.pairs_proposed
    proposed = f", and {numbers.format_count(more)} more that a search proposed" if more else ""
    return f"{tried} of {available}{proposed}"


def known_loss_text(record: Record) -> str:
    """Return the loss that is known on pairs of inputs, and its basis; empty if none is known."""
    known = record.estimate
    if known is None:
        return ""
    number = numbers.format_known(known.value, known.error)
    sign = "<=" if known.mode == "aligned" else "="
    beside = f" at delta = {numbers.format_claimed(record.delta)}" if record.delta else ""
    basis = f" ({known.basis})" if known.basis else ""
    pairs = "these pairs"
    if known.pairs < record.pairs_available:
        pairs = f"{numbers.format_count(known.pairs)} of {plural(record.pairs_available, 'pair')}"
    loss = numbers.parameter_text(record.parameter, number, sign)
    text = f"{known.mode} on {pairs}: {loss}{beside}{basis}"
    if known.runs:
        text += f", checked against {numbers.format_count(known.runs)} runs"
    if known.unseen:
        text += f"; {numbers.unseen_text(known.unseen)}"
    return text


def _grade_text(record: Record) -> str:
    """Return why a pass is only weak or fair; empty for other results, and far from the claim."""
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
    """Return how rare an output of one input may be to be found; empty unless a claim passed."""
    if record.status != "no violation" or record.rarest is None:
        return ""
    if record.rarest >= 1:
        return "an output that only one input gives might go unseen"
    often = numbers.format_rarity(record.rarest)
    return f"an output that only one input gives would be found if it came in 1 of {often} runs"


def _e_value(record: Record) -> str:
    """Return the e-value and its samples; empty without bets."""
    if record.e_value is None or not record.bet_samples:
        return ""
    samples = numbers.format_count(record.bet_samples)
    return f"{numbers.format_e_value(record.e_value)} after {samples} samples"
