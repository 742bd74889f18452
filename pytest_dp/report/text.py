"""Reports for a terminal: the table of claims, and what is known of each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from textwrap import wrap

from pytest_dp.limits import LINE, THOUSAND
from pytest_dp.report import numbers
from pytest_dp.report.pair import field
from pytest_dp.report.record import Record
from pytest_dp.results.estimate import Estimate

_HEAD = (
    ("", "would", "", ""),
    ("claimed", "catch from", "samples", "time"),
)


def cells(record: Record) -> tuple[str, ...]:
    """What is claimed, would catch from, samples and time, as tables show them."""
    ran, seconds = record.samples > 0, record.seconds
    in_words = record.parameter not in ("rdp", "scale")
    claim = re.sub(r"\d*\.\d{7,}(e[+-]?\d+)?", _shorter, record.claim)
    return (
        (claim.replace("=", " ").replace("-delta ", ", ") if in_words else record.claim) or "-",
        _catches(record),
        numbers.short_count(record.samples) if ran else "-",
        numbers.seconds(seconds, compact=True) if ran or seconds > 0.1 else "-",
    )


def _shorter(number: re.Match[str]) -> str:
    return numbers.claimed(float(number[0]))


def outcome(record: Record) -> str:
    """The status with what makes it telling: ``"no violation (strong)"``."""
    claimed, parameter = record.claimed, record.parameter
    if record.status == "violated" and claimed is not None:
        lower = proven(record)
        what, unit = ("loss", " times the claim") if parameter == "scale" else (parameter, "")
        if lower <= claimed:
            return f"violated, {what} > {numbers.claimed(claimed)}{unit}"
        return f"violated, {what} >= {numbers.claim_and_bound(claimed, lower)[1]}{unit}"
    since = f" since {record.unchanged_since[:10]}" if record.unchanged_since else ""
    said = record.status + since + (f" ({record.strength})" if record.strength else "")
    return said if record.beyond is None else f"{said}; {record.beyond.headline}"


def proven(record: Record) -> float:
    """The lower bound of a record, which may be infinite."""
    return math.inf if record.lower is None else record.lower


def table(records: Sequence[Record], width: int = 80) -> list[tuple[str, str]]:
    """The table of claims, in the order given: (line, status), the status empty for other lines."""
    if not records:
        return []
    states = [_state(record) for record in records]
    columns = [cells(record) for record in records]
    sizes = [max(map(len, column)) for column in zip(*_HEAD, *columns, strict=True)]
    room = width - sum(size + 2 for size in sizes) - 2 - max(map(len, states))
    while room < 12 and len(sizes) > 1:  # a narrow terminal: the last columns go first
        room += sizes.pop() + 2
    names = _names(records, max(room, 5))
    name_width = max(map(len, [*names, "claim"]))

    def line(name: str, values: Iterable[str], state: str) -> str:
        numeric = "".join(f"  {value:>{n}}" for value, n in zip(values, sizes, strict=False))
        return f"{name:{name_width}}{numeric}  {state}".rstrip()

    lines = [(line("", _HEAD[0], ""), ""), (line("claim", _HEAD[1], "status"), "")]
    for record, name, values, state in zip(records, names, columns, states, strict=True):
        lines.append((line(name, values, state), record.status))
        lines += [(f"  {text}", "inconclusive") for text in wrap(record.reason, width - 2)]
        if record.over_now:
            lines.append(
                (f"  {numbers.may_lose(record.may_lose, record.parameter)}", "inconclusive")
            )
        lines += [(f"  {text}", "") for text in wrap(estimated(record), width - 2)]
        if record.beyond is not None:
            lines += [(f"  {text}", "beyond") for text in wrap(record.beyond.headline, width - 2)]
    lines.append(("", ""))
    lines += [(text, "") for said in legend(records) for text in wrap(said, width)]
    return lines


def legend(records: Iterable[Record]) -> list[str]:
    """What the table means, in plain words; only what these records need."""
    records = list(records)
    states = {record.status for record in records}
    said = []
    if states - {"error"}:
        said.append(
            "would catch from: were the true loss this large on the inputs and events tried, 19 of "
            "20 such runs would find it; less may go unseen. A pass is strong if it sees noise "
            "1.25 times too small, fair if 2 times. No test can prove privacy."
        )
    for grade, by in (("exact", "all outcomes"), ("analytic", "densities of the noise")):
        if any(record.strength == grade for record in records):
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
    if any(record.strength == "blind" for record in records):
        said.append("blind: nothing that was tried tells the two inputs of any pair apart.")
    if any(record.beyond for record in records):
        said.append(
            "beyond your examples: the claim is broken on inputs that they do not give, such as "
            "other values; they decide what the claim speaks of, so that nothing fails."
        )
    if "unchanged" in states:
        said.append(
            "unchanged: not audited in this run. It passed then, as the line tells, and its code, "
            "claim, settings and packages are the same; files that it reads are not looked at."
        )
    if "error" in states:
        said.append("ERROR: the audit did not run, so nothing is known about this claim.")
    return said


def _untold(records: list[Record]) -> list[str]:
    """What it means that claims are inconclusive."""
    said = []
    untold = [record.reason for record in records if record.status == "inconclusive"]
    suspects = [reason for reason in untold if "suspect: " in reason]
    if len(untold) > len(suspects):
        said.append("inconclusive: the audit could tell nothing, neither good nor bad.")
    if suspects:
        said.append(
            "suspect: traced runs say that the claim is broken, and no run confirms it yet. That "
            "is no failure, unless with --dp-strict."
        )
    return said


def verbose(record: Record) -> list[str]:
    """What ``-v`` adds about one claim."""
    known = [(name, text) for name, text in facts(record).items() if text]
    known += [("note", note) for note in record.notes if note != record.reason]
    lines = [record.name, *(f"  {line}" for line in wrap(record.headline, LINE - 2))]
    for name, text in known:
        lines += [f"  {line}" for line in field(f"{name:<12} ", text, LINE - 2)]
    return lines


def estimated(record: Record) -> str:
    """What is known of the parameter beside bounds: ``exact on these pairs: eps = 1.000000``."""
    known = record.estimate
    if known is None:
        return ""
    where = "these pairs"
    if known.pairs < record.pairs_available:
        where = f"{numbers.count(known.pairs)} of {numbers.count(record.pairs_available)} pairs"
    beside = f" at delta = {numbers.claimed(record.delta)}" if record.delta else ""
    basis = f" ({known.basis})" if known.basis else ""
    value = "infinity" if math.isinf(known.value) else f"{known.value:.{_digits(known.error)}f}"
    return f"{known.mode} on {where}: {record.parameter} = {value}{beside}{basis}{_borne(known)}"


def _borne(known: Estimate) -> str:
    """How many runs bear it out, and what they would not have shown if they are few."""
    if not known.runs:
        return ""
    said = f", as {numbers.count(known.runs)} runs bear out"
    if known.runs >= 10 * THOUSAND or not known.unseen:
        return said
    return f"{said}; what happens in less than 1 of {int(1 / known.unseen)} runs may go unseen"


def _digits(error: float) -> int:
    """Decimals of which none is wrong by more than one, but six at most."""
    return 6 if error <= 1e-6 else max(0, int(-math.log10(error)))


def _and_more(record: Record) -> str:
    more = record.pairs_proposed
    return f", and {numbers.count(more)} more that a search proposed" if more else ""


def facts(record: Record) -> dict[str, str]:
    """What there is to say about a claim; empty where nothing is known."""
    return {
        "method": _method(record),
        "pairs tried": (
            f"{numbers.count(record.pairs_tried)} of {numbers.count(record.pairs_available)}"
            + _and_more(record)
            if record.pairs_available
            else ""
        ),
        "strongest": record.strongest,
        "known": estimated(record),
        "rare leaks": _rare_leaks(record),
        "p-value": _p_value(record),
        "e-value": (
            f"{numbers.e_value(record.e_value)} after {numbers.count(record.bet_samples)} samples"
            if record.e_value is not None and record.bet_samples
            else ""
        ),
        "spent": _spent(record),
        "samples": (
            f"{numbers.count(record.samples)} in {numbers.seconds(record.seconds)}"
            if record.samples
            else ""
        ),
        "seed": record.seed,
        "reason": record.reason,
    }


def _rare_leaks(record: Record) -> str:
    if record.status != "no violation" or record.rarest is None:
        return ""
    if record.rarest >= 1:
        return "an output that comes on one input only might go unseen, however often"
    often = numbers.seldom(record.rarest)
    return f"an output that comes on one input only would be seen from 1 run in {often}"


def _method(record: Record) -> str:
    if not record.method:
        return ""
    risk = "" if record.alpha is None else numbers.probability_of_error(record.alpha)
    return f"{record.method}, alpha {risk} (chance of a false alarm)"


def _p_value(record: Record) -> str:
    if record.p_value is None:
        return ""
    floor = record.method == "dpsniper" and record.p_value <= 0.011 * (record.alpha or 0.0)
    whose = ", by the bets" if record.method == "sequential" else ""
    return ("<= " if floor else "") + numbers.p_value(record.p_value) + whose


def _spent(record: Record) -> str:
    lower = proven(record)
    if not record.strength or lower <= 0 or record.claimed is None:
        return ""
    spent, claimed = numbers.lower(lower), numbers.claimed(record.claimed)
    return f"{record.parameter}: at least {spent} of the {claimed} that it may"


def _catches(record: Record) -> str:
    if record.status not in ("no violation", "unchanged"):
        return "-"
    return "nothing" if record.resolution is None else numbers.upper(record.resolution)


def _state(record: Record) -> str:
    alarming = record.status in ("violated", "error")
    return outcome(replace(record, beyond=None)).replace(
        record.status, record.status.upper() if alarming else record.status
    )


def _names(records: Sequence[Record], room: int) -> list[str]:
    """The names, with the file where two are the same, without what will not fit into `room`."""
    plain = [record.name for record in records]
    names = [
        f"{record.path}::{record.name}"
        if plain.count(record.name) > 1 and record.path
        else record.name
        for record in records
    ]
    if max(map(len, names)) > room:
        names = [
            _without_claim(name, record.claim) for name, record in zip(names, records, strict=True)
        ]
    return [_middle_cut(name, room) for name in names]


def _without_claim(name: str, claim: str) -> str:
    """``noisy_count[eps=1.0]`` as ``noisy_count``: the next column says the rest."""
    if not claim:
        return name
    return name.replace(f"[{claim}]", "").replace(f"[{claim}-", "[")


def _middle_cut(name: str, room: int) -> str:
    if len(name) <= room:
        return name
    tail = (room - 2) // 3
    return f"{name[: room - 2 - tail]}..{name[len(name) - tail :]}"
