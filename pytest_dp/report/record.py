"""Records of results, as plain values: every report is made of records alone.

A record survives JSON: on the way from an xdist worker, in a file of ``--dp-report``, in one that a
later version reads. Its numbers are finite, or None; a bound that is None is infinite.
`pytest_dp/report/record.schema.json` describes it for other programs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Literal, Self

from pytest_dp.basics.reprs import LINE_WIDTH
from pytest_dp.report import numbers
from pytest_dp.report.pair import replay_command
from pytest_dp.report.violation import counterexample_lines, headline, remedy_sentence, violation
from pytest_dp.results.outcome import (
    Estimate,
    Outcome,
    Pictures,
    Strength,
    as_json_value,
    finite_or_none,
    from_json_value,
)

MAX_TEXT_LENGTH = 2_000
"""Characters of an input in a file. More: files are longer; fewer: inputs are cut off."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.claiming.claim import Claim
    from pytest_dp.results.result import Counterexample, Result

_IN_JUNIT = ("claim", "lower", "resolution", "strength", "samples", "seed")
VERSION = 1
"""Given with what is written to files: it grows when a field goes, or means something else."""
_SAME = ("alpha", "over_now", "one_sided", "reason", "resolution", "strength")
"""Fields that a result has, too, beside those of `Outcome`."""
Status = Literal[
    "violated", "weakened", "no violation", "unchanged", "inconclusive", "error", "beyond"
]


