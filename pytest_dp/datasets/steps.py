"""Steps from a dataset to its neighbour, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_OPPOSITE = {"removed": "added", "added": "removed", "nulled": "restored", "restored": "nulled"}


class Step(NamedTuple):
    """What happened to one unit."""

    verb: str
    """``"removed"``, ``"added"``, ``"replaced"``, ``"nulled"`` or ``"restored"``."""
    unit: str = ""
    """``"user_id=7"``; empty for a record."""
    rows: int = 1
    """Its rows that are concerned."""
    by: str = ""
    """The unit that replaces it, if it is another one."""
    by_rows: int = 0
    """The rows that replace its own."""

    def reversed(self) -> Step:
        """What leads back."""
        verb = _OPPOSITE.get(self.verb, self.verb)
        if verb != "replaced":
            return self._replace(verb=verb)
        return Step(verb, self.by or self.unit, self.by_rows, self.unit * bool(self.by), self.rows)


def in_words(steps: Sequence[Step]) -> str:
    """How D' differs from D: ``"one record removed"``, ``"all 3 rows of user_id=7 removed"``."""
    if steps[0].unit:
        shown = [_unit_in_words(step) for step in steps[:2]]
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


def too_far(steps: Sequence[Step]) -> str:
    """What to say of datasets that more steps lie between than a relation allows."""
    if steps[0].unit:
        shown = ", ".join(step.unit for step in steps[:3])
        return f"{len(steps)} units differ: {shown}{', ...' if len(steps) > 3 else ''}"
    only1 = sum(step.verb not in ("added", "restored") for step in steps)
    only2 = sum(step.verb not in ("removed", "nulled") for step in steps)
    nulls = any(step.verb in ("nulled", "restored") for step in steps)
    return surplus(only1, only2) + ", null records apart" * nulls


def surplus(only1: int, only2: int, what: str = "record") -> str:
    """How many records, or units, are only in D and only in D'."""
    return f"{counted(only1, what)} only in D and {counted(only2, what)} only in D'"


def counted(n: int, what: str = "record") -> str:
    """A number of records, or of something else, in words."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
