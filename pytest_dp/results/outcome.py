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
        Relative to the root directory of the tests where it lies inside, with forward slashes.
    line : int
        Its number.
    function : str
        The function that the line is in.
    kind : str
        What is wrong: ``"too little noise"``, ``"no noise"``, ``"shared noise"``,
        ``"seeded"``, ``"too far apart"`` (of probabilities), ``"parting"`` (of ways through the
        code), ``"passing"`` (it is run wherever the outputs differ); or ``"called"``: the line that
        asks for the noise of the line before.
    message : str
        What holds, for people.
    remedy : str
        What may mend it, for people; empty for a line that only belongs to the one before.
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
    """In nats, where the parameter is an eps; infinite where no value holds."""
    error: float
    """By how much it may be off; infinite where no bound is known. Of a value by samples, half of a
    95 % interval (approximate)."""
    mode: Mode
    """``"exact"``: by all outcomes and their probabilities. ``"aligned"``: an upper bound, by a
    shift of the draws that replays agree with. ``"sampled"``: by samples."""
    pairs: int = field(default=0, kw_only=True)
    """Pairs of inputs on which it holds, of those that the claim gives."""
    basis: str = field(default="", kw_only=True)
    """What it rests on, such as ``"32 outcomes"``."""
    runs: int = field(default=0, kw_only=True)
    """Real runs that bear it out, where a pass rests on it and nothing is in doubt; else 0."""
    unseen: float = field(default=0.0, kw_only=True)
    """What a mechanism does with plain numbers alone may go unseen in these, with a probability of
    5 %, if it does so in at most this share of its runs."""


@dataclass(frozen=True, slots=True)
class Risk:
    """How well an attack told whether a record was in the data.

    Attributes
    ----------
    record : str
        Where the record stands: ``"record 17"``.
    value : str
        The record itself, shortened.
    auc : float
        How often the attack as it was last scored an output with the record above one without it,
        ties counting one half; 0.5 is a coin. Of outputs that it had not learned from.
    interval : (float, float)
        Where that lies with 95 % confidence, however long was looked.
    lower : float
        What the best attack reaches at least, with the confidence of the audit over all records;
        0.0 if nothing was shown.
    p_value : float
        Of the claim for this record alone, valid at any time.
    pairs : int
        Pairs of outputs, one with the record and one without, that were bet on.
    last : int
        Those of them that the attack scored as it was last; `auc` and `interval` are of these.
    told_by : str
        What the attack mostly goes by.
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
