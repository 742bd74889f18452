"""What membership games tell of one record."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_dp.results.plain import Share


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
