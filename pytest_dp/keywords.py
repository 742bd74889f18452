"""The keywords of a claim, one by one: what is allowed, and what to write instead."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import islice
from numbers import Integral, Real
from typing import Any

from pytest_dp.datasets.relations import RELATIONS, Relation, of_function
from pytest_dp.declaration import OPEN, UNNAMED, Neighbors, dp_claim, replace_special
from pytest_dp.errors import ClaimError
from pytest_dp.limits import MAX_PAIRS
from pytest_dp.reprs import on_one_line, shortened
from pytest_dp.settings import BEYOND, METHODS, SEARCHES, Method, Settings

KEYWORDS = tuple(dp_claim.__kwdefaults__ or ())
"""The keywords of a claim, the same for the decorator, the marker, the fixture and ``audit``."""
CLASSIFIERS = ("additive", "logistic", "mlp")
NUMBERS = ("eps", "delta", "rho", "mu")
"""What is promised, as numbers or the names of parameters that carry them."""
PRIVACY = (*NUMBERS, "guarantee")
"""The keywords that make up a guarantee; `pytest_dp.privacy.guarantee` checks them together."""
MOVED = {
    "rdp": "guarantee=RenyiDP({8: 0.5})",
    "profile": "guarantee=PrivacyProfile(f)",
    "tradeoff": "guarantee=TradeOff(g)",
    "group": "neighbors=add_remove_one(group=3)",
    "unit": "neighbors=add_remove_one(unit='user_id')",
    "rows_per_unit": "neighbors=add_remove_one(unit='user_id', rows=3)",
    "classifier": "method=Sequential(classifier='mlp')",
    "coupled": "method=Sequential(coupled=False)",
    "c": "method=DPSniper(c=0.01)",
}
"""What to write in place of keywords that there were once."""
_NONE_IS_A_VALUE = [name for name in KEYWORDS if getattr(Settings(), name, ...) is None]
NO_MARGIN = 1.0
"""The margin of a claim that is to use all of its effort: no audit would catch the claim itself."""


def read(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The values of keywords, each checked by itself; those left open are left out.

    None is a value of settings that are None by default, and leaves all others open.

    Raises
    ------
    ClaimError
        If a keyword is unknown, or its value not allowed.
    """
    _check_names(keywords)
    values = {name: read_one(name, value) for name, value in keywords.items() if value is not OPEN}
    return {name: v for name, v in values.items() if v is not None or name in _NONE_IS_A_VALUE}


def read_one(name: str, value: Any) -> Any:
    """The value of one keyword; None if it leaves the choice open."""
    if value is None:
        return NO_MARGIN if name == "margin" else None
    return _READERS[name](name, value)


def is_strategy(value: object) -> bool:
    """Whether this is a Hypothesis strategy: it can only be one if Hypothesis is loaded."""
    strategy = getattr(sys.modules.get("hypothesis.strategies"), "SearchStrategy", ())
    return isinstance(value, strategy)


def invalid(name: str, value: object, allowed: str) -> ClaimError:
    """The error for a value, saying what is allowed instead."""
    return ClaimError(f"Invalid {name}={on_one_line(value, 200)}. {allowed}")


def _check_names(keywords: Mapping[str, Any]) -> None:
    if UNNAMED in keywords:
        raise ClaimError(
            f"dp_claim was given {shortened(keywords[UNNAMED])} without a keyword. Write the name: "
            "@dp_claim(eps=1.0, ...)."
        )
    for name in keywords:
        if name not in KEYWORDS:
            raise unknown(name, KEYWORDS, "A claim has no keyword", "Valid keywords")


def unknown(name: str, known: Sequence[str], has_no: str, valid: str) -> ClaimError:
    """The error for a name that is not known, saying what to write instead."""
    if name in MOVED:
        value = MOVED[name].partition("=")[2].partition("(")[0]
        return ClaimError(
            f"{has_no} {name!r}. Write {MOVED[name]}, with {value} imported from pytest_dp."
        )
    return ClaimError(f"{has_no} {name!r}.{_hint(name, known)} {valid}: {', '.join(known)}.")


