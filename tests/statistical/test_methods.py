"""What holds for audits of every method: replay, effort, outputs of all kinds, errors."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from boundary import COUNTS, QUIET, laplace

import pytest_dp
from pytest_dp import ClaimError, DPSniper, MechanismError, Sequential, StatDP, queries

pytestmark = pytest.mark.usefixtures("_without_blame")

METHODS = [Sequential(), StatDP(), DPSniper(), DPSniper(c=0.05)]
audit = partial(pytest_dp.audit, **QUIET)
every_method = pytest.mark.parametrize("method", METHODS, ids=str)
usual_methods = pytest.mark.parametrize("method", METHODS[:3], ids=str)


def told(result):
    """All that a result says but the time it took."""
    found = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "seconds"}
    example, found["evidence"] = found.pop("counterexample"), None
    if example is not None:
        found |= {f.name: repr(getattr(example, f.name)) for f in fields(example)}
        found["event"], found["attack"] = str(example.event), str(example.attack)
    return found


def slow_enough(records, rng):
    for _ in range(40):
        rng.random()
    return len(records) + rng.laplace(scale=0.8)


@pytest.mark.spot(4)
@every_method
def test_the_same_seed_gives_the_same_result_for_any_number_of_processes(method):
    one, two, other = (
        audit(
            slow_enough, eps=1.0, **COUNTS, seed=seed, n_jobs=jobs, max_samples=6_000, method=method
        )
        for seed, jobs in ((7, 1), (7, 2), (8, 1))
    )
    assert told(one) == told(two)
    assert told(one) != told(other)


OUTPUTS = {
    "text": lambda x, d: "abc"[int(abs(x)) % 3],
    "nested": lambda x, d: (x, [2 * x, (None, "a")]),
    "matrix": lambda x, d: np.array([[x, 1.0], [0.5, -x]]),
    "all kinds": lambda x, d: [x, None, "s", [x], {"k": x}, math.nan, True][int(abs(3 * x)) % 7],
    "huge": lambda x, d: x * 10.0 ** (300 * (abs(x) > 3)),
}


@pytest.mark.spot(6)
@pytest.mark.parametrize("method", [*METHODS[:3], DPSniper(classifier="logistic")], ids=str)
@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_of_any_kind(kind, method):
    def mechanism(records, rng):
        return OUTPUTS[kind](rng.laplace(len(records)), len(records))

    result = audit(mechanism, eps=1.0, **COUNTS, max_samples=4_000, n_jobs=1, method=method)
    assert result.verdict == "no violation"


@pytest.mark.spot(11)
@every_method
@pytest.mark.parametrize(
    ("leak", "event"),
    [
        (lambda rng: None, "output is None"),
        (lambda rng: float("nan"), "isnan(output)"),
        (lambda rng: [0] * 3, "len(output)"),
        (lambda rng: 1 / 0, "raises ZeroDivisionError"),
        (lambda rng: "n/a", "output == 'n/a'"),
        (lambda rng: True, "output"),
    ],
)
def test_whatever_an_output_is_it_can_leak(leak, event, method):
    def mechanism(records, rng):
        return leak(rng) if not records and rng.random() < 0.2 else rng.laplace()

    result = audit(mechanism, eps=1.0, **COUNTS, max_samples=20_000, n_jobs=1, method=method)
    assert result.violated
    assert (result.counterexample.d1, result.counterexample.d2) == ([], [0])
    assert method.c is not None or event in str(result.counterexample.event)


@pytest.mark.spot(2)
@every_method
@pytest.mark.parametrize("output", [42, None, (1.0, None), math.nan])
def test_what_never_varies_is_inconclusive(output, method):
    result = audit(lambda d: output, eps=1.0, **COUNTS, max_samples=2_000, n_jobs=1, method=method)
    assert result.verdict == "inconclusive"
    assert any("returned the same value in all" in note for note in result.notes)


@usual_methods
def test_a_mechanism_without_noise_is_named(method):
    result = audit(len, eps=1.0, **COUNTS, max_samples=20_000, n_jobs=1, method=method)
    assert result.violated
    assert result.lower > (4 if method.name == "dpsniper" else 1)
    assert "missing noise, a fixed seed" in result.counterexample.diagnosis[0]


@usual_methods
def test_a_mechanism_that_always_raises(method):
    with pytest.raises(MechanismError, match="no such patient"):
        audit(lambda d: {}["no such patient"], eps=1.0, **COUNTS, n_jobs=1, method=method)


@pytest.mark.spot(5)
@every_method
@pytest.mark.parametrize("max_samples", [1, 2, 3, 10, 47, 100])
@pytest.mark.parametrize("inputs", [COUNTS, {"inputs": queries(3)}])
def test_hardly_any_samples(max_samples, inputs, method):
    def noise(data, rng, size):
        return rng.laplace(size=size)

    common = {"vectorized": "size", "n_jobs": 1, "method": method, "seed": 1}
    result = audit(noise, eps=1.0, max_samples=max_samples, **common, **inputs)
    assert result.verdict in ("inconclusive", "no violation")
    assert result.verdict == "inconclusive" or max_samples >= 10
    assert result.lower <= 1
    assert result.samples <= max_samples + 3 * 64  # warming up comes on top


@pytest.mark.spot(4)
@pytest.mark.parametrize("method", [StatDP(), DPSniper(coupled=False)], ids=str)
@pytest.mark.parametrize("scale", [0.5, 20.0])
def test_all_runs_stay_within_max_samples(scale, method):
    common = {"vectorized": "size", "n_jobs": 1, "method": method, "params": {"scale": scale}}
    for most in (2_000, 20_000):
        assert audit(laplace, eps=1.0, **COUNTS, max_samples=most, seed=1, **common).samples <= most


@usual_methods
def test_pairs_left_out_are_told(method):
    common = {"inputs": [[1, 0, 1]], "neighbors": "add_remove_one", "n_jobs": 1, "method": method}

    def total(records, rng):
        return sum(records) + rng.laplace()

    few = audit(total, eps=1.0, max_samples=60, search=(), seed=1, **common)
    assert few.pairs[0] < few.pairs[1] == 3
    assert few.verdict == "inconclusive"
    assert any("tried" in note for note in few.notes)


@pytest.mark.spot(2)
@every_method
def test_the_pair_that_breaks_the_claim_is_found(method):
    def leaks_sevens(records, rng, size):
        scale = 0.4 if 7 in records else 1.0
        return len(records) + rng.laplace(scale=scale, size=size)

    common = {"vectorized": "size", "n_jobs": 1, "method": method, "max_samples": 100_000}
    pairs = [([k, 3], [3]) for k in range(12)]
    result = audit(leaks_sevens, eps=1.0, pairs=pairs, seed=1, **common)
    assert result.violated
    assert 7 in [*result.counterexample.d1, *result.counterexample.d2]


@pytest.mark.spot(8)
@every_method
@pytest.mark.parametrize("rare", [0, 1])
def test_either_input_can_be_the_likelier_one(rare, method):
    """One of the outcomes has a loss of ln 20; the other one a fifth of a nat."""

    def mechanism(truth, rng, size):
        return (rng.random(size) < (0.01 if truth == rare else 0.2)).astype(float)

    common = {"vectorized": "size", "n_jobs": 1, "method": method, "max_samples": 60_000}
    for pair in ((0, 1), (1, 0)):
        found = audit(mechanism, eps=1.0, pairs=[pair], seed=1, **common).counterexample
        assert (found.d1, found.d2) == (1 - rare, rare)
        assert found.counts[0] / found.runs[0] > found.counts[1] / found.runs[1]


# State, memory and clumps


def shared_noise(records, rng, size):
    return len(records) + rng.laplace() + rng.normal(scale=0.1, size=size)


def half_shared(records, rng, size):
    own, common = rng.laplace(size=size), rng.laplace()
    return len(records) + np.where(rng.random(size) < 0.5, common, own)


def blocks(records, rng, size):
    """Randomised response of which half the answers of a block of 100 are one answer."""
    x, honest = len(records), math.e / (1 + math.e)
    shared = np.where(rng.random(-(-size // 100)) < honest, x, 1 - x)
    own = np.where(rng.random(size) < honest, x, 1 - x)
    return np.where(rng.random(size) < 0.5, np.repeat(shared, 100)[:size], own)


@pytest.mark.spot(12)
@every_method
@pytest.mark.parametrize("mechanism", [shared_noise, half_shared, blocks])
def test_rows_that_are_not_independent_are_no_violation(mechanism, method):
    for seed in range(2):
        common = {"vectorized": "size", "max_samples": 20_000, "n_jobs": 1, "method": method}
        with suppress(MechanismError):
            assert not audit(mechanism, eps=1.0, **COUNTS, seed=seed, **common).violated


def test_noise_that_all_rows_share_is_an_error_of_its_own():
    told = 0
    for seed in range(6):
        try:
            audit(shared_noise, eps=1.0, **COUNTS, vectorized="size", seed=seed, method="statdp")
        except MechanismError as error:
            told += "not independent" in str(error)
    assert told > 0


@usual_methods
def test_a_budget_that_is_used_up_is_no_leak(method):
    spent = 0

    def accountant(records, rng):
        nonlocal spent
        spent += 1
        if spent > 300:
            raise RuntimeError("privacy budget exceeded")
        return len(records) + rng.laplace()

    with pytest.raises(MechanismError, match="keeps state between runs"):
        audit(accountant, eps=1.0, **COUNTS, n_jobs=1, seed=1, method=method)


@pytest.mark.parametrize("left", [10, 100])
def test_a_budget_that_is_used_up_early_is_said_to_be(left, tmp_path):
    """By the runs that try a mechanism out, or soon after them; copies share it, by a file."""
    file = tmp_path / "calls"
    calls = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def accountant(records, rng):
        os.write(calls, b".")
        if os.fstat(calls).st_size > left:
            raise RuntimeError("privacy budget exceeded")
        return len(records) + rng.laplace()

    with pytest.raises(MechanismError, match=r"worked .* and then raised RuntimeError in every"):
        audit(accountant, eps=1.0, **COUNTS, n_jobs=1, seed=1)
    os.close(calls)


@pytest.mark.spot(7)
@usual_methods
@pytest.mark.parametrize("form", ["list", "views", "array", "one by one"])
def test_memory_that_is_reused_hides_nothing(form, method):
    in_list, in_array = [], np.zeros((40_000, 1))

    def mechanism(records, rng, size=1):
        noise = rng.laplace(scale=0.2, size=size)
        in_list[:], in_array[:size, 0] = (len(records) + noise).tolist(), len(records) + noise
        forms = {"list": in_list, "views": list(in_array[:size]), "array": in_array[:size]}
        return forms.get(form, (in_array[0], 0))

    vectorized = None if form == "one by one" else "size"
    common = {"vectorized": vectorized, "max_samples": 20_000, "n_jobs": 1, "method": method}
    result = audit(mechanism, eps=1.0, **COUNTS, seed=1, **common)
    assert result.violated
    assert result.lower < 5.0


# Classifiers and features


LEARNERS = [Sequential(), DPSniper(), DPSniper(c=0.1)]


@pytest.mark.spot(3)
@pytest.mark.parametrize("method", LEARNERS, ids=str)
@pytest.mark.parametrize(
    ("feature", "said"),
    [
        (lambda output: "much", "<lambda>.*'much'"),
        (lambda output: [1.0] * int(1 + (output > 0)), "<lambda>.*a sequence of [12]"),
        (lambda output: output.mean_value, "<lambda>.*raised AttributeError"),
        (lambda output: None, "<lambda>.*None"),
    ],
)
def test_features_that_make_no_sense(feature, said, method):
    with pytest.raises(ClaimError, match=said):
        audit(
            lambda d, rng: len(d) + rng.laplace(),
            eps=1.0,
            **COUNTS,
            features=feature,
            method=method,
            max_samples=2_000,
            n_jobs=1,
        )


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


@pytest.mark.spot(2)
@pytest.mark.parametrize("kind", [Sequential, DPSniper, partial(DPSniper, c=0.1)])
@pytest.mark.parametrize(("classifier", "features"), [(Batch(), None), (None, Memory())])
def test_what_does_not_look_at_each_output_by_itself_is_refused(classifier, features, kind):
    name = "features" if classifier is None else "classifier"
    with pytest.raises(ClaimError, match=f"^{name}= gives the same output another number"):
        audit(
            lambda x, rng: x + rng.laplace(),
            eps=1.0,
            pairs=[(0.0, 1.0)],
            method=kind(classifier=classifier),
            features=features,
            max_samples=5_000,
            n_jobs=1,
        )


@pytest.mark.spot(3)
@every_method
@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_a_mechanism_is_run_no_more_often_than_max_samples(method, scale, vectorized, tmp_path):
    """Copies and other processes tell of their calls by a file."""
    file, most = tmp_path / "calls", 600
    calls = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def count(records, rng, size=None):
        os.write(calls, bytes(size or 1))
        return len(records) + rng.laplace(scale=scale, size=size)

    given = {"method": method, "vectorized": vectorized, "max_samples": most}
    result = audit(count, eps=1.0, pairs=[([0], [])], seed=1, **given)
    os.close(calls)
    assert result.violated == (scale < 1)
    assert most / 2 < file.stat().st_size <= most
    assert result.samples <= most
