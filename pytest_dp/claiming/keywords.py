"""The keywords of a claim, one by one: those of its promise here, its settings by their table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from numbers import Integral, Real
from typing import Any

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.claiming.more_declarations import NumberRange, Riskiest, risk_claim
from pytest_dp.claiming.setting_fields import (
    FIELDS,
    Check,
    function_check,
    is_strategy,
    read_choice,
    read_whole_number,
)
from pytest_dp.claiming.settings import Settings, read_field, unknown_name
from pytest_dp.data.neighbours import MAX_PAIRS
from pytest_dp.data.relations import RELATIONS, Relation, of_function
from pytest_dp.declaration import OPEN, UNNAMED, Neighbors, dp_claim, replace_special

KEYWORDS = tuple(dp_claim.__kwdefaults__ or ())
"""The keywords of a claim, the same for the decorator, the marker, the fixture and ``audit``."""
RISK_KEYWORDS = tuple(risk_claim.__kwdefaults__ or ())
"""Those of a claim about membership."""
NUMBERS = ("eps", "delta", "rho", "mu")
"""What is promised, as numbers or the names of parameters that carry them."""
PRIVACY = (*NUMBERS, "guarantee", "auc")
"""The keywords of a guarantee, which `pytest_dp.privacy.read_guarantee` checks together."""


_NONE_IS_A_VALUE = [name for name in KEYWORDS if getattr(Settings(), name, ...) is None]


def read_keywords(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked values of keywords, without those that are left open; raise ClaimError.

    None is a value of settings whose default is None, and leaves all others open.
    """
    _check_names(keywords)
    values = {
        name: read_keyword(name, value) for name, value in keywords.items() if value is not OPEN
    }
    return {name: v for name, v in values.items() if v is not None or name in _NONE_IS_A_VALUE}


def read_keyword(name: str, value: Any) -> Any:
    """Return the checked value of one keyword; None leaves the choice open. Raises ClaimError."""
    if name in FIELDS:
        return read_field(name, value)
    return None if value is None else _OF_PROMISES[name](name, value)


_RELATION_KEYWORDS = ("unit", "rows", "group")
"""Keywords of relations, which are easily given to the claim itself."""


def _check_names(keywords: Mapping[str, Any]) -> None:
    """Raise ClaimError for keywords that a claim does not have, or a value without a keyword."""
    if UNNAMED in keywords:
        raise ClaimError(
            f"dp_claim was given {on_one_line(keywords[UNNAMED])} without a keyword. Write the "
            "name: @dp_claim(eps=1.0, ...)."
        )
    known, has_no = KEYWORDS, "A claim has no keyword"
    if "auc" in keywords:
        known, has_no = RISK_KEYWORDS, "A claim about membership (auc=) has no keyword"
    for name in keywords:
        if name in _RELATION_KEYWORDS:
            value = on_one_line(keywords[name])
            raise ClaimError(
                f"{has_no} {name!r}: it says which datasets are neighbours. "
                f"Write neighbors=add_remove_one({name}={value})."
            )
        if name not in known:
            raise unknown_name(has_no, name, known)


def _read_parameter_name(name: str, value: Any, true_means: str | None = None) -> str | None:
    """Return a name; None for False, and `true_means` for True if there is one; else ClaimError."""
    if value is False:
        return None
    if value is True and true_means:
        return true_means
    if not isinstance(value, str) or not value.isidentifier():
        example = true_means or name
        raise invalid(name, value, f"Allowed: the name of a parameter, such as {example!r}.")
    return value


