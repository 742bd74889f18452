"""What membership games are about, and what attacks see: records, tables, models, bad input."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pytest_dp import ClaimError, MechanismError, Membership, audit, between, riskiest
from pytest_dp.claiming.claim import expand
from pytest_dp.data.fields import cells_of
from pytest_dp.methods.membership_attacks import cross_fitted_area, quantities_of
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.user_features import target_of, target_record
from pytest_dp.pairs.targets import targets_of
from pytest_dp.privacy import AttackAUC
from pytest_dp.statistics.guessing_bounds import area_resolution

ROWS = [[20 + i % 7, i % 3, "ab"[i % 2]] for i in range(30)] + [[99, 9, "z"]]
FRAME = pd.DataFrame(ROWS, columns=["age", "kind", "mark"])
KINDS = {
    "list": ROWS,
    "frame": FRAME,
    "columns": {name: list(FRAME[name]) for name in FRAME},
    "array": FRAME[["age", "kind"]].to_numpy(),
    "numbers": [20.0 + i % 7 for i in range(30)] + [99.0],
}


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_any_type_has_columns_and_is_left_without_a_record(kind):
    data = KINDS[kind]
    cells = cells_of(data)
    assert all(len(column) == 31 for column in cells.values())
    (target,) = targets_of(data, riskiest(1))
    assert (target.at, target.text) == (30, "record 30")
    assert type(target.without) is type(data)
    rest = cells_of(target.without)
    assert rest.keys() == cells.keys()
    assert all((rest[name] == cells[name][:30]).all() for name in cells)
    again = targets_of(data, [target.record, 30, -1])
    assert [one.at for one in again] == [30]


def test_counts_of_agreeing_rows_are_those_of_a_loop():
    wanted = target_record(ROWS[:-1], {0: 22, 1: 2, 2: "a"}, seed=1)
    output = [[22, 2, "a"], [22, 2, "b"], [22, 1, "a"], [50, 1, "b"]]
    found = dict(zip(wanted.labels, wanted(output), strict=True))
    assert found["number of rows"] == 4
    assert found["rows that agree with the record in [0], [1], [2]"] == 1
    assert found["rows that agree with the record in [0]"] == 3
    assert found["distance of the closest row to the record"] == 0
    assert found["mean of [0]"] == 29
    assert found["deviation of [0]"] == pytest.approx(np.std([22, 22, 22, 50]))
    of_text = dict(zip(wanted.labels, wanted([["x", 2, "a"], [None, 2, "b"]]), strict=True))
    assert np.isnan(of_text["mean of [0]"])
    assert all(map(math.isnan, wanted("no table")))
    assert all(map(math.isnan, wanted([[1, 2]])))


@pytest.mark.parametrize(
    ("d1", "d2", "outputs", "is_one"),
    [
        (ROWS, ROWS[:-1], [ROWS], True),
        (ROWS, [*ROWS[:-1], [1, 2, "a"]], [ROWS], True),
        (ROWS, ROWS[:-1], [3.0, 4.0], False),
        (ROWS, ROWS[:-1], [[[1, 2]]], False),
        ([1, 2, 3], [1, 2], [[1.5, 2]], False),  # a vector
    ],
)
def test_pairs_whose_outputs_are_tables_like_them_have_a_target(d1, d2, outputs, is_one):
    assert (target_of(d1, d2, outputs, 0) is not None) == is_one


def classifier(p, classes):
    """A model as one of scikit-learn, of rows whose last value is a label."""
    return SimpleNamespace(predict_proba=lambda x: [p], classes_=classes, n_features_in_=1)


def shown(example, data):
    return quantities_of(example, data, [(0, data[0], data[1:])], 0)


def test_a_model_is_asked_how_well_it_fits_the_label():
    two = classifier([0.1, 0.9], [*"ab"])
    look = shown(two, [[1.5, "b"], [2.5, "a"]])
    rows = look([two, Raised("ValueError"), classifier([1.0, 0.0], [*"ab"])])[:, 0]
    assert rows[0] == pytest.approx([math.log(0.9), 0.1, 0.9, 0])
    assert np.isnan(rows[1, :-1]).all()
    assert rows[1, -1] == 3 + 1  # it has none of three, and raised
    assert rows[2, 0] == pytest.approx(math.log(1e-12))
    other = classifier([0.2, 0.5, 0.3], [*"abc"])
    assert look([other])[0, 0] == pytest.approx([math.log(0.5), math.nan, math.nan, 2], nan_ok=True)
    density = SimpleNamespace(score_samples=lambda x: x.sum(axis=1))
    assert shown(density, [[1.0, 2.0], [3, 4]])([density]).tolist() == [[[3.0, 0]]]
    line = SimpleNamespace(predict=lambda x: 2 * x[:, 0], n_features_in_=1)
    assert shown(line, [[1.0, 5.0], [3, 4]])([line]).tolist() == [[[-3.0, 2.0, 0]]]


@pytest.mark.slow
@pytest.mark.parametrize("rare", [True, False])
def test_a_class_that_only_the_record_has_tells_of_it(rare):
    data = [[float(i % 7), i % 2] for i in range(30)] + [[3.0, 2 if rare else 1]]

    def train(data, rng):
        some = [data[i] for i in rng.integers(len(data), size=30)]  # shares have one denominator
        classes = sorted({label for _, label in some})
        counts = [1.0 + sum(label == one for _, label in some) for one in classes]
        return classifier(np.divide(counts, sum(counts)), classes)

    claim = {**CLAIM, "data": data, "records": [-1], "auc": 0.7}
    assert audit(train, **claim, seed=1, max_samples=2_000).violated == rare


def test_the_guarantee_is_what_follows_from_any_event():
    claim = AttackAUC(0.6)
    assert claim.largest_probability(0.3) == pytest.approx(0.5)
    assert claim.shown_by(0.5, 0.3) == pytest.approx(0.6)
    assert claim.delta_at(0.0) == pytest.approx(0.2)
    assert claim.noise_below(claim.with_noise_over(1.5)) == pytest.approx(1.5)
    assert claim.noise_below(1.0) == math.inf
    assert claim.times(2).auc == pytest.approx(0.7)
    assert claim.group(1) is claim
    with pytest.raises(ClaimError, match="group=2"):
        claim.group(2)


CLAIM = {"auc": 0.6, "data": ROWS, "records": [0]}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"auc": 0.5}, "auc=0.5. Allowed: a number above 0.5"),
        ({"records": None}, "records= is missing"),
        ({"records": 3}, "records=3. Allowed: riskiest"),
        ({"records": []}, "There may be 512"),
        ({"eps": 1.0}, "no keyword 'eps'"),
        ({"method": "statdp"}, "method=StatDP"),
        ({"score": 3}, "score=3"),
        ({"params": {"k": between(1, 3)}}, "a value or a list"),
    ],
)
def test_a_claim_says_what_is_wrong_when_it_is_read(wrong, said):
    with pytest.raises(ClaimError, match=said.replace("(", r"\(")):
        expand({**CLAIM, **wrong})
    with pytest.raises(ClaimError, match="@risk_claim"):
        expand({"eps": 1.0, "pairs": [([1], [])], "method": Membership()})


def copied(data, rng):
    return [data[i] for i in rng.permutation(len(data))]


@pytest.mark.parametrize(
    ("mechanism", "wrong", "error", "said"),
    [
        (copied, {"records": [31]}, ClaimError, "from 0 to 30"),
        (copied, {"records": [[1, 2, 3]]}, ClaimError, "is not in the data"),
        (copied, {"records": riskiest(40)}, ClaimError, "has 31 records"),
        (copied, {"data": 3}, ClaimError, "Invalid data=3"),
        (
            lambda data: np.random.default_rng(0).permutation(len(data)),
            {},
            MechanismError,
            "a seed of its own",
        ),
        (lambda data, rng: object(), {}, ClaimError, "Write score="),
        (copied, {"score": lambda model, record: model.loss}, ClaimError, "could not score"),
    ],
)
def test_an_audit_says_what_is_wrong_and_what_to_write(mechanism, wrong, error, said):
    with pytest.raises(error, match=said):
        audit(mechanism, **{**CLAIM, **wrong}, seed=1, max_samples=200)


def test_each_record_has_its_share_of_alpha():
    """By what so many pairs would have caught; and of the data, all games share the outputs."""
    claim = {**CLAIM, "records": range(4), "max_samples": 600, "seed": 1}
    result = audit(lambda data, rng: float(rng.normal()), **claim)
    pairs = {risk.pairs for risk in result.risks}
    assert len(pairs) == 1
    assert result.resolution == area_resolution(0.6, *pairs, 1e-6 / 4)
    assert (sum(pairs) + 4) * 5 + 20 > result.samples  # 4 to learn from, and some to try out
    assert result.p_value == pytest.approx(min(4 * min(r.p_value for r in result.risks), 1))


@pytest.mark.slow
def test_the_error_of_attacks_that_learn_from_chance_holds():
    """Nothing leaks: an area of 0.5 is within two errors, but in 1 of 20 cases."""
    rng, errors = np.random.default_rng(0), []
    for seed in range(200):
        inside, outside = rng.normal(size=(2, 100, 1))
        area, error = cross_fitted_area(inside, outside, ["x"], None, seed)
        errors.append(abs(area - 0.5) / error)
    assert np.mean(np.array(errors) > 2) < 0.1
