import numpy as np
import pytest
from scipy.optimize import minimize

from pytest_dp.betting.additive import (
    CATEGORY_RIDGE,
    ORDERED_RIDGE,
    SMOOTHNESS,
    AdditiveScore,
    choose_columns,
    fit_weights,
)
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import tabulate


def columns_and_codes(outputs, on_d):
    table = tabulate(outputs)
    columns = choose_columns(table, features(table, on_d))
    return columns, [column.codes(table) for column in columns], table


def penalised_loss(weights, columns, codes, on_d):
    """Minus the penalised log likelihood, from its definition."""
    parts = np.split(weights, np.cumsum([column.width for column in columns])[:-1])
    odds = sum(part[code] for part, code in zip(parts, codes, strict=True))
    loss = np.logaddexp(0, np.where(on_d, -odds, odds)).sum()
    for part, column in zip(parts, columns, strict=True):
        ordered, others = part[: column.ordered], part[column.ordered :]
        loss += SMOOTHNESS / 2 * (np.diff(ordered) ** 2).sum()
        loss += ORDERED_RIDGE / 2 * (ordered**2).sum() + CATEGORY_RIDGE / 2 * (others**2).sum()
    return loss


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["numbers", "categories", "two numbers"])
def test_weights_are_those_of_the_penalised_likelihood(kind):
    """Against a general optimiser of the same loss."""
    rng = np.random.default_rng(3)
    on_d = np.arange(400) < 200
    shifted = on_d + rng.laplace(size=400)
    outputs = {
        "numbers": list(shifted),
        "categories": list(rng.integers(0, 9, 400) + 3 * on_d * rng.integers(0, 2, 400)),
        "two numbers": np.column_stack([shifted, rng.normal(size=400)]),
    }[kind]
    columns, codes, _ = columns_and_codes(outputs, on_d)
    assert columns
    found = np.concatenate(fit_weights(columns, codes, on_d))
    best = minimize(penalised_loss, np.zeros(len(found)), (columns, codes, on_d), method="BFGS")
    assert penalised_loss(found, columns, codes, on_d) <= best.fun + 0.02
    assert best.fun < penalised_loss(np.zeros(len(found)), columns, codes, on_d) - 1


def test_the_score_of_laplace_noise_is_its_log_ratio():
    rng, shift = np.random.default_rng(1), 1.0
    on_d = np.arange(40_000) < 20_000
    outputs = shift * on_d + rng.laplace(size=40_000)
    columns, codes, _ = columns_and_codes(outputs, on_d)
    model = AdditiveScore(tuple(columns), tuple(fit_weights(columns, codes, on_d)))
    asked = np.array([-1.5, 0.25, 0.75, 2.5])
    expected = np.abs(asked) - np.abs(asked - shift)
    assert model.log_odds(tabulate(list(asked))) == pytest.approx(expected, abs=0.15)
