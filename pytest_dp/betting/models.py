"""Attacks: what tells outputs on one input from outputs on its neighbour, learned from samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.basics.errors import ClaimError
from pytest_dp.betting import additive, linear
from pytest_dp.claiming.settings import Settings
from pytest_dp.outputs.feature import Feature, about_extract
from pytest_dp.outputs.features import all_features, features, float_features, user_features
from pytest_dp.outputs.table import Table, tabulate

AS_PUBLISHED = ("logistic", "mlp")
"""The classifiers of the DP-Sniper paper, which are shown what they are shown there."""


class Posterior(Protocol):
    """A model of which input an output came from."""

    def log_odds(self, table: Table) -> Floats:
        """Return ``ln P(D | output) - ln P(D' | output)`` in nats for equal priors, shape (n,)."""


def quantities(settings: Settings, table: Table, on_d: Bools, paired: int = 0) -> list[Feature]:
    """Return what a classifier is shown of each output.

    The two classifiers of the paper see the numbers and categories of an output, all others also
    its sums, differences, extremes and counts. The user's own function, and the bits of doubles,
    come on top where the settings ask for them.

    Raises ClaimError if the user's function raises, or gives anything but as many numbers for every
    output.
    """
    if table.is_extract:
        return about_extract(table)
    if isinstance(settings.method.classifier, str) and settings.method.classifier in AS_PUBLISHED:
        about = [f for f in features(table, on_d, paired) if f.kind in ("leaf", "len")]
    else:
        about = all_features(table, on_d, paired)
    if settings.features is not None:
        about = about + user_features(settings.features, table)
    if settings.floating_point:
        about = [replace(feature, exact=True) for feature in about + float_features(table, on_d)]
    return about


def check_by_itself(model: Posterior, about: list[Feature], table: Table) -> None:
    """Make sure that the user's functions look at each output by itself.

    An event has to be one of single outputs: what remembers earlier outputs, or looks at a whole
    batch of them, may tell two inputs apart further than the mechanism's claim for one run. So an
    output that gets another number in other company raises ClaimError.
    """
    sample = [table.raw[int(i)] for i in np.linspace(0, len(table) - 1, 64).astype(int)]
    user = [feature for feature in about if feature.kind == "user"]

    def numbers(outputs: list[Any]) -> Floats:
        batch = tabulate(outputs)
        columns = [feature.columns(batch)[0] for feature in user]
        return np.stack([model.log_odds(batch), *columns])

    together = numbers(sample)
    backwards = numbers(sample[::-1])[:, ::-1]
    alone = np.concatenate([numbers([output]) for output in sample], axis=1)
    for other in (backwards, alone):
        close = [
            np.allclose(*rows, rtol=1e-4, atol=1e-6, equal_nan=True)
            for rows in zip(together, other, strict=True)
        ]
        if not all(close):
            what = "features" if not all(close[1:]) else "classifier"
            raise ClaimError(
                f"{what}= gives the same output another number when it comes in another order or "
                "by itself. It must look at each output by itself: no memory of earlier outputs, "
                "no statistics of a batch, no random numbers."
            )


def fit_model(
    classifier: Any, table: Table, on_d: Bools, features: list[Feature], seed: int
) -> Posterior:
    """Learn to tell the outputs on D from the others, of which there are about as many.

    The seed is for classifiers that draw random numbers. Raises ClaimError if the classifier fails.
    """
    if classifier is None or (isinstance(classifier, str) and classifier == "additive"):
        return additive.fit_additive(table, on_d, features)
    if isinstance(classifier, str) and classifier == "logistic":
        return linear.fit_logistic(table, on_d, features)
    return linear.fit_classifier(classifier, table, on_d, features, seed)
