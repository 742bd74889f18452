"""From options, ini keys and profiles to the settings of a run."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.claim import Claim
from pytest_dp.claiming.profiles import Profile, choose_profile, in_ci, of_ci
from pytest_dp.claiming.setting_fields import FIELDS, GRADES, OPTIONS, flag_of
from pytest_dp.claiming.settings import Settings, read_text, settings_for
from pytest_dp.plugin.claim_session import claim_session_of
from pytest_dp.plugin.names import ini, option_or_ini
from pytest_dp.plugin.selection import typed_options


def configure(config: pytest.Config) -> None:
    """Check the options, and draw the seed of ``--dp-seed=random``, before collection."""
    profile = profile_of(config)
    if profile.values:
        claim_session_of(config).profile = profile.name
    _of_run(config)  # values that make no sense are said now
    given = getattr(config, "workerinput", {})
    backend = given.get("dp_backend") or option_or_ini(config, "backend")
    if backend:
        from pytest_dp.plugin.backend import connect

        cluster = connect(config, str(backend))
        config.option.dp_backend = cluster.backend
        if option_or_ini(config, "jobs") is None:
            config.option.dp_jobs = str(cluster.processes)
    seed = option_or_ini(config, "seed")
    if seed is None:
        seed = profile.values.get("seed")
    if seed == "random":
        # An xdist worker is given the seed of the run.
        seed = given.get("dp_seed") or secrets.randbits(32)
    config.option.dp_seed = format(seed, "x") if isinstance(seed, int) else seed


def settings_of(config: pytest.Config, claim: Claim) -> Settings:
    """Return a claim's settings from the command line, claim, ini file, profile and defaults.

    A profile says what holds where nobody said anything: who wrote effort into a claim knows what
    its mechanism costs. Only a profile without a margin beats it in that: a margin saves time, and
    such a profile is for runs that have it. Of what the ini file, the command line and the claim
    ask of a pass, the highest grade holds.
    """
    return _layer_settings(config, profile_of(config), claim, _of_options(config))


def settings_of_files(config: pytest.Config, claim: Claim) -> Settings:
    """Return the settings that files give: those with which CI audits the claim.

    Options that somebody types say how one run goes about it; all others are in a file, such as
    those of ``addopts``, or what ``conftest.py`` makes of them.
    """
    options = _not_typed(config)
    try:
        profile = of_ci(options.get("profile"), ini(config, "profile"))
    except ClaimError as error:
        raise pytest.UsageError(f"profile of this project: {error}") from None
    return _layer_settings(config, profile, claim, _values(options.get, flag_of))


def _layer_settings(
    config: pytest.Config, profile: Profile, claim: Claim, options: Mapping[str, Any]
) -> Settings:
    file = _of_file(config)
    layers = (profile.settings, file, claim.effort, profile.overriding, options)
    settings = settings_for(*layers, vectorized=claim.arguments.vectorized is not None)
    of_run = {**file, **options}
    asked_for = [asked["at_least"] for asked in (of_run, claim.effort) if "at_least" in asked]
    return replace(settings, at_least=max(asked_for or [settings.at_least], key=GRADES.index))


def _of_options(config: pytest.Config) -> dict[str, Any]:
    return _values(lambda name: getattr(config.option, f"dp_{name}", None), flag_of)


def _of_file(config: pytest.Config) -> dict[str, Any]:
    return _values(partial(ini, config), lambda name: f"ini key dp_{name}")


def _values(given: Callable[[str], Any], said_by: Callable[[str], str]) -> dict[str, Any]:
    """Return the fields that are options, as values; those left open are left out."""
    values = {}
    for name in FIELDS.keys() & OPTIONS.keys():
        text = given(name)
        if text is None:
            continue
        try:
            value = read_text(name, str(text))
        except ClaimError as error:
            raise pytest.UsageError(f"{said_by(name)}: {error}") from None
        if value is not None:
            values[name] = value
    return values


def _not_typed(config: pytest.Config) -> dict[str, Any]:
    """Return our own options, by their names, that somebody else than the command line has set."""
    values = {name: getattr(config.option, f"dp_{name}", None) for name in (*FIELDS, "profile")}
    own = typed_options(config)
    return {name: value for name, value in values.items() if value and f"dp_{name}" not in own}


def profile_of(config: pytest.Config) -> Profile:
    """Return the profile of this run; raise UsageError if the given name is unknown."""
    option, file = getattr(config.option, "dp_profile", None), ini(config, "profile")
    try:
        return choose_profile(option, file)
    except ClaimError as error:
        where = "--dp-profile" if option else "ini key dp_profile"
        raise pytest.UsageError(f"{where}: {error}") from None


def accumulates(config: pytest.Config) -> bool:
    """Return whether evidence is kept, for later runs to add to."""
    return _of_run(config).accumulate


def only_changed(config: pytest.Config) -> bool:
    """Return whether claims that passed are audited again only after a change; never in CI."""
    run = _of_run(config)
    never = run.accumulate or in_ci() or profile_of(config).name == "ci"
    return run.changed and not never


def _of_run(config: pytest.Config) -> Settings:
    """Return the settings of this run for claims without settings of their own."""
    return Settings().over(profile_of(config).settings, _of_file(config), _of_options(config))
