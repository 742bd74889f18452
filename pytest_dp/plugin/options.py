"""From options and ini keys to `Settings`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import pytest

from pytest_dp.claim import Claim
from pytest_dp.errors import ClaimError
from pytest_dp.keywords import NO_MARGIN, invalid, read_one
from pytest_dp.plugin.names import ini
from pytest_dp.settings import Settings


def configure(config: pytest.Config) -> None:
    """Check the options, and draw the seed of ``--dp-seed=random``, before anything is collected.

    Raises
    ------
    pytest.UsageError
        If one of them makes no sense.
    """
    read(config)
    if getattr(config.option, "dp_seed", None) is None:
        config.option.dp_seed = ini(config, "seed")
    if getattr(config.option, "dp_seed", None) == "random":
        # An xdist worker is given the seed of the run.
        given = getattr(config, "workerinput", {}).get("dp_seed")
        config.option.dp_seed = given or format(secrets.randbits(32), "x")


def settings_of(config: pytest.Config, claim: Claim) -> Settings:
    """The settings for one claim: command line over claim over ini file over defaults."""
    file, command_line = read(config)
    return Settings().over(file, claim.effort, command_line)


def strict(config: pytest.Config) -> bool:
    """Whether an inconclusive audit fails."""
    return bool(getattr(config.option, "dp_strict", None) or ini(config, "strict"))


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
    "jobs": ("n_jobs", _jobs),
    "seed": ("seed", _seed),
}
