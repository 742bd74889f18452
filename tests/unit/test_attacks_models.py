"""What holds for every model of an attack; logistic regression; classifiers that fail."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.naive_bayes import GaussianNB

from pytest_dp import ClaimError, Sequential
from pytest_dp.betting.additive import (
    CATEGORY_RIDGE,
    ORDERED_RIDGE,
    SMOOTHNESS,
    AdditiveScore,
    choose_columns,
    fit_weights,
)
from pytest_dp.betting.detector import cuts_of
from pytest_dp.betting.models import check_by_itself, fit_model, quantities
from pytest_dp.betting.scores import Attack, scores
from pytest_dp.claiming.settings import Settings
from pytest_dp.methods.dpsniper import best_cut, expected_bounds, threshold_attack
from pytest_dp.outputs.features import features
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.outputs.user_features import user_features
from pytest_dp.privacy import ApproximateDP, GaussianDP

pytestmark = pytest.mark.slow


def learned(outputs, first, classifier=None):
    """A model of these outputs, from the quantities that an audit would show it."""
    settings = Settings(method=Sequential(classifier=classifier))
    table = tabulate(outputs)
    return fit_model(classifier, table, first, quantities(settings, table, first), seed=0)


def both(draw, runs, seed):
    """Outputs on D (0) and on D' (1), and which are on D."""
    rng = np.random.default_rng(seed)
    sides = [draw(d, rng, runs) for d in (0, 1)]
    joined = [*sides[0], *sides[1]] if isinstance(sides[0], list) else np.concatenate(sides)
    return joined, np.arange(2 * runs) < runs


def gain(odds, first):
    """Nats per output by which log odds predict the input better than a coin."""
    return math.log(2) - float(np.logaddexp(0, np.where(first, -odds, odds)).mean())


def compared(draw, exact, runs, seed, classifier=None):
    """Log odds on fresh outputs: as learned, exact; and which outputs are on D."""
    model = learned(*both(draw, runs, seed), classifier)
    fresh, first = both(draw, 10_000, 1_000 + seed)
    return model.log_odds(tabulate(fresh)), exact(fresh), first


MODELS = {"additive": None, "logistic": "logistic", "mlp": "mlp", "scikit-learn": GaussianNB()}


def mixed(d, rng, n):
    """Outputs of many kinds; all of them tell a little."""
    kinds = rng.choice(6, n, p=[[0.3, 0.2, 0.2, 0.1, 0.1, 0.1], [0.1, 0.2, 0.3, 0.2, 0.1, 0.1]][d])
    return [
        [[x, y, z], [x, y], x, None, {"a": x, "b": "xy"[y > 0]}, Raised("KeyError")][kind]
        for kind, (x, y, z) in zip(kinds, rng.laplace(loc=d, size=(n, 3)).tolist(), strict=True)
    ]


@pytest.fixture(scope="module")
def models():
    outputs, first = both(mixed, 2_000, 20)
    return {name: learned(outputs, first, model) for name, model in MODELS.items()}


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

    def ratio(x):
        return scipy.stats.logistic.logpdf(x) - scipy.stats.logistic.logpdf(x, 1)

    odds, exact, first = compared(draw, ratio, 5_000, 23, MODELS[name])
    assert gain(odds, first) > 0.6 * gain(exact, first)
    assert np.corrcoef(odds, exact)[0, 1] > 0.85


LEAKS = {"nan": math.nan, "exception": Raised("ValueError"), "atom": 0.25, "length": [0.5, 0.5]}


@pytest.mark.parametrize("leak", LEAKS)
def test_whatever_is_special_is_learned(leak):
    def draw(d, rng, n):
        special = rng.random(n) < (0.3, 0.1)[d]
        return [LEAKS[leak] if s else x for s, x in zip(special, rng.laplace(size=n), strict=True)]

    model = learned(*both(draw, 5_000, 8))
    special, *plain = model.log_odds(tabulate([LEAKS[leak], *np.linspace(-1.5, 1.6, 8).tolist()]))
    assert special == pytest.approx(math.log(0.3 / 0.1), abs=0.25)
    assert np.mean(plain) == pytest.approx(math.log(0.7 / 0.9), abs=0.15)


