"""Guarantees of differential privacy: what they mean, and what follows from them."""

from __future__ import annotations

from pytest_dp.privacy.approximate import ApproximateDP, AttackAUC, PrivacyProfile, TradeOff
from pytest_dp.privacy.composition import compose_profile, smallest_claim
from pytest_dp.privacy.concentrated import (
    GaussianDP,
    RenyiDP,
    ZeroConcentratedDP,
    renyi_to_delta,
)
from pytest_dp.privacy.guarantees import LARGEST_EPS, Guarantee, HockeyStick, Renyi
from pytest_dp.privacy.stated import (
    NOTIONS,
    STATED,
    gaussian_sigma,
    gdp_to_delta,
    gdp_to_eps,
    of_group,
    pure_to_gdp,
    pure_to_zcdp,
    rdp_to_delta,
    rdp_to_eps,
    read_guarantee,
    zcdp_to_delta,
    zcdp_to_eps,
)

__all__ = [
    "LARGEST_EPS",
    "NOTIONS",
    "STATED",
    "ApproximateDP",
    "AttackAUC",
    "GaussianDP",
    "Guarantee",
    "HockeyStick",
    "PrivacyProfile",
    "Renyi",
    "RenyiDP",
    "TradeOff",
    "ZeroConcentratedDP",
    "compose_profile",
    "gaussian_sigma",
    "gdp_to_delta",
    "gdp_to_eps",
    "of_group",
    "pure_to_gdp",
    "pure_to_zcdp",
    "rdp_to_delta",
    "rdp_to_eps",
    "read_guarantee",
    "renyi_to_delta",
    "smallest_claim",
    "zcdp_to_delta",
    "zcdp_to_eps",
]