def _hint(asked: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(asked, known, 1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _probability(name: str, value: Any, example: str) -> float:
    if not _is_number(value) or not 0 < value < 1:
        raise invalid(name, value, f"Allowed: a probability between 0 and 1, such as {example}.")
    return float(value)


def _whole(name: str, value: Any, example: str = "3") -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise invalid(name, value, f"Allowed: a whole number above 0, such as {example}.")
    return int(value)


def _max_seconds(name: str, value: Any) -> float:
    if not _is_number(value) or not 0 < value < math.inf:
        raise invalid(name, value, "Allowed: a number of seconds above 0, such as 60.")
    return float(value)


def _margin(name: str, value: Any) -> float:
    if not _is_number(value) or not 1 < value < math.inf:
        allowed = "Allowed: a number above 1, such as 1.25, or None to use all of the effort."
        raise invalid(name, value, allowed)
    return float(value)


def _choice(name: str, value: Any, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        hint = _hint(value.lower() if isinstance(value, str) else "", choices)
        raise invalid(name, value, f"Valid choices: {', '.join(map(repr, choices))}.{hint}")
    return value


def _method(name: str, value: Any) -> Method:
    if isinstance(value, str):
        return METHODS[_choice(name, value, METHODS)]()
    if not isinstance(value, Method):
        written = ", ".join(f"{kind.__name__}()" for kind in METHODS.values())
        choices = ", ".join(map(repr, METHODS))
        raise invalid(name, value, f"Valid choices: {choices}, or with more to say {written}.")
    said = {setting: _OF_METHODS[setting](setting, what) for setting, what in value.said().items()}
    return type(value)(**said)


def _classifier(name: str, value: Any) -> Any:
    if isinstance(value, str):
        if _choice(name, value, CLASSIFIERS) == "mlp" and find_spec("sklearn") is None:
            raise ClaimError(
                "classifier='mlp' needs scikit-learn, which is not installed. Run: "
                'pip install "pytest-dp[sklearn]", or write classifier="additive".'
            )
        return value
    lacks = [name for name in ("fit", "predict_proba") if not callable(getattr(value, name, None))]
    if lacks or isinstance(value, type):
        raise invalid(name, value, _what_to_write(value, lacks))
    return value


def _what_to_write(value: Any, lacks: list[str]) -> str:
    """In place of a class, or of an object that lacks what a classifier needs."""
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    calibrated = f"sklearn.calibration.CalibratedClassifierCV({name}(...))"
    if name in ("SVC", "NuSVC"):
        old = f"{name}(probability=True)"
        return f"It has no predict_proba. Write {calibrated} or, before scikit-learn 1.9, {old}."
    if not lacks:
        return f"It is a class: write {name}()."
    wrap = lacks == ["predict_proba"] and hasattr(value, "decision_function")
    return (
        f"It has no {' and no '.join(lacks)}. Allowed: {', '.join(map(repr, CLASSIFIERS))}, or an "
        "object with fit(X, y) and predict_proba(X), such as sklearn.linear_model."
        f"LogisticRegression(){f', or {calibrated}' if wrap else ''}."
    )


def _features(name: str, value: Any) -> Callable[[Any], Any]:
    if not callable(value):
        raise invalid(
            name,
            value,
            "Allowed: a function of an output that returns a number or a sequence of numbers, such "
            "as lambda output: [min(output), max(output)].",
        )
    return value  # type: ignore[no-any-return]


def _search(name: str, value: Any) -> tuple[Any, ...]:
    asked = (value,) if isinstance(value, str) or hasattr(value, "propose") else value
    if not isinstance(asked, list | tuple):
        raise invalid(name, value, _SEARCH_ALLOWED)
    for proposer in asked:
        if isinstance(proposer, str):
            _choice(name, proposer, SEARCHES)
        elif isinstance(proposer, type) or not callable(getattr(proposer, "propose", None)):
            raise invalid(name, value, _SEARCH_ALLOWED)
    return tuple(asked)


def _beyond(name: str, value: Any) -> str:
    return _choice(name, value, BEYOND)


_SEARCH_ALLOWED = (
    f"Allowed: {', '.join(map(repr, SEARCHES))}, an object with propose(past) that returns pairs, "
    "or a list of these; () for no search."
)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise invalid(name, value, "Allowed: True or False.")
    return value


def _parameter(name: str, value: Any, true_means: str | None = None) -> str | None:
    if value is False:
        return None
    if value is True and true_means:
        return true_means
    if not isinstance(value, str) or not value.isidentifier():
        example = true_means or name
        raise invalid(name, value, f"Allowed: the name of a parameter, such as {example!r}.")
    return value


def _params(name: str, value: Any) -> dict[str, list[Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        allowed = (
            "Allowed: a mapping from parameter names to a value, a list of values or a strategy."
        )
        raise invalid(name, value, allowed)
    choices = {}
    for key, given in value.items():
        choices[key] = list(given) if isinstance(given, list | tuple) else [given]
        if len(choices[key]) > 1 and any(map(is_strategy, choices[key])):
            raise ClaimError(
                f"params[{key!r}] is a list with a strategy in it. Write a list of values, which "
                "gives an audit for each, or one strategy, whose values are drawn with the inputs."
            )
        if not choices[key]:
            raise ClaimError(f"params[{key!r}] is empty. Give at least one value, or leave it out.")
    return choices


def _composes(name: str, value: Any) -> tuple[tuple[Any, int], ...]:
    """Mechanisms, and how often each is used."""
    allowed = "Allowed: a list of mechanisms, or a dict that says how often each is used, such as "
    try:
        parts = list(value.items()) if isinstance(value, Mapping) else [(f, 1) for f in value]
    except TypeError:
        raise invalid(name, value, f"{allowed}[f, g] or {{f: 3, g: 1}}.") from None
    whole = all(
        isinstance(n, Integral) and not isinstance(n, bool) and int(n) > 0 for _, n in parts
    )
    if not parts or not whole or not all(callable(mechanism) for mechanism, _ in parts):
        raise invalid(name, value, f"{allowed}[f, g] or {{f: 3, g: 1}}.")
    return tuple((mechanism, int(n)) for mechanism, n in parts)


def _neighbors(name: str, value: Any) -> Relation:
    if isinstance(value, str):
        return RELATIONS[_choice(name, value, RELATIONS)]()
    if isinstance(value, Neighbors):
        return _of_records(value)
    uncalled = getattr(value, "__module__", "") == Neighbors.__module__  # such as add_remove_one
    if callable(value) and not isinstance(value, type) and not uncalled:
        return of_function(value)
    choices = ", ".join(map(repr, RELATIONS))
    raise invalid(
        name,
        value,
        f"Valid choices: {choices}; with more to say, add_remove_one(unit='user_id', rows=3) and "
        "the like; a function of D that yields its neighbours, or one of D and D' that says "
        "whether they are.",
    )


def _of_records(value: Neighbors) -> Relation:
    said = {name: given for name, given in value.said.items() if given is not None}
    record = said.pop("record", None)
    if "rows" in said and "unit" not in said:
        raise ClaimError(
            f"{value} needs unit=: what owns these rows. Write for example "
            f"{value.name}(unit='user_id', rows={said['rows']!r})."
        )
    read = {name: _OF_RECORDS[name](name, given) for name, given in said.items()}
    null = {} if record is None else {"null": replace_special(record)}
    return RELATIONS[value.name](**read, **null)


def _unit(name: str, value: Any) -> Any:
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    if callable(value):
        return value
    raise invalid(
        name,
        value,
        "Allowed: the name of a column such as 'user_id', a key or an attribute of the records, "
        "the index in tuples, or a function from a record to its unit.",
    )


def _pairs(name: str, value: Any) -> Any:
    """The pairs; names and functions are looked up when the claim is audited."""
    if isinstance(value, str) or callable(value) or is_strategy(value):
        return value
    return read_pairs(name, value)


def read_pairs(name: str, value: Any) -> tuple[tuple[Any, Any], ...]:
    """Pairs (D, D') as a tuple of tuples."""
    allowed = "Allowed: a non-empty list of pairs (D, D'), such as [([1, 0], [1])]."
    try:
        pairs = list(islice(value, MAX_PAIRS + 1)) if hasattr(value, "__next__") else list(value)
        if len(pairs) > MAX_PAIRS and hasattr(value, "__next__"):
            raise invalid(
                name,
                value,
                f"It yields more than {MAX_PAIRS} pairs. Write the function itself, of which the "
                "first ones are taken.",
            )
        if not pairs or any(isinstance(pair, str | bytes) or len(pair) != 2 for pair in pairs):
            raise invalid(name, value, allowed)
        return tuple((pair[0], pair[1]) for pair in pairs)
    except (TypeError, KeyError):
        raise invalid(name, value, allowed) from None


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(PRIVACY, lambda _, value: value),  # checked together
    "composes": _composes,
    "neighbors": _neighbors,
    "inputs": lambda _, value: value,  # checked once they are looked up
    "pairs": _pairs,
    "params": _params,
    "vectorized": partial(_parameter, true_means="size"),
    "rng": _parameter,
    "alpha": partial(_probability, example="1e-6"),
    "max_samples": partial(_whole, example="400_000"),
    "max_seconds": _max_seconds,
    "margin": _margin,
    "method": _method,
    "features": _features,
    "search": _search,
    "floating_point": _flag,
    "beyond": _beyond,
}
_OF_METHODS: Mapping[str, Callable[[str, Any], Any]] = {
    "classifier": _classifier,
    "coupled": _flag,
    "c": partial(_probability, example="0.01"),
}
_OF_RECORDS: Mapping[str, Callable[[str, Any], Any]] = {
    "unit": _unit,
    "rows": _whole,
    "group": _whole,
}
