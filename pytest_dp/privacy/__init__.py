"""Guarantees of differential privacy: what they mean, and what follows from them."""

from __future__ import annotations

from pytest_dp.privacy.constraints import HockeyStick, Renyi

__all__ = ["HockeyStick", "Renyi"]
