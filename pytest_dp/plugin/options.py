"""From options and ini keys to `Settings`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from pytest_dp.claim import Claim
from pytest_dp.errors import ClaimError
from pytest_dp.keywords import NO_MARGIN, invalid, read_one
from pytest_dp.plugin.names import PROFILE, asked, ini
from pytest_dp.plugin.selection import TYPED, command_line
from pytest_dp.profiles import Profile, chosen, of_ci
from pytest_dp.settings import Settings


def configure(config: pytest.Config) -> None:
    """Check the options, and draw the seed of ``--dp-seed=random``, before collection."""
    profile = profile_of(config)
    if profile.values:
        config.stash[PROFILE] = profile.name
    read(config)
    strict(config)
    accumulates(config)
    backend = getattr(config, "workerinput", {}).get("dp_backend") or asked(config, "backend")
    if backend:
        from pytest_dp.plugin.backend import connect

        cluster = connect(config, str(backend))
        config.option.dp_backend = cluster.backend
        if asked(config, "jobs") is None:
            config.option.dp_jobs = str(cluster.processes)
    if getattr(config.option, "dp_seed", None) is None:
        config.option.dp_seed = ini(config, "seed") or profile.values.get("seed")
    if getattr(config.option, "dp_seed", None) == "random":
        # An xdist worker is given the seed of the run.
        given = getattr(config, "workerinput", {}).get("dp_seed")
        config.option.dp_seed = given or format(secrets.randbits(32), "x")


def settings_of(config: pytest.Config, claim: Claim) -> Settings:
    """The settings for one claim: command line over claim over ini file over profile over defaults.

    A profile says what holds where nobody said anything: who wrote effort into a claim knows what
    its mechanism costs. Only a profile without a margin beats it in that: a margin saves time, and
    such a profile is for runs that have it.
    """
    file, command_line = read(config)
    profile = profile_of(config)
    settings = Settings().over(profile.settings, file, claim.effort, profile.lifted, command_line)
    tells = settings.beyond == "tell"
    return replace(settings, beyond="fail") if tells and strict(config) else settings


def written(
    config: pytest.Config, claim: Claim, profile: Profile | None = None
) -> tuple[Settings, bool]:
    """The settings by what files say, and whether they are strict: as CI audits the claim.

    Options that somebody types say how one run goes about it; all others are in a file, such as
    those of ``addopts``, or what ``conftest.py`` makes of them. Of another `profile` than that of
    CI, what files say is how it goes about it.
    """
    options = _not_typed(config)
    try:
        profile = profile or of_ci(options.get("profile"), ini(config, "profile"))
    except ClaimError as error:
        raise pytest.UsageError(f"profile of this project: {error}") from None
    file, added = _parsed(partial(ini, config)), _parsed(options.get)
    strict = ini(config, "strict")
    strict = profile.values.get("strict", False) if strict is None else strict
    settings = Settings().over(profile.settings, file, claim.effort, profile.lifted, added)
    return settings, strict or "strict" in options


def typed_profile(config: pytest.Config) -> str | None:
    """The profile that the command line names."""
    return None if "profile" in _not_typed(config) else getattr(config.option, "dp_profile", None)


def _parsed(given: Callable[[str], Any]) -> dict[str, Any]:
    texts = {name: given(name) for name in _PARSERS}
    values = {
        _PARSERS[name][0]: _PARSERS[name][1](str(text).strip())
        for name, text in texts.items()
        if text is not None
    }
    return {setting: value for setting, value in values.items() if value is not None}


def _not_typed(config: pytest.Config) -> dict[str, Any]:
    """Our own options, by their names, that somebody else than the command line has set."""
    words = getattr(config, "workerinput", {}).get(TYPED) or command_line(config)
    typed = {word.partition("=")[0] for word in words}
    values = {}
    for name in (*_PARSERS, "profile", "strict"):
        value = getattr(config.option, f"dp_{name}", None)
        if value and f"--dp-{name.replace('_', '-')}" not in typed:
            values[name] = value
    return values


def profile_of(config: pytest.Config) -> Profile:
    """The profile of this run; raises UsageError if there is none of the name that was given."""
    option, file = getattr(config.option, "dp_profile", None), ini(config, "profile")
    try:
        return chosen(option, file)
    except ClaimError as error:
        where = "--dp-profile" if option else "ini key dp_profile"
        raise pytest.UsageError(f"{where}: {error}") from None


def strict(config: pytest.Config) -> bool:
    """Whether an inconclusive audit fails."""
    return _switched_on(config, "strict")


def accumulates(config: pytest.Config) -> bool:
    """Whether evidence is kept, for later runs to add to."""
    return _switched_on(config, "accumulate")


def _switched_on(config: pytest.Config, name: str) -> bool:
    """The command line can only switch on, and what the ini file says beats the profile."""
    file = ini(config, name)
    on = profile_of(config).values.get(name, False) if file is None else file
    return bool(getattr(config.option, f"dp_{name}", None) or on)


def read(config: pytest.Config) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ini keys and options as values; absent ones left out."""
    file: dict[str, Any] = {}
    command_line: dict[str, Any] = {}
    for name, (setting, parse) in _PARSERS.items():
        for where, given, label in (
            (file, ini(config, name), f"ini key dp_{name}"),
            (
                command_line,
                getattr(config.option, f"dp_{name}", None),
                f"--dp-{name.replace('_', '-')}",
            ),
        ):
            if given is None:
                continue
            try:
                value = parse(str(given).strip())
            except ClaimError as error:
                raise pytest.UsageError(f"{label}: {error}") from None
            if value is not None:
                where[setting] = value
    return file, command_line


def _number(text: str) -> float | str:
    """A number; what is none is left to the claim's validation, which says what is allowed."""
    try:
        return float(text)
    except ValueError:
        return text


def _whole(text: str) -> float | str:
    number = _number(text.replace("_", "").replace(",", ""))
    return int(number) if isinstance(number, float) and number.is_integer() else text


def _validated(name: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Parse, then apply the claim's own validation of the keyword of that name."""

    def checked(text: str) -> Any:
        return read_one(name, parse(text))

    return checked


def _margin(text: str) -> float:
    if text.lower() == "none":
        return NO_MARGIN
    margin: float = _validated("margin", _number)(text)
    return margin


def _jobs(text: str) -> int:
    jobs = _whole(text)
    if not isinstance(jobs, int) or jobs < 1:
        raise invalid("jobs", text, "Allowed: a whole number of processes, 1 or more.")
    return jobs


def _seed(text: str) -> int | None:
    if text == "random":
        return None  # `configure` puts a number in its place
    try:
        seed = int(text, 16)
    except ValueError:
        seed = -1
    if seed < 0:
        raise invalid(
            "seed",
            text,
            "Allowed: hexadecimal digits as a report shows them, such as 8f2c, or 'random'.",
        )
    return seed


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "method": ("method", _validated("method", str)),
    "alpha": ("alpha", _validated("alpha", _number)),
    "max_samples": ("max_samples", _validated("max_samples", _whole)),
    "max_seconds": ("max_seconds", _validated("max_seconds", _number)),
    "margin": ("margin", _margin),
    "beyond": ("beyond", _validated("beyond", str)),
    "jobs": ("n_jobs", _jobs),
    "seed": ("seed", _seed),
}
