"""What holds for every model of an attack; logistic regression; classifiers that fail."""

from __future__ import annotations

import math

import numpy as np
import pytest
from learning import both, compared, gain, learned
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from pytest_dp import ClaimError
from pytest_dp.betting.scores import scores
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.running.pickling import cloudpickle

pytestmark = pytest.mark.slow

# -- All models ---------------------------------------------------------------------------------


class Half:
    """A classifier that has nothing to say."""

    def fit(self, rows, labels):
        return self

    def predict_proba(self, rows):
        return np.full((len(rows), 2), 0.5)


MODELS = {
    "additive": None,
    "logistic": "logistic",
    "mlp": "mlp",
    "LogisticRegression": LogisticRegression(),
    "RandomForestClassifier": RandomForestClassifier(n_estimators=10, max_depth=6),
    "GaussianNB": GaussianNB(),
}


def mixed(d, rng, n):
    """Outputs of many kinds; all of them tell a little."""
    kinds = rng.choice(6, n, p=[[0.3, 0.2, 0.2, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.2, 0.1, 0.1]][d])
    x = rng.laplace(loc=d, size=(n, 3))
    forms = [
        lambda row: row.tolist(),
        lambda row: row[:2].tolist(),
        lambda row: float(row[0]),
        lambda row: None,
        lambda row: {"a": float(row[0]), "b": "xy"[int(row[1] > 0)]},
        lambda row: Raised("KeyError"),
    ]
    return [forms[kind](row) for kind, row in zip(kinds.tolist(), x, strict=True)]


@pytest.fixture(scope="module")
def models():
    outputs, first = both(mixed, 2_000, 20)
    return {name: learned(outputs, first, classifier) for name, classifier in MODELS.items()}


@pytest.mark.spot(3)
@pytest.mark.parametrize("name", MODELS)
def test_equal_outputs_score_equally(models, name):
    model, (outputs, _) = models[name], both(mixed, 60, 21)
    expected = scores(model, tabulate(outputs))
    assert len(np.unique(expected)) > 10
    for size in (1, 7, 64):
        parts = [outputs[i : i + size] for i in range(0, len(outputs), size)]
        found = np.concatenate([scores(model, tabulate(part)) for part in parts])
        np.testing.assert_array_equal(found, expected)
    # In another order, between others, and as part of another table.
    twice = scores(model, tabulate(outputs[::-1] + outputs))
    np.testing.assert_array_equal(twice, np.concatenate([expected[::-1], expected]))
    some = np.arange(len(outputs)) % 3 == 0
    np.testing.assert_array_equal(
        scores(model, tabulate(outputs).rows(some)), expected[np.flatnonzero(some)]
    )


@pytest.mark.parametrize("name", MODELS)
def test_outputs_unlike_any_before_and_models_from_another_process(models, name):
    new = [
        [1.0] * 7,
        [],
        "never seen",
        ("tuple", (1, 2)),
        {"c": [1, None]},
        Raised("OSError"),
        math.nan,
        -math.inf,
        1e300,
        np.zeros((2, 2)),
        [None, math.nan, "x"],
    ]
    model, copied = models[name], cloudpickle.loads(cloudpickle.dumps(models[name]))
    for outputs in (new, *([one] for one in new), both(mixed, 60, 22)[0]):
        odds = model.log_odds(tabulate(outputs))
        assert np.isfinite(odds).all()
        np.testing.assert_array_equal(copied.log_odds(tabulate(outputs)), odds)
    assert scores(model, tabulate([])).shape == (0,)


@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_a_shift(name):
    def draw(d, rng, n):
        return d + rng.logistic(size=n)

    odds, exact, first = compared(
        draw,
        lambda x: (
            x * 0
            + np.log(np.exp(-x) / (1 + np.exp(-x)) ** 2)
            - np.log(np.exp(1 - x) / (1 + np.exp(1 - x)) ** 2)
        ),
        5_000,
        23,
        MODELS[name],
    )
    assert gain(odds, first) > 0.6 * gain(exact, first)
    assert np.corrcoef(odds, exact)[0, 1] > 0.85


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_decides_and_which_input_is_first_only_turns_the_sign(name):
    outputs, first = both(lambda d, rng, n: 2 * d + rng.normal(size=n), 1_000, 25)
    fresh, found = tabulate(np.linspace(-1, 3, 21)), []
    for noise in (1, 2):
        np.random.seed(noise)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        model = learned(outputs, first, MODELS[name], seed=5)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        found.append(model.log_odds(fresh))
    np.testing.assert_array_equal(found[0], found[1])
    turned = learned(outputs, ~first, MODELS[name], seed=6).log_odds(fresh)
    assert found[0][0] > 1 > -1 > found[0][-1]
    assert turned[0] < -1 < 1 < turned[-1]
    if name in ("mlp", "RandomForestClassifier"):
        assert np.abs(turned + found[0]).max() > 1e-6


