"""Promises of libraries, read from their own objects; each module needs the library it is about.

An entry of `pytest_dp.claims` is then a line: ``"count": opendp.claimed(measurement, d_in=1)``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.claiming.keywords import PRIVACY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_dp.privacy import PrivacyProfile


def import_library(package: str) -> Any:
    """Import a module of a library; raise ClaimError with pip's command if that fails."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0].replace("_", "-")
        raise ClaimError(
            f"pytest_dp.libraries needs the package {name}, which cannot be imported ({error}). "
            f"Run: pip install {name}"
        ) from None


def profile(curve: Callable[[float], float], name: str) -> PrivacyProfile:
    """Return a privacy profile by a curve of delta over eps, never above the curve.

    Calls the curve at many eps: a bound at one eps may imply a smaller delta at another one.
    """
    from pytest_dp.privacy import PrivacyProfile
    from pytest_dp.privacy.regions import Region, sampled_profile

    implied = Region.of_sticks(*sampled_profile(curve))
    return PrivacyProfile(implied.delta_at, name=name)


def refuse_promises(claim: dict[str, Any], source: str) -> None:
    """Raise ClaimError for keywords of a claim that the library's object states already."""
    for name in claim.keys() & {*PRIVACY, "neighbors"}:
        raise invalid(
            name,
            claim[name],
            f"It is read from the {source}. Leave it out, or write Claimed(mechanism, ...) for "
            "another claim.",
        )
