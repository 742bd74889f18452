"""What an audit found, as plain values: every report is made of these, and of nothing else.

A record survives JSON: on the way from an xdist worker, in a file of ``--dp-report``, in one that a
later version reads. Its numbers are finite, or None; a bound that is None is infinite.
`pytest_dp/report/record.schema.json` describes it for other programs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral
from typing import Any, Literal, Self

from pytest_dp.limits import LINE, LONG_TEXT
from pytest_dp.report import numbers
from pytest_dp.report.headline import headline
from pytest_dp.report.reproducing import command
from pytest_dp.report.violation import counterexample, violation
from pytest_dp.results.blame import Blame
from pytest_dp.results.estimate import Estimate
from pytest_dp.results.pictures import Pictures, as_tuples
from pytest_dp.results.risk import Risk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.claim import Claim
    from pytest_dp.results.result import Counterexample, Result

VERSION = 1
"""Given with what is written to files: it grows when a field goes, or means something else."""
Status = Literal[
    "violated", "weakened", "no violation", "unchanged", "inconclusive", "error", "beyond"
]


@dataclass(frozen=True, slots=True)
class Witness:
    """The counterexample of a record, as a person would write it.

    Fields that are not explained are as in `Counterexample`.
    """

    d1: str
    d2: str
    event: str
    difference: str
    """How `d2` differs from `d1`; empty if not known."""
    params: dict[str, str]
    """Values of the parameters that were drawn with the inputs."""
    counts: tuple[int, int]
    runs: tuple[int, int]
    intervals: tuple[tuple[float, float], tuple[float, float]]
    lower: float | None
    p_value: float
    diagnosis: tuple[str, ...]
    text: str
    """D, D', S and the counts, as reports for terminals have them."""

    @classmethod
    def of(cls, result: Result, example: Counterexample) -> Self:
        from pytest_dp.datasets import describe

        (low1, high1), (low2, high2) = example.intervals
        return cls(
            d1=describe(example.d1, LONG_TEXT),
            d2=describe(example.d2, LONG_TEXT),
            event=str(example.event)[:LONG_TEXT],
            difference=example.difference,
            params={name: describe(value, LONG_TEXT) for name, value in example.params.items()},
            counts=(int(example.counts[0]), int(example.counts[1])),
            runs=(int(example.runs[0]), int(example.runs[1])),
            intervals=(
                (_probability(low1, 0.0), _probability(high1, 1.0)),
                (_probability(low2, 0.0), _probability(high2, 1.0)),
            ),
            lower=_bound(example.lower),
            p_value=_probability(example.p_value, 1.0),
            diagnosis=tuple(example.diagnosis),
            text="\n".join(counterexample(result, example, LINE)),
        )


