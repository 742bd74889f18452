"""Profiles: settings under a name, for a desk, for CI and for the night, as Hypothesis has them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_dp.basics.errors import ClaimError, did_you_mean, invalid
from pytest_dp.claiming.keywords import unknown
from pytest_dp.claiming.setting_fields import FIELDS
from pytest_dp.claiming.settings import NO_MARGIN, read_field

_CI_VARIABLES = ("CI", "TF_BUILD", "CODEBUILD_BUILD_ID", "TEAMCITY_VERSION", "bamboo.buildKey")
"""Variables of the environment of which a machine of CI has one: most of them the first."""


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
        """All but the seed, which is drawn once for a run if it is random."""
        return {name: value for name, value in self.values.items() if name != "seed"}

    @property
    def overriding(self) -> dict[str, Any]:
        """Settings that win over claims and the ini file: no margin, where the profile says so."""
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
            raise unknown(setting, tuple(FIELDS), "A profile has no setting", "Valid settings")
        read = read_field(setting, value)
        values.pop(setting, None)
        if read is not None:
            values[setting] = read
    _PROFILES[name] = Profile(name, values)


def load_profile(name: str) -> None:
    """Take this profile for all audits by pytest, unless ``--dp-profile`` names another one.

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
        raise ClaimError(
            f"There is no profile {name!r}.{did_you_mean(name, _PROFILES)} Registered: "
            f"{', '.join(map(repr, _PROFILES))}. Register others by pytest_dp.register_profile in "
            "conftest.py."
        )
    return _PROFILES[name]


def choose_profile(option: str | None, ini: str | None) -> Profile:
    """Choose the profile of a run: command line, `load_profile`, ini file, or CI, in this order."""
    by_environment = "ci" if in_ci() else "default"
    return find_profile(option or (_loaded[0] if _loaded else None) or ini or by_environment)


def of_ci(option: str | None, ini: str | None) -> Profile:
    """Return the profile of runs in CI, as far as files say: asked anywhere, the same.

    What `load_profile` chose counts in CI only, as it often depends on where it is called.
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