# -- Logistic regression ------------------------------------------------------------------------


def test_logistic_regression_is_at_its_optimum():
    def draw(d, rng, n):
        x = rng.normal(size=(n, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.2], [0, 0, 3.0]]) + 0.4 * d
        x[rng.random(n) < [0.05, 0.1][d], 1] = np.nan
        return x

    outputs, first = both(draw, 2_000, 30)
    model = learned(outputs, first, "logistic")
    # Newton's method on the same loss, with rows and the penalty written out here.
    missing = np.isnan(outputs[:, 1])
    columns = []
    for i in range(3):
        known = np.where(missing, np.nan, outputs[:, i]) if i == 1 else outputs[:, i]
        columns.append(np.nan_to_num((known - np.nanmean(known)) / np.nanstd(known)))
    rows = np.column_stack([*columns, missing, np.ones(len(outputs))])
    weights, penalty = np.zeros(5), np.array([1e-6] * 4 + [0.0])
    for _ in range(30):
        p = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (first - p) / len(rows) - penalty * weights
        bend = (rows.T * (p * (1 - p))) @ rows / len(rows) + np.diag(penalty)
        weights = weights + np.linalg.solve(bend, slope)
    assert np.abs(slope).max() < 1e-12
    assert np.abs(weights).min() > 0.05
    np.testing.assert_allclose(model.log_odds(tabulate(outputs)), rows @ weights, atol=2e-4)


# -- Classifiers that fail ----------------------------------------------------------------------


def saying(answer):
    """A classifier with this `predict_proba`."""
    return type("Saying", (Half,), {"predict_proba": lambda self, rows: answer(rows)})()


def failing(*_):
    raise RuntimeError("out of order")


def certain_of(sure):
    return lambda rows: np.column_stack([1 - sure(rows[:, 0] > 0), sure(rows[:, 0] > 0)])


@pytest.mark.parametrize(
    ("classifier", "said"),
    [
        (type("Saying", (Half,), {"fit": failing})(), "fit raised RuntimeError: out of order"),
        (saying(failing), "predict_proba raised RuntimeError: out of order"),
        (saying(lambda rows: rows[:, 0]), r"of shape \(40,\) for 40 outputs"),
        (
            saying(lambda rows: np.full((len(rows), 3), 1 / 3)),
            r"of shape \(40, 3\) for 40 outputs. Allowed: shape \(40, 2\)",
        ),
        (saying(lambda rows: rows[:, :1]), r"of shape \(40, 1\) for 40 outputs"),
        (saying(lambda rows: np.full((len(rows) - 1, 2), 0.5)), r"of shape \(39, 2\) for 40"),
        (saying(lambda rows: [["a", "b"]] * len(rows)), "predict_proba raised ValueError"),
        (saying(lambda rows: np.full((len(rows), 2), np.nan)), "returned only NaN"),
    ],
)
def test_a_classifier_that_fails_is_named(classifier, said):
    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 20, 32)
    with pytest.raises(ClaimError, match=f"Saying.*{said}"):
        scores(learned(outputs, first, classifier), tabulate(outputs))


@pytest.mark.parametrize(
    ("sure", "low", "high"),
    [
        (lambda above: np.where(above, 0.8, np.nan), (0, 0), (math.log(4),) * 2),  # cannot tell
        (lambda above: above.astype(float), (-30, -20), (20, 30)),  # of nought and one: finite
    ],
)
def test_odds_of_what_a_classifier_says(sure, low, high):
    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 50, 35)
    odds = learned(outputs, first, saying(certain_of(sure))).log_odds(tabulate([-5.0, 5.0]))
    assert low[0] <= odds[0] <= low[1]
    assert high[0] - 1e-9 <= odds[1] <= high[1] + 1e-9


def test_classes_in_another_order():
    class Turned(LogisticRegression):
        def fit(self, rows, labels):
            super().fit(rows, labels)
            self.classes_ = self.classes_[::-1]
            return self

        def predict_proba(self, rows):
            return super().predict_proba(rows)[:, ::-1]

    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 500, 33)
    table = tabulate([-2.0, 3.0])
    np.testing.assert_allclose(
        learned(outputs, first, Turned()).log_odds(table),
        learned(outputs, first, LogisticRegression()).log_odds(table),
    )
