"""The additive model against closed forms, and the bins that it is made of."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learning import both, compared, gain, learned
from sklearn.linear_model import LogisticRegression

from benchmarks import vectorized
from pytest_dp.betting.feature_bins import bins_of, output_categories
from pytest_dp.outputs.feature import LEN, leaf
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate

pytestmark = pytest.mark.slow

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


def few_in_a_range(d, rng, n):
    hit = rng.random(n) < [0.06, 0.01][d]
    return np.where(hit, 0.5 + 0.02 * rng.random(n), rng.random(n))


def odds_in_a_range(x):
    inside = math.log((0.94 * 0.02 + 0.06) / (0.99 * 0.02 + 0.01))
    return np.where((x >= 0.5) & (x < 0.52), inside, math.log(0.94 / 0.99))


LAWS = {
    "sums, taken apart into differences": (
        lambda d, rng, n: vectorized.prefix_sum([d] * 10, 0.3, rng, n),
        lambda x: laplace_odds(np.diff(x, axis=1, prepend=0), 0.3).sum(axis=1),
        (40_000, 0.9, 0.9),
    ),
    "thinly spread over many coordinates": (
        lambda d, rng, n: 0.1 * d + rng.normal(size=(n, 30)),
        lambda x: 0.1 * (0.05 - x).sum(axis=1),
        (20_000, 0.9, 0.8),
    ),
    "a narrow range": (few_in_a_range, odds_in_a_range, (10_000, 0.7, 0.5)),
}


@pytest.mark.parametrize("law", LAWS)
def test_log_odds_against_closed_forms(law):
    draw, exact, (runs, related, gained) = LAWS[law]
    odds, truth, first = compared(draw, exact, runs, 5)
    assert np.corrcoef(odds, truth)[0, 1] > related
    assert gain(odds, first) > gained * gain(truth, first)


@pytest.mark.spot(2)
def test_inputs_that_never_share_an_output():
    def draw(d, rng, n):
        return 3 * d + rng.random(n)

    odds, _, first = compared(draw, lambda x: x, 5_000, 7, "logistic")
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


# -- Bins ---------------------------------------------------------------------------------------

OUTPUT = leaf("output")


def test_numbers_are_binned_in_order():
    x = np.random.default_rng(40).standard_cauchy(20_000)
    found = bins_of(OUTPUT, tabulate(x), 20)
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
    found = bins_of(OUTPUT, tabulate(outputs), 16)
    seen = [0.5, -math.inf, math.nan, None, "n/a", Raised("KeyError"), [1.0]]
    codes = found.codes(tabulate([*seen, "never seen", Raised("OSError")])).tolist()
    assert codes[-1] == codes[-2] == found.width - 1
    assert len({*codes}) == len(seen) + 1
    assert all(found.ordered <= code < found.width for code in codes)
    near = [np.nextafter(0.5, 0), np.nextafter(0.5, 1)]  # which are equal but for rounding
    assert found.codes(tabulate(near)).tolist() == [codes[0]] * 2
    assert found.codes(tabulate([0.5 - 1e-11, 0.5 + 1e-11])).max() < found.ordered
    exactly = bins_of(replace(OUTPUT, exact=True), tabulate(outputs), 16)
    assert exactly.codes(tabulate(near)).max() < exactly.ordered
    # The same numbers alone, in a table without anything special.
    alone = found.codes(tabulate(np.array([0.5, -np.inf, np.nan, 0.4])))
    assert alone.tolist()[:3] == codes[:3]


def test_few_values_have_a_bin_each():
    values = np.array([-1e300, -3.0, 0.0, np.nextafter(0, 1), 1.0, 7.0, 1e300])
    found = bins_of(replace(OUTPUT, exact=True), tabulate(np.repeat(values, 30)), 20)
    assert found.codes(tabulate(values)).tolist() == list(range(7))
    found = bins_of(OUTPUT, tabulate(np.repeat(values, 30)), 20)
    assert found.codes(tabulate(values)).tolist() == [0, 1, 2, 2, 3, 4, 5]


def test_whole_outputs_as_categories():
    outputs = [[0, 1], [1, 0], [1, 1]] * 40
    found = output_categories(tabulate(outputs), 200, 4.0)
    codes = found.codes(tabulate([[1, 1], [0, 1], [0, 1], [1, 0], [0, 0], (0, 1)])).tolist()
    assert codes[1] == codes[2]
    assert len({codes[0], codes[1], codes[3]}) == 3
    assert codes[4] == codes[5] == found.width - 1 == 3
    of_one_call = output_categories(tabulate(np.array(outputs)), 200, 4.0)
    assert of_one_call.codes(tabulate([np.array([1, 1])])) < 3, "whose types are not known"
    assert output_categories(tabulate(outputs), 2, 4.0) is None, "too many"
    assert output_categories(tabulate(outputs), 200, 41.0) is None, "each is too rare"
    rare = np.random.default_rng(0).normal(size=10_000)
    assert output_categories(tabulate(rare), 200, 4.0) is None


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
        found = bins_of(feature, table, most)
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
    everything = output_categories(table, 200, 0.0)
    assert (everything.codes(tabulate([*fresh, *seen])) < everything.width).all()
    assert (everything.codes(table) < everything.width - 1).all()
