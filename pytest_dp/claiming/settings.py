"""The settings of an audit: their values, the checks of the kinds in `setting_fields`, profiles.

Profiles are settings under a name, for a desk, for CI and for the night, as Hypothesis has them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib.util import find_spec
from textwrap import fill
from typing import Any, NamedTuple

from pytest_dp.basics.errors import ClaimError, did_you_mean, invalid
from pytest_dp.basics.reprs import LINE_WIDTH
from pytest_dp.claiming.method_settings import METHODS, SEQUENTIAL, Membership, Method, read_method
from pytest_dp.claiming.setting_fields import (
    FIELDS,
    SEARCHES,
    Check,
    function_check,
    number_between,
    probability_check,
    read_choice,
    read_flag,
    read_whole_number,
)

MORE_SEARCHES = ("symbolic", "gradient")
"""What searches only if it is asked for: it takes seconds, and z3 or numbers to move."""
VECTORIZED_SAMPLES = 10_000_000
"""Outputs at most where a call gives many. Fewer: noise a little too small for a small delta is
missed; more: claims that hold take longer than `max_seconds`."""
NO_LIMIT = 1e9
"""Seconds of an audit without limit, some thirty years: a number for shares, timers and JSON."""
NO_MARGIN = 1.0
"""The margin of a claim that is to use all of its effort: no audit would catch the claim itself."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of an audit; `pytest_dp.claiming.setting_fields.FIELDS` explains each."""

    alpha: float = FIELDS["alpha"].default
    max_samples: int = FIELDS["max_samples"].default
    max_seconds: float = FIELDS["max_seconds"].default
    margin: float = FIELDS["margin"].default
    method: Method = SEQUENTIAL
    features: Callable[[Any], Any] | None = None
    search: tuple[Any, ...] = SEARCHES
    floating_point: bool = FIELDS["floating_point"].default
    at_least: str = FIELDS["at_least"].default
    beyond: str = FIELDS["beyond"].default
    jobs: int | None = None
    seed: int | None = None
    """None derives it from the claim's id and the mechanism's source."""
    accumulate: bool = FIELDS["accumulate"].default
    changed: bool = FIELDS["changed"].default

    def over(self, *given: Mapping[str, Any]) -> Settings:
        """Return these settings overridden by the given ones, later over earlier."""
        settings = self
        for layer in given:
            settings = replace(settings, **layer)
        return settings


NAMES = tuple(field.name for field in fields(Settings))


def settings_for(*given: Mapping[str, Any], vectorized: bool) -> Settings:
    """Return the default settings overridden by the given ones, later over earlier.

    If none of them sets `max_samples`, a sequential audit of a vectorized mechanism has
    `VECTORIZED_SAMPLES`.
    """
    settings = Settings().over(*given)
    is_open = not any("max_samples" in layer for layer in given)
    if vectorized and is_open and settings.method.name == SEQUENTIAL.name:
        return replace(settings, max_samples=VECTORIZED_SAMPLES)
    return settings


def read_field(name: str, value: Any) -> Any:
    """Return the checked value of a setting; raise ClaimError if it is wrong.

    None leaves the choice open, but is `NO_MARGIN` for a margin, and `NO_LIMIT` for a time.
    """
    kind = KINDS[FIELDS[name].kind]
    return kind.of_none if value is None else kind.check(name, value)


def read_text(name: str, text: str) -> Any:
    """Return the value of an option's text; None if left open. Raises ClaimError if it is wrong."""
    kind, text = KINDS[FIELDS[name].kind], text.strip()
    if kind.of_none is not None and text.lower() == "none":
        return kind.of_none
    return read_field(name, kind.from_text(text))


def seed_of(value: Any) -> int | None:
    """Return a seed from a number or hexadecimal text; None for None. Raises ClaimError."""
    if value is None:
        return None
    number = _hexadecimal_or_text(value) if isinstance(value, str) else value
    allowed = ", 0 or more, or as text a hexadecimal one, such as '6cb99a16'"
    return read_whole_number("seed", number, allowed, 0)


