"""Losses that oracles find without a bet, and passes that rest on them."""

from __future__ import annotations

from pytest_dp.auditors.loss_oracle import KnownLosses
from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.auditors.session import Session
from pytest_dp.known_losses.analytic_check import AnalyticCheck
from pytest_dp.known_losses.known import Known, find_losses

__all__ = ["check_losses", "find_losses"]


def check_losses(session: Session, known: KnownLosses, pairs: ClaimPairs) -> AnalyticCheck:
    """Return the check of what is known of the pairs of an audit, which has made no run yet."""
    assert isinstance(known, Known)
    return AnalyticCheck(session, known, pairs)