@dataclass(frozen=True, slots=True)
class Record:
    """What became of one claim. Fields that are not explained are as in `AuditResult`."""

    nodeid: str
    path: str
    """Where the claim is written, relative to the root directory."""
    line: int | None
    name: str
    """The test without its file."""
    status: Status
    """One that is ``"weakened"`` is less than ``dp-claims.json`` has on record, hidden, gone, or
    not on record; whether it stands is told by another record, if it was audited. One that is
    ``"unchanged"`` was not audited again: an earlier run passed, and nothing has changed since.
    ``"beyond"`` is only that of what is `beyond` of another record."""
    headline: str
    """The outcome in one line."""
    claim: str = ""
    """What is claimed, such as ``"eps=1.0-delta=1e-06"``; empty if the claim could not be read."""
    parameter: str = ""
    """What the numbers are values of, such as ``"eps"``; empty if the claim could not be read."""
    claimed: float | None = None
    """The claimed value of the parameter; in nats if that is ``"eps"``."""
    delta: float = 0.0
    """What is claimed beside ``"eps"``."""
    relation: str = ""
    """Which inputs are neighbours, as keywords of a claim; empty where pairs are given."""
    group: int = 1
    """In how many units they may differ."""
    source: str = ""
    """A digest of what the mechanism does: it stays the same when a function is renamed, or its
    claim changed."""
    details: str = ""
    """The full message of the violation or the error."""
    witness: Witness | None = None
    strength: str = ""
    reason: str = ""
    lower: float | None = 0.0
    """What was proven of the parameter; 0.0 if nothing was shown, None if it is infinite."""
    resolution: float | None = None
    """The smallest true parameter that would have been caught; None if nothing would have been."""
    may_lose: float | None = None
    """The largest parameter that the mechanism may have now; None if unknown, or infinite."""
    over_now: bool = False
    """Whether that is clearly above the claim."""
    rarest: float | None = None
    """The smallest probability of an output of one input only that would have been seen."""
    samples: int = 0
    seconds: float = 0.0
    method: str = ""
    alpha: float | None = None
    p_value: float | None = None
    e_value: float | None = None
    log10_e_value: float | None = None
    bet_samples: int | None = None
    seed: str = ""
    """In hexadecimal."""
    replayable: bool = True
    max_samples: int | None = None
    max_seconds: float | None = None
    margin: float | None = None
    """None if it is never reached."""
    notes: tuple[str, ...] = ()
    strongest: str = ""
    pairs_tried: int = 0
    pairs_available: int = 0
    pairs_proposed: int = 0
    reproduce: str = ""
    """The command that repeats the audit, or what to say to `audit`."""
    pictures: Pictures | None = None
    """What there is to draw, where a report draws it."""
    expected: bool = False
    """The test wanted a violation, or an error, and passed: nothing to alarm anybody about."""
    blame: tuple[Blame, ...] = ()
    estimate: Estimate | None = None
    outside: str = ""
    pair_file: str = ""
    too_little: str = ""
    beyond: Record | None = None
    """What breaks the claim beyond its inputs, told beside its own status."""
    risks: tuple[Risk, ...] = ()
    unchanged_since: str = ""
    """When the audit passed that this record tells of, in ISO 8601, if that was an earlier run."""

    @classmethod
    def of(
        cls,
        result: Result,
        nodeid: str = "",
        path: str = "",
        line: int | None = None,
        source: str = "",
        *,
        pictures: bool = False,
    ) -> Self:
        """The record of an audit that ran; its pictures take a moment, and some kilobytes."""
        example = result.counterexample
        e_value, notes = _finite(result.e_value), tuple(map(str, result.notes))
        drawn = None
        if pictures:
            try:
                drawn = _pictures(result)
            except Exception as error:  # the verdict stands without
                notes += (f"its pictures could not be made: {error!r}",)
        beyond = None
        if result.beyond is not None:
            told = cls.of(result.beyond, nodeid, path, line, source)
            beyond = replace(told, status="beyond")
        as_they_are = {
            field.name: _told(getattr(result, field.name))
            for field in fields(cls)
            if hasattr(result, field.name)
        }
        explained: dict[str, Any] = {
            "nodeid": nodeid or result.name,
            "path": path,
            "line": line,
            "name": _short_name(nodeid or result.name),
            "status": result.verdict,
            "headline": headline(result),
            "source": source,
            "details": violation(result) if result.violated else "",
            "witness": None if example is None else Witness.of(result, example),
            "lower": _bound(result.lower),
            "seconds": _finite(result.seconds) or 0.0,
            "log10_e_value": math.log10(e_value) if e_value else None,
            "seed": numbers.seed(result.seed),
            "margin": _finite(result.margin) if result.margin != 1 else None,
            "notes": notes,
            "pairs_tried": int(result.pairs[0]),
            "pairs_available": int(result.pairs[1]),
            "pairs_proposed": int(result.proposed),
            "reproduce": command(result),
            "pictures": drawn,
            "beyond": beyond,
        }
        return cls(**as_they_are | promised(result.claim) | explained)

    @property
    def all(self) -> tuple[Record, ...]:
        """The record, and what is told beside it."""
        return (self,) if self.beyond is None else (self, self.beyond)

    @classmethod
    def of_error(
        cls,
        nodeid: str,
        path: str,
        line: int | None,
        message: str,
        *,
        seconds: float = 0.0,
        status: Status = "error",
    ) -> Self:
        """The record of a claim that could not be audited."""
        headline = next((text for text in message.splitlines() if text.strip()), "no message")
        return cls(
            nodeid=nodeid,
            path=path,
            line=line,
            name=_short_name(nodeid),
            status=status,
            headline=headline.strip(),
            details=message,
            seconds=_finite(seconds) or 0.0,
        )

    @property
    def place(self) -> str:
        """File and line of the claim."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    @property
    def told(self) -> list[str]:
        """What programs that mark its line say of it, in paragraphs."""
        if self.status == "weakened":
            return [self.details]
        return [part for part in (self.headline, self.reason, self.counterexample) if part]

    @property
    def counterexample(self) -> str:
        """D, D', S and the counts as text; empty if there is none."""
        return "" if self.witness is None else self.witness.text

    def as_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON; without pictures where none are wanted."""
        fields = {name: _plain(value) for name, value in asdict(self).items()}
        if self.pictures is None:
            del fields["pictures"]
        if self.beyond is not None:
            fields["beyond"] = self.beyond.as_dict()
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The record that `as_dict` was taken of."""
        read = as_tuples(fields)
        witness, pictures, beyond = read["witness"], read.get("pictures"), read.get("beyond")
        return replace(
            cls(**read),
            witness=None if witness is None else Witness(**witness),
            pictures=None if pictures is None else Pictures.from_dict(pictures),
            blame=tuple(Blame(**blame) for blame in read.get("blame", ())),
            estimate=_estimate(read.get("estimate")),
            risks=tuple(Risk(**risk) for risk in read.get("risks", ())),
            beyond=None if beyond is None else cls.from_dict(beyond),
        )


