"""dp-accounting: its events and privacy loss distributions as guarantees."""

from __future__ import annotations

from typing import Any

from pytest_dp.basics.errors import invalid
from pytest_dp.libraries import import_library, profile
from pytest_dp.privacy import PrivacyProfile


def guarantee(promised: Any, *, replace: bool = False) -> PrivacyProfile:
    """Return the privacy profile that an event or a privacy loss distribution promises.

    Parameters
    ----------
    promised : DpEvent or PrivacyLossDistribution
        Any event that dp-accounting's ``PLDAccountant`` supports.
    replace : bool, optional
        Whether an event is about neighbours of which one has another record in place of one of the
        other; by default one has a record more.

    Returns
    -------
    PrivacyProfile
        For ``guarantee=`` of a claim: ``Claimed(mechanism, guarantee=guarantee(event), ...)``.
    """
    accounting = import_library("dp_accounting")
    pld = import_library("dp_accounting.pld")
    if isinstance(promised, accounting.DpEvent):
        relations = accounting.NeighboringRelation
        relation = relations.REPLACE_ONE if replace else relations.ADD_OR_REMOVE_ONE
        accountant = pld.PLDAccountant(neighboring_relation=relation)
        try:
            accountant.compose(promised)
        except accounting.UnsupportedEventError as error:
            raise invalid(
                "event",
                promised,
                f"Allowed: events that the PLDAccountant of dp-accounting supports with "
                f"{relation.name}. It says: {error}",
            ) from None
        name, curve = type(promised).__name__, accountant.get_delta
    elif isinstance(promised, pld.privacy_loss_distribution.PrivacyLossDistribution):
        name, curve = "PLD", promised.get_delta_for_epsilon
    else:
        raise invalid(
            "promised",
            promised,
            "Allowed: a DpEvent or a PrivacyLossDistribution of dp-accounting.",
        )
    return profile(curve, name)
