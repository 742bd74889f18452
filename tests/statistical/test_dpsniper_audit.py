"""Whole audits with DP-Sniper: coverage, power, and what a result says."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import fields

import numpy as np
import pytest
from boundary import geometric, laplace, randomized_response

from benchmarks import vectorized
from benchmarks.cases import CORPUS
from pytest_dp import ClaimError, MechanismError, audit, queries, values
from pytest_dp.evidence import clopper_pearson, ratio

ALPHA = 0.05
COUNTS = {"pairs": [([0], [])]}
NUMBERS = {"pairs": [(0.0, 1.0)]}


def sniped(mechanism, eps=1.0, seed=1, **more):
    keywords = {"vectorized": "size", "n_jobs": 1, "max_samples": 100_000, **more}
    if "inputs" not in keywords:
        keywords = {**COUNTS, **keywords}
    return audit(mechanism, eps=eps, seed=seed, method="dpsniper", **keywords)


def four_outcomes(truth, chances, rng, size):
    return np.searchsorted(np.cumsum(chances[truth]), rng.random(size)) * 1.5


def chances_for(eps):
    p = np.array([0.1, 0.2, 0.3, 0.4])
    q = np.array([0.1 * math.exp(eps), 0.25, 0.2, 0.0])
    q[3] = 1 - q.sum()
    assert np.abs(np.log(p / q)).max() == pytest.approx(eps)
    # Both rows in a mapping: a list would be one claim for each of its elements.
    return {"chances": {0: p, 1: q}}


# Mechanisms whose true loss is `eps`, exactly.
AT_THEIR_CLAIM = {
    "laplace": (laplace, lambda eps: {"scale": 1 / eps}, COUNTS),
    "geometric": (geometric, lambda eps: {"decay": math.exp(-eps)}, COUNTS),
    "randomized response": (
        randomized_response,
        lambda eps: {"keep": math.exp(eps) / (1 + math.exp(eps))},
        {"inputs": values([0, 1])},
    ),
    "four outcomes": (four_outcomes, chances_for, {"inputs": values([0, 1])}),
}


def run(name, claimed, true, seed, **more):
    mechanism, params, inputs = AT_THEIR_CLAIM[name]
    return sniped(mechanism, claimed, seed, params=params(true), **{**inputs, **more})


def allowed(audits):
    return audits * ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) * audits)


def consistent(result):
    """Whether verdict, bound, p-value and counterexample say the same."""
    above = result.eps_lower > result.claim.eps
    return (
        result.violated == above == (result.p_value <= result.alpha)
        and result.violated == (result.counterexample is not None)
        and result.loss[0] <= result.loss[1]
    )


@pytest.fixture(scope="module")
def small_audits():
    """75 audits of each mechanism, half of them with a claim that nearly is the bound."""
    found = {}
    for name in AT_THEIR_CLAIM:
        for seed in range(75):
            claimed = 1.0 if seed % 2 else 0.75
            found[name, seed] = run(name, claimed, 1.0, seed, alpha=ALPHA, max_samples=6_000)
    return found


@pytest.mark.slow
def test_the_bound_exceeds_the_truth_no_more_often_than_alpha(small_audits):
    too_high = {key: r.eps_lower for key, r in small_audits.items() if r.eps_lower > 1.0}
    assert len(too_high) <= allowed(len(small_audits))
    for name in AT_THEIR_CLAIM:
        assert sum(key[0] == name for key in too_high) <= allowed(75)
    # A bound of 0 would do as well.
    for name in AT_THEIR_CLAIM:
        bounds = [r.eps_lower for key, r in small_audits.items() if key[0] == name]
        assert np.median(bounds) > 0.7


@pytest.mark.slow
def test_the_bound_the_p_value_and_the_verdict_agree(small_audits):
    assert all(map(consistent, small_audits.values()))
    verdicts = {r.verdict for r in small_audits.values()}
    assert verdicts == {"violated", "no violation"}


@pytest.mark.slow
@pytest.mark.parametrize("c", [0.01, 0.1])
def test_the_bound_of_the_paper_holds_too(c):
    audits, reached = 40, []
    for seed in range(audits):
        name = list(AT_THEIR_CLAIM)[seed % 4]
        claimed = (1.0, 0.3)[seed // 4 % 2]
        result = run(name, claimed, 1.0, seed, alpha=ALPHA, max_samples=6_000, c=c)
        assert consistent(result)
        reached.append(result.eps_lower)
        if result.violated:
            found = result.counterexample
            four = found.counts[0], found.runs[0], found.counts[1], found.runs[1]
            bound = clopper_pearson.eps_lower(*four, ALPHA)
            assert result.eps_lower == found.eps_lower == found.eps_clopper_pearson == bound
            assert found.runs[0] == found.runs[1]
            # On the input that makes it the rarer, the attack has probability c.
            assert found.counts[1] / found.runs[1] == pytest.approx(c, abs=6 * math.sqrt(c / 300))
    assert sum(bound > 1.0 for bound in reached) <= allowed(audits)
    assert np.median(reached) > (0.5 if c == 0.1 else 0.0)


def test_samples_that_were_searched_would_exceed_the_truth(monkeypatch):
    """The tests above can fail: here is the mistake that they guard against."""
    from pytest_dp.auditors import dpsniper, fresh, pool

    def says_nothing(records, rng, size):
        return rng.normal(size=(size, 8))

    def above():
        common = {"eps": 1e-3, "alpha": ALPHA, "max_samples": 4_000}
        return sum(sniped(says_nothing, seed=k, **common).eps_lower > 0 for k in range(12))

    assert above() <= 3

    def peek(job, pool, witness):
        table, first = pool.table(witness.rival)
        first = first if witness.sign > 0 else ~first
        if witness.attack is not None:
            hits = witness.attack.hits(table)[0]
        else:
            hits = witness.event.mask(table)
        c1, c2, n = int(hits[first].sum()), int(hits[~first].sum()), int(first.sum())
        counts = fresh.Counts(c1, n, c2, n, (c1, c2), n)
        return fresh.Tested(counts, None)

    assert pool.SEARCHED != pool.TESTED
    monkeypatch.setattr(dpsniper, "_test", peek)
    assert above() >= 7


class Remembered:
    """A meter that keeps the outputs it was shown."""

    def __init__(self, meter):
        self.meter, self.seen = meter, []

    def __call__(self, outputs):
        self.seen += outputs.tolist()
        return self.meter(outputs)


@pytest.mark.parametrize("more", [{}, {"c": 0.05}])
def test_no_sample_is_searched_and_tested(monkeypatch, more):
    from pytest_dp.sampling.sampler import Sampler

    batches = []
    measure = Sampler.measure

    def measured(self, draws, meter, deadline):
        remembered = Remembered(meter)
        found = measure(self, draws, remembered, deadline)
        batches.append(remembered.seen)
        return found

    monkeypatch.setattr(Sampler, "measure", measured)
    result = run("laplace", 1.0, 2.0, 3, max_samples=20_000, **more)
    everything = [x for batch in batches for x in batch]
    assert result.samples * 0.9 < len(everything) <= result.samples
    assert len(everything) == len(set(everything))
    # Nor are they the same noise around another centre.
    *before, tested = batches
    seen = {round(x - d, 9) for batch in before for x in batch for d in (0, 1)}
    assert len(tested) > 4_000
    assert not seen & {round(x - d, 9) for x in tested for d in (0, 1)}


# -- Power ----------------------------------------------------------------------------------------


def sometimes_nan(records, rng, size):
    return np.where(rng.random(size) < 0.02 * len(records), np.nan, rng.laplace(size=size))


def lengths(records, rng, size):
    # Longer on one input; the numbers in it say nothing.
    counts = 1 + rng.binomial(4, 0.3 + 0.2 * len(records), size)
    return [rng.laplace(size=k).tolist() for k in counts.tolist()]


def sum_is_fixed(records, rng, size):
    noise = rng.normal(size=(size, 6))
    return noise - noise.mean(axis=1, keepdims=True) + len(records) * 0.5


def broken_histogram(counts, rng, size):
    return vectorized.histogram_inverted(counts, 0.5, rng, size)


BROKEN = {
    "half the scale": (laplace, {"params": {"scale": 0.5}}),
    "nan": (sometimes_nan, {}),
    "length": (lengths, {"max_samples": 60_000}),
    "sum": (sum_is_fixed, {}),
    "scale eps": (broken_histogram, {"inputs": queries(5), "neighbors": "one_query"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_mechanisms_are_caught(name):
    mechanism, keywords = BROKEN[name]
    result = sniped(mechanism, 0.5 if name == "length" else 1.0, **keywords)
    assert result.violated
    assert result.alpha == 1e-6
    assert consistent(result)
    assert result.samples <= keywords.get("max_samples", 100_000) + 200
    if name == "half the scale":
        assert 1.8 < result.eps_lower <= 2.0
    if name == "scale eps":
        assert 1.5 < result.eps_lower <= 2.0
    if name == "sum":
        assert result.eps_lower > 5


def test_an_exception_is_caught():
    def sometimes_raises(records, rng):
        if records and rng.random() < 0.05:
            raise LookupError(records)
        return rng.laplace()

    result = sniped(sometimes_raises, vectorized=None, max_samples=20_000)
    assert result.violated
    assert "LookupError" in str(result.counterexample.event)


def test_no_single_coordinate_tells_what_their_sum_does():
    alone = sniped(lambda d, rng, size: sum_is_fixed(d, rng, size)[:, 2], 2.0)
    assert alone.verdict == "no violation"
    together = sniped(sum_is_fixed, 2.0)
    assert together.violated


def test_many_coordinates_that_each_tell_a_little():
    def ten(records, rng, size):
        return 0.1 * len(records) + rng.laplace(size=(size, 10))

    result = sniped(ten, 0.3, max_samples=200_000)
    assert result.violated
    assert 0.5 < result.eps_lower <= 1.0
    assert sniped(lambda d, rng, size: ten(d, rng, size)[:, 0], 0.3).verdict == "no violation"


@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("c", [None, 0.01])
def test_either_input_can_be_the_likelier_one(rare, c):
    # One of the outcomes has a loss of ln 20; the other one a fifth of a nat.
    def mechanism(truth, rng, size):
        return (rng.random(size) < (0.01 if truth == rare else 0.2)).astype(float)

    result = sniped(mechanism, 1.0, pairs=[(0, 1)], max_samples=60_000, c=c)
    assert result.violated
    assert (result.counterexample.d1, result.counterexample.d2) == (1 - rare, rare)
    assert result.counterexample.counts[0] > result.counterexample.counts[1]
    turned = sniped(mechanism, 1.0, pairs=[(1, 0)], max_samples=60_000, c=c)
    assert turned.violated
    assert turned.counterexample.d1 == 1 - rare
    assert turned.eps_lower == pytest.approx(result.eps_lower, abs=0.3)


def test_the_pair_that_breaks_the_claim_is_found():
    def leaks_sevens(records, rng, size):
        scale = 0.4 if 7 in records else 1.0
        return len(records) + rng.laplace(scale=scale, size=size)

    pairs = [([k, 3], [3]) for k in range(12)]
    result = sniped(leaks_sevens, pairs=pairs)
    assert result.violated
    assert 7 in [*result.counterexample.d1, *result.counterexample.d2]
    assert result.pairs == (12, 12)


# -- What a counterexample says -------------------------------------------------------------------


COUNTEREXAMPLES = {
    "a readable event": (laplace, {"params": {"scale": 0.5}}),
    "an attack": (
        lambda d, rng, size: 0.5 * len(d) + rng.laplace(size=(size, 8)),
        {"max_samples": 200_000},
    ),
    "an attack with ties": (laplace, {"params": {"scale": 0.5}, "c": 0.05}),
}


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_a_counterexample_holds_on_fresh_samples(name):
    mechanism, keywords = COUNTEREXAMPLES[name]
    result = sniped(mechanism, 0.9, **keywords)
    assert result.violated
    found = result.counterexample
    (c1, c2), (n1, n2) = found.counts, found.runs
    assert 0 < c1 <= n1
    assert 0 <= c2 <= n2
    assert n1 + n2 <= result.samples
    assert 0.9 < found.eps_lower <= result.eps_lower + 1e-12
    four = c1, n1, c2, n2
    both = ratio.eps_lower(*four, result.alpha)
    assert found.eps_clopper_pearson <= both + 1e-12
    assert found.eps_lower <= both + 1e-12
    assert found.eps_clopper_pearson > 0.9 * both
    for (low, high), c, n in zip(found.intervals, found.counts, found.runs, strict=True):
        assert low < c / n < high
    assert math.log(found.intervals[0][0] / found.intervals[1][1]) > 0
    assert found.p_value < 1e-3
    # The event and its attack, on samples of their own.
    rng = np.random.default_rng(7)
    params = keywords.get("params", {})
    fresh = [mechanism(d, **params, rng=rng, size=2_000) for d in (found.d1, found.d2)]
    shares = [np.mean([float(found.event(output)) for output in side]) for side in fresh]
    for share, c, n in zip(shares, found.counts, found.runs, strict=True):
        assert share == pytest.approx(c / n, abs=5 * math.sqrt(c / n / 2_000) + 1e-3)
    if found.attack is not None:
        chances = {found.attack(output) for side in fresh for output in side[:500]}
        assert all(0 <= chance <= 1 for chance in chances)
        assert {0.0, 1.0} <= chances
        assert str(found.attack).startswith(("score(output) > ", "-score(output) > "))
    inside, outside = found.examples
    if found.event is found.attack:
        assert len(inside) == len(outside) == 3
        assert all(found.attack(output) == 1.0 for output in inside)
        assert all(found.attack(output) < 1.0 for output in outside)
    else:
        assert (inside, outside) == ((), ())
        assert str(found.event)
    if name != "a readable event":
        assert found.attack is not None


@pytest.mark.parametrize("name", ["laplace", "randomized response", "geometric"])
def test_the_loss_is_that_of_the_strongest_attack(name):
    for seed in (1, 2):
        result = run(name, 1.2, 1.0, seed)
        low, high = result.loss
        assert low <= 1.0 + 1e-9
        assert high > 0.97
        assert high - low < 0.3
        assert result.eps_lower <= high
        assert f"a loss of {low:.3g} to {high:.3g}" in result.strongest
        assert " against " in result.strongest


def test_the_interval_covers_the_loss_of_a_known_event():
    # One event has it all, with a loss of ln 3.
    def mechanism(records, rng, size):
        return np.where(rng.random(size) < (0.3 if records else 0.1), 1.0, 0.0)

    results = [sniped(mechanism, 2.0, seed, alpha=0.2, max_samples=4_000) for seed in range(40)]
    covered = sum(r.loss[0] <= math.log(3) <= r.loss[1] for r in results)
    assert covered >= 40 * 0.8 - 2 * math.sqrt(40 * 0.16)
    assert np.median([r.loss[1] - r.loss[0] for r in results]) < 0.6


def test_a_claim_far_above_all_that_was_found_is_noted():
    def notes(eps):
        result = run("laplace", eps, 0.4, 1)
        assert result.verdict == "no violation"
        return [note for note in result.notes if "more noise than needed" in note], result

    [note], result = notes(1.0)
    low, high = result.loss
    assert f"reached {low:.2g} to {high:.2g} of eps = 1:" in note
    assert not notes(0.45)[0]
    broken = run("laplace", 0.2, 0.4, 1)
    assert broken.violated
    assert not any("more noise" in note for note in broken.notes)


def test_the_resolution_is_what_would_have_been_caught():
    passed = run("laplace", 0.5, 0.5, 0, max_samples=20_000)
    assert passed.verdict == "no violation"
    assert 0.5 < passed.resolution < 1.0
    caught = [run("laplace", 0.5, passed.resolution, s, max_samples=20_000) for s in range(1, 13)]
    assert sum(result.violated for result in caught) >= 10


# -- The same result again ------------------------------------------------------------------------


def told(result):
    """All that a result says but the time it took."""
    found = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "seconds"}
    example = found.pop("counterexample")
    if example is not None:
        found |= {f.name: repr(getattr(example, f.name)) for f in fields(example)}
        found["event"], found["attack"] = str(example.event), str(example.attack)
    return found


def slow_enough(records, rng):
    total = 0.0
    for _ in range(40):
        total = rng.random()
    return len(records) + rng.laplace(scale=0.8) + 0 * total


def test_a_result_does_not_depend_on_the_number_of_processes():
    common = {"vectorized": None, "max_samples": 60_000}
    one, two = (sniped(slow_enough, 1.0, 7, n_jobs=jobs, **common) for jobs in (1, 2))
    assert told(one) == told(two)


@pytest.mark.parametrize("more", [{}, {"c": 0.05}, {"classifier": "mlp"}, {"true": 2.0}])
def test_the_same_seed_gives_the_same_result(more):
    keywords = {"max_samples": 20_000, **more}
    true = keywords.pop("true", 1.0)
    one, same, other = (run("laplace", 1.0, true, seed, **keywords) for seed in (5, 5, 6))
    assert told(one) == told(same)
    assert told(one) != told(other)
    assert one.eps_lower != other.eps_lower


# -- Odd mechanisms -------------------------------------------------------------------------------


@pytest.mark.parametrize("output", [42, None, "text", (1.0, None), math.nan])
@pytest.mark.parametrize("more", [{}, {"c": 0.01}, {"classifier": "logistic"}])
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
@pytest.mark.parametrize("seed", [1, 2])
def test_randomized_response_that_hardly_ever_lies_is_caught(keep, seed):
    result = sniped(randomized_response, 1.0, seed, params={"keep": keep}, inputs=values([0, 1]))
    assert result.violated
    true = math.log(keep / (1 - keep))
    assert 0.85 * true < result.eps_lower <= true


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("more", [{}, {"classifier": "logistic"}, {"c": 0.01}])
def test_the_answer_itself_beside_noise_is_caught(side, more):
    def mechanism(records, rng, size):
        answer = np.full(size, len(records) if side else -len(records))
        return np.column_stack([rng.laplace(size=size), answer])

    result = sniped(mechanism, 1.0, max_samples=20_000, **more)
    assert result.violated
    assert result.eps_lower > 4


@pytest.mark.parametrize("c", [None, 0.01])
def test_a_mechanism_that_always_raises(c):
    with pytest.raises(MechanismError, match="no such patient"):
        sniped(lambda d, rng: {}["no such patient"], vectorized=None, max_samples=2_000, c=c)


@pytest.mark.parametrize("max_samples", [1, 2, 3, 10, 47, 100])
@pytest.mark.parametrize("more", [{}, {"c": 0.01}, {"inputs": queries(3)}])
def test_hardly_any_samples(max_samples, more):
    def mechanism(data, rng, size):
        return rng.laplace(size=size)

    result = sniped(mechanism, max_samples=max_samples, **more)
    assert result.verdict in ("inconclusive", "no violation")
    if max_samples < 10:
        assert result.verdict == "inconclusive"
    assert result.eps_lower <= 1


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_every_mechanism_of_the_paper_runs(case):
    keywords = {**case.keywords(0.5, many=True), "max_samples": 3_000}
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


@pytest.mark.parametrize("classifier", [None, "logistic"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_of_any_kind(kind, classifier):
    def mechanism(records, rng):
        return OUTPUTS[kind](rng.laplace(len(records)), len(records))

    result = sniped(mechanism, 1.0, vectorized=None, max_samples=4_000, classifier=classifier)
    assert consistent(result)
    assert result.verdict != "inconclusive"


# -- Classifiers and features ---------------------------------------------------------------------


def classifiers():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    forest = RandomForestClassifier(n_estimators=10, max_depth=5)
    return ["additive", "logistic", "mlp", forest, LogisticRegression(), GaussianNB()]


@pytest.mark.parametrize("classifier", classifiers(), ids=lambda c: str(c).split("(")[0])
def test_every_classifier_tells_something(classifier):
    result = run("laplace", 2.0, 1.0, 1, classifier=classifier)
    assert 0.5 < result.eps_lower <= 1.0
    assert result.loss[1] > 0.9


@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_a_score_that_errs_in_the_tails_does_not_cost_the_bound(seed):
    # To a linear model far-off outputs tell ever more; they tell no more than a third of all do.
    result = run("laplace", 2.0, 1.0, seed, classifier="logistic")
    assert 0.85 < result.eps_lower <= 1.0


def parity_leaks(records, rng, size):
    bits = rng.integers(0, 100, size=(size, 4))
    odd = rng.random(size) < (0.8 if records else 0.2)
    bits[:, 3] += (bits.sum(axis=1) % 2) != odd
    return bits


def parity(output):
    return sum(int(x) for x in output) % 2


def test_a_feature_of_the_user_finds_what_nothing_else_does():
    assert sniped(parity_leaks, max_samples=30_000).verdict == "no violation"
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
        sniped(laplace, features=feature, classifier=classifier, **keywords)


class Wrong:
    """A classifier that gives one column."""

    def fit(self, rows, labels):
        return self

    def predict_proba(self, rows):
        return np.zeros(len(rows))


def test_a_classifier_of_the_wrong_shape_is_named():
    with pytest.raises(ClaimError, match=r"Wrong\.predict_proba returned an array of shape"):
        sniped(laplace, params={"scale": 1.0}, classifier=Wrong(), max_samples=2_000)


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


@pytest.mark.slow
def test_memory_is_flat_in_the_number_of_samples(monkeypatch):
    from pytest_dp.auditors import dd_search

    monkeypatch.setattr(dd_search, "MOST_KEPT", 50_000)  # reached with fewer samples

    def ten(records, rng, size):
        return rng.standard_normal((size, 10)) + 0.05 * len(records)

    peaks = []
    for max_samples in (700_000, 1_400_000):
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
            method="dpsniper",
            max_samples=5_000,
            n_jobs=1,
            c=c,
            **{keyword: value},
        )


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
                method="dpsniper",
                c=0.2,
                classifier="logistic",
                alpha=1e-3,
                max_samples=60_000,
                seed=seed,
                n_jobs=1,
            )
            verdicts.append(result.verdict)
        except MechanismError:
            verdicts.append("clumps")
    assert "violated" not in verdicts
