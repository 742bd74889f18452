"""What is promised: a validated `Claim`, one for each combination of parameters."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from itertools import product
from numbers import Integral, Real
from typing import Any, NoReturn

from pytest_dp.declaration import UNNAMED, Queries, Values, dp_claim
from pytest_dp.errors import ClaimError

KEYWORDS = tuple(dp_claim.__kwdefaults__ or ())
"""The keywords of a claim, the same for the decorator, the marker, the fixture and ``audit``."""

METHODS = ("sequential", "statdp", "dpsniper")
CLASSIFIERS = ("additive", "logistic", "mlp")
USED_BY: Mapping[str, tuple[str, ...]] = {
    "classifier": ("sequential", "dpsniper"),
    "features": ("sequential", "dpsniper"),
    "floating_point": ("sequential", "dpsniper"),
    "c": ("dpsniper",),
    "coupled": ("sequential", "dpsniper"),
    "margin": ("sequential",),
}
"""Keywords that not every method uses."""
NO_MARGIN = 1.0
"""The margin of a claim that is to use all of its effort: no audit would catch the claim itself."""
LARGEST_EPS = 300.0
"""Probabilities of outputs then differ by more than floats hold."""
RELATIONS = ("add_remove_one", "replace_one", "one_query", "all_queries", "any_two")
_RELATIONS_OF = {
    Queries: ("all_queries", "one_query"),
    Values: ("any_two",),
}
_RELATIONS_OF_DATASETS = ("add_remove_one", "replace_one")


@dataclass(frozen=True, slots=True)
class Claim:
    """A validated promise about one mechanism with one set of parameters.

    Attributes
    ----------
    eps : float
        Claimed loss in nats.
    delta : float
        Claimed probability of a larger loss.
    neighbors : str or None
        The relation; None for explicit pairs without a stated relation.
    inputs : object
        Where neighbouring inputs come from, or None if `pairs` are given.
    pairs : tuple of (D, D') or None
        Explicit neighbouring inputs.
    params : dict
        Further arguments of the mechanism, one value each.
    eps_param : str or None
        The parameter of the mechanism that carries ε, if the claim names one.
    vectorized : str or None
        The parameter that takes the number of draws.
    rng : str
        The parameter that takes a generator, if the mechanism has it.
    alpha, max_samples, max_seconds, margin, method
        As written in the claim; None leaves them to the settings.
    classifier : str, object or None
        What attacks are learned with; None for the default.
    features : callable or None
        What the classifier is given of an output; None leaves it to the outputs.
    c : float or None
        Fixed probability of DP-Sniper's event; None for the event with the best bound.
    floating_point : bool
        Whether the bits of floats are looked at.
    coupled : bool
        Whether both inputs may be run with the same random numbers.
    label : str
        What tells this claim from others on the same mechanism: ``"eps=1.0"``.
    """

    eps: float
    delta: float = 0.0
    neighbors: str | None = None
    inputs: Any = None
    pairs: tuple[tuple[Any, Any], ...] | None = None
    params: Mapping[str, Any] | None = None
    eps_param: str | None = None
    vectorized: str | None = None
    rng: str = "rng"
    alpha: float | None = None
    max_samples: int | None = None
    max_seconds: float | None = None
    margin: float | None = None
    method: str | None = None
    classifier: Any = None
    features: Callable[[Any], Any] | None = None
    c: float | None = None
    floating_point: bool = False
    coupled: bool = True
    label: str = ""

    def __str__(self) -> str:
        parts = [f"eps={self.eps!r}"]
        if self.delta:
            parts.append(f"delta={self.delta!r}")
        if self.neighbors:
            parts.append(f'neighbors="{self.neighbors}"')
        return f"@dp_claim({', '.join(parts)})"

    def unused(self, method: str) -> list[str]:
        """Keywords that were given but mean nothing to this method."""
        plain = {one.name: one.default for one in fields(self)}
        # By identity: ensembles of scikit-learn have a truth value only once they are fitted.
        return [
            name
            for name, methods in USED_BY.items()
            if method not in methods and getattr(self, name) is not plain[name]
        ]


def expand(keywords: Mapping[str, Any]) -> list[Claim]:
    """Validate the keywords of a claim; one `Claim` for each combination of ``params``.

    Raises
    ------
    ClaimError
        If a keyword is unknown, missing, contradictory or out of range.
    """
    _check_names(keywords)
    params = _params(keywords.get("params"))
    inputs, pairs = keywords.get("inputs"), _pairs(keywords.get("pairs"))
    if (inputs is None) == (pairs is None):
        given = "neither" if inputs is None else "both"
        raise ClaimError(
            f"A claim needs inputs= or pairs=, one of the two; {given} given. For example "
            "inputs=[[], [1], [1, 0]] with neighbors='add_remove_one', inputs=queries(5), or "
            "pairs=[([1, 0], [1])]."
        )
    common: dict[str, Any] = {
        "delta": _delta(keywords.get("delta", 0.0)),
        "neighbors": _neighbors(keywords.get("neighbors"), inputs),
        "inputs": inputs,
        "pairs": pairs,
        "vectorized": _parameter("vectorized", keywords.get("vectorized"), true_means="size"),
        "rng": _parameter("rng", keywords.get("rng", "rng")),
        "alpha": _probability("alpha", keywords.get("alpha"), "1e-6"),
        "max_samples": _max_samples(keywords.get("max_samples")),
        "max_seconds": _max_seconds(keywords.get("max_seconds")),
        "margin": _margin(keywords["margin"]) if "margin" in keywords else None,
        "method": _choice("method", keywords.get("method"), METHODS),
        "classifier": _classifier(keywords.get("classifier")),
        "features": _features(keywords.get("features")),
        "c": _probability("c", keywords.get("c"), "0.01"),
        "floating_point": _flag("floating_point", keywords.get("floating_point"), default=False),
        "coupled": _flag("coupled", keywords.get("coupled"), default=True),
    }
    eps = keywords["eps"]
    claims = []
    for chosen in product(*params.values()):
        one = dict(zip(params, chosen, strict=True))
        value, eps_param = _eps(eps, one, params)
        varied = {name: one[name] for name in params if len(params[name]) > 1 and name != eps_param}
        label = _label(value, common["delta"], varied)
        claims.append(Claim(eps=value, eps_param=eps_param, params=one, label=label, **common))
    return claims


def distinct_labels(claims: Iterable[Claim]) -> list[str]:
    """Labels for claims on one mechanism, made distinct by their relation, then by a number."""
    claims = list(claims)
    labels = [claim.label for claim in claims]
    if len(set(labels)) < len(labels):
        repeated = {label for label in labels if labels.count(label) > 1}
        labels = [
            f"{label}-{claim.neighbors}" if label in repeated and claim.neighbors else label
            for label, claim in zip(labels, claims, strict=True)
        ]
    seen: dict[str, int] = {}
    numbered = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        numbered.append(label if seen[label] == 1 else f"{label}-{seen[label]}")
    return numbered


def invalid(name: str, value: object, allowed: str) -> NoReturn:
    """Refuse a value, saying what is allowed instead."""
    shown = " ".join(_short(value, 200).split())  # on one line
    raise ClaimError(f"Invalid {name}={shown}. {allowed}")


def _check_names(keywords: Mapping[str, Any]) -> None:
    if UNNAMED in keywords:
        raise ClaimError(
            f"dp_claim was given {_short(keywords[UNNAMED])} without a keyword. Write the name: "
            "@dp_claim(eps=1.0, ...)."
        )
    for name in keywords:
        if name not in KEYWORDS:
            close = difflib.get_close_matches(name, KEYWORDS, 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ClaimError(
                f"A claim has no keyword {name!r}.{hint} Valid keywords: {', '.join(KEYWORDS)}."
            )
    if keywords.get("eps", ...) is ...:
        raise ClaimError("A claim needs eps=, the promised loss: for example @dp_claim(eps=1.0).")


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _eps(
    given: Any, chosen: Mapping[str, Any], params: Mapping[str, Any]
) -> tuple[float, str | None]:
    eps_param = None
    value = given
    if isinstance(given, str):
        if given not in params:
            names = ", ".join(map(repr, params)) or "none"
            better = (
                f"Write eps={given}, without quotes."
                if _reads_as_number(given)
                else f"Write params={{{given!r}: [0.1, 1.0]}}, or give eps as a number."
            )
            known = f"A name refers to a parameter in params=, which has: {names}."
            invalid("eps", given, f"{known} {better}")
        eps_param, value = given, chosen[given]
    if not _number(value) or not 0 < value <= LARGEST_EPS:
        name = "eps" if eps_param is None else f"params[{eps_param!r}] (the claim's eps)"
        raise ClaimError(
            f"Invalid {name}={value!r}. Allowed: a finite number above 0, in nats, such as 1.0, "
            f"and at most {LARGEST_EPS:g}: a larger one promises nothing."
        )
    return float(value), eps_param


def _delta(value: Any) -> float:
    if not _number(value) or not 0 <= value < 1:
        invalid("delta", value, "Allowed: a number from 0 to below 1, such as 1e-6.")
    if value > 0:
        invalid(
            "delta",
            value,
            "delta > 0 is not yet supported, only pure eps. A mechanism that needs it, such as "
            "the Gaussian one, is not eps-DP for any eps: do not claim it yet.",
        )
    return float(value)


def _probability(name: str, value: Any, example: str) -> float | None:
    if value is None:
        return None
    if not _number(value) or not 0 < value < 1:
        invalid(name, value, f"Allowed: a probability between 0 and 1, such as {example}.")
    return float(value)


def _max_samples(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        invalid("max_samples", value, "Allowed: a whole number above 0, such as 400_000.")
    return int(value)


def _max_seconds(value: Any) -> float | None:
    if value is None:
        return None
    if not _number(value) or not value > 0 or math.isnan(value):
        invalid("max_seconds", value, "Allowed: a number of seconds above 0, such as 60.")
    return float(value)


def _margin(value: Any) -> float:
    if value is None:
        return NO_MARGIN
    if not _number(value) or not 1 < value < math.inf:
        invalid(
            "margin",
            value,
            "Allowed: a number above 1, such as 1.25, or None to use all of the effort.",
        )
    return float(value)


def _choice(name: str, value: Any, choices: Sequence[str]) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in choices:
        asked = value.lower() if isinstance(value, str) else ""
        close = difflib.get_close_matches(asked, choices, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        invalid(name, value, f"Valid choices: {', '.join(map(repr, choices))}.{hint}")
    return value


def _classifier(value: Any) -> Any:
    if value is None or isinstance(value, str):
        if _choice("classifier", value, CLASSIFIERS) == "mlp" and find_spec("sklearn") is None:
            raise ClaimError(
                "classifier='mlp' needs scikit-learn, which is not installed. Run: "
                'pip install "pytest-dp[sklearn]", or write classifier="additive".'
            )
        return value
    lacks = [name for name in ("fit", "predict_proba") if not callable(getattr(value, name, None))]
    if lacks or isinstance(value, type):
        invalid("classifier", value, _what_to_write(value, lacks))
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


def _features(value: Any) -> Callable[[Any], Any] | None:
    if value is not None and not callable(value):
        invalid(
            "features",
            value,
            "Allowed: a function of an output that returns a number or a sequence of numbers, such "
            "as lambda output: [min(output), max(output)].",
        )
    return value  # type: ignore[no-any-return]


def _flag(name: str, value: Any, *, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        invalid(name, value, "Allowed: True or False.")
    return value


def _parameter(name: str, value: Any, true_means: str | None = None) -> str | None:
    if value is None or value is False:
        return None
    if value is True and true_means:
        return true_means
    if not isinstance(value, str) or not value.isidentifier():
        example = true_means or name
        invalid(name, value, f"Allowed: the name of a parameter, such as {example!r}.")
    return value


def _params(value: Any) -> dict[str, list[Any]]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        invalid(
            "params",
            value,
            "Allowed: a mapping from parameter names to a value or a list of values.",
        )
    choices = {}
    for name, given in value.items():
        choices[name] = list(given) if isinstance(given, list | tuple) else [given]
        if not choices[name]:
            raise ClaimError(
                f"params[{name!r}] is empty. Give at least one value, or leave it out."
            )
    return choices


def _pairs(value: Any) -> tuple[tuple[Any, Any], ...] | None:
    if value is None:
        return None
    example = "Allowed: a non-empty list of pairs (D, D'), such as [([1, 0], [1])]."
    try:
        pairs = list(value)
        if not pairs or any(isinstance(pair, str | bytes) or len(pair) != 2 for pair in pairs):
            invalid("pairs", value, example)
        return tuple((pair[0], pair[1]) for pair in pairs)
    except (TypeError, KeyError):
        invalid("pairs", value, example)


def _neighbors(value: Any, inputs: Any) -> str | None:
    return check_relation(_choice("neighbors", value, RELATIONS), inputs)


def check_relation(value: str | None, inputs: Any) -> str | None:
    """The relation for these inputs: as given if it fits, else the default where there is one.

    Names (``"module:attribute"``) and functions are checked once they are resolved; what cannot
    be inputs at all is refused there too.
    """
    if not isinstance(inputs, Queries | Values | list | tuple):
        return value
    allowed = _RELATIONS_OF.get(type(inputs), _RELATIONS_OF_DATASETS)
    if value in allowed:
        return value
    choices = " or ".join(f"neighbors={name!r}" for name in allowed)
    if value is not None:
        raise ClaimError(
            f"neighbors={value!r} does not fit inputs={_short(inputs)}: write {choices}."
        )
    if type(inputs) in _RELATIONS_OF:
        return allowed[0]
    raise ClaimError(
        f"inputs={_short(inputs)} are example datasets, so the claim must say which are "
        f"neighbours: {choices}."
    )


def _short(value: object, limit: int = 60) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} whose repr fails>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _label(eps: float, delta: float, varied: Mapping[str, Any]) -> str:
    parts = [f"eps={eps:g}" if abs(eps) >= 1e6 else f"eps={eps!r}"]
    if delta:
        parts.append(f"delta={delta:g}")
    # On one line, as part of an id: arrays have a repr of several.
    parts += [f"{name}={' '.join(_short(value, 30).split())}" for name, value in varied.items()]
    return "-".join(parts)
