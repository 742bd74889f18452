"""What a model of outputs is learned from, and the models of users."""

from __future__ import annotations

from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pair_state import PairState, quantities_of
from pytest_dp.basics.arrays import Bools
from pytest_dp.betting.models import Posterior, check_by_itself, fit
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.features import affordable
from pytest_dp.outputs.table import Table

OUTPUTS_PER_FEATURE = 250
"""Outputs for each feature that a model may learn from. With fewer it learns noise by heart; with
more it misses features."""


def outputs_to_learn(context: Context, state: PairState) -> tuple[Table, Bools, list[Feature]]:
    """Return the outputs on a pair, which of them are on D, and features that a model may use."""
    table, on_d = state.outputs.table()
    about = quantities_of(context, state, table, on_d, state.outputs.coupled)
    return table, on_d, affordable(about, table, on_d, OUTPUTS_PER_FEATURE)


def fit_chosen(context: Context, table: Table, on_d: Bools, about: list[Feature]) -> Posterior:
    """Fit the model that the method names, or the user's own."""
    return fit(context.method.classifier, table, on_d, about, context.seed)


def check_users_parts(
    context: Context, state: PairState, model: Posterior, about: list[Feature]
) -> None:
    """Raise ClaimError if the user's classifier or features make an event of several outputs."""
    if context.method.classifier is not None or context.settings.features is not None:
        check_by_itself(model, about, state.outputs.examples())