@dataclass(frozen=True, slots=True)
class ShownCounterexample:
    """A counterexample as a person would write it."""

    d1: str
    """The input that makes the event likelier."""
    d2: str
    """Its neighbour."""
    event: str
    """A set of outputs, in words of Python."""
    difference: str
    """How `d2` differs from `d1`; empty if not known."""
    params: dict[str, str]
    """Values of the parameters that were drawn with the inputs."""
    counts: tuple[int, int]
    """Held-out outputs in the event, on `d1` and on `d2`."""
    runs: tuple[int, int]
    """Held-out outputs of each."""
    intervals: tuple[tuple[float, float], tuple[float, float]]
    """Clopper-Pearson intervals of both probabilities."""
    lower: float | None
    """The bound on the parameter from the event alone; None if it is infinite."""
    p_value: float
    """StatDP's p-value of the claim on these counts."""
    diagnosis: tuple[str, ...]
    """Causes that would explain the counts; never a certainty."""
    text: str
    """D, D', S and the counts, laid out for a terminal."""

    @classmethod
    def of(cls, result: Result, example: Counterexample) -> Self:
        """Return the counterexample of a result as texts, each input cut to `MAX_TEXT_LENGTH`."""
        from pytest_dp.data import describe

        (low1, high1), (low2, high2) = example.intervals
        return cls(
            d1=describe(example.d1, MAX_TEXT_LENGTH),
            d2=describe(example.d2, MAX_TEXT_LENGTH),
            event=str(example.event)[:MAX_TEXT_LENGTH],
            difference=example.difference,
            params={name: describe(v, MAX_TEXT_LENGTH) for name, v in example.params.items()},
            counts=(int(example.counts[0]), int(example.counts[1])),
            runs=(int(example.runs[0]), int(example.runs[1])),
            intervals=(
                (_clip_probability(low1, 0.0), _clip_probability(high1, 1.0)),
                (_clip_probability(low2, 0.0), _clip_probability(high2, 1.0)),
            ),
            lower=_finite_bound(example.lower),
            p_value=_clip_probability(example.p_value, 1.0),
            diagnosis=tuple(example.diagnosis),
            text="\n".join(counterexample_lines(result, example, LINE_WIDTH)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Outcome):
    """A record of the outcome of one claim; fields without explanation are as in `AuditResult`."""

    nodeid: str
    """The test."""
    path: str
    """The file of the claim, relative to pytest's root directory."""
    line: int | None
    """The line of the claim."""
    name: str
    """The test without its file."""
    status: Status
    """The verdict. "no violation" never means that the claim is proven, see ``resolution``.
    "weakened": it is weaker than in dp-claims.json, hidden, gone, or not on record; if it was
    audited, another record has the verdict. "unchanged": it was not audited again, as it passed
    before and nothing has changed since. "beyond": this record is the field ``beyond`` of another
    one."""
    headline: str
    """The outcome in one line."""
    claim: str = ""
    """The promise, such as eps=1.0-delta=1e-06; empty if it could not be read."""
    parameter: str = ""
    """The parameter of ``claimed``, ``lower`` and ``resolution``: eps (in nats), rho, mu, rdp,
    scale or auc; empty if the claim could not be read."""
    claimed: float | None = None
    """The claimed value."""
    delta: float = 0.0
    """The claimed delta beside eps."""
    relation: str = ""
    """The relation between neighbours, as keywords of a claim; empty if pairs are given."""
    group: int = 1
    """In how many units they may differ."""
    details: str = ""
    """The full message of the violation or the error."""
    remedy: str = ""
    """A possible fix of a violation; empty without one, or if only ``details`` name it."""
    witness: ShownCounterexample | None = None
    """The counterexample: two neighbouring inputs, an event, how often each side hits it."""
    strength: Strength = ""
    """The grade of a pass: exact if the loss on all pairs of the claim is known by all outcomes,
    aligned if it is bounded by a shift of the draws, and real runs agree; strong if noise 1.25
    times too small would have been caught, fair if noise of half the size would. blind:
    inconclusive, as no event that was tried distinguishes the inputs."""
    reason: str = ""
    """Why the audit is inconclusive or weak, and what to do."""
    alpha: float | None = None
    """Probability of a false alarm that was allowed."""
    lower: float | None = 0.0
    """The true parameter is at least this, with confidence 1 - `alpha`; 0 if nothing was shown,
    None if it is infinite."""
    resolution: float | None = None
    """The smallest true parameter that would have been caught in 19 of 20 such runs (approximate),
    None if nothing would have been; for an exact pass the loss itself, for an aligned pass its
    upper bound."""
    over_now: bool = False
    """True if ``may_lose`` is clearly above the claim, though no violation was shown: then the pass
    is weak."""
    one_sided: bool = False
    """True if outputs of the counterexample's event came on one input and never on the other, and
    no number above the claim was shown."""
    seed: str = ""
    """In hexadecimal; repeats the audit."""
    margin: float | None = None
    """The audit ends once noise this many times too small would have been caught; None for
    never."""
    pairs_tried: int = 0
    """Pairs of inputs of the claim that were tried."""
    pairs_available: int = 0
    """Pairs of inputs that the claim gives."""
    pairs_proposed: int = 0
    """Further pairs that a search proposed."""
    reproduce: str = ""
    """The command that repeats the audit, or the arguments for ``audit``."""
    pictures: Pictures | None = None
    """What there is to draw, where a report draws it."""
    expected: bool = False
    """True if the test expected a violation or an error, and passed: no reason for an alarm."""
    too_little: str = ""
    """Why a pass fails its test, as it is worth less than the claim or the run asks for; empty if
    it does not."""
    beyond: Record | None = None
    """The violation outside the declared inputs, reported beside the status."""
    unchanged_since: str = ""
    """If an earlier run passed the audit: its time, in ISO 8601; empty otherwise. Then ``samples``
    and ``seconds`` are 0."""

    @classmethod
    def of(
        cls,
        result: Result,
        nodeid: str = "",
        path: str = "",
        line: int | None = None,
        *,
        pictures: bool = False,
    ) -> Self:
        """Return the record of an audit that ran, with pictures if asked, or a note why not."""
        example, notes = result.counterexample, tuple(map(str, result.notes))
        drawn = None
        if pictures:
            from pytest_dp.report.drawings import complete_pictures

            try:
                drawn = complete_pictures(result)
            except Exception as error:  # the verdict stands without
                notes += (f"its pictures could not be made: {error!r}",)
        beyond = None
        if result.beyond is not None:
            beyond = replace(cls.of(result.beyond, nodeid, path, line), status="beyond")
        same = (*(field.name for field in fields(Outcome)), *_SAME)
        values: dict[str, Any] = {name: _json_value(getattr(result, name)) for name in same}
        values |= claim_fields(result.claim)
        values |= {"notes": notes, "seconds": finite_or_none(result.seconds) or 0.0}
        return cls(
            nodeid=nodeid or result.name,
            path=path,
            line=line,
            name=_short_name(nodeid or result.name),
            status=result.verdict,
            headline=headline(result),
            details=violation(result) if result.violated else "",
            remedy=remedy_sentence(result) if result.violated else "",
            witness=None if example is None else ShownCounterexample.of(result, example),
            lower=_finite_bound(result.lower),
            seed=numbers.format_seed(result.seed),
            margin=finite_or_none(result.margin) if result.margin != 1 else None,
            pairs_tried=int(result.pairs[0]),
            pairs_available=int(result.pairs[1]),
            pairs_proposed=int(result.proposed),
            reproduce=replay_command(result),
            pictures=drawn,
            beyond=beyond,
            **values,
        )

    @property
    def parts(self) -> tuple[Record, ...]:
        """The record, and the record of a violation outside the declared inputs, if any."""
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
        """Return the record of a claim that could not be audited."""
        headline = next((text for text in message.splitlines() if text.strip()), "no message")
        return cls(
            nodeid=nodeid,
            path=path,
            line=line,
            name=_short_name(nodeid),
            status=status,
            headline=headline.strip(),
            details=message,
            seconds=finite_or_none(seconds) or 0.0,
        )

    @property
    def place(self) -> str:
        """File and line of the claim."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    @property
    def paragraphs(self) -> list[str]:
        """Paragraphs for the claim's line on a code host, without the data of D and D'."""
        if self.status == "weakened":
            return [self.details]
        event = "" if self.witness is None else f"S = {{{self.witness.event}}}"
        return [part for part in (self.headline, self.reason, event, self.remedy) if part]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as values that JSON has; without pictures if there are none."""
        fields: dict[str, Any] = as_json_value(self)
        for record in (fields, fields["beyond"]):
            if record is not None and record["pictures"] is None:
                del record["pictures"]
        return fields

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """Return the record of `as_dict`; raise KeyError, TypeError or ValueError for others."""
        return from_json_value(cls, fields)


def claim_fields(claim: Claim) -> dict[str, Any]:
    """Return the fields of a record that follow from the claim."""
    promise = claim.promise
    return {
        "claim": promise.guarantee.label,
        "parameter": promise.guarantee.parameter,
        "claimed": finite_or_none(promise.guarantee.claimed),
        "delta": finite_or_none(promise.guarantee.delta) or 0.0,
        "relation": "" if promise.relation is None else str(promise.relation),
        "group": int(promise.group),
    }


def junit_properties(record: Record) -> list[tuple[str, object]]:
    """Return JUnit properties (name, value): ``dp_verdict``, fields with a value, and blame."""
    known = [(f"dp_{name}", getattr(record, name)) for name in _IN_JUNIT]
    known += [("dp_lower", "infinity")] if record.lower is None else []
    known += [("dp_blame", f"{leak.place}: {leak.message}") for leak in record.blame]
    return [("dp_verdict", record.status), *((n, v) for n, v in known if v not in (None, ""))]


def _short_name(nodeid: str) -> str:
    return nodeid.partition("::")[2] or nodeid


def _finite_bound(lower: float) -> float | None:
    """Return a lower bound; None if it is infinite, and 0.0 if it is NaN or minus infinity."""
    return None if lower == math.inf else finite_or_none(lower) or 0.0


def _clip_probability(value: float, unknown: float) -> float:
    """Return a probability within 0 and 1; `unknown` for NaN."""
    return unknown if math.isnan(value) else float(min(max(value, 0.0), 1.0))


def _json_value(value: Any) -> Any:
    """Return a field of a result as JSON has it: None for infinity, NaN and inexact estimates."""
    if isinstance(value, Estimate):  # none where it may be off by anything
        known = not math.isnan(value.value) and math.isfinite(value.error)
        return value if known else None
    if isinstance(value, float):
        return finite_or_none(value)
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else value
