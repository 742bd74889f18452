"""Fields that a result and the record for reports share; a field added here is in both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pytest_dp.results.plain import MaybeInfinite, Share

MAX_STRONG = 1.25
"""Multiple of the claim that a strong pass would have caught, at most. Larger: weaker passes are
called strong; smaller: audits take longer."""
MAX_FAIR = 2.0
"""Multiple of the claim that a fair pass would have caught, at most. Larger: weaker passes are
called fair; smaller: more of them are weak."""

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
        ``"too far apart"`` (of probabilities), ``"parting"`` (of ways through the code),
        ``"passing"`` (it runs every time that the outputs differ); or ``"called"``: the line that
        asks for the noise of the line before.
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
        """``clinic/stats.py:14``."""
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
    """The outcome of an audit as it was found; `pytest_dp.results.result.Result` explains it."""

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
    screened: int = 0
    largest_movement: float | None = None
    largest_pair: str = ""
    unreached: tuple[str, ...] = ()
