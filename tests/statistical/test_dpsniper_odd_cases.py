"""Whole audits with DP-Sniper: odd mechanisms, outputs and classifiers, bits, and memory."""

from __future__ import annotations

import math
import tracemalloc
from importlib import import_module

import numpy as np
import pytest
from boundary import laplace, randomized_response
from sniping import consistent, run, sniped

from benchmarks.cases import CORPUS
from pytest_dp import ClaimError, DPSniper, MechanismError, audit, queries, values

NUMBERS = {"pairs": [(0.0, 1.0)]}


pytestmark = pytest.mark.usefixtures("_without_blame")


# -- Odd mechanisms -------------------------------------------------------------------------------


@pytest.mark.parametrize("output", [42, None, "text", (1.0, None), math.nan])
@pytest.mark.parametrize(
    "more", [{}, {"method": DPSniper(c=0.01)}, {"method": DPSniper(classifier="logistic")}]
)
def test_what_never_varies_is_inconclusive(output, more):
    result = sniped(lambda d: output, vectorized=None, max_samples=2_000, **more)
    assert result.verdict == "inconclusive"
    assert any("returned the same value in all" in note for note in result.notes)


def test_no_noise_at_all_is_caught():
    result = sniped(lambda d: len(d), vectorized=None, max_samples=20_000)
    assert result.violated
    assert result.eps_lower > 4
    assert result.counterexample.counts[1] == 0
    assert result.counterexample.diagnosis


@pytest.mark.parametrize("keep", [0.85, 0.95, 0.999])
def test_randomized_response_that_hardly_ever_lies_is_caught(keep):
    result = sniped(randomized_response, 1.0, 1, params={"keep": keep}, inputs=values([0, 1]))
    assert result.violated
    true = math.log(keep / (1 - keep))
    assert 0.85 * true < result.eps_lower <= true


@pytest.mark.parametrize(
    ("more", "side"),
    [
        ({}, 0),
        ({}, 1),
        ({"method": DPSniper(classifier="logistic")}, 0),
        ({"method": DPSniper(c=0.01)}, 1),
    ],
)
def test_the_answer_itself_beside_noise_is_caught(more, side):
    def mechanism(records, rng, size):
        answer = np.full(size, len(records) if side else -len(records))
        return np.column_stack([rng.laplace(size=size), answer])

    result = sniped(mechanism, 1.0, max_samples=20_000, **more)
    assert result.violated
    assert result.eps_lower > 4


@pytest.mark.parametrize("c", [None, 0.01])
def test_a_mechanism_that_always_raises(c):
    with pytest.raises(MechanismError, match="no such patient"):
        sniped(
            lambda d, rng: {}["no such patient"],
            vectorized=None,
            max_samples=2_000,
            method=DPSniper(c=c),
        )


@pytest.mark.parametrize("max_samples", [1, 2, 3, 10, 47, 100])
@pytest.mark.parametrize("more", [{}, {"method": DPSniper(c=0.01)}, {"inputs": queries(3)}])
def test_hardly_any_samples(max_samples, more):
    def mechanism(data, rng, size):
        return rng.laplace(size=size)

    result = sniped(mechanism, max_samples=max_samples, **more)
    assert result.verdict in ("inconclusive", "no violation")
    if max_samples < 10:
        assert result.verdict == "inconclusive"
    assert result.eps_lower <= 1


@pytest.mark.spot(5)
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_every_mechanism_of_the_paper_runs(case):
    keywords = {**case.keywords(0.5, many=True), "max_samples": 800}
    result = sniped(case.vectorized, keywords.pop("eps"), **keywords)
    assert consistent(result)
    assert result.eps_lower <= case.truth(0.5)


OUTPUTS = {
    "text": lambda x, d: "abc"[int(abs(x)) % 3],
    "none or number": lambda x, d: None if x > 1 else x,
    "bools": lambda x, d: [x > 0, x > d],
    "nested": lambda x, d: (x, [2 * x, (None, "a")]),
    "dict": lambda x, d: {"mean": x, "n": int(x)},
    "matrix": lambda x, d: np.array([[x, 1.0], [0.5, -x]]),
    "empty or not": lambda x, d: [] if x > 0 else [x],
    "all kinds": lambda x, d: [x, None, "s", [x], {"k": x}, math.nan, True][int(abs(3 * x)) % 7],
    "huge": lambda x, d: x * 10.0 ** (300 * (abs(x) > 3)),
}


