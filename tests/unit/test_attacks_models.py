"""What holds for every model of an attack; logistic regression; classifiers that fail."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from learning import both, compared, gain, learned

from pytest_dp import ClaimError
from pytest_dp.betting.scores import scores
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate

pytestmark = pytest.mark.slow

# -- All models ---------------------------------------------------------------------------------


class Half:
    """A classifier that has nothing to say."""

    def fit(self, rows, labels):
        return self

    def predict_proba(self, rows):
        return np.full((len(rows), 2), 0.5)


OF_SCIKIT_LEARN = {
    "LogisticRegression": ("linear_model", {}),
    "RandomForestClassifier": ("ensemble", {"n_estimators": 10, "max_depth": 6}),
    "GaussianNB": ("naive_bayes", {}),
}
MODELS = ("additive", "logistic", "mlp", *OF_SCIKIT_LEARN)


def classifier_named(name):
    if name in OF_SCIKIT_LEARN:
        module, parameters = OF_SCIKIT_LEARN[name]
        return getattr(import_module(f"sklearn.{module}"), name)(**parameters)
    return None if name == "additive" else name


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
    return {name: learned(outputs, first, classifier_named(name)) for name in MODELS}


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
        classifier_named(name),
    )
    assert gain(odds, first) > 0.6 * gain(exact, first)
    assert np.corrcoef(odds, exact)[0, 1] > 0.85


# -- Classifiers that fail ----------------------------------------------------------------------


def saying(answer):
    """A classifier with this `predict_proba`."""
    return type("Saying", (Half,), {"predict_proba": lambda self, rows: answer(rows)})()


def failing(*_):
    raise RuntimeError("out of order")


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


def test_classes_in_another_order():
    from sklearn.linear_model import LogisticRegression

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
