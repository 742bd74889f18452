"""Steps from a dataset to its neighbour, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_OPPOSITE = {"removed": "added", "added": "removed", "nulled": "restored", "restored": "nulled"}
_SHOWN = 2
"""Units that are named in a description; others are counted. More make it long. By hand."""


class Step(NamedTuple):
    """What happened to one unit.

    Attributes
    ----------
    verb : str
        ``"removed"``, ``"added"``, ``"replaced"``, ``"nulled"`` or ``"restored"``.
    unit : str
        ``"user_id=7"``; empty for a record.
    rows : int
        Its rows that are concerned.
    by : str
        The unit that replaces it, if it is another one.
    by_rows : int
        The rows that replace its own.
    """

    verb: str
    unit: str = ""
    rows: int = 1
    by: str = ""
    by_rows: int = 0

    def reversed(self) -> Step:
        """What leads back."""
        verb = _OPPOSITE.get(self.verb, self.verb)
        if verb != "replaced":
            return self._replace(verb=verb)
        return Step(verb, self.by or self.unit, self.by_rows, self.unit * bool(self.by), self.rows)


def in_words(steps: Sequence[Step]) -> str:
    """How D' differs from D: ``"one record removed"``, ``"all 3 rows of user_id=7 removed"``."""
    if steps[0].unit:
        shown = [_unit_in_words(step) for step in steps[:_SHOWN]]
        more = len(steps) - len(shown)
        return " and ".join([*shown, *([f"{more} more units"] if more else [])])
    verbs = [step.verb for step in steps]
    return " and ".join(
        f"one record {verb}" if verbs.count(verb) == 1 else f"{verbs.count(verb)} records {verb}"
        for verb in dict.fromkeys(verbs)
    )


def _unit_in_words(step: Step) -> str:
    whose = {1: "the one row", 2: "both rows"}.get(step.rows, f"all {step.rows:,} rows")
    text = f"{whose} of {step.unit} {step.verb}"
    if step.by:
        return f"{text} by the {step.by_rows:,} of {step.by}"
    return f"{text} by {step.by_rows:,}" if step.by_rows not in (0, step.rows) else text