@pytest.mark.spot(4)
@pytest.mark.parametrize("classifier", [None, "logistic"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_of_any_kind(kind, classifier):
    def mechanism(records, rng):
        return OUTPUTS[kind](rng.laplace(len(records)), len(records))

    result = sniped(
        mechanism, 1.0, vectorized=None, max_samples=4_000, method=DPSniper(classifier=classifier)
    )
    assert consistent(result)
    assert result.verdict != "inconclusive"


# -- Classifiers and features ---------------------------------------------------------------------


OF_SKLEARN = {
    "forest": ("ensemble", "RandomForestClassifier", {"n_estimators": 10, "max_depth": 5}),
    "linear": ("linear_model", "LogisticRegression", {}),
    "bayes": ("naive_bayes", "GaussianNB", {}),
}


@pytest.mark.spot(3)
@pytest.mark.parametrize("classifier", ["additive", "logistic", "mlp", *OF_SKLEARN])
def test_every_classifier_tells_something(classifier):
    if classifier in OF_SKLEARN:
        module, name, settings = OF_SKLEARN[classifier]
        classifier = getattr(import_module(f"sklearn.{module}"), name)(**settings)
    result = run("laplace", 2.0, 1.0, 1, method=DPSniper(classifier=classifier))
    assert 0.5 < result.eps_lower <= 1.0
    assert result.loss[1] > 0.9


@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_a_score_that_errs_in_the_tails_does_not_cost_the_bound(seed):
    # To a linear model far-off outputs tell ever more; they tell no more than a third of all do.
    result = run("laplace", 2.0, 1.0, seed, method=DPSniper(classifier="logistic"))
    assert 0.85 < result.eps_lower <= 1.0


def parity_leaks(records, rng, size):
    bits = rng.integers(0, 100, size=(size, 4))
    odd = rng.random(size) < (0.8 if records else 0.2)
    bits[:, 3] += (bits.sum(axis=1) % 2) != odd
    return bits


def parity(output):
    return sum(int(x) for x in output) % 2


def test_a_feature_of_the_user_finds_what_nothing_else_does():
    assert not sniped(parity_leaks, max_samples=30_000).violated
    result = sniped(parity_leaks, max_samples=30_000, features=parity)
    assert result.violated
    assert 1.2 < result.eps_lower <= math.log(4)


@pytest.mark.parametrize("classifier", [None, "logistic", "mlp"])
@pytest.mark.parametrize(
    ("feature", "said"),
    [
        (lambda output: "much", "<lambda>.*'much'"),
        (lambda output: [1.0] * int(1 + (output > 0)), "<lambda>.*a sequence of [12]"),
        (lambda output: output.mean_value, "<lambda>.*raised AttributeError"),
        (lambda output: None, "<lambda>.*None"),
    ],
)
def test_features_that_make_no_sense(feature, said, classifier):
    keywords = {"params": {"scale": 1.0}, "max_samples": 2_000}
    with pytest.raises(ClaimError, match=said):
        sniped(laplace, features=feature, method=DPSniper(classifier=classifier), **keywords)


class Wrong:
    """A classifier that gives one column."""

    def fit(self, rows, labels):
        return self

    def predict_proba(self, rows):
        return np.zeros(len(rows))


def test_a_classifier_of_the_wrong_shape_is_named():
    with pytest.raises(ClaimError, match=r"Wrong\.predict_proba returned an array of shape"):
        sniped(
            laplace, params={"scale": 1.0}, method=DPSniper(classifier=Wrong()), max_samples=2_000
        )


# -- Floating point -------------------------------------------------------------------------------


def naive(answer, rng, size):
    return answer + rng.laplace(scale=10, size=size)


def on_a_grid(answer, rng, size):
    step = 2.0**-20
    return np.round((answer + rng.laplace(scale=10, size=size)) / step) * step


def whole_numbers(answer, rng, size):
    decay = math.exp(-0.1)
    return answer + rng.geometric(1 - decay, size) - rng.geometric(1 - decay, size)


def test_the_bits_of_naive_noise_betray_it():
    attacked = sniped(naive, 0.1, **NUMBERS, floating_point=True)
    assert attacked.violated
    assert attacked.eps_lower > 0.5
    assert sniped(naive, 0.1, **NUMBERS).verdict == "no violation"


@pytest.mark.parametrize("mechanism", [on_a_grid, whole_numbers])
def test_the_bits_of_rounded_noise_tell_nothing(mechanism):
    result = sniped(mechanism, 0.1, **NUMBERS, floating_point=True)
    assert result.verdict == "no violation"
    assert result.eps_lower > 0.03


@pytest.mark.nightly
def test_the_bits_of_a_sound_library_tell_nothing():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    noisy = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=10.0
    )
    keywords = {"vectorized": None, **NUMBERS, "floating_point": True}
    result = sniped(lambda answer: noisy(answer), 0.1, max_samples=15_000, **keywords)
    assert result.verdict == "no violation"
    # As few samples tell enough where there is something to tell.
    scalar = sniped(lambda d, rng: d + rng.laplace(scale=10), 0.1, max_samples=15_000, **keywords)
    assert scalar.violated


# -- Effort ---------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.slow
def test_memory_is_flat_in_the_number_of_samples(monkeypatch):
    from pytest_dp.auditors import dd_search

    monkeypatch.setattr(dd_search, "MAX_BATCH", 20_000)  # reached with fewer samples

    def ten(records, rng, size):
        return rng.standard_normal((size, 10)) + 0.05 * len(records)

    peaks = []
    for max_samples in (150_000, 300_000):
        tracemalloc.start()
        try:
            result = sniped(ten, 2.0, max_samples=max_samples, max_seconds=600)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert result.samples > 0.8 * max_samples
    assert peaks[1] < 1.2 * peaks[0]


class Batch:
    """A classifier that looks at all outputs of a batch at once."""

    def fit(self, rows, labels):
        self.sign = 1 if rows[labels == 1, 0].mean() > rows[labels == 0, 0].mean() else -1
        return self

    def predict_proba(self, rows):
        p = 1 / (1 + np.exp(-self.sign * (rows[:, 0] + rows[:, 0].mean())))
        return np.stack([1 - p, p], axis=1)


class Memory:
    """A function of an output, and of the one before."""

    def __init__(self):
        self.before = 0.0

    def __call__(self, output):
        self.before, before = output, self.before
        return output + before


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("classifier", Batch()),
        ("features", Memory()),
        ("features", lambda output: output + np.random.normal()),  # noqa: NPY002
    ],
)
@pytest.mark.parametrize("c", [None, 0.1])
def test_what_does_not_look_at_each_output_by_itself_is_refused(keyword, value, c):
    def mechanism(x, rng):
        return x + rng.laplace()

    with pytest.raises(ClaimError, match=f"^{keyword}= gives the same output another number"):
        audit(
            mechanism,
            eps=1.0,
            pairs=[(0.0, 1.0)],
            method=DPSniper(c=c, classifier=value if keyword == "classifier" else None),
            features=value if keyword == "features" else None,
            max_samples=5_000,
            n_jobs=1,
        )


