"""Attacks: what tells outputs on one input from outputs on its neighbour, learned from samples."""

from __future__ import annotations

from typing import Any, Protocol

from pytest_dp.attacks import additive, linear
from pytest_dp.claim import Claim
from pytest_dp.outputs.features import (
    Feature,
    all_features,
    features,
    float_features,
    user_features,
)
from pytest_dp.outputs.table import Bools, Floats, Table

AS_PUBLISHED = ("logistic", "mlp")


class Posterior(Protocol):
    """A model of which input an output came from."""

    def log_odds(self, table: Table) -> Floats:
        """``ln P(D | output) - ln P(D' | output)`` under equal priors, in nats, shape (n,)."""


def quantities(claim: Claim, table: Table, references: list[Any], first: Bools) -> list[Feature]:
    """What a classifier is shown of each output.

    The two classifiers of the paper see the numbers and categories of an output, all others also
    its sums, differences, extremes and counts. The user's own function, and the bits of doubles,
    come on top where the claim asks for them.

    Raises
    ------
    ClaimError
        If the user's function raises, or gives anything but as many numbers for every output.
    """
    if isinstance(claim.classifier, str) and claim.classifier in AS_PUBLISHED:
        found = [f for f in features(table, [], first) if f.kind in ("leaf", "len")]
    else:
        found = all_features(table, references, first)
    if claim.features is not None:
        found = found + user_features(claim.features, table)
    if claim.floating_point:
        found = found + float_features(table, first)
    return found


def fit(
    classifier: Any, table: Table, first: Bools, features: list[Feature], seed: int
) -> Posterior:
    """Learn to tell the outputs in `first` from the others.

    Parameters
    ----------
    classifier : None, str or object
        As in a claim; None is ``"additive"``.
    table : Table
        Outputs on both inputs, about as many of each.
    first : ndarray of bool, shape (n,)
    features : list of Feature
    seed : int
        For classifiers that draw random numbers.

    Raises
    ------
    ClaimError
        If the classifier fails.
    """
    if classifier is None or (isinstance(classifier, str) and classifier == "additive"):
        return additive.fit(table, first, features)
    if isinstance(classifier, str) and classifier == "logistic":
        return linear.fit(table, first, features)
    return linear.fit_classifier(classifier, table, first, features, seed)