@pytest.mark.parametrize(
    ("fit", "answer", "said"),
    [
        (lambda *_: 1 / 0, None, "fit raised ZeroDivisionError"),
        (lambda *_: None, lambda rows: 1 / 0, "predict_proba raised ZeroDivisionError"),
        (
            lambda *_: None,
            lambda rows: np.full((len(rows), 3), 1 / 3),
            r"of shape \(40, 3\) for 40 outputs. Allowed: shape \(40, 2\)",
        ),
    ],
)
def test_a_classifier_that_fails_is_named(fit, answer, said):
    class Saying:
        def fit(self, rows, labels):
            fit()
            return self

        def predict_proba(self, rows):
            return answer(rows)

    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 20, 32)
    with pytest.raises(ClaimError, match=f"Saying.*{said}"):
        scores(learned(outputs, first, Saying()), tabulate(outputs))


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
        ordered, others = part[: column.ordered_count], part[column.ordered_count :]
        loss += SMOOTHNESS / 2 * (np.diff(ordered) ** 2).sum()
        loss += ORDERED_RIDGE / 2 * (ordered**2).sum() + CATEGORY_RIDGE / 2 * (others**2).sum()
    return loss


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


@dataclass(frozen=True)
class Itself:
    """The posterior whose score is the output."""

    def log_odds(self, table):
        return table.leaf("output")[0]


@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=60),
    st.floats(0.001, 0.999),
    st.sampled_from([1, -1]),
)
def test_a_fixed_share_is_covered_exactly(values, c, sign):
    found = np.array(values, dtype=float)
    attack = threshold_attack(Itself(), sign, found, c)
    assert 0 <= attack.tie <= 1
    covered = math.fsum(attack(x) for x in values)
    assert covered == pytest.approx(c * len(values), abs=1e-9)
    # No output inside points less to its input than one outside.
    by_sign = sorted(values, key=lambda x: -sign * x)
    chances = [attack(x) for x in by_sign]
    assert chances == sorted(chances, reverse=True)
    assert len({chance for chance in chances if 0 < chance < 1}) <= 1


def test_the_paper_by_hand():
    attack = threshold_attack(Itself(), 1, np.array([5.0, 4, 4, 3, 3, 3, 2, 1, 0, 0]), 0.4)
    assert (attack.threshold, attack.tie) == (3.0, pytest.approx(1 / 3))
    assert [attack(x) for x in (4, 3, 2)] == [1.0, pytest.approx(1 / 3), 0.0]
    assert str(attack) == "score(output) > 3, and a random 33% of those at it"
    assert str(Attack(Itself(), 1, 0.5)) == "score(output) > 0.5"


@pytest.mark.parametrize("claim", [ApproximateDP(0.5, 1e-3), GaussianDP(0.5)], ids=str)
@pytest.mark.parametrize("distance", [0.3, -1.0])
def test_the_threshold_that_shows_most_of_a_claim(claim, distance):
    """Of normal noise, where all is known: nearly as much as the best one by known chances."""
    rng, far = np.random.default_rng(57), abs(distance)
    means = (far, 0.0) if distance > 0 else (0.0, far)
    found = [rng.normal(d, 1, 100_000) * distance for d in means]
    cuts = cuts_of(np.concatenate(found), 200)
    expect = partial(expected_bounds, claim, 2e5, 1e-6)
    sides = (np.bincount(np.searchsorted(cuts, x), minlength=len(cuts) + 1) for x in found)
    choice = best_cut(*sides, cuts, expect)
    chances = [scipy.stats.norm.sf(cuts, d * distance, far) for d in means]
    up, down = chances, [1 - p for p in chances[::-1]]
    worth = [expect(*side) for side in (up, down)]
    k = int(np.argmin(np.abs(cuts - choice.sign * choice.threshold)))
    best = np.nanmax(worth)
    assert worth[choice.sign < 0][k] > 0.93 * best - 0.01
    assert 0.8 * best - 0.02 < choice.expected < 1.15 * best + 0.002
    truth = (up if choice.sign > 0 else down)[0][k], (up if choice.sign > 0 else down)[1][k]
    assert (choice.p1, choice.p2) == pytest.approx(truth, rel=0.2, abs=2e-4)


class BatchSize:
    """A model whose answer is the number of outputs that it is asked about."""

    def log_odds(self, table):
        return np.full(len(table), float(len(table)))


def test_features_and_classifiers_that_look_at_other_outputs_are_refused():
    table, calls = tabulate(np.arange(100.0)), itertools.count()
    with pytest.raises(ClaimError, match="classifier= gives the same output another number"):
        check_by_itself(BatchSize(), [], table)
    remembering = user_features(lambda _: float(next(calls)), table)
    with pytest.raises(ClaimError, match="features= gives the same output another number"):
        check_by_itself(AdditiveScore((), ()), remembering, table)
    check_by_itself(AdditiveScore((), ()), user_features(abs, table), table)
