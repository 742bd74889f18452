"""Methods of audits by name, and what may be said of each alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from numbers import Integral
from typing import Any, ClassVar

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.claiming.setting_fields import (
    Check,
    function_check,
    is_strategy,
    probability_check,
    read_choice,
    read_flag,
    read_whole_number,
)
from pytest_dp.registry import names

RESTARTS = 8
"""Starts of DP-Finder's search. More find better inputs, and take longer."""
CANARIES = 1_000
"""Canaries of a training. More show a smaller loss, and change what is trained."""

CLASSIFIERS = ("additive", "logistic", "mlp")


class Method:
    """A method of audits with its own settings; settings of other methods have their defaults."""

    __slots__ = ()
    name: ClassVar[str]
    """In reports, and where it is named without its settings."""
    repeats: ClassVar[bool] = True
    """Whether it runs the mechanism many times, as confirming a violation by copies does."""
    __match_args__: ClassVar[tuple[str, ...]]
    classifier: Any = None
    coupled: bool = True
    c: float | None = None

    def __repr__(self) -> str:
        """Return the method as Python source: ``DPSniper(c=0.01)``."""
        said = (f"{name}={value!r}" for name, value in self.changed_settings().items())
        return f"{type(self).__name__}({', '.join(said)})"

    def changed_settings(self) -> dict[str, Any]:
        """Return the settings of this method that are not the defaults, by name."""
        usual = type(self)()
        given = ((name, getattr(self, name)) for name in self.__match_args__)
        return {name: value for name, value in given if value is not getattr(usual, name)}


@dataclass(frozen=True, slots=True, repr=False)
class Sequential(Method):
    """A method that bets against the claim, and stops as soon as the verdict is certain.

    Parameters
    ----------
    classifier : {"additive", "logistic", "mlp"} or object, optional
        Learns the attacks: an additive model (the default), logistic regression, a small neural
        network (which needs scikit-learn), or any object with ``fit(X, y)`` and
        ``predict_proba(X)`` as in scikit-learn.
    coupled : bool, optional
        Run both inputs with the same random numbers if they can be set, which takes far fewer
        samples. ``False`` draws them independently.
    """

    name: ClassVar[str] = "sequential"
    classifier: Any = None
    coupled: bool = True


SEQUENTIAL = Sequential()
"""The usual one."""


@dataclass(frozen=True, slots=True, repr=False)
class StatDP(Method):
    """Tests the event that looks worst.

    Ding et al., "Detecting Violations of Differential Privacy", CCS 2018.
    """

    name: ClassVar[str] = "statdp"


@dataclass(frozen=True, slots=True, repr=False)
class DPSniper(Method):
    """Learns an attack that distinguishes two inputs, and bounds eps from below.

    Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper: Black-Box Discovery of Differential Privacy
    Violations using Classifiers", IEEE S&P 2021.

    Parameters
    ----------
    c : float, optional
        The probability of the event, strictly between 0 and 1; the paper has 0.01. By default the
        event with the largest promised bound is taken.
    classifier
        As of `Sequential`.
    coupled : bool, optional
        Run both inputs with the same random numbers in the search if they can be set, which finds
        better events. What is counted for the bound is always drawn independently, and with a
        fixed `c` so is all of the search.
    """

    name: ClassVar[str] = "dpsniper"
    c: float | None = None
    classifier: Any = None
    coupled: bool = True


@dataclass(frozen=True, slots=True, repr=False)
class DPFinder(Method):
    """Moves numbers of the inputs along the gradient of the loss, and tests what it ends with.

    Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder: Finding Differential Privacy
    Violations by Sampling and Optimization", CCS 2018.

    Parameters
    ----------
    restarts : int, optional
        From how many random pairs of inputs it starts.
    """

    name: ClassVar[str] = "dpfinder"
    restarts: int = RESTARTS


@dataclass(frozen=True, slots=True, repr=False)
class OneRun(Method):
    """Trains once, on canaries that are in or out by coins, and guesses from the output which.

    For training that is too slow to be run thousands of times. Steinke, Nasr, Jagielski, "Privacy
    Auditing with One (1) Training Run", NeurIPS 2023.

    Parameters
    ----------
    canaries : int, list or strategy, optional
        Records that are each added to the first of ``inputs`` or left out. A number makes
        mislabelled records: its own records with the last field of others. A list holds the records
        themselves. From a Hypothesis strategy, 1,000 are drawn.
    score : callable, optional
        ``score(output, canary)`` is a number: the larger, the more the output looks as if the
        canary was in. The default depends on the output: the inner product for an array of the
        canary's shape, such as a gradient or a sum; how close the closest record comes for a
        dataset like the input; how well it fits for a model with scikit-learn's methods.
    guesses : int or (int, int), optional
        How many canaries with the largest scores are guessed to be in, and how many with the
        smallest to be out; a number is split into halves. The default finds the least violation if
        scores are normal.
    runs : int, optional
        Trainings at most; the guesses of all are added up, until the claim is refuted.
    """

    name: ClassVar[str] = "one_run"
    repeats: ClassVar[bool] = False
    canaries: Any = CANARIES
    score: Callable[[Any, Any], float] | None = None
    guesses: tuple[int, int] | int | None = None
    runs: int = 1


