"""What has changed between two entries of one claim, and whether it is less than before."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_dp.declaration import Neighbors
from pytest_dp.limits import EQUAL, NEARLY_EQUAL
from pytest_dp.methods import METHODS
from pytest_dp.privacy import Guarantee
from pytest_dp.privacy.composition import implies
from pytest_dp.records.entries import (
    Entry,
    content_of,
    guarantee_of,
    promise_of,
    promise_text,
)
from pytest_dp.reprs import counted
from pytest_dp.settings import BEYOND, GRADES, SEARCHES, Settings

WEAKER, STRONGER, OTHER = "weaker", "stronger", "not comparable"
_USUAL = Settings()
_USUAL_OF_METHODS = {
    name: getattr(method(), name) for method in METHODS.values() for name in method.__match_args__
}


class Change(NamedTuple):
    """A difference between two entries of a claim."""

    what: str
    """The keyword of a claim, or ``"promise"``."""
    before: str
    after: str
    verdict: str
    """`WEAKER`, `STRONGER` or `OTHER`."""

    @property
    def loses(self) -> bool:
        """Whether the claim may have become weaker; what cannot be compared counts."""
        return self.verdict != STRONGER

    def __str__(self) -> str:
        return f"{self.what} {self.before} -> {self.after}"


def changes(old: Entry, new: Entry) -> list[Change]:
    """The differences between two entries of a claim, but for its source.

    Raises ClaimError if the old entry is none.
    """
    return [
        *_promise(*_of_units(old, new)),
        *_inputs(old, new),
        *_fields(_said(old), _said(new)),
        *_fields(old.get("effort", {}), new["effort"]),
        *_profile(old, new),
    ]


def _of_units(old: Entry, new: Entry) -> tuple[Entry, Entry]:
    """The promises to compare: where groups differ, those of one unit, from which theirs follow."""
    before: Entry = old.get("promise", {})
    after: Entry = new["promise"]
    if old.get("group", 1) != new.get("group", 1):  # older versions did not keep those of one unit
        before, after = old.get("one_unit", before), new.get("one_unit", after)
    return before, after


def _promise(old: Entry, new: Entry) -> Iterator[Change]:
    if _close(old, new):
        return
    before, after = guarantee_of(old), guarantee_of(new)
    forth = _follows(old, before, new, after)
    back = _follows(new, after, old, before)
    if forth and back and before == after:
        return
    verdict = STRONGER if forth else WEAKER if back else OTHER
    yield Change("promise", promise_text(old), promise_text(new), verdict)


def _close(old: Any, new: Any) -> bool:
    """Whether two promises are the same, up to rounding."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_close(old[name], new[name]) for name in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_close, old, new))
    if isinstance(old, int | float) and isinstance(new, int | float):
        return math.isclose(old, new, rel_tol=EQUAL)
    return bool(old == new)


def _follows(asked: Entry, wanted: Guarantee | None, given: Entry, have: Guarantee | None) -> bool:
    """Whether what is asked follows from what is given."""
    if wanted is not None:
        if have is not None:
            return implies(have, wanted)
        curve = promise_of(wanted)
        return "eps" in curve and _delta(given, curve["eps"]) <= curve.get("delta", 0.0)
    at = asked["curve"]
    if have is not None:
        return all(have.delta_at(eps) <= delta * (1 + NEARLY_EQUAL) for eps, delta in at)
    return all(_delta(given, eps) <= delta * (1 + NEARLY_EQUAL) for eps, delta in at)


def _delta(given: Entry, eps: float) -> float:
    """An upper bound on the delta at eps of a curve of which some values are on record."""
    return min((delta for at, delta in given["curve"] if at <= eps), default=1.0)


def _inputs(old: Entry, new: Entry) -> Iterator[Change]:
    before, after = old.get("examples"), new.get("examples")
    if before is None or after is None:
        if old.get("inputs") != new.get("inputs"):
            yield Change("inputs", _source(old), _source(new), OTHER)
        return
    lost, gained = _missing(before, after), _missing(after, before)
    if lost and gained:
        yield Change("inputs", _abbreviated(lost), _abbreviated(gained), OTHER)
    elif lost:
        said = f"{len(after)}, without {_abbreviated(lost)}"
        yield Change("inputs", counted(len(before), "example"), said, WEAKER)
    elif gained:
        said = f"{len(after)}, with {_abbreviated(gained)}"
        yield Change("inputs", counted(len(before), "example"), said, STRONGER)


