"""How an audit goes about it: how hard to look, how sure to be, and what to look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

SEARCHES = ("patterns", "constants", "mutation")
"""What searches for further pairs of inputs by default."""
BEYOND = ("tell", "fail", "off")
"""What may become of violations beyond what a claim gives."""


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
    method : str
        The auditor.
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
    method: str = "sequential"
    classifier: Any = None
    features: Callable[[Any], Any] | None = None
    c: float | None = None
    floating_point: bool = False
    coupled: bool = True
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
    "classifier": ("sequential", "dpsniper"),
    "features": ("sequential", "dpsniper"),
    "floating_point": ("sequential", "dpsniper"),
    "c": ("dpsniper",),
    "coupled": ("sequential", "dpsniper"),
    "margin": ("sequential",),
    "search": ("sequential",),
    "beyond": ("sequential",),
}
"""Settings that not every method uses."""


def unused(given: Mapping[str, Any], method: str) -> list[str]:
    """Which of the settings given mean nothing to this method, though they differ from the usual.

    Told by identity: ensembles of scikit-learn have a truth value only once they are fitted.
    """
    usual = Settings()
    return [
        name
        for name, methods in USED_BY.items()
        if name in given and method not in methods and given[name] is not getattr(usual, name)
    ]