def unused_settings(given: Mapping[str, Any], method: str) -> list[str]:
    """Return which given settings, other than defaults, a method of pytest-dp does not use."""
    if method not in (*METHODS, Membership.name):
        return []
    usual = Settings()
    return [
        name
        for name, field in FIELDS.items()
        if name in given and method not in field.methods and given[name] != getattr(usual, name)
    ]


def unknown_name(has_no: str, name: str, known: Iterable[str]) -> ClaimError:
    """Return the error for an unknown name: `has_no`, the name, and the closest known one."""
    known = tuple(known)
    names = fill(f"Valid: {', '.join(known)}.", LINE_WIDTH, subsequent_indent="  ")
    return ClaimError(f"{has_no} {name!r}.{did_you_mean(name, known)}\n{names}")


def _read_seed(name: str, value: Any) -> Any:
    """Return a whole number or "random"; raise ClaimError otherwise."""
    if value == "random":
        return value
    return read_whole_number(
        name, value, ", 0 or more, or 'random'; in options hexadecimal, as 8f2c", 0
    )


def _read_search(name: str, value: Any) -> tuple[Any, ...]:
    """Return the searches as a tuple; raise ClaimError if one is unknown, or needs z3 in vain."""
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
            read_choice(name, proposer, names)
            if proposer == "symbolic" and find_spec("z3") is None:
                raise ClaimError(
                    "search='symbolic' needs z3, which is not installed. Run: "
                    'pip install "pytest-dp[z3]", or leave search= out: the rest goes without it.'
                )
        elif isinstance(proposer, type) or not callable(getattr(proposer, "propose", None)):
            raise invalid(name, value, allowed)
    return tuple(asked)


# From the texts of options and ini keys. One that is no such value is left to the check, which says
# what is allowed.


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _whole_number_or_text(text: str) -> float | str:
    number = _number_or_text(text.replace("_", "").replace(",", ""))
    return int(number) if isinstance(number, float) and number.is_integer() else text


def _hexadecimal_or_text(text: str) -> int | str | None:
    """Return a hexadecimal number, None for "random", or the text if it is neither."""
    try:
        return None if text == "random" else int(text, 16)  # a number is drawn for the run
    except ValueError:
        return text


class FieldKind(NamedTuple):
    """A kind of values of fields."""

    check: Check
    from_text: Callable[[str], Any] = str
    of_none: Any = None
    """The value that None stands for, and in options ``none``; None leaves the choice open."""


KINDS: Mapping[str, FieldKind] = {
    "probability": FieldKind(probability_check("1e-6"), _number_or_text),
    "samples": FieldKind(
        partial(read_whole_number, allowed=" above 0, such as 400_000"), _whole_number_or_text
    ),
    "seconds": FieldKind(
        number_between(
            0, math.inf, "a number of seconds above 0, such as 60, or None for no limit"
        ),
        _number_or_text,
        NO_LIMIT,
    ),
    "margin": FieldKind(
        number_between(
            1, math.inf, "a number above 1, such as 1.25, or None to use all of the effort"
        ),
        _number_or_text,
        NO_MARGIN,
    ),
    "method": FieldKind(read_method),
    "features": FieldKind(
        function_check(
            "of an output that returns a number or a sequence of numbers, such as "
            "lambda output: [min(output), max(output)]"
        )
    ),
    "search": FieldKind(_read_search),
    "flag": FieldKind(read_flag, lambda text: text == "True"),
    "choice": FieldKind(lambda name, value: read_choice(name, value, FIELDS[name].choices)),
    "processes": FieldKind(
        partial(read_whole_number, allowed=" of processes, 1 or more"), _whole_number_or_text
    ),
    "seed": FieldKind(_read_seed, _hexadecimal_or_text),
}


