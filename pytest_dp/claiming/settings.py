"""How an audit goes about it, and the table of what may be said of that, and where."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.claiming.checks import Check, between, choice, flag, function, probability, whole
from pytest_dp.claiming.method_settings import METHODS, SEQUENTIAL, Membership, Method, read_method

SEARCHES = ("patterns", "constants", "mutation")
"""What searches for further pairs of inputs by default."""
MORE_SEARCHES = ("symbolic", "gradient")
"""What searches only if it is asked for: it takes seconds, and z3 or numbers to move."""
BEYOND = ("off", "tell", "fail")
"""What may become of violations beyond what a claim gives, in a rising order."""
GRADES = ("inconclusive", "weak", "fair", "strong", "aligned", "exact")
"""What an audit that finds no violation may be worth, in a rising order."""
VECTORIZED_SAMPLES = 10_000_000
"""Outputs at most where a call gives many: they cost as much time as 400,000 calls at most. With
fewer, noise that is a little too small for a small delta is missed; with more, claims that stand
take longer than `max_seconds`."""
NO_LIMIT = 1e9
"""Seconds of an audit that has no limit, some thirty years.

A number, so that shares of it, timers and JSON know what to do; a smaller one might be reached.
"""
NO_MARGIN = 1.0
"""The margin of a claim that is to use all of its effort: no audit would catch the claim itself."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an audit: its effort, its method, and how to treat what it finds.

    Attributes
    ----------
    alpha : float
        Probability of a false alarm, per claim.
    max_samples : int
        Runs of the mechanism in all; by default more where one call gives many outputs
        (`settings_for`).
    max_seconds : float
        Processor seconds for one audit, and a quarter of the time that may pass.
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
        The lowest of `GRADES` that fails no test.
    beyond : {"tell", "fail", "off"}
        What becomes of violations on inputs beyond what the claim gives: told beside the verdict,
        violations as any other, or not looked for.
    jobs : int or None
        Processes; None for as many as there are cores, where that pays.
    seed : int or None
        None derives it from the claim's id and the mechanism's source.
    accumulate : bool
        Whether evidence is kept, for later runs to add to.
    changed : bool
        Whether claims that passed are not audited again while nothing has changed.
    """

    alpha: float = 1e-6
    max_samples: int = 400_000
    max_seconds: float = 60.0
    margin: float = 1.25
    method: Method = SEQUENTIAL
    features: Callable[[Any], Any] | None = None
    floating_point: bool = False
    search: tuple[Any, ...] = SEARCHES
    at_least: str = "inconclusive"
    beyond: str = "tell"
    jobs: int | None = None
    seed: int | None = None
    accumulate: bool = False
    changed: bool = False

    def over(self, *given: Mapping[str, Any]) -> Settings:
        """These settings with others on top, the last the topmost."""
        settings = self
        for layer in given:
            settings = replace(settings, **layer)
        return settings


NAMES = tuple(field.name for field in fields(Settings))


def settings_for(*given: Mapping[str, Any], vectorized: bool) -> Settings:
    """Return the defaults with others on top, the last the topmost.

    A mechanism that gives many outputs a call may run `VECTORIZED_SAMPLES` times where none of them
    says otherwise.
    """
    settings = Settings().over(*given)
    is_open = not any("max_samples" in layer for layer in given)
    if vectorized and is_open and settings.method.name == SEQUENTIAL.name:
        return replace(settings, max_samples=VECTORIZED_SAMPLES)
    return settings


def _margin(without: str) -> Check:
    """`without` is how one writes that there is none."""
    allowed = f"a number above 1, such as 1.25, or {without} to use all of the effort"
    return between(1, math.inf, allowed)


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


def _search(name: str, value: Any) -> tuple[Any, ...]:
    names = (*SEARCHES, *MORE_SEARCHES)
    allowed = (
        f"Allowed: {', '.join(map(repr, names))}, an object with propose(past) that returns pairs, "
        "or a list of these; () for no search."
    )
    asked = (value,) if isinstance(value, str) or hasattr(value, "propose") else value
    if not isinstance(asked, list | tuple):
        raise invalid(name, value, allowed)
    for proposer in asked:
        if isinstance(proposer, str):
            choice(name, proposer, names)
            if proposer == "symbolic" and find_spec("z3") is None:
                raise ClaimError(
                    "search='symbolic' needs z3, which is not installed. Run: "
                    'pip install "pytest-dp[z3]", or leave search= out: the rest goes without it.'
                )
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


def _truth(text: str) -> bool:
    return text == "True"  # of what pytest has read


def _whole_number(text: str) -> float | str:
    number = _number(text.replace("_", "").replace(",", ""))
    return int(number) if isinstance(number, float) and number.is_integer() else text


def _hexadecimal(text: str) -> int | str | None:
    try:
        return None if text == "random" else int(text, 16)  # a number is drawn for the run
    except ValueError:
        return text


class Field(NamedTuple):
    """A setting: its check, and where it can be set.

    Profiles may say all of it, and claims all that is no matter of one run.
    """

    check: Check
    text: Callable[[str], Any] | None = None
    """From the text of an option or an ini key; None if there is none, or it takes no text."""
    methods: Collection[str] = (*METHODS, Membership.name)
    """Those that use it."""
    of_runs: bool = False


FIELDS: Mapping[str, Field] = {
    "alpha": Field(probability("1e-6"), _number),
    "max_samples": Field(partial(whole, allowed=" above 0, such as 400_000"), _whole_number),
    "max_seconds": Field(
        between(0, math.inf, "a number of seconds above 0, such as 60, or None for no limit"),
        lambda text: NO_LIMIT if text.lower() == "none" else _number(text),
    ),
    "margin": Field(_margin("None"), _margin_in_options, ("sequential", "membership")),
    "method": Field(read_method, str),
    "features": Field(
        function(
            "of an output that returns a number or a sequence of numbers, such as "
            "lambda output: [min(output), max(output)]"
        ),
        methods=("sequential", "dpsniper", "membership"),
    ),
    "search": Field(_search, methods=("sequential",)),
    "floating_point": Field(flag, methods=("sequential", "dpsniper")),
    "at_least": Field(partial(choice, choices=GRADES), str),
    "beyond": Field(partial(choice, choices=BEYOND), str, ("sequential", "dpfinder")),
    "jobs": Field(partial(whole, allowed=" of processes, 1 or more"), _whole_number, of_runs=True),
    "seed": Field(_seed, _hexadecimal, of_runs=True),
    "accumulate": Field(flag, _truth, of_runs=True),
    "changed": Field(flag, _truth, of_runs=True),
}


def read_field(name: str, value: Any) -> Any:
    """The value of a field; None if it leaves the choice open.

    A margin of None is no margin, and a time of None no limit.
    """
    if value is None:
        return {"margin": NO_MARGIN, "max_seconds": NO_LIMIT}.get(name)
    return FIELDS[name].check(name, value)


def unused_settings(given: Mapping[str, Any], method: str) -> list[str]:
    """Return which settings that differ from the usual mean nothing to a method of this package."""
    if method not in (*METHODS, Membership.name):
        return []
    usual = Settings()
    return [
        name
        for name, field in FIELDS.items()
        if name in given and method not in field.methods and given[name] != getattr(usual, name)
    ]
