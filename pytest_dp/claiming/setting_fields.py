"""All that can be set of an audit, in one table, all options, and checks of values.

Options and ini keys with their help, checks of keywords and profiles, defaults, how claims on
record are compared, and the table in ``docs/reference/options.md`` follow from it. Every run of
pytest reads it, so it imports next to nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

from pytest_dp.basics.errors import did_you_mean, invalid

GRADES = ("inconclusive", "weak", "fair", "strong", "aligned", "exact")
"""What an audit that finds no violation may be worth, in a rising order."""
BEYOND = ("off", "tell", "fail")
"""What may become of violations beyond what a claim gives, in a rising order."""
SEARCHES = ("guided",)
"""What searches for further pairs of inputs by default."""
_ALL = ("sequential", "statdp", "dpsniper", "dpfinder", "one_run", "membership")


class Field(NamedTuple):
    """One setting, or one option of a run."""

    kind: str
    """The kind of its values: a key of `claiming.settings.KINDS`."""
    default: Any
    help: str
    """Its meaning, for ``--help`` and the reference."""
    shown: str = ""
    """The default in words, where `default` does not say it."""
    is_option: bool = True
    """Whether it is an option and an ini key; claims and profiles take all that audits go by."""
    in_claims: bool = True
    """Whether a claim may say it; what is a matter of one run is left to options and profiles."""
    methods: tuple[str, ...] = _ALL
    """The methods that use it."""
    order: Literal["", "rising", "falling", "ranked"] = ""
    """How two values of a claim on record compare: a larger one is stronger (rising), or weaker
    (falling); a later one of `choices` is stronger (ranked). Others are not comparable."""
    choices: tuple[str, ...] = ()


FIELDS: Mapping[str, Field] = {
    "alpha": Field(
        "probability",
        1e-6,
        "probability of a false alarm, per claim",
        shown="1e-6",
        order="rising",
    ),
    "max_samples": Field(
        "samples",
        400_000,
        "runs of the mechanism at most, per claim",
        shown="400000, vectorized 10000000",
        order="rising",
    ),
    "max_seconds": Field(
        "seconds",
        60.0,
        "processor seconds at most, per claim; none for no limit",
        shown="60",
        order="rising",
    ),
    "margin": Field(
        "margin",
        1.25,
        "stop once noise that is this many times too small would be caught; none for never",
        methods=("sequential", "membership"),
        order="falling",
    ),
    "method": Field(
        "method",
        "sequential",
        "the auditor: sequential, statdp, dpsniper, dpfinder or one_run",
    ),
    "features": Field(
        "features",
        None,
        "a function of an output: the features of attacks",
        is_option=False,
        methods=("sequential", "dpsniper", "membership"),
    ),
    "search": Field(
        "search",
        SEARCHES,
        "searches for further pairs of inputs",
        is_option=False,
        methods=("sequential",),
    ),
    "floating_point": Field(
        "flag",
        False,
        "look at the bits of floats too",
        is_option=False,
        methods=("sequential", "dpsniper"),
        order="rising",
    ),
    "at_least": Field(
        "choice",
        "inconclusive",
        f"minimum grade to pass: {', '.join(GRADES[:-1])} or {GRADES[-1]}",
        shown="inconclusive, in CI weak",
        order="ranked",
        choices=GRADES,
    ),
    "beyond": Field(
        "choice",
        "tell",
        "violations outside the declared inputs: tell, fail or off",
        methods=("sequential", "dpfinder"),
        order="ranked",
        choices=BEYOND,
    ),
    "jobs": Field(
        "processes",
        None,
        "processes for each audit",
        shown="one per core, if faster",
        in_claims=False,
    ),
    "seed": Field(
        "seed",
        None,
        "hexadecimal seed as shown in a report, or random",
        shown="from the code",
        in_claims=False,
    ),
    "accumulate": Field(
        "flag", False, "keep evidence, for runs with random seeds to add to", in_claims=False
    ),
    "changed": Field(
        "flag",
        False,
        "audit only claims that have not passed with the same code and settings",
        shown="off, in profile dev on",
        in_claims=False,
    ),
}
"""What audits go by."""

OF_RUNS: Mapping[str, Field] = {
    "modules": Field(
        "flag", False, "collect @dp_claim functions from source modules, as --doctest-modules does"
    ),
    "profile": Field(
        "text",
        "default",
        "settings by name: default, dev, ci, nightly, or a profile of conftest.py",
        shown="default, in CI ci",
    ),
    "backend": Field(
        "text",
        None,
        "run mechanisms on a cluster: dask or ray, with an address as in dask=tcp://host:8786",
    ),
    "claims": Field(
        "text",
        "auto",
        "compare claims with dp-claims.json: auto (if the file exists), check or off; or update",
    ),
}
"""Further options, which no audit goes by."""

OPTIONS: Mapping[str, Field] = {n: f for n, f in (FIELDS | OF_RUNS).items() if f.is_option}  # type: ignore[operator]
"""All options that are ini keys as well."""


def flag_of(name: str) -> str:
    """Return the option of a name: ``--dp-max-samples``."""
    return f"--dp-{name.replace('_', '-')}"


def shown_default(field: Field) -> str:
    """Return the default of an option in words; "off" or "none" if it has none."""
    usual = "off" if field.kind == "flag" else "none"
    return field.shown or (str(field.default) if field.default else usual)


Check = Callable[[str, Any], Any]
"""From the name of a field and what is given for it to its value, or a `ClaimError`."""


def number_between(low: float, high: float, allowed: str) -> Check:
    """Return a check that turns numbers within (low, high) into floats, and raises ClaimError."""

    def check(name: str, value: Any) -> float:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not number or not low < value < high:
            raise invalid(name, value, f"Allowed: {allowed}.")
        return float(value)

    return check


def probability_check(example: str) -> Check:
    """Return a check for a number strictly between 0 and 1, as by `number_between`."""
    return number_between(0, 1, f"a probability between 0 and 1, such as {example}")


def read_whole_number(
    name: str, value: Any, allowed: str = " above 0, such as 3", least: int = 1
) -> int:
    """Return the value if it is a whole number of `least` or more; raise ClaimError otherwise."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise invalid(name, value, f"Allowed: a whole number{allowed}.")
    return int(value)


def read_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """Return the value if it is one of the choices; raise ClaimError otherwise."""
    if not isinstance(value, str) or value not in choices:
        hint = did_you_mean(value.lower(), choices) if isinstance(value, str) else ""
        raise invalid(name, value, f"Valid choices: {', '.join(map(repr, choices))}.{hint}")
    return value


def function_check(allowed: str) -> Check:
    """Return a check that returns a value if it can be called, and raises ClaimError otherwise."""

    def check(name: str, value: Any) -> Any:
        if not callable(value):
            raise invalid(name, value, f"Allowed: a function {allowed}.")
        return value

    return check


def is_strategy(value: object) -> bool:
    """Return whether a value is a Hypothesis strategy, without loading Hypothesis."""
    strategy = getattr(sys.modules.get("hypothesis.strategies"), "SearchStrategy", ())
    return isinstance(value, strategy)


def read_flag(name: str, value: Any) -> bool:
    """Return the value if it is True or False; raise ClaimError otherwise."""
    if not isinstance(value, bool):
        raise invalid(name, value, "Allowed: True or False.")
    return value