def promised(claim: Claim) -> dict[str, Any]:
    """What a claim says, as fields of its record."""
    promise = claim.promise
    return {
        "claim": promise.guarantee.label,
        "parameter": promise.guarantee.parameter,
        "claimed": _finite(promise.guarantee.claimed),
        "delta": _finite(promise.guarantee.delta) or 0.0,
        "relation": "" if promise.relation is None else str(promise.relation),
        "group": int(promise.group),
    }


def _estimate(fields: Mapping[str, Any] | None) -> Estimate | None:
    if fields is None:
        return None
    return Estimate(**{**fields, "value": math.inf if fields["value"] is None else fields["value"]})


def _pictures(result: Result) -> Pictures:
    from pytest_dp.report.curves import completed  # loads what the audit has loaded already

    return completed(result)


def _short_name(nodeid: str) -> str:
    return nodeid.partition("::")[2] or nodeid


def _finite(value: float | None) -> float | None:
    """JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else float(value)


def _bound(lower: float) -> float | None:
    """A lower bound; None if it is infinite, and 0.0 where nothing was shown."""
    return None if lower == math.inf else _finite(lower) or 0.0


def _probability(value: float, unknown: float) -> float:
    return unknown if math.isnan(value) else float(min(max(value, 0.0), 1.0))


def _told(value: Any) -> Any:
    """A field of a result as it is, but for numbers that JSON does not have, and types of numpy."""
    if isinstance(value, Estimate):  # none where it may be off by anything
        known = not math.isnan(value.value) and math.isfinite(value.error)
        return value if known else None
    if isinstance(value, float):
        return _finite(value)
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value


def _plain(value: Any) -> Any:
    """What JSON gives back: lists in place of tuples, finite numbers, text that can be encoded."""
    if isinstance(value, dict):
        return {_plain(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, str):  # a half of a surrogate pair is no character
        return value.encode("utf-8", "backslashreplace").decode()
    return _finite(value) if isinstance(value, float) else value