def _read_params(name: str, value: Any) -> dict[str, list[Any]]:
    """Return a list of values or of one strategy by parameter; raise ClaimError otherwise."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        allowed = (
            "Allowed: a mapping from parameter names to a value, a list of values or a strategy."
        )
        raise invalid(name, value, allowed)
    choices = {}
    for key, given in value.items():
        choices[key] = list(given) if isinstance(given, list | tuple) else [given]
        choices[key] = [
            _strategy_of_range(f"params[{key!r}]", value)
            if isinstance(value, NumberRange)
            else value
            for value in choices[key]
        ]
        if len(choices[key]) > 1 and any(map(is_strategy, choices[key])):
            raise ClaimError(
                f"params[{key!r}] is a list with a strategy in it. Write a list of values, which "
                "gives an audit for each, or one strategy with values to draw beside the inputs."
            )
        if not choices[key]:
            raise ClaimError(f"params[{key!r}] is empty. Give at least one value, or leave it out.")
    return choices


def _strategy_of_range(name: str, given: NumberRange) -> Any:
    """Return a strategy for a range: integers for whole ends, else floats; or raise ClaimError."""
    ends = given.low, given.high
    real = all(isinstance(end, Real) and not isinstance(end, bool) for end in ends)
    if not real or not all(map(math.isfinite, ends)) or not given.low < given.high:
        allowed = "two finite numbers, the smaller one first, such as between(1, 5)"
        raise invalid(name, given, f"Allowed: {allowed}.")
    from hypothesis import strategies as st

    if all(isinstance(end, Integral) for end in ends):
        return st.integers(int(given.low), int(given.high))
    return st.floats(float(given.low), float(given.high))


def _read_parts(name: str, value: Any) -> tuple[tuple[Any, int], ...]:
    """Return mechanisms with the number of uses of each; raise ClaimError for anything else."""
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


def _read_neighbors(name: str, value: Any) -> Relation:
    """Return the relation of a name, a function or an object; raise ClaimError for others."""
    if isinstance(value, str):
        return RELATIONS[read_choice(name, value, RELATIONS)]()
    if isinstance(value, Neighbors):
        return _relation_of(value)
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


def _relation_of(value: Neighbors) -> Relation:
    """Return the relation of an object such as `add_remove_one()`; raise ClaimError if wrong."""
    said = {name: given for name, given in value.said.items() if given is not None}
    record = said.pop("record", None)
    if "rows" in said and "unit" not in said:
        raise ClaimError(
            f"{value} needs unit=: what owns these rows. Write for example "
            f"{value.name}(unit='user_id', rows={said['rows']!r})."
        )
    read = {name: _OF_RELATIONS[name](name, given) for name, given in said.items()}
    null = {} if record is None else {"null": replace_special(record)}
    return RELATIONS[value.name](**read, **null)


def _read_unit(name: str, value: Any) -> Any:
    """Return the name, index or function of a unit; raise ClaimError for anything else."""
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


def _read_pairs_or_source(name: str, value: Any) -> Any:
    """Return pairs as by `read_pairs`; names, functions and strategies are looked up later."""
    if isinstance(value, str) or callable(value) or is_strategy(value):
        return value
    return read_pairs(name, value)


def read_pairs(name: str, value: Any) -> tuple[tuple[Any, Any], ...]:
    """Return pairs (D, D') as tuples; raise ClaimError for other values, none, or too many."""
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


def _read_target_records(name: str, value: Any) -> Any:
    """Return `riskiest`, or a tuple of records or positions.

    Raises ClaimError for other values, for none, and for more than `MAX_PAIRS`.
    """
    allowed = "Allowed: riskiest(5), positions such as [0, 17], or records as the data has them."
    if isinstance(value, Riskiest):
        read_whole_number("riskiest", value.count, " of records, 1 or more, such as riskiest(5)")
        return value
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise invalid(name, value, allowed)
    records = tuple(islice(value, MAX_PAIRS + 1))
    if not 0 < len(records) <= MAX_PAIRS:
        raise invalid(name, value, f"{allowed} There may be {MAX_PAIRS} at most.")
    return records


_OF_PROMISES: Mapping[str, Check] = {
    **dict.fromkeys(PRIVACY, lambda _, value: value),  # checked together
    "composes": _read_parts,
    "neighbors": _read_neighbors,
    "inputs": lambda _, value: value,  # checked once they are looked up
    "pairs": _read_pairs_or_source,
    "data": lambda _, value: value,  # checked once it is looked up
    "records": _read_target_records,
    "score": function_check(
        "of a model and a record that returns a number, such as lambda model, record: "
        "model.log_loss(record)"
    ),
    "params": _read_params,
    "vectorized": partial(_read_parameter_name, true_means="size"),
    "rng": _read_parameter_name,
}
_OF_RELATIONS: Mapping[str, Check] = {
    "unit": _read_unit,
    "rows": read_whole_number,
    "group": read_whole_number,
}
"""What may be said of relations beside their names."""
