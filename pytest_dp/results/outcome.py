"""Parts of results that other rooms use as well: fields, pictures, evidence, values for JSON.

Pictures are small plain values to draw. Auditors make them, but for `allowed`, which
`pytest_dp.report.drawings` adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

MIN_LOG_ERROR = 1e-9
"""Error of a logarithm. Smaller: an e-value that is just enough counts as too small."""
MAX_STRONG = 1.25
"""Multiple of the claim that a strong pass catches, at most. Smaller: audits take longer."""
MAX_FAIR = 2.0
"""Multiple of the claim that a fair pass catches, at most. Smaller: more passes are weak."""

T = TypeVar("T")
Share = Annotated[float, {"minimum": 0, "maximum": 1}]
"""A probability, and what the JSON Schema says of it."""
MaybeInfinite = Annotated[float, {"type": ["number", "null", "string"]}]
"""A number that may be infinite: null. Negative infinity and NaN are texts."""
_AS_TEXT = {"NaN": math.nan, "-Infinity": -math.inf}
"""Texts for numbers that JSON does not have; infinity is null."""

Points = tuple[tuple[float, float], ...]
Interval = tuple[float, float, float]
"""The lower end, what was counted, the upper end."""

Mode = Literal["exact", "aligned", "sampled"]
Strength = Literal["", "exact", "aligned", "strong", "fair", "weak", "blind"]


@dataclass(frozen=True, slots=True)
class Blame:
    """A line where privacy leaks, and how; checked by runs in which the noise was changed.

    Attributes
    ----------
    file : str
        Relative to the root directory of the tests if it lies inside, with forward slashes.
    line : int
        Its number.
    function : str
        The function that the line is in.
    kind : str
        The kind of bug: ``"too little noise"``, ``"no noise"``, ``"shared noise"``, ``"seeded"``,
        ``"too far apart"`` (of probabilities), ``"passing"`` (it runs every time that the outputs
        differ); or ``"called"``: the line that asks for the noise of the line before.
    message : str
        The finding, for people.
    remedy : str
        A possible fix, for people; empty for a line that only belongs to the one before.
    """

    file: str
    line: int
    function: str
    kind: str
    message: str
    remedy: str = ""

    @property
    def place(self) -> str:
        """File and line as text: ``clinic/stats.py:14``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value of the claim's parameter on some pairs of inputs."""

    value: MaybeInfinite
    """In nats, if the parameter is an eps; infinite if no value holds."""
    error: float
    """Bound on the error; infinite if no bound is known. For a sampled value, half of a 95 %
    interval (approximate)."""
    mode: Mode
    """``"exact"``: by all outcomes and their probabilities. ``"aligned"``: an upper bound, by a
    shift of the draws that replays agree with. ``"sampled"``: by samples."""
    pairs: int = field(default=0, kw_only=True)
    """Pairs of the claim's inputs on which the value holds."""
    basis: str = field(default="", kw_only=True)
    """Its basis, such as ``"32 outcomes"``."""
    runs: int = field(default=0, kw_only=True)
    """Real runs that agree, if a pass rests on the value and all checks succeeded; else 0."""
    unseen: float = field(default=0.0, kw_only=True)
    """Share of runs, at most, in which a mechanism may act differently on plain numbers and go
    unseen, with a probability of 5 %."""


