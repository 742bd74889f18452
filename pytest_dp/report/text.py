"""Reports for a terminal: the violation, one line for each claim, and the table of claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any, Literal

from pytest_dp.report import numbers
from pytest_dp.report.violation import WIDTH, counterexample, e_value, field, headline, violation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.auditors.result import AuditResult

__all__ = ["Row", "headline", "legend", "table", "verbose", "violation"]

STRENGTHS = ("strong", "fair", "weak")
"""What a pass is worth, as in `AuditResult.strength`."""
Status = Literal["violated", "no violation", "inconclusive", "error"]


@dataclass(frozen=True, slots=True)
class Row:
    """One claim in the table: plain values, which survive JSON on the way from an xdist worker.

    Attributes
    ----------
    nodeid, path, line
        The test, and where its claim is written (`path` relative to the root directory).
    name : str
        The test without its file.
    claim, parameter : str
        What is claimed, such as ``"eps=1.0-delta=1e-06"``, and what the numbers are values of, such
        as ``"eps"``; empty if the claim could not be read.
    claimed : float or None
        The claimed value of the parameter; in nats if that is ``"eps"``.
    status : {"violated", "no violation", "inconclusive", "error"}
    lower : float
        What was proven of the parameter; 0.0 if nothing was shown.
    resolution : float or None
        The smallest true parameter that would have been caught; None if nothing would have been.
    samples, seconds, method, alpha, p_value, e_value, bet_samples, seed
        As in `AuditResult`; `seed` in hexadecimal.
    strength, reason
        As in `AuditResult`: what a pass is worth; why the audit told nothing or little, and the
        remedy.
    headline : str
        The outcome in one line.
    counterexample : str
        D, D', S and the counts; empty if there is none.
    details : str
        The full message of the violation or the error.
    notes, strongest, pairs_tried, pairs_available, pairs_proposed
        As in `AuditResult`.
    expected : bool
        The test wanted a violation, or an error, and passed: nothing to alarm anybody about.
    """

    nodeid: str
    path: str
    line: int | None
    name: str
    status: Status
    headline: str
    claim: str = ""
    parameter: str = ""
    claimed: float | None = None
    details: str = ""
    counterexample: str = ""
    strength: str = ""
    reason: str = ""
    lower: float = 0.0
    resolution: float | None = None
    samples: int = 0
    seconds: float = 0.0
    method: str = ""
    alpha: float | None = None
    p_value: float | None = None
    e_value: float | None = None
    bet_samples: int | None = None
    seed: str = ""
    notes: tuple[str, ...] = ()
    strongest: str = ""
    pairs_tried: int = 0
    pairs_available: int = 0
    pairs_proposed: int = 0
    expected: bool = False

    @classmethod
    def of(cls, result: AuditResult, nodeid: str, path: str, line: int | None) -> Row:
        """The row of an audit that ran."""
        example = result.counterexample
        block = counterexample(result, example, WIDTH) if example is not None else []
        return cls(
            nodeid=nodeid,
            path=path,
            line=line,
            name=_short_name(nodeid),
            status=result.verdict,
            claim=result.claim.promise.guarantee.label,
            parameter=result.parameter,
            claimed=float(result.claimed),
            headline=headline(result),
            details=violation(result) if result.violated else "",
            counterexample="\n".join(block),
            strength=result.strength,
            reason=result.reason,
            lower=float(result.lower),
            resolution=float(result.resolution) if math.isfinite(result.resolution) else None,
            samples=int(result.samples),
            seconds=float(result.seconds),
            method=result.method,
            alpha=float(result.alpha),
            p_value=None if result.p_value is None else float(result.p_value),
            e_value=None if result.e_value is None else float(result.e_value),
            bet_samples=None if result.bet_samples is None else int(result.bet_samples),
            seed=numbers.seed(result.seed),
            notes=tuple(map(str, result.notes)),
            strongest=str(result.strongest),
            pairs_tried=int(result.pairs[0]),
            pairs_available=int(result.pairs[1]),
            pairs_proposed=int(result.proposed),
        )

    @classmethod
    def of_error(
        cls,
        nodeid: str,
        path: str,
        line: int | None,
        message: str,
        *,
        details: str = "",
        seconds: float = 0.0,
    ) -> Row:
        """The row of a claim that could not be audited; `details` default to the whole message."""
        first = next((text for text in message.splitlines() if text.strip()), "no message")
        return cls(
            nodeid=nodeid,
            path=path,
            line=line,
            name=_short_name(nodeid),
            status="error",
            headline=first.strip(),
            details=details or message,
            seconds=float(seconds),
        )

    def cells(self) -> tuple[str, ...]:
        """What is claimed, would catch from, samples and time, as tables show them."""
        ran = self.samples > 0
        return (
            self.claim.replace("=", " ").replace("-delta ", ", ") or "-",
            _catches(self),
            numbers.short_count(self.samples) if ran else "-",
            numbers.seconds(self.seconds, compact=True) if ran or self.seconds > 0.1 else "-",
        )

    @property
    def outcome(self) -> str:
        """The status with what makes it telling: ``"no violation (strong)"``."""
        if self.status == "violated" and self.claimed is not None:
            if self.lower <= self.claimed:
                return f"violated, {self.parameter} > {numbers.claimed(self.claimed)}"
            bound = numbers.claim_and_bound(self.claimed, self.lower)[1]
            return f"violated, {self.parameter} >= {bound}"
        return f"{self.status} ({self.strength})" if self.strength else self.status

    def as_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        return asdict(self) | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Row:
        """The row that `as_dict` was taken of."""
        return cls(**{**fields, "notes": tuple(fields["notes"])})


_HEAD = (
    ("", "would", "", ""),
    ("claimed", "catch from", "samples", "time"),
)


def table(rows: Sequence[Row], width: int = 80) -> list[tuple[str, str]]:
    """The table of claims, in the order given: (line, status), the status empty for other lines."""
    if not rows:
        return []
    states = [_state(row) for row in rows]
    cells = [row.cells() for row in rows]
    sizes = [max(map(len, column)) for column in zip(*_HEAD, *cells, strict=True)]
    room = width - sum(size + 2 for size in sizes) - 2 - max(map(len, states))
    while room < 12 and len(sizes) > 1:  # a narrow terminal: the last columns go first
        room += sizes.pop() + 2
    names = _names(rows, max(room, 5))
    first = max(map(len, [*names, "claim"]))

    def line(name: str, values: Iterable[str], state: str) -> str:
        numeric = "".join(f"  {value:>{n}}" for value, n in zip(values, sizes, strict=False))
        return f"{name:{first}}{numeric}  {state}".rstrip()

    lines = [(line("", _HEAD[0], ""), ""), (line("claim", _HEAD[1], "status"), "")]
    for row, name, values, state in zip(rows, names, cells, states, strict=True):
        lines.append((line(name, values, state), row.status))
        lines += [(f"  {text}", "inconclusive") for text in wrap(row.reason, width - 2)]
    lines.append(("", ""))
    lines += [(text, "") for said in legend(rows) for text in wrap(said, width)]
    return lines


def legend(rows: Iterable[Row]) -> list[str]:
    """What the table means, in plain words; only what these rows need."""
    states = {row.status for row in rows}
    said = []
    if states - {"error"}:
        said.append(
            "would catch from: were the true loss this large on the inputs and events tried, 19 of "
            "20 such runs would find it; less may go unseen. A pass is strong if it sees noise "
            "1.25 times too small, fair if 2 times. No test can prove privacy."
        )
    if "inconclusive" in states:
        said.append("inconclusive: the audit could tell nothing, neither good nor bad.")
    if "error" in states:
        said.append("ERROR: the audit did not run, so nothing is known about this claim.")
    return said


def verbose(row: Row) -> list[str]:
    """What ``-v`` adds about one claim."""
    facts = [(name, text) for name, text in _facts(row).items() if text]
    facts += [("note", note) for note in row.notes if note != row.reason]
    lines = [row.name, *(f"  {line}" for line in wrap(row.headline, WIDTH - 2))]
    for name, text in facts:
        lines += [f"  {line}" for line in field(f"{name:<12} ", text, WIDTH - 2)]
    return lines


def _and_more(row: Row) -> str:
    more = row.pairs_proposed
    return f", and {numbers.count(more)} more that a search proposed" if more else ""


def _facts(row: Row) -> dict[str, str]:
    """What there is to say about a claim; empty where nothing is known."""
    return {
        "method": _method(row),
        "pairs tried": (
            f"{numbers.count(row.pairs_tried)} of {numbers.count(row.pairs_available)}"
            + _and_more(row)
            if row.pairs_available
            else ""
        ),
        "strongest": row.strongest,
        "p-value": _p_value(row),
        "e-value": (
            e_value(row.e_value, row.bet_samples)
            if row.e_value is not None and row.bet_samples
            else ""
        ),
        "spent": _spent(row),
        "samples": (
            f"{numbers.count(row.samples)} in {numbers.seconds(row.seconds)}" if row.samples else ""
        ),
        "seed": row.seed,
        "reason": row.reason,
    }


def _method(row: Row) -> str:
    if not row.method:
        return ""
    risk = "" if row.alpha is None else numbers.probability_of_error(row.alpha)
    return f"{row.method}, alpha {risk} (chance of a false alarm)"


def _p_value(row: Row) -> str:
    if row.p_value is None:
        return ""
    floor = row.method == "dpsniper" and row.p_value <= 0.011 * (row.alpha or 0.0)
    whose = ", by the bets" if row.method == "sequential" else ""
    return ("<= " if floor else "") + numbers.p_value(row.p_value) + whose


def _spent(row: Row) -> str:
    if not row.strength or row.lower <= 0 or row.claimed is None:
        return ""
    spent, most = numbers.lower(row.lower), numbers.claimed(row.claimed)
    return f"{row.parameter}: at least {spent} of the {most} that it may"


def _short_name(nodeid: str) -> str:
    return nodeid.partition("::")[2] or nodeid


def _catches(row: Row) -> str:
    if row.status != "no violation":
        return "-"
    return "nothing" if row.resolution is None else numbers.upper(row.resolution)


def _state(row: Row) -> str:
    alarming = row.status in ("violated", "error")
    return row.outcome.replace(row.status, row.status.upper() if alarming else row.status)


def _names(rows: Sequence[Row], room: int) -> list[str]:
    """The names, with the file where two are the same, without what will not fit into `room`."""
    plain = [row.name for row in rows]
    names = [
        f"{row.path}::{row.name}" if plain.count(row.name) > 1 and row.path else row.name
        for row in rows
    ]
    if max(map(len, names)) > room:
        names = [_without_claim(name, row.claim) for name, row in zip(names, rows, strict=True)]
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
