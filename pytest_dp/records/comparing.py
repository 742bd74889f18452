"""Comparison of two entries of one claim: what has changed, and whether the claim is weaker."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.method_settings import METHODS
from pytest_dp.claiming.setting_fields import FIELDS, Field
from pytest_dp.claiming.settings import Settings
from pytest_dp.declaration import Neighbors
from pytest_dp.privacy.composition import implies
from pytest_dp.records.entries import (
    Entry,
    digest_of_example,
    guarantee_of,
    promise_of,
    promise_text,
)

SAME_NUMBER = 1e-9
"""Relative difference of numbers that count as one. Larger: a claim is weakened unseen; smaller:
rounding counts as a change."""
SAME_CURVE = 1e-6
"""Relative difference of deltas that count as one: those on record have nine digits. Larger: a
claim is weakened unseen; smaller: rounding counts as a change."""

WEAKER, STRONGER, OTHER = "weaker", "stronger", "not comparable"
_OBJECTS: tuple[Any, ...] = (*(method() for method in METHODS.values()), Settings())
_USUAL = {name: getattr(usual, name) for usual in _OBJECTS for name in usual.__match_args__}


class FieldChange(NamedTuple):
    """A difference between two entries of a claim."""

    what: str
    """The keyword of a claim, or ``"promise"``."""
    before: str
    after: str
    verdict: str
    """`WEAKER`, `STRONGER` or `OTHER`."""

    @property
    def loses(self) -> bool:
        """True if the claim may have become weaker; also if values cannot be compared."""
        return self.verdict != STRONGER

    def __str__(self) -> str:
        return f"{self.what} {self.before} -> {self.after}"


def claim_changes(old: Entry, new: Entry) -> list[FieldChange]:
    """Return the differences between two entries of a claim, but for its source.

    Raises ClaimError if the old entry is none.
    """
    return list(_compare_fields(_fields(old), _fields(new)))


def _fields(entry: Entry) -> dict[str, Any]:
    """Return the fields of an entry by the names of `_ORDERS`, in the order of display."""
    params = {**entry.get("params", {}), **entry.get("drawn", {})}
    return {
        "promise": entry.get("promise", {}),
        "inputs": (entry.get("inputs"), entry.get("examples")),
        "neighbours": entry.get("relation", {}),
        "group": entry.get("group", 1),
        **{f"params[{name!r}]": params[name] for name in sorted(params)},
        "composes": entry.get("composes", []),
        **{name: entry[name] for name in ("records", "score") if name in entry},
        **entry.get("effort", {}),
    }


def _compare_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldChange]:
    """Compare what is said under each name, by its order; most have none."""
    for name in dict.fromkeys((*old, *new)):
        before, after = (said.get(name, _USUAL.get(name)) for said in (old, new))
        verdict = _ORDERS.get(name, _no_order)(before, after) if before != after else ""
        if verdict:
            yield FieldChange(name, _text(name, before, after), _text(name, after, before), verdict)


def _text(name: str, value: Any, other: Any) -> str:
    """Return a value as people write it, beside what it is compared with."""
    if name in _TEXTS:
        return _TEXTS[name](value, other)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(value) or ("nothing" if name == "composes" else "none")
    return "not given" if value is None else str(value)


def _promise(old: Entry, new: Entry) -> str:
    if _close(old, new):
        return ""
    forth, back = _follows(old, new), _follows(new, old)
    if forth and back and guarantee_of(old) == guarantee_of(new):
        return ""
    return STRONGER if forth else WEAKER if back else OTHER


def _close(old: Any, new: Any) -> bool:
    """Return whether two promises are the same, up to rounding."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_close(old[name], new[name]) for name in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_close, old, new))
    if isinstance(old, int | float) and isinstance(new, int | float):
        return math.isclose(old, new, rel_tol=SAME_NUMBER)
    return bool(old == new)


def _follows(asked: Entry, given: Entry) -> bool:
    """Return whether a promise that is asked for follows from one that is given."""
    wanted, have = guarantee_of(asked), guarantee_of(given)
    if wanted is not None and have is not None:
        return implies(have, wanted)
    if wanted is not None:
        curve = promise_of(wanted)
        return "eps" in curve and _delta(given, curve["eps"]) <= curve.get("delta", 0.0)
    delta_at = (lambda eps: _delta(given, eps)) if have is None else have.delta_at
    return all(delta_at(eps) <= delta * (1 + SAME_CURVE) for eps, delta in asked["curve"])


