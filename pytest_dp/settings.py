"""How an audit goes about it, and the table of what may be said of that, and where."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

from pytest_dp.errors import ClaimError, did_you_mean, invalid

Check = Callable[[str, Any], Any]
"""From the name of a field and what is given for it to its value, or a `ClaimError`."""

SEARCHES = ("patterns", "constants", "mutation")
"""What searches for further pairs of inputs by default."""
BEYOND = ("off", "tell", "fail")
"""What may become of violations beyond what a claim gives, in a rising order."""
STRICT = ("off", "inconclusive", "weak")
GRADES = ("weak", "fair", "strong", "analytic", "exact")
"""Which passes may fail a test, in a rising order."""
CLASSIFIERS = ("additive", "logistic", "mlp")
NO_MARGIN = 1.0
"""The margin of a claim that is to use all of its effort: no audit would catch the claim itself."""


class Method:
    """An auditor, with what is said of it alone; settings that it has not are as usual."""

    __slots__ = ()
    name: ClassVar[str]
    """In reports, and where it is named without its settings."""
    __match_args__: ClassVar[tuple[str, ...]]
    classifier: Any = None
    coupled: bool = True
    c: float | None = None

    def __repr__(self) -> str:
        """As it would be written."""
        said = (f"{name}={value!r}" for name, value in self.said().items())
        return f"{type(self).__name__}({', '.join(said)})"

    def said(self) -> dict[str, Any]:
        """Its settings that are not as usual."""
        usual = type(self)()
        given = ((name, getattr(self, name)) for name in self.__match_args__)
        return {name: value for name, value in given if value is not getattr(usual, name)}


@dataclass(frozen=True, slots=True, repr=False)
class Sequential(Method):
    """Bets against the claim, and stops as soon as it knows.

    Parameters
    ----------
    classifier : {"additive", "logistic", "mlp"} or object, optional
        What attacks are learned with: an additive model (the default), logistic regression, a small
        neural network (which needs scikit-learn), or any object with ``fit(X, y)`` and
        ``predict_proba(X)`` as in scikit-learn.
    coupled : bool, optional
        Run both inputs with the same random numbers, where they can be set, which takes far fewer
        samples. ``False`` draws them independently.
    """

    name: ClassVar[str] = "sequential"
    classifier: Any = None
    coupled: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class StatDP(Method):
    """Tests the event that looks worst.

    Ding et al., "Detecting Violations of Differential Privacy", CCS 2018.
    """

    name: ClassVar[str] = "statdp"


@dataclass(frozen=True, slots=True, repr=False)
class DPSniper(Method):
    """Learns an attack that tells two inputs apart, and bounds eps from below.

    Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: Black-Box Discovery of Differential Privacy
    Violations using Classifiers", IEEE S&P 2021.

    Parameters
    ----------
    c : float, optional
        The probability of the event, strictly between 0 and 1; the paper has 0.01. By default the
        event is the one that promises the largest bound.
    classifier, coupled
        As of `Sequential`; with a fixed `c`, both inputs are always run independently.
    """

    name: ClassVar[str] = "dpsniper"
    c: float | None = None
    classifier: Any = None
    coupled: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class Membership(Method):
    """Plays membership games, and bets on how often an attack wins: the one of `risk_claim`.

    Parameters
    ----------
    classifier : object, optional
        What the attack is learned with: any object with ``fit(X, y)`` and ``predict_proba(X)`` as
        in scikit-learn, or a name as of `Sequential`. By default a ridge regression, which learns
        from a dozen outputs.
    """

    name: ClassVar[str] = "membership"
    classifier: Any = None


METHODS: Mapping[str, type[Method]] = {m.name: m for m in (Sequential, StatDP, DPSniper)}


@dataclass(frozen=True, slots=True)
class Settings:
    """What an audit needs to know beside the promise and the arguments of the mechanism.

    Attributes
    ----------
    alpha : float
        Probability of a false alarm, per claim.
    max_samples : int
        Runs of the mechanism in all.
    max_seconds : float
        Seconds for one audit.
    margin : float
        Times the claim: a loss so large would have been caught when an audit of a claim that stands
        ends. 1.0 is never reached.
    method : Method
        The auditor.
    features : callable or None
        What the classifier is given of an output; None leaves it to the outputs.
    floating_point : bool
        Whether the bits of floats are looked at.
    search : tuple
        What proposes further pairs of inputs: names, and proposers of the user's own.
    at_least : str
        The grade of a pass below which a test fails.
    beyond : {"tell", "fail", "off"}
        What becomes of violations on inputs beyond what the claim gives: told beside the verdict,
        violations as any other, or not looked for.
    jobs : int or None
        Processes; None for as many as there are cores, where that pays.
    seed : int or None
        None derives it from the claim's id and the mechanism's source.
    strict : {"off", "inconclusive", "weak"}
        Which passes fail a test: none, those that tell nothing, or those that tell little too; not
        "off", violations beyond what the claim gives fail as well.
    """

    alpha: float = 1e-6
    max_samples: int = 400_000
    max_seconds: float = 60.0
    margin: float = 1.25
    method: Method = Sequential()
    features: Callable[[Any], Any] | None = None
    floating_point: bool = False
    search: tuple[Any, ...] = SEARCHES
    at_least: str = "weak"
    beyond: str = "tell"
    jobs: int | None = None
    seed: int | None = None
    strict: str = "off"

    def over(self, *given: Mapping[str, Any]) -> Settings:
        """These settings with others on top, the last the topmost."""
        settings = self
        for layer in given:
            settings = replace(settings, **layer)
        return settings


NAMES = tuple(field.name for field in fields(Settings))


def _between(low: float, high: float, allowed: str) -> Check:
    def check(name: str, value: Any) -> float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not low < value < high:
            raise invalid(name, value, f"Allowed: {allowed}.")
        return float(value)

    return check


def _margin(without: str) -> Check:
    """`without` is how one writes that there is none."""
    allowed = f"a number above 1, such as 1.25, or {without} to use all of the effort"
    return _between(1, math.inf, allowed)


def _probability(example: str) -> Check:
    return _between(0, 1, f"a probability between 0 and 1, such as {example}")


def whole(name: str, value: Any, allowed: str = " above 0, such as 3", least: int = 1) -> int:
    """A whole number."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise invalid(name, value, f"Allowed: a whole number{allowed}.")
    return int(value)


def choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of several words."""
    if not isinstance(value, str) or value not in choices:
        hint = did_you_mean(value.lower(), choices) if isinstance(value, str) else ""
        raise invalid(name, value, f"Valid choices: {', '.join(map(repr, choices))}.{hint}")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise invalid(name, value, "Allowed: True or False.")
    return value


def _seed(name: str, value: Any) -> Any:
    if value == "random":
        return value
    return whole(name, value, ", 0 or more, or 'random'; in options hexadecimal, as 8f2c", 0)


def seed_of(value: Any) -> int | None:
    """A seed given to a function: a whole number, or text as reports print it; ClaimError else."""
    number = _hexadecimal(value) if isinstance(value, str) else value
    if number is None and value is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        allowed = "a whole number, 0 or more, or as text a hexadecimal one, such as '6cb99a16'"
        raise invalid("seed", value, f"Allowed: {allowed}.")
    return number


def _method(name: str, value: Any) -> Method:
    if isinstance(value, str):
        return METHODS[choice(name, value, METHODS)]()
    if not isinstance(value, Method):
        written = ", ".join(f"{kind.__name__}()" for kind in METHODS.values())
        choices = ", ".join(map(repr, METHODS))
        raise invalid(name, value, f"Valid choices: {choices}, or with more to say {written}.")
    said = {setting: _OF_METHODS[setting](setting, what) for setting, what in value.said().items()}
    return type(value)(**said)


def _classifier(name: str, value: Any) -> Any:
    if isinstance(value, str):
        if choice(name, value, CLASSIFIERS) == "mlp" and find_spec("sklearn") is None:
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


def _features(name: str, value: Any) -> Any:
    if not callable(value):
        raise invalid(
            name,
            value,
            "Allowed: a function of an output that returns a number or a sequence of numbers, such "
            "as lambda output: [min(output), max(output)].",
        )
    return value


def _search(name: str, value: Any) -> tuple[Any, ...]:
    allowed = (
        f"Allowed: {', '.join(map(repr, SEARCHES))}, an object with propose(past) that returns "
        "pairs, or a list of these; () for no search."
    )
    asked = (value,) if isinstance(value, str) or hasattr(value, "propose") else value
    if not isinstance(asked, list | tuple):
        raise invalid(name, value, allowed)
    for proposer in asked:
        if isinstance(proposer, str):
            choice(name, proposer, SEARCHES)
        elif isinstance(proposer, type) or not callable(getattr(proposer, "propose", None)):
            raise invalid(name, value, allowed)
    return tuple(asked)


# Texts of options and ini keys. One that has no such value is left to the check, which says what
# is allowed.


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _margin_in_options(text: str) -> float | None:
    return None if text.lower() == "none" else _margin("none")("margin", _number(text))


def _whole_number(text: str) -> float | str:
    number = _number(text.replace("_", "").replace(",", ""))
    return int(number) if isinstance(number, float) and number.is_integer() else text


def _hexadecimal(text: str) -> int | str | None:
    try:
        return None if text == "random" else int(text, 16)  # a number is drawn for the run
    except ValueError:
        return text


class Field(NamedTuple):
    """What may be said of audits under one name.

    Profiles may say all of it, and claims all that is no matter of one run.
    """

    check: Check
    text: Callable[[str], Any] | None = None
    """From the text of an option or an ini key; None if there is none, or it takes no text."""
    methods: Collection[str] = (*METHODS, Membership.name)
    """Those that use it."""
    of_runs: bool = False


FIELDS: Mapping[str, Field] = {
    "alpha": Field(_probability("1e-6"), _number),
    "max_samples": Field(partial(whole, allowed=" above 0, such as 400_000"), _whole_number),
    "max_seconds": Field(_between(0, math.inf, "a number of seconds above 0, such as 60"), _number),
    "margin": Field(_margin("None"), _margin_in_options, ("sequential", "membership")),
    "method": Field(_method, str),
    "features": Field(_features, methods=("sequential", "dpsniper", "membership")),
    "search": Field(_search, methods=("sequential",)),
    "floating_point": Field(flag, methods=("sequential", "dpsniper")),
    "at_least": Field(partial(choice, choices=GRADES)),
    "beyond": Field(partial(choice, choices=BEYOND), str, ("sequential",)),
    "jobs": Field(partial(whole, allowed=" of processes, 1 or more"), _whole_number, of_runs=True),
    "seed": Field(_seed, _hexadecimal, of_runs=True),
    "strict": Field(partial(choice, choices=STRICT), str, of_runs=True),
    "accumulate": Field(flag, of_runs=True),
    "changed": Field(flag, of_runs=True),
}
_OF_METHODS: Mapping[str, Check] = {
    "classifier": _classifier,
    "coupled": flag,
    "c": _probability("0.01"),
}


def read_field(name: str, value: Any) -> Any:
    """The value of a field; None if it leaves the choice open. A margin of None is no margin."""
    if value is None:
        return NO_MARGIN if name == "margin" else None
    return FIELDS[name].check(name, value)


def unused(given: Mapping[str, Any], method: str) -> list[str]:
    """Which settings that differ from the usual mean nothing to this method."""
    usual = Settings()
    return [
        name
        for name, field in FIELDS.items()
        if name in given and method not in field.methods and given[name] != getattr(usual, name)
    ]
