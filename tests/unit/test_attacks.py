"""Attacks: what is learned from samples, and where the threshold is put."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import laplace, norm
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from benchmarks import vectorized
from pytest_dp import ClaimError
from pytest_dp.attacks import fit, quantities
from pytest_dp.attacks.bins import MOST_CATEGORIES, Whole, bins, whole
from pytest_dp.attacks.threshold import (
    Attack,
    Cuts,
    Profile,
    Tally,
    best_cut,
    cautious,
    cuts_for,
    event_promise,
    first_share,
    fixed,
    quick_promise,
    scores,
)
from pytest_dp.claim import expand
from pytest_dp.evidence import ratio
from pytest_dp.outputs.features import LEN, leaf
from pytest_dp.outputs.table import tabulate
from pytest_dp.sampling.calling import Raised
from pytest_dp.sampling.pickling import cloudpickle


def learned(outputs, first, classifier=None, features=None, seed=0):
    """A model of these outputs, from the quantities that an audit would show it."""
    [claim] = expand(
        {"eps": 1.0, "pairs": [(0, 1)], "classifier": classifier, "features": features}
    )
    table = tabulate(outputs)
    return fit(classifier, table, first, quantities(claim, table, [], first), seed)


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
    fresh, first = both(draw, 20_000, 1_000 + seed)
    return model.log_odds(tabulate(fresh)), exact(fresh), first


# -- The additive model against closed forms --------------------------------------------------


def laplace_odds(x, eps):
    return eps * (np.abs(x - 1) - np.abs(x))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("eps", [0.2, 0.8])
def test_laplace_noise(sign, eps):
    def draw(d, rng, n):
        return sign * (d + rng.laplace(scale=1 / eps, size=n))

    odds, exact, first = compared(draw, lambda x: laplace_odds(sign * x, eps), 40_000, 1)
    assert np.corrcoef(odds, exact)[0, 1] > 0.98
    assert np.polyfit(odds, exact, 1)[0] == pytest.approx(1, abs=0.15)
    assert gain(odds, first) > 0.95 * gain(exact, first)
    # Both plateaus, which carry the whole loss.
    assert odds[exact > 0.999 * eps].mean() == pytest.approx(eps, rel=0.1, abs=0.02)
    assert odds[exact < -0.999 * eps].mean() == pytest.approx(-eps, rel=0.1, abs=0.02)


def test_a_leak_of_which_each_of_many_numbers_has_a_bit():
    def draw(d, rng, n):
        return d + rng.laplace(scale=40, size=(n, 20))

    def exact(outputs):
        return laplace_odds(outputs, 1 / 40).sum(axis=1)

    odds, exact_odds, _ = compared(draw, exact, 20_000, 1)
    assert np.corrcoef(odds, exact_odds)[0, 1] > 0.9  # number by number: 0.8


def test_a_leak_in_one_of_many_numbers():
    def draw(d, rng, n):
        return np.eye(20)[7] * d + rng.laplace(scale=2, size=(n, 20))

    odds, exact, _ = compared(draw, lambda x: laplace_odds(x[:, 7], 0.5), 20_000, 1)
    assert np.corrcoef(odds, exact)[0, 1] > 0.95


def test_randomised_response():
    def draw(d, rng, n):
        return np.where(rng.random(n) < 0.7, d, 1 - d)

    odds, exact, _ = compared(draw, lambda x: math.log(7 / 3) * np.where(x == 0, 1, -1), 40_000, 2)
    np.testing.assert_allclose(odds, exact, atol=0.03)


@pytest.mark.parametrize("form", [lambda k: k, lambda k: "xyz"[k], lambda k: [None, 2.5, "z"][k]])
def test_three_outcomes(form):
    chances = np.array([[0.2, 0.3, 0.5], [0.5, 0.4, 0.1]])
    exact = np.log(chances[0] / chances[1])

    def draw(d, rng, n):
        return [form(k) for k in rng.choice(3, n, p=chances[d]).tolist()]

    model = learned(*both(draw, 40_000, 3))
    odds = model.log_odds(tabulate([form(k) for k in range(3)]))
    np.testing.assert_allclose(odds, exact, atol=0.07)


def test_five_independent_coordinates():
    def draw(d, rng, n):
        return d + rng.laplace(scale=5, size=(n, 5))

    odds, exact, first = compared(draw, lambda x: laplace_odds(x, 0.2).sum(axis=1), 40_000, 4)
    assert np.corrcoef(odds, exact)[0, 1] > 0.95
    assert gain(odds, first) > 0.92 * gain(exact, first)


def test_sums_are_taken_apart_into_differences():
    def draw(d, rng, n):
        return vectorized.prefix_sum([d] * 10, 0.3, rng, n)

    def exact(x):
        return laplace_odds(np.diff(x, axis=1, prepend=0), 0.3).sum(axis=1)

    odds, truth, first = compared(draw, exact, 40_000, 5)
    assert gain(odds, first) > 0.9 * gain(truth, first)


def test_a_leak_thinly_spread_over_many_coordinates():
    def draw(d, rng, n):
        return 0.1 * d + rng.normal(size=(n, 30))

    odds, exact, first = compared(draw, lambda x: 0.1 * (0.05 - x).sum(axis=1), 20_000, 6)
    assert np.corrcoef(odds, exact)[0, 1] > 0.9
    assert gain(odds, first) > 0.8 * gain(exact, first)


@pytest.mark.parametrize("width", [1, 4])
def test_where_nothing_tells_the_scores_hardly_vary(width):
    losses = []
    for seed in range(6):
        model = learned(*both(lambda d, rng, n: rng.normal(size=(n, width)), 40_000, 10 + seed))
        odds = model.log_odds(tabulate(np.random.default_rng(seed).normal(size=(20_000, width))))
        # The exact held-out loss: either input is as likely, whatever the output.
        losses.append(float((np.logaddexp(0, odds) + np.logaddexp(0, -odds)).mean() / 2))
    excess = np.array(losses) - math.log(2)
    assert np.median(excess) <= 1e-5 * width
    assert excess.max() <= 3e-4


@pytest.mark.parametrize("classifier", [None, "logistic"])
def test_inputs_that_never_share_an_output(classifier):
    def draw(d, rng, n):
        return 3 * d + rng.random(n)

    odds, _, first = compared(draw, lambda x: x, 5_000, 7, classifier)
    assert np.isfinite(odds).all()
    # But for those in a bin across the gap.
    assert np.mean(odds[first] > 3) > 0.95
    assert np.mean(odds[~first] < -3) > 0.95


def noise_or(value, chances):
    def draw(d, rng, n):
        special = rng.random(n) < chances[d]
        return [value if s else x for s, x in zip(special, rng.laplace(size=n), strict=True)]

    return draw


LEAKS = {
    "nan": float("nan"),
    "none": None,
    "exception": Raised("ValueError"),
    "string": "n/a",
    "infinity": math.inf,
    "atom": 0.25,
    "bool": True,
    "length": [0.5, 0.5],
}


@pytest.mark.parametrize("classifier", [None, "logistic", LogisticRegression()])
@pytest.mark.parametrize("leak", LEAKS)
def test_whatever_is_special_is_learned(leak, classifier):
    if classifier is not None and leak == "atom":
        pytest.skip("one number among others is nothing to a linear model")
    chances = 0.3, 0.1
    model = learned(*both(noise_or(LEAKS[leak], chances), 5_000, 8), classifier)
    special, *plain = model.log_odds(tabulate([LEAKS[leak], *np.linspace(-1.5, 1.6, 8).tolist()]))
    assert special == pytest.approx(math.log(0.3 / 0.1), abs=0.25)
    assert np.mean(plain) == pytest.approx(math.log(0.7 / 0.9), abs=0.15)


@pytest.mark.parametrize("classifier", [None, "logistic"])
def test_the_length_of_longer_outputs_is_learned(classifier):
    def draw(d, rng, n):
        lengths = rng.geometric([0.5, 0.4][d], n)
        return [rng.laplace(size=k).tolist() for k in lengths.tolist()]

    def exact(outputs):
        lengths = np.array([len(output) for output in outputs])
        return math.log(0.5 / 0.4) + (lengths - 1) * math.log(0.5 / 0.6)

    odds, truth, first = compared(draw, exact, 8_000, 9, classifier)
    assert gain(odds, first) > 0.7 * gain(truth, first)


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
def test_a_model_survives_the_way_to_another_process(models, name):
    table = tabulate(both(mixed, 60, 22)[0])
    copied = cloudpickle.loads(cloudpickle.dumps(models[name]))
    np.testing.assert_array_equal(copied.log_odds(table), models[name].log_odds(table))


@pytest.mark.parametrize("name", MODELS)
def test_outputs_unlike_any_before(models, name):
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
    assert np.isfinite(scores(models[name], tabulate(new))).all()
    for one in new:
        assert np.isfinite(scores(models[name], tabulate([one]))).all()
    assert scores(models[name], tabulate([])).shape == (0,)


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
def test_which_input_is_first_only_turns_the_sign(name):
    outputs, first = both(lambda d, rng, n: 2 * d + rng.normal(size=n), 3_000, 24)
    table = tabulate(np.linspace(-1, 3, 21))
    one = learned(outputs, first, MODELS[name]).log_odds(table)
    other = learned(outputs, ~first, MODELS[name]).log_odds(table)
    assert one[0] > 1 > -1 > one[-1]
    assert other[0] < -1 < 1 < other[-1]


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_decides_and_the_global_generator_is_left_alone(name):
    outputs, first = both(lambda d, rng, n: d + rng.laplace(size=(n, 2)), 1_000, 25)
    fresh = tabulate(both(lambda d, rng, n: d + rng.laplace(size=(n, 2)), 200, 26)[0])
    found = []
    for noise in (1, 2):
        np.random.seed(noise)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        model = learned(outputs, first, MODELS[name], seed=5)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        found.append(model.log_odds(fresh))
    np.testing.assert_array_equal(found[0], found[1])
    if name in ("mlp", "RandomForestClassifier"):
        other = learned(outputs, first, MODELS[name], seed=6).log_odds(fresh)
        assert np.abs(other - found[0]).max() > 1e-6


def test_the_users_classifier_is_not_changed():
    classifier = LogisticRegression()
    learned(*both(lambda d, rng, n: d + rng.normal(size=n), 500, 27), classifier)
    assert not hasattr(classifier, "coef_")
    assert classifier.random_state is None


@pytest.mark.parametrize("classifier", [None, "logistic", "mlp", LogisticRegression(), Half()])
@pytest.mark.parametrize("outputs", [np.full(200, 4.0), [None] * 200, [[1, "a"]] * 200])
def test_outputs_that_never_vary(classifier, outputs):
    model = learned(outputs, np.arange(200) < 100, classifier)
    odds = scores(model, tabulate(outputs[:3]))
    assert np.isfinite(odds).all()
    assert np.ptp(odds) == 0
    if classifier != "mlp":  # which keeps some of what it started with
        np.testing.assert_allclose(odds, 0, atol=0.05)


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


def test_the_classifiers_of_the_paper_see_an_output_as_it_is():
    outputs, first = both(lambda d, rng, n: d + rng.normal(size=(n, 3)), 50, 31)
    table = tabulate(outputs)

    def seen(**keywords):
        [claim] = expand({"eps": 1.0, "pairs": [(0, 1)], **keywords})
        return [feature.text for feature in quantities(claim, table, [], first)]

    plain = ["output[0]", "output[1]", "output[2]"]
    assert seen(classifier="logistic") == seen(classifier="mlp") == plain
    for classifier in (None, "additive", GaussianNB()):
        assert {*plain, "sum(output)", "output[1] - output[0]"} < set(seen(classifier=classifier))
    assert seen(classifier="mlp", features=max) == [*plain, "max(output)"]


# -- Classifiers that fail ----------------------------------------------------------------------


class Broken(Half):
    """A classifier that works up to a point."""

    def __init__(self, what):
        self.what = what

    def fit(self, rows, labels):
        if self.what == "fit":
            raise ValueError("not today")
        return self

    def predict_proba(self, rows):
        if self.what == "raise":
            raise RuntimeError("out of order")
        return {
            "flat": np.full(len(rows), 0.5),
            "three": np.full((len(rows), 3), 1 / 3),
            "one": np.full((len(rows), 1), 1.0),
            "short": np.full((len(rows) - 1, 2), 0.5),
            "text": [["a", "b"]] * len(rows),
        }[self.what]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("fit", "fit raised ValueError: not today"),
        ("raise", "predict_proba raised RuntimeError: out of order"),
        ("flat", r"of shape \(40,\) for 40 outputs"),
        ("three", r"of shape \(40, 3\) for 40 outputs. Allowed: shape \(40, 2\)"),
        ("one", r"of shape \(40, 1\) for 40 outputs"),
        ("short", r"of shape \(39, 2\) for 40 outputs"),
        ("text", "predict_proba raised ValueError"),
    ],
)
def test_a_classifier_that_fails_is_named(what, said):
    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 20, 32)
    with pytest.raises(ClaimError, match=f"Broken.*{said}"):
        scores(learned(outputs, first, Broken(what)), tabulate(outputs))


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


def test_what_a_classifier_cannot_tell_points_nowhere():
    class Unsure(Half):
        def predict_proba(self, rows):
            sure = np.where(rows[:, 0] > 0, 0.8, np.nan)
            return np.column_stack([1 - sure, sure])

    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 50, 35)
    odds = learned(outputs, first, Unsure()).log_odds(tabulate([-5.0, 5.0]))
    np.testing.assert_allclose(odds, [0, math.log(4)])


def test_a_classifier_that_knows_nothing_is_refused():
    class Lost(Half):
        def predict_proba(self, rows):
            return np.full((len(rows), 2), np.nan)

    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 50, 35)
    with pytest.raises(ClaimError, match="Lost: predict_proba returned nothing but NaN"):
        learned(outputs, first, Lost())


def test_probabilities_of_nought_and_one_are_finite():
    class Certain(Half):
        def predict_proba(self, rows):
            sure = (rows[:, 0] > 0).astype(float)
            return np.column_stack([1 - sure, sure])

    outputs, first = both(lambda d, rng, n: d + rng.normal(size=n), 50, 34)
    odds = learned(outputs, first, Certain()).log_odds(tabulate(outputs))
    assert np.isfinite(odds).all()
    assert odds.min() < -20 < 20 < odds.max()


# -- Bins ---------------------------------------------------------------------------------------

OUTPUT = leaf("output")


def test_numbers_are_binned_in_order():
    x = np.random.default_rng(40).standard_cauchy(20_000)
    found = bins(OUTPUT, tabulate(x), 20)
    codes = found.codes(tabulate(np.sort(x))).astype(int)
    assert found.ordered == len(found.cuts) + 1
    assert 10 <= found.ordered <= 30
    assert (np.diff(codes) >= 0).all()
    assert codes[0] == 0
    assert codes[-1] == found.ordered - 1
    counts = np.bincount(codes, minlength=found.ordered)
    assert counts[:-1].min() >= 5
    # Far out into both tails, and still fine in the middle.
    assert counts[0] <= 100
    assert counts[-1] <= 100
    assert counts.max() < 4_000
    for k, cut in enumerate(found.cuts):
        around = tabulate([np.nextafter(cut, -np.inf), cut])
        assert found.codes(around).tolist() == [k, k + 1]


def test_what_is_special_has_a_bin_of_its_own():
    rng = np.random.default_rng(41)
    outputs = [
        *rng.normal(size=3_000).tolist(),
        *[0.5] * 300,
        *[-math.inf] * 200,
        *[math.nan] * 200,
        *[None] * 100,
        *["n/a"] * 100,
        *[Raised("KeyError")] * 100,
        *[[1.0]] * 100,
    ]
    found = bins(OUTPUT, tabulate(outputs), 16)
    seen = [0.5, -math.inf, math.nan, None, "n/a", Raised("KeyError"), [1.0]]
    codes = found.codes(tabulate([*seen, "never seen", Raised("OSError")])).tolist()
    assert codes[-1] == codes[-2] == found.width - 1
    assert len({*codes}) == len(seen) + 1
    assert all(found.ordered <= code < found.width for code in codes)
    near = found.codes(tabulate([np.nextafter(0.5, 0), np.nextafter(0.5, 1)])).tolist()
    assert max(near) < found.ordered
    # The same numbers alone, in a table without anything special.
    alone = found.codes(tabulate(np.array([0.5, -np.inf, np.nan, 0.4])))
    assert alone.tolist()[:3] == codes[:3]


def test_few_values_have_a_bin_each():
    values = np.array([-1e300, -3.0, 0.0, np.nextafter(0, 1), 1.0, 7.0, 1e300])
    found = bins(OUTPUT, tabulate(np.repeat(values, 30)), 20)
    assert found.codes(tabulate(values)).tolist() == list(range(7))


def test_a_narrow_range_of_numbers_stands_out():
    def draw(d, rng, n):
        hit = rng.random(n) < [0.06, 0.01][d]
        return np.where(hit, 0.5 + 0.02 * rng.random(n), rng.random(n))

    def exact(x):
        inside = math.log((0.94 * 0.02 + 0.06) / (0.99 * 0.02 + 0.01))
        return np.where((x >= 0.5) & (x < 0.52), inside, math.log(0.94 / 0.99))

    odds, truth, first = compared(draw, exact, 10_000, 42)
    assert gain(odds, first) > 0.5 * gain(truth, first)


def test_what_never_varies_has_no_bins():
    assert bins(OUTPUT, tabulate([3.0] * 50), 10) is None
    assert bins(OUTPUT, tabulate([None] * 50), 10) is None
    assert bins(OUTPUT, tabulate([math.nan] * 50), 10) is None or True
    assert bins(LEN, tabulate([[1.0, 2.0], [3.0, 5.0]] * 25), 10) is None
    assert bins(OUTPUT, tabulate([3.0, None] * 25), 10) is not None
    assert bins(OUTPUT, tabulate([3.0, math.nan] * 25), 10) is not None


def test_very_many_categories():
    outputs = [f"word {k}" for k in range(5_000)] + ["often"] * 50
    found = bins(OUTPUT, tabulate(outputs), 10)
    assert len(found.categories) == MOST_CATEGORIES
    assert ("str", "often") in found.categories or any("often" in c for c in found.categories)
    assert found.codes(tabulate(outputs)).max() == found.width - 1


def test_whole_outputs_as_categories():
    outputs = [[0, 1], [1, 0], [1, 1]] * 40
    found = whole(tabulate(outputs), 200, 4.0)
    assert isinstance(found, Whole)
    codes = found.codes(tabulate([[1, 1], [0, 1], [0, 1], [1, 0], [0, 0], (0, 1)])).tolist()
    assert codes[1] == codes[2]
    assert len({codes[0], codes[1], codes[3]}) == 3
    assert codes[4] == codes[5] == found.width - 1 == 3
    assert whole(tabulate(outputs), 2, 4.0) is None, "too many"
    assert whole(tabulate(outputs), 200, 41.0) is None, "each is too rare"
    rare = np.random.default_rng(0).normal(size=10_000)
    assert whole(tabulate(rare), 200, 4.0) is None


ANY = st.one_of(
    st.floats(),
    st.integers(-3, 3),
    st.sampled_from([None, "a", "b", True, False, Raised("KeyError"), 0.5, 1e308, -1e308, 5e-324]),
    st.lists(st.floats(), max_size=3),
)


@given(st.lists(ANY, min_size=1, max_size=60), st.lists(ANY, max_size=20), st.integers(1, 20))
def test_no_output_is_outside_the_bins(seen, fresh, most):
    table = tabulate(seen)
    for feature in (OUTPUT, LEN, leaf("output[1]")):
        found = bins(feature, table, most)
        if found is None:
            continue
        assert (np.diff(found.cuts) > 0).all()
        for outputs in (seen, fresh, seen[::-1] + fresh):
            codes = found.codes(tabulate(outputs))
            assert len(codes) == len(outputs)
            assert (codes < found.width).all()
        # Finite numbers are in order, whatever else there is.
        numbers = np.sort([x for x in seen if type(x) is float and math.isfinite(x)])
        codes = found.codes(tabulate(numbers)).astype(int)
        ordered = codes[codes < found.ordered]
        if feature is OUTPUT:
            assert (np.diff(ordered) >= 0).all()
    everything = whole(table, 200, 0.0)
    assert (everything.codes(tabulate([*fresh, *seen])) < everything.width).all()
    assert (everything.codes(table) < everything.width - 1).all()


# -- The threshold ------------------------------------------------------------------------------


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
    attack = fixed(Itself(), sign, found, c)
    assert 0 <= attack.tie <= 1
    covered = math.fsum(attack(x) for x in values)
    assert covered == pytest.approx(c * len(values), abs=1e-9)
    # No output inside points less to its input than one outside.
    by_sign = sorted(values, key=lambda x: -sign * x)
    chances = [attack(x) for x in by_sign]
    assert chances == sorted(chances, reverse=True)
    assert len({chance for chance in chances if 0 < chance < 1}) <= 1


def test_the_paper_by_hand():
    attack = fixed(Itself(), 1, np.array([5.0, 4, 4, 3, 3, 3, 2, 1, 0, 0]), 0.4)
    assert (attack.threshold, attack.tie) == (3.0, pytest.approx(1 / 3))
    assert [attack(x) for x in (4, 3, 2)] == [1.0, pytest.approx(1 / 3), 0.0]
    assert str(attack) == "score(output) > 3, and a random 33% of those at it"
    mirrored = fixed(Itself(), -1, np.array([5.0, 4, 4, 3, 3, 3, 2, 1, 0, 0]), 0.45)
    assert (mirrored.threshold, mirrored.tie) == (-3.0, pytest.approx(1 / 6))
    assert [mirrored(x) for x in (2, 3, 4)] == [1.0, pytest.approx(1 / 6), 0.0]
    assert str(Attack(Itself(), 1, 0.5)) == "score(output) > 0.5"


def test_outputs_are_counted_where_they_are():
    attack = Attack(Itself(), -1, -1.0, 0.25)
    outputs = [0.0, 1.0, 1.0, 2.0, 0.5]
    assert [attack(x) for x in outputs] == [1.0, 0.25, 0.25, 0.0, 1.0]
    assert Tally(attack, None)(outputs).tolist() == [5, 2, 2, 0, 0]
    assert Tally(None, None)(outputs).tolist() == [5, 0, 0, 0, 0]
    assert Tally(None, None, attack)(outputs).tolist() == [5, 0, 0, 0, 2]
    profile = Profile(Itself(), np.array([0.25, 1.5]), None)
    assert profile(outputs).tolist() == [1, 3, 1, 0]


def promised(p1, p2, runs, alpha):
    """What events promise if their probabilities are known."""
    share = first_share(p1, p2)
    return ratio.predicted(p1, runs * share, p2, runs * (1 - share), alpha)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("runs", [2e4, 1e6])
def test_the_best_threshold_is_found(turned, runs):
    # Ever rarer outcomes with ever more loss towards one of the inputs.
    steps = np.arange(20)
    p = 0.6**steps
    p /= p.sum()
    q = p * np.exp(-0.1 * steps)
    q /= q.sum()
    if turned:
        p, q = q, p
    levels = np.log(p / q)
    order = np.argsort(levels)
    rng = np.random.default_rng(50)
    one, two = (rng.multinomial(1_000_000, law[order]) for law in (p, q))
    sorted_levels = levels[order]
    cuts = cuts_for(np.repeat(sorted_levels, 3), 1_000_000)
    np.testing.assert_allclose(cuts.levels, sorted_levels)
    assert ((cuts.at > sorted_levels[:-1]) & (cuts.at < sorted_levels[1:])).all()
    choice = best_cut(one, two, cuts, runs, 1e-3)
    above = [[law[order][k:].sum() for k in range(1, 20)] for law in (p, q)]
    up = promised(np.array(above[0]), np.array(above[1]), runs, 1e-3)
    down = promised(1 - np.array(above[1]), 1 - np.array(above[0]), runs, 1e-3)
    best = np.nanmax(np.append(up, down))
    assert choice.sign == (1 if np.nanmax(up) >= np.nanmax(down) else -1)
    k = int(np.searchsorted(cuts.at, choice.sign * choice.threshold))
    assert (up if choice.sign > 0 else down)[k] > 0.97 * best
    assert best * 0.85 < choice.promise < best * 1.03
    inside = (p, q) if choice.sign > 0 else (q, p)
    part = slice(k + 1, None) if choice.sign > 0 else slice(None, k + 1)
    assert choice.p1 == pytest.approx(inside[0][order][part].sum(), rel=0.15)
    assert choice.p2 == pytest.approx(inside[1][order][part].sum(), rel=0.15)


def test_both_directions_are_mirror_images():
    rng = np.random.default_rng(51)
    levels = np.linspace(-1, 1.5, 12)
    one, two = rng.integers(50, 500, 12), rng.integers(50, 500, 12)
    cuts = Cuts(1_000, (levels[:-1] + levels[1:]) / 2, levels)
    mirrored = Cuts(1_000, -cuts.at[::-1], -levels[::-1])
    a = best_cut(one, two, cuts, 1e4, 0.01)
    b = best_cut(two[::-1], one[::-1], mirrored, 1e4, 0.01)
    assert a.sign == -b.sign
    assert a.threshold == pytest.approx(b.threshold)
    assert (a.p1, a.p2, a.promise) == pytest.approx((b.p1, b.p2, b.promise), rel=1e-4)


def test_of_directions_that_promise_as_much_one_can_be_favoured():
    cuts = Cuts(100_000, np.array([0.0]), np.array([-1.0, 1.0]))
    one, two = np.array([2_000, 6_010]), np.array([6_000, 2_000])
    for favoured in (1, -1):
        assert best_cut(one, two, cuts, 1e4, 0.01, favoured).sign == favoured
    # Not against the evidence: only on D is there an event that is rare on the other input.
    one, two = np.array([7_000, 1_000]), np.array([7_990, 10])
    for favoured in (1, 0, -1):
        assert best_cut(one, two, cuts, 1e4, 0.01, favoured).sign == 1


def test_nothing_to_cut():
    cuts = cuts_for(np.zeros(100), 50)
    assert len(cuts.at) == 0
    assert best_cut(np.array([100]), np.array([100]), cuts, 1e4, 0.05) is None


@pytest.mark.parametrize(("size", "ties"), [(300, False), (50_000, False), (50_000, True)])
def test_thresholds_cover_all_scores(size, ties):
    found = np.random.default_rng(52).laplace(size=size)
    found = np.round(found, 2 if ties else 9)
    cuts = cuts_for(found, size)
    assert (np.diff(cuts.at) > 0).all()
    assert len(cuts.levels) == len(cuts.at) + 1
    assert len(cuts.at) <= 600
    assert not np.isin(cuts.at, found).any()
    counts = np.bincount(np.searchsorted(cuts.at, found), minlength=len(cuts.levels))
    assert counts.min() >= 1
    assert 1 <= counts[0] <= 25
    assert 1 <= counts[-1] <= 25
    between = np.searchsorted(cuts.at, cuts.levels)
    np.testing.assert_array_equal(between, np.arange(len(cuts.levels)))


def chosen_and_best(cuts, counts, p1, p2, runs, alpha):
    """What the chosen cut is truly worth, and the best one; `p1`, `p2` are P(score > cut)."""
    choice = best_cut(*counts, cuts, runs, alpha)
    up, down = promised(p1, p2, runs, alpha), promised(1 - p2, 1 - p1, runs, alpha)
    k = int(np.argmin(np.abs(cuts.at - choice.sign * choice.threshold)))
    return (up if choice.sign > 0 else down)[k], np.nanmax(np.append(up, down))


def between(cuts, found):
    return np.bincount(np.searchsorted(cuts.at, found), minlength=len(cuts.levels))


def test_noise_in_the_scores_does_not_make_rare_events_attractive():
    # The scores tell one half of the outputs from the other, with a loss of 0.1 either way; the
    # rest of them is noise, which a rare event among hundreds can seem to be more than.
    spread, half = 0.03, 1 / (1 + math.exp(-0.1))
    right = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)

        def draw(chance, size, rng=rng):
            return np.where(rng.random(size) < chance, 0.05, -0.05) + rng.normal(0, spread, size)

        cuts = cuts_for(np.concatenate([draw(half, 50_000), draw(1 - half, 50_000)]), 50_000)
        counts = [between(cuts, draw(chance, 40_000)) for chance in (half, 1 - half)]
        high, low = norm.sf(cuts.at, 0.05, spread), norm.sf(cuts.at, -0.05, spread)
        p1, p2 = half * high + (1 - half) * low, (1 - half) * high + half * low
        chosen, best = chosen_and_best(cuts, counts, p1, p2, 300_000, 1e-6)
        right += chosen > 0.85 * best
    assert right >= 36


def test_a_model_that_fitted_noise_does_not_make_rare_events_attractive():
    # Half of all outputs lose 0.1 either way, and most others nearly as much.
    grid = np.linspace(-120, 120, 20_001)
    edges = np.concatenate([[-np.inf], (grid[:-1] + grid[1:]) / 2, [np.inf]])
    laws = [np.diff(laplace.cdf(edges, d, 10)) for d in (0, 1)]
    right = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)

        def draw(d, rng, size):
            return d + rng.laplace(scale=10, size=size)

        trained, first = both(draw, 20_000, 100 + seed)
        model = learned(trained, first)
        cuts = cuts_for(scores(model, tabulate(trained)), 20_000)
        if not len(cuts.at):
            continue
        counts = [between(cuts, scores(model, tabulate(draw(d, rng, 10_000)))) for d in (0, 1)]
        above = scores(model, tabulate(grid))[None, :] > cuts.at[:, None]
        chosen, best = chosen_and_best(cuts, counts, *(above @ law for law in laws), 300_000, 1e-6)
        right += chosen > 0.85 * best
    assert right >= 36


@pytest.mark.parametrize(
    ("c1", "c2"), [(500, 100), (100, 500), (30, 3), (4_000, 3_000), (9_900, 9_000)]
)
def test_what_an_event_promises(c1, c2):
    n, runs, alpha = 10_000, 50_000, 1e-3
    choice = event_promise(c1, n, c2, n, runs, alpha)
    turned = event_promise(c2, n, c1, n, runs, alpha)
    assert choice.sign == -turned.sign
    assert (choice.p1, choice.p2, choice.promise) == (turned.p1, turned.p2, turned.promise)
    if max(c1, c2) < 5_000:
        assert choice.sign == (1 if c1 > c2 else -1)
        high, low = max(c1, c2), min(c1, c2)
        assert choice.p1 < high / n
        assert choice.p2 > low / n
        assert choice.promise < math.log(high / low)
        known = float(promised(np.array(high / n), np.array(low / n), runs, alpha))
        assert choice.promise < known
        assert choice.promise > known - 3 * math.sqrt(1 / high + 1 / low) - 0.1
        assert event_promise(c1, n, c2, n, 10 * runs, alpha).promise > choice.promise
        rough = quick_promise(np.array([c1]), np.array([c2]), n, runs, alpha)[0]
        assert rough == pytest.approx(choice.promise, abs=0.25 * abs(choice.promise) + 0.1)


def test_an_event_that_was_hardly_seen_promises_nothing():
    assert event_promise(0, 1_000, 0, 1_000, 1e5, 0.05).promise == -math.inf
    assert event_promise(3, 1_000, 0, 1_000, 1e5, 0.05).promise == -math.inf
    assert event_promise(8, 1_000, 0, 1_000, 1e5, 0.05).promise > 0


def test_estimates_err_on_the_cautious_side():
    rng = np.random.default_rng(53)
    c1, c2 = rng.binomial(5_000, 0.1, 4_000), rng.binomial(5_000, 0.02, 4_000)
    p1, p2 = cautious(c1, 5_000, c2, 5_000)
    assert np.mean(p1 < 0.1) == pytest.approx(0.84, abs=0.04)
    assert np.mean(p2 > 0.02) == pytest.approx(0.84, abs=0.05)


@given(st.floats(1e-6, 0.999), st.floats(1e-6, 0.999))
def test_samples_are_shared_out_to_estimate_the_ratio_best(p1, p2):
    share = float(first_share(np.array(p1), np.array(p2)))
    grid = np.linspace(0.05, 0.95, 181)
    variance = (1 - p1) / p1 / grid + (1 - p2) / p2 / (1 - grid)
    best = float(variance.min())
    assert 0.05 <= share <= 0.95
    assert (1 - p1) / p1 / share + (1 - p2) / p2 / (1 - share) <= best * (1 + 1e-6)
