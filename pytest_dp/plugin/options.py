"""From options and ini keys to `Settings`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest

from pytest_dp import claim as claims
from pytest_dp.claim import Claim
from pytest_dp.errors import ClaimError
from pytest_dp.settings import Settings, settle


def configure(config: pytest.Config) -> None:
    """Check the options, and draw the seed of ``--dp-seed=random``, before anything is collected.

    Raises
    ------
    pytest.UsageError
        If one of them makes no sense.
    """
    read(config)
    if getattr(config.option, "dp_seed", None) is None and config.getini("dp_seed"):
        config.option.dp_seed = config.getini("dp_seed")
    if getattr(config.option, "dp_seed", None) == "random":
        # Kept in the option, so that xdist hands the same seed to every worker.
        config.option.dp_seed = format(secrets.randbits(32), "x")


def settings_of(config: pytest.Config, claim: Claim) -> Settings:
    """The settings for one claim: command line over claim over ini file over defaults."""
    ini, command_line = read(config)
    return settle(claim, ini, command_line)


def strict(config: pytest.Config) -> bool:
    """Whether an inconclusive audit fails."""
    return bool(getattr(config.option, "dp_strict", None) or config.getini("dp_strict"))


def read(config: pytest.Config) -> tuple[dict[str, Any], dict[str, Any]]:
    """Ini keys and options as values; absent ones left out."""
    ini: dict[str, Any] = {}
    command_line: dict[str, Any] = {}
    for name, (setting, parse) in _PARSERS.items():
        for where, found, label in (
            (ini, config.getini(f"dp_{name}"), f"ini key dp_{name}"),
            (
                command_line,
                getattr(config.option, f"dp_{name}", None),
                f"--dp-{name.replace('_', '-')}",
            ),
        ):
            if found is None or found == "":
                continue
            try:
                value = parse(str(found).strip())
            except (ClaimError, ValueError) as error:
                raise pytest.UsageError(f"{label}: {error}") from None
            if value is not None:
                where[setting] = value
    return ini, command_line


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ClaimError(f"{text!r} is not a number.") from None


def _whole(text: str) -> int:
    number = _number(text.replace("_", "").replace(",", ""))
    if not number.is_integer():
        raise ClaimError(f"{text!r} is not a whole number.")
    return int(number)


def _validated(name: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Parse, then apply the claim's own validation of the keyword of that name."""

    def checked(text: str) -> Any:
        value = parse(text)
        claims.expand({"eps": 1.0, "pairs": [(0, 1)], name: value})
        return value

    return checked


def _jobs(text: str) -> int:
    jobs = _whole(text)
    if jobs < 1:
        raise ClaimError(f"{text!r} processes. Allowed: a whole number, 1 or more.")
    return jobs


def _seed(text: str) -> int | None:
    if text == "random":
        return None  # `configure` puts a number in its place
    try:
        return int(text, 16)
    except ValueError:
        raise ClaimError(
            f"{text!r} is no seed. Allowed: hexadecimal digits as a report shows them (8f2c), "
            "or 'random'."
        ) from None


_PARSERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "method": ("method", _validated("method", str)),
    "alpha": ("alpha", _validated("alpha", _number)),
    "max_samples": ("max_samples", _validated("max_samples", _whole)),
    "max_seconds": ("max_seconds", _validated("max_seconds", _number)),
    "jobs": ("n_jobs", _jobs),
    "seed": ("seed", _seed),
}