_CI_VARIABLES = ("CI", "TF_BUILD", "CODEBUILD_BUILD_ID", "TEAMCITY_VERSION", "bamboo.buildKey")
"""Variables of the environment; a machine of CI has one of them, most have the first."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Settings under a name.

    Attributes
    ----------
    name : str
    values : dict
        Some of `pytest_dp.claiming.setting_fields.FIELDS`; what is left open is not in it.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the profile but for the seed: a random one is drawn once for a run."""
        return {name: value for name, value in self.values.items() if name != "seed"}

    @property
    def overriding(self) -> dict[str, Any]:
        """The settings that win over claims and the ini file: no margin, if it has none."""
        return {"margin": NO_MARGIN} if self.values.get("margin") == NO_MARGIN else {}


def register_profile(name: str, parent: str | None = None, **settings: Any) -> None:
    """Give settings a name, for ``--dp-profile``, the ini key ``dp_profile`` and `load_profile`.

    Best called in the ``conftest.py`` at the root of the project. A profile of that name, one of
    pytest-dp's own as well, is replaced.

    Parameters
    ----------
    name : str
    parent : str, optional
        The profile that ``settings`` changes; by default ``"default"``.
    **settings
        ``alpha``, ``max_samples``, ``max_seconds``, ``margin``, ``method``, ``features``,
        ``search``, ``floating_point``, ``at_least`` and ``beyond`` as in a claim; ``jobs``,
        ``accumulate`` and ``changed`` as the options; ``seed``, a whole number or ``"random"``.

    Raises
    ------
    ClaimError
        If there is no such parent or setting, or a value is not allowed.

    Examples
    --------
    >>> from pytest_dp import register_profile
    >>> register_profile("release", parent="nightly", max_seconds=600)
    """
    if not isinstance(name, str) or not name.strip():
        raise invalid("name", name, "Allowed: a name, such as 'release'.")
    values = dict(find_profile(parent).values) if parent is not None else {}
    for setting, value in settings.items():
        if setting not in FIELDS:
            raise unknown_name("A profile has no setting", setting, FIELDS)
        read = read_field(setting, value)
        values.pop(setting, None)
        if read is not None:
            values[setting] = read
    _PROFILES[name] = Profile(name, values)


def load_profile(name: str) -> None:
    """Use this profile for all audits by pytest, unless ``--dp-profile`` names another one.

    Raises
    ------
    ClaimError
        If there is none of this name.
    """
    _loaded[:] = [find_profile(name).name]


def find_profile(name: str) -> Profile:
    """Return the profile of a name.

    Raises
    ------
    ClaimError
        If there is none.
    """
    if name not in _PROFILES:
        raise unknown_name("There is no profile", name, _PROFILES)
    return _PROFILES[name]


def choose_profile(option: str | None, ini: str | None) -> Profile:
    """Return the profile of the option, else of `load_profile`, else of the ini file, else of CI.

    Outside of CI, the last is ``"default"``. Raises ClaimError for unknown names.
    """
    by_environment = "ci" if in_ci() else "default"
    return find_profile(option or (_loaded[0] if _loaded else None) or ini or by_environment)


def profile_of_ci(option: str | None, ini: str | None) -> Profile:
    """Return the profile that a run in CI would have by files alone, also on other machines.

    What `load_profile` chose counts in CI only, as it often depends on where it is called. Raises
    ClaimError for unknown names.
    """
    there = _loaded[0] if _loaded and in_ci() else None
    return find_profile(option or there or ini or "ci")


def in_ci() -> bool:
    """Return whether this is a machine of continuous integration."""
    return any(
        os.environ.get(name, "false").lower() not in ("false", "0") for name in _CI_VARIABLES
    )


_PROFILES: dict[str, Profile] = {}
_loaded: list[str] = []
"""The name that `load_profile` was given last, if any."""

register_profile("default")
register_profile("dev", margin=1.5, max_seconds=20, changed=True)
register_profile("ci", at_least="weak")  # where nobody reads warnings
register_profile("nightly", margin=None, seed="random", accumulate=True)
