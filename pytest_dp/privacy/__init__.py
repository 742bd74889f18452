"""Guarantees of differential privacy: what they mean, and what follows from them."""

from __future__ import annotations

from pytest_dp.privacy.approximate import ApproximateDP
from pytest_dp.privacy.concentrated import GaussianDP, RenyiDP, ZeroConcentratedDP
from pytest_dp.privacy.constraints import HockeyStick, Renyi
from pytest_dp.privacy.functional import PrivacyProfile, TradeOff
from pytest_dp.privacy.guarantees import LARGEST_EPS, Guarantee
from pytest_dp.privacy.reading import NOTIONS, guarantee

__all__ = [
    "LARGEST_EPS",
    "NOTIONS",
    "ApproximateDP",
    "GaussianDP",
    "Guarantee",
    "HockeyStick",
    "PrivacyProfile",
    "Renyi",
    "RenyiDP",
    "TradeOff",
    "ZeroConcentratedDP",
    "guarantee",
]