def _delta(given: Entry, eps: float) -> float:
    """Return an upper bound on the delta at eps of a curve of which some values are on record."""
    return min((delta for at, delta in given["curve"] if at <= eps), default=1.0)


_Inputs = tuple[str | None, list[str] | None]
"""Where inputs come from, if the claim names it, and the examples, if these are known."""


def _inputs(old: _Inputs, new: _Inputs) -> str:
    (source, before), (now, after) = old, new
    if before is None or after is None:
        return OTHER if source != now else ""
    lost, gained = _examples_missing(before, after), _examples_missing(after, before)
    return OTHER if lost and gained else WEAKER if lost else STRONGER if gained else ""


def _inputs_text(given: _Inputs, other: _Inputs) -> str:
    (source, examples), (_, others) = given, other
    count = plural(len(examples or []), "example")
    if examples is None or others is None:
        return str(source or count)
    own = _examples_missing(examples, others)
    more = f" and {len(own) - 2} more" if len(own) > 2 else ""
    named = ", ".join(own[:2]) + more
    if own and _examples_missing(others, examples):
        return named
    return f"{count}, among them {named}" if own else count


def _examples_missing(texts: list[str], others: list[str]) -> list[str]:
    """Return those of some examples that are not among others, or not as often."""
    missing = Counter(map(digest_of_example, texts)) - Counter(map(digest_of_example, others))
    return [text for text in texts if digest_of_example(text) in missing]


def _neighbors_text(given: Mapping[str, Any], _: object) -> str:
    """Return the neighbours as a keyword of a claim."""
    if not given:
        return "not stated"
    said = {name: given[name] for name in ("record", "unit", "rows", *given) if name in given}
    name = said.pop("neighbors", None)
    return f"neighbors={Neighbors(str(name), **said) if said else repr(name)}"


def _compare_rising(before: Any, after: Any) -> str:
    """Compare values that are stronger, or take more effort, the larger they are.

    With a larger alpha less evidence is enough: it finds more, among it more false alarms.
    """
    return STRONGER if after > before else WEAKER


def _compare_falling(before: Any, after: Any) -> str:
    return _compare_rising(after, before)


def _relation(before: Any, after: Any) -> str:
    """Return more rows for each unit are a stronger claim; other relations have no order."""
    if not before or not after:
        return _compare_presence(before, after)
    if all(before.get(name) == after.get(name) for name in {*before, *after} - {"rows"}):
        return _compare_rising(
            *(float(relation.get("rows", "inf")) for relation in (before, after))
        )
    return OTHER


def _compare_presence(before: Any, after: Any) -> str:
    """Compare values that are stronger where they are given at all."""
    return STRONGER if not before else WEAKER if not after else OTHER


def _compare_sets(before: Any, after: Any) -> str:
    old, new = set(before), set(after)
    return "" if old == new else STRONGER if old < new else WEAKER if new < old else OTHER


def _comparison(field: Field) -> Callable[[Any, Any], str]:
    """Return the comparison of two values of a field, by its order."""
    rank = field.choices.index
    return {
        "rising": _compare_rising,
        "falling": _compare_falling,
        "ranked": lambda before, after: _compare_rising(rank(before), rank(after)),
        "subset": _compare_sets,
        "": _no_order,
    }[field.order]


def _no_order(before: Any, after: Any) -> str:  # noqa: ARG001
    return OTHER


_ORDERS: Mapping[str, Callable[[Any, Any], str]] = {
    "promise": _promise,
    "inputs": _inputs,
    "neighbours": _relation,
    "group": _compare_rising,
    "composes": _compare_presence,
    "coupled": _compare_rising,
    **{name: _comparison(field) for name, field in FIELDS.items()},
}
"""The verdict on what differs under a name; empty if it says the same."""
_TEXTS: Mapping[str, Callable[[Any, Any], str]] = {
    "promise": lambda promise, _: promise_text(promise),
    "inputs": _inputs_text,
    "neighbours": _neighbors_text,
    "margin": lambda margin, _: "none" if margin == 1.0 else str(margin),
}