@pytest.mark.spot(3)
@pytest.mark.parametrize("form", ["list", "views", "tuple"])
@pytest.mark.parametrize("method", ["statdp", "dpsniper"])
def test_memory_that_is_reused_hides_nothing(form, method):
    shared_list, shared_array = [], np.zeros((40_000, 1))

    def in_a_list(x, rng, size):
        shared_list[:] = (x + rng.laplace(scale=0.2, size=size)).tolist()
        return shared_list

    def in_views(x, rng, size):
        shared_array[:size, 0] = x + rng.laplace(scale=0.2, size=size)
        return list(shared_array[:size])

    def in_a_tuple(x, rng):
        shared_array[0, 0] = x + rng.laplace(scale=0.2)
        return shared_array[0], 0

    mechanism = {"list": in_a_list, "views": in_views, "tuple": in_a_tuple}[form]
    result = audit(
        mechanism,
        eps=1.0,
        pairs=[(0.0, 1.0)],
        vectorized=None if form == "tuple" else "size",
        method=method,
        max_samples=20_000,
        seed=1,
        n_jobs=1,
    )
    assert result.violated
    assert 2.0 < result.eps_lower < 5.0


def test_clumps_at_the_threshold_are_noticed():
    def blocks(x, rng, size):
        """Randomised response of which half the answers of a block of 100 are one answer."""
        honest = math.e / (1 + math.e)
        shared = np.where(rng.random(-(-size // 100)) < honest, x, 1 - x)
        own = np.where(rng.random(size) < honest, x, 1 - x)
        return np.where(rng.random(size) < 0.5, np.repeat(shared, 100)[:size], own)

    verdicts = []
    for seed in range(12):
        try:
            result = audit(
                blocks,
                eps=1.0,
                pairs=[(0, 1)],
                vectorized="size",
                method=DPSniper(c=0.2, classifier="logistic"),
                alpha=1e-3,
                max_samples=60_000,
                seed=seed,
                n_jobs=1,
            )
            verdicts.append(result.verdict)
        except MechanismError:
            verdicts.append("clumps")
    assert "violated" not in verdicts