@dataclass(frozen=True, slots=True, repr=False)
class Membership(Method):
    """Plays membership games, and bets on how often an attack wins: the one of `risk_claim`.

    Parameters
    ----------
    classifier : object, optional
        What the attack is learned with: any object with ``fit(X, y)`` and ``predict_proba(X)`` as
        in scikit-learn, or a name as of `Sequential`. By default an additive model.
    """

    name: ClassVar[str] = "membership"
    classifier: Any = None


@dataclass(frozen=True, slots=True, repr=False)
class OtherMethod(Method):
    """A method that another package has entered in `pytest_dp.registry`; it has no settings."""

    name: str = ""  # type: ignore[misc]

    def changed_settings(self) -> dict[str, Any]:
        """Return an empty dict."""
        return {}


METHODS: Mapping[str, type[Method]] = {
    m.name: m for m in (Sequential, StatDP, DPSniper, DPFinder, OneRun)
}


def read_method(name: str, value: Any) -> Method:
    """Return a method from a name or an object, or raise ClaimError for a wrong name or setting."""
    if isinstance(value, str):
        others = set(names("method")) - {*METHODS, Membership.name}
        chosen = read_choice(name, value, (*METHODS, *sorted(others)))
        return OtherMethod(chosen) if chosen in others else METHODS[chosen]()
    if isinstance(value, OtherMethod):
        return value
    if not isinstance(value, Method):
        written = ", ".join(f"{kind.__name__}()" for kind in METHODS.values())
        choices = ", ".join(map(repr, METHODS))
        raise invalid(name, value, f"Valid choices: {choices}, or with more to say {written}.")
    given = value.changed_settings()
    return type(value)(**{name: METHOD_CHECKS[name](name, what) for name, what in given.items()})


def _read_classifier(name: str, value: Any) -> Any:
    """Return the classifier; raise ClaimError for classes, missing methods or scikit-learn."""
    if isinstance(value, str):
        if read_choice(name, value, CLASSIFIERS) == "mlp" and find_spec("sklearn") is None:
            raise ClaimError(
                "classifier='mlp' needs scikit-learn, which is not installed. Run: "
                'pip install "pytest-dp[sklearn]", or write classifier="additive".'
            )
        return value
    if isinstance(value, type):
        raise invalid(name, value, f"It is a class: write {value.__name__}().")
    if not all(callable(getattr(value, name, None)) for name in ("fit", "predict_proba")):
        kind = type(value).__name__
        raise invalid(
            name,
            value,
            f"Allowed: {', '.join(map(repr, CLASSIFIERS))}, or an object with fit(X, y) and "
            "predict_proba(X), such as sklearn.linear_model.LogisticRegression() or "
            f"sklearn.calibration.CalibratedClassifierCV({kind}(...)).",
        )
    return value


def _read_canaries(name: str, value: Any) -> Any:
    """Return a number of canaries, records as a tuple, or a strategy; else raise ClaimError."""
    if isinstance(value, Integral):
        return read_whole_number(name, value, " of canaries, such as 1_000")
    if is_strategy(value):
        return value
    records = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(records, list | tuple) or not records:
        raise invalid(
            name,
            value,
            "Allowed: a number of canaries, such as 1_000, which are made of the data; a list of "
            "records; or a Hypothesis strategy for one record.",
        )
    return tuple(records)


def _read_guesses(name: str, value: Any) -> tuple[int, int]:
    """Return how many canaries are guessed in and out; raise ClaimError for others, or 0 in all."""
    both = (value - value // 2, value // 2) if isinstance(value, Integral) else value
    two = isinstance(both, tuple | list) and len(both) == 2
    counts = [int(k) for k in both if isinstance(k, Integral) and k >= 0] if two else []  # type: ignore[operator]
    if len(counts) < 2 or not sum(counts):
        allowed = "how many canaries are guessed to be in, and to be out, such as (50, 50)"
        raise invalid(name, value, f"Allowed: {allowed}; or both together, such as 100.")
    return counts[0], counts[1]


METHOD_CHECKS: Mapping[str, Check] = {
    "classifier": _read_classifier,
    "coupled": read_flag,
    "c": probability_check("0.01"),
    "restarts": partial(read_whole_number, allowed=" of restarts, 1 or more"),
    "canaries": _read_canaries,
    "score": function_check(
        "of an output and a canary that returns a number, the larger the more it looks as if the "
        "canary was in"
    ),
    "guesses": _read_guesses,
    "runs": partial(read_whole_number, allowed=" of trainings, 1 or more"),
}
"""What may be said of methods, each by itself."""