@dataclass(frozen=True, slots=True)
class Risk:
    """How well an attack recognised whether a record was in the data.

    Attributes
    ----------
    record : str
        Where the record stands: ``"record 17"``.
    value : str
        The record itself, shortened.
    auc : float
        How often the final attack scored an output with the record above one without it, ties
        counting one half; 0.5 is a coin. It had not learned from these outputs.
    interval : (float, float)
        Confidence interval of ``auc``, 95 %, valid at any time.
    lower : float
        Lower bound on the AUC of the best attack, with the confidence of the audit over all
        records; 0.0 if nothing was shown.
    p_value : float
        P-value of the claim for this record alone, valid at any time.
    pairs : int
        Pairs of outputs, one with the record and one without, that were bet on.
    last : int
        The pairs that the final attack scored; ``auc`` and ``interval`` use them.
    told_by : str
        The feature with the largest weight in the attack.
    """

    record: str
    value: str
    auc: Share
    interval: tuple[float, float]
    lower: float
    p_value: Share
    pairs: int
    last: int
    told_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outcome:
    """The fields that results and records share; `results.result.Result` explains them."""

    method: str = ""
    p_value: float | None = None
    e_value: float | None = None
    bet_samples: int | None = None
    samples: int = 0
    seconds: float = 0.0
    may_lose: float | None = None
    far_below: float | None = None
    rarest: float | None = None
    strongest: str = ""
    max_samples: int | None = None
    max_seconds: float | None = None
    replayable: bool = True
    notes: tuple[str, ...] = ()
    blame: tuple[Blame, ...] = ()
    estimate: Estimate | None = None
    outside: str = ""
    pair_file: str = ""
    risks: tuple[Risk, ...] = ()
    unreached: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a picture: the outputs of one value or category, or between two numbers."""

    label: str
    """The value or the category; empty for ranges of numbers."""
    low: float | None
    high: float | None
    """The range is ``low <= number < high``, or the number twice; None where it is open."""
    counts: tuple[int, int]
    """How many of the outputs on D, and of those on D', are in it."""
    inside: tuple[int, int]
    """How many of these are in the event."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Outputs on D and on D', by the quantity that the event speaks of first."""

    of: str
    """The quantity, such as ``"len(output)"``."""
    runs: tuple[int, int]
    """How many outputs there are on D, and on D'."""
    bars: tuple[Bar, ...]
    """Those of numbers first, in increasing order."""


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of an audit; empty where nothing is known.

    D is the input that makes the event likelier. A false positive is an output on D' that is in the
    event, a false negative one on D that is not.
    """

    outputs: Histogram | None = None
    """The held-out outputs that were counted, if the event breaks the claim."""
    attack: Points = ()
    """Rates of false positives and of false negatives of the learned attack, threshold by
    threshold, by the outputs that were bet on."""
    event: tuple[Interval, Interval] | None = None
    """The same rates of the strongest event, or attack at its threshold, on held-out outputs."""
    allowed: Points = ()
    """For rates of false positives, the lowest of false negatives that the claim allows."""


def curve_points(x: Iterable[float], y: Iterable[float]) -> Points:
    """Return the points (x, y) of a curve, rounded for drawing, each point once."""
    return tuple(
        dict.fromkeys(
            (round_for_drawing(a), round_for_drawing(b)) for a, b in zip(x, y, strict=True)
        )
    )


def round_for_drawing(value: float) -> float:
    """Return a number rounded to six significant digits."""
    return float(f"{value:.{6}g}")


def finite_or_none(value: float | None) -> float | None:
    """Return the number if it is finite; None for None, infinity and NaN, which JSON lacks."""
    return None if value is None or not math.isfinite(value) else float(value)


def as_json_value(value: Any) -> Any:
    """Return a value as reading its JSON gives it back.

    Dataclasses become dicts, tuples lists, infinity None, NaN and negative infinity texts; halves
    of surrogate pairs in texts are escaped. Other objects stay as they are.
    """
    if is_dataclass(value):
        return {field.name: as_json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {as_json_value(name): as_json_value(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [as_json_value(entry) for entry in value]
    if isinstance(value, str):  # a half of a surrogate pair is no character
        return value.encode("utf-8", "backslashreplace").decode()
    if not isinstance(value, float) or math.isfinite(value):
        return float(value) if isinstance(value, float) else value
    return "NaN" if math.isnan(value) else "-Infinity" if value < 0 else None


def from_json_value(kind: type[T], value: Any) -> T:
    """Return the value of type `kind` from which `as_json_value` made `value`.

    Raises KeyError, TypeError or ValueError for fields and lengths that the type does not have.
    """
    return cast("T", _from_json_value(kind, value))


def _from_json_value(kind: Any, value: Any) -> Any:
    """Return the value of a type from its JSON value; see `from_json_value`."""
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(
            **{name: _from_json_value(hints[name], entry) for name, entry in dict(value).items()}
        )
    origin, parts = get_origin(kind), get_args(kind)
    if origin is UnionType:  # of something and None
        (some,) = (part for part in parts if part is not NoneType)
        return None if value is None else _from_json_value(some, value)
    if origin is tuple:
        kinds = parts[:1] * len(value) if parts[1:] == (...,) else parts
        return tuple(_from_json_value(*each) for each in zip(kinds, value, strict=True))
    if kind is float:
        return math.inf if value is None else _AS_TEXT.get(value, value)
    return value


_hints = cache(get_type_hints)


def e_value(log_e_value: float) -> float:
    """Return the exponential of a log e-value, at most e**700, which floats can hold."""
    return math.exp(min(log_e_value, 700.0))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one or more runs of the same audit against a claim: e-values multiply.

    The e-value of a run, on random numbers of its own, is one given all that was known before. So
    the product over runs is one too, and reaches 1 / alpha with probability at most alpha for a
    claim that holds, however many runs there are (Ville's inequality over their concatenation).

    Source: Ramdas, Grünwald, Vovk, Shafer, "Game-theoretic statistics and safe anytime-valid
    inference", Statistical Science 2023 (products of e-values, optional continuation).
    """

    log_e_values: tuple[float, ...] = ()
    """Natural logarithms of the e-values against shares of the claim's parameter
    (`pytest_dp.statistics.ledger.RUNGS`), the claim itself last; empty where there was no run."""
    runs: int = 0
    samples: int = 0
    """How many they bet on."""

    @property
    def log_e_value(self) -> float:
        """The natural logarithm of the e-value against the claim; 0 without any run."""
        return self.log_e_values[-1] if self.log_e_values else 0.0

    def refutes(self, alpha: float) -> bool:
        """Return whether the e-value reaches 1 / alpha, up to rounding."""
        return self.log_e_value >= -math.log(alpha) - MIN_LOG_ERROR

    def __add__(self, later: Evidence) -> Evidence:
        """Return the evidence of both together, on independent random numbers.

        Raises ValueError if both have e-values, but not for as many shares of the parameter.
        """
        both = self.log_e_values, later.log_e_values
        total = tuple(map(sum, zip(*both, strict=True))) if all(both) else both[0] or both[1]
        runs, samples = self.runs + later.runs, self.samples + later.samples
        return Evidence(total, runs, samples)