def _missing(texts: list[str], others: list[str]) -> list[str]:
    """Those of some examples that are not among others, or not as often."""
    missing = Counter(map(content_of, texts)) - Counter(map(content_of, others))
    return [text for text in texts if content_of(text) in missing]


def _abbreviated(texts: list[str]) -> str:
    more = f" and {len(texts) - 2} more" if len(texts) > 2 else ""
    return ", ".join(texts[:2]) + more


def _source(given: Entry) -> str:
    return str(given.get("inputs") or counted(len(given.get("examples", [])), "example"))


def _said(entry: Entry) -> dict[str, Any]:
    """What an entry says beside its promise, its inputs and its effort, by keywords."""
    params = {**entry.get("params", {}), **entry.get("drawn", {})}
    return {
        "neighbours": entry.get("relation", {}),
        "group": entry.get("group", 1),
        **{f"params[{name!r}]": params[name] for name in sorted(params)},
        "composes": entry.get("composes", []),
        **{name: entry[name] for name in ("records", "score") if name in entry},
    }


def _profile(old: Entry, new: Entry) -> Iterator[Change]:
    """Compare the profile that was chosen on the command line, if it is one of the project's own.

    One that is not on record is compared with pytest-dp's own of that name, or else with none.
    """
    chosen = new.get("chosen")
    if chosen is None:
        return
    before = old.get("profiles", {}).get(chosen["profile"], chosen["usual"])
    after = new["profiles"][chosen["profile"]]
    efforts = (
        {name: value for name, value in {**effort, **more}.items() if value is not None}
        for effort, more in ((old.get("effort", {}), before), (new["effort"], after))
    )
    for change in _fields(*efforts):
        yield change._replace(what=f"{change.what} (profile {chosen['profile']!r})")


def _fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Compare what is said under each name, by the order of `_ORDERS`; most have none."""
    for name in dict.fromkeys((*old, *new)):
        usual = getattr(_USUAL, name, _USUAL_OF_METHODS.get(name))
        before, after = old.get(name, usual), new.get(name, usual)
        if before != after:
            verdict = _ORDERS.get(name, _no_order)(before, after)
            if verdict:
                yield Change(name, _text(name, before), _text(name, after), verdict)


def _text(name: str, value: Any) -> str:
    if name == "neighbours":
        return _neighbors(value)
    if name == "margin" and value == 1.0:
        return "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(value) or ("nothing" if name == "composes" else "none")
    return "not given" if value is None else str(value)


def _neighbors(given: Mapping[str, Any]) -> str:
    """As a keyword of a claim."""
    if not given:
        return "not stated"
    said = {name: given[name] for name in ("record", "unit", "rows") if name in given}
    name = given.get("neighbors")
    return f"neighbors={Neighbors(str(name), **said) if said else repr(name)}"


def _rising(before: Any, after: Any) -> str:
    """Of what is stronger, or looks harder, the larger it is.

    With a larger alpha less evidence is enough: it finds more, among it more false alarms.
    """
    return STRONGER if after > before else WEAKER


def _falling(before: Any, after: Any) -> str:
    return _rising(after, before)


def _relation(before: Any, after: Any) -> str:
    """More rows for each unit are a stronger claim; other relations have no order."""
    if not before or not after:
        return STRONGER if not before else WEAKER
    if all(before.get(name) == after.get(name) for name in {*before, *after} - {"rows"}):
        return _rising(*(float(relation.get("rows", "inf")) for relation in (before, after)))
    return OTHER


def _composes(before: Any, after: Any) -> str:
    return STRONGER if not before else WEAKER if not after else OTHER


def _search(before: Any, after: Any) -> str:
    old, new = (set(SEARCHES if methods is None else methods) for methods in (before, after))
    return "" if old == new else STRONGER if old < new else WEAKER if new < old else OTHER


def _ranked(name: str, choices: Sequence[str]) -> Callable[[Any, Any], str]:
    """Of one of several words in a rising order."""

    def order(*values: Any) -> str:
        before, after = (value or getattr(_USUAL, name) for value in values)
        return _rising(choices.index(before), choices.index(after))

    return order


def _no_order(before: Any, after: Any) -> str:  # noqa: ARG001
    return OTHER


_ORDERS: Mapping[str, Callable[[Any, Any], str]] = {
    "neighbours": _relation,
    "group": _rising,
    "composes": _composes,
    "search": _search,
    "at_least": _ranked("at_least", GRADES),
    "beyond": _ranked("beyond", BEYOND),
    "margin": _falling,
    **dict.fromkeys(("alpha", "max_samples", "max_seconds"), _rising),
    **dict.fromkeys(("coupled", "floating_point"), _rising),
}
