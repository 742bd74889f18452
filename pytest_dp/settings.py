"""How an audit goes about it: by which method, how hard to look, how sure to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

SEARCHES = ("patterns", "constants", "mutation")
"""What searches for further pairs of inputs by default."""
BEYOND = ("tell", "fail", "off")
"""What may become of violations beyond what a claim gives."""


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
    beyond : {"tell", "fail", "off"}
        What becomes of violations on inputs beyond what the claim gives: told beside the verdict,
        violations as any other, or not looked for.
    n_jobs : int or None
        Processes; None for as many as there are cores, where that pays.
    seed : int or None
        None derives it from the claim's id and the mechanism's source.
    """

    alpha: float = 1e-6
    max_samples: int = 400_000
    max_seconds: float = 60.0
    margin: float = 1.25
    method: Method = Sequential()
    features: Callable[[Any], Any] | None = None
    floating_point: bool = False
    search: tuple[Any, ...] = SEARCHES
    beyond: str = "tell"
    n_jobs: int | None = None
    seed: int | None = None

    def over(self, *given: Mapping[str, Any]) -> Settings:
        """These settings with others on top, the last the topmost."""
        settings = self
        for layer in given:
            settings = replace(settings, **layer)
        return settings


NAMES = tuple(field.name for field in fields(Settings))

USED_BY: Mapping[str, tuple[str, ...]] = {
    "features": ("sequential", "dpsniper"),
    "floating_point": ("sequential", "dpsniper"),
    "margin": ("sequential",),
    "search": ("sequential",),
    "beyond": ("sequential",),
}
"""Settings that not every method uses."""


def unused(given: Mapping[str, Any], method: str) -> list[str]:
    """Which settings that differ from the usual mean nothing to this method."""
    usual = Settings()
    return [
        name
        for name, methods in USED_BY.items()
        if name in given and method not in methods and given[name] != getattr(usual, name)
    ]
