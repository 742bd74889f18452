"""What libraries promise is read from their own objects."""

from __future__ import annotations

import math
import sys

import pytest

from pytest_dp import queries
from pytest_dp.basics.errors import ClaimError
from pytest_dp.declaration import add_remove_one, replace_one
from pytest_dp.libraries import diffprivlib, dp_accounting, opendp

ROWS = [[1, 2, 3]]


@pytest.fixture(scope="module")
def dp():
    import opendp.prelude

    opendp.prelude.enable_features("contrib")
    return opendp.prelude


def number(dp, make="make_laplace"):
    return getattr(dp.m, make)(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)


def keys(dp):
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    distance = dp.l01inf_distance(dp.absolute_distance(T=int))
    return dp.m.make_laplace_threshold(domain, distance, scale=1.0, threshold=9)


def total(dp, size=None, metric="symmetric_distance"):
    domain = dp.vector_domain(dp.atom_domain(T=int, bounds=(0, 3)), size=size)
    rows = domain, getattr(dp, metric)()
    if metric == "change_one_distance":
        rows = rows >> dp.t.then_metric_unbounded()
    return rows >> dp.t.then_sum() >> dp.m.then_laplace(scale=3.0)


def noisy_max(dp, T=int, size=None, bounds=None, **metric):
    of_answer = dp.atom_domain(T=T, bounds=bounds, **({"nan": False} if T is float else {}))
    domain = dp.vector_domain(of_answer, size=size)
    return dp.m.make_noisy_max(
        domain, dp.linf_distance(T=T, **metric), dp.max_divergence(), scale=2.0
    )


READ = [
    (number, 2, {}, {"eps": 2.0, "pairs": [(0, 2)]}),
    (lambda dp: number(dp, "make_gaussian"), 2, {}, {"rho": 2.0, "pairs": [(0, 2)]}),
    (total, 2, {"inputs": ROWS}, {"eps": 1.0, "neighbors": add_remove_one(group=2)}),
    (lambda dp: total(dp, 3), 2, {"inputs": ROWS}, {"eps": 1.0, "neighbors": replace_one()}),
    (
        lambda dp: total(dp, 3, "change_one_distance"),
        1,
        {"inputs": ROWS},
        {"eps": 1.0, "neighbors": replace_one()},
    ),
    (
        lambda dp: dp.m.make_randomized_response_bool(prob=0.75),
        1,
        {},
        {"eps": pytest.approx(math.log(3))},
    ),
]


@pytest.mark.parametrize(("make", "d_in", "given", "read"), READ)
def test_a_measurement_says_its_claim(dp, make, d_in, given, read):
    entry = opendp.claimed(make(dp), d_in, **given)
    keywords = entry.declaration.keywords
    assert {name: keywords[name] for name in read} == read
    assert keywords["beyond"] == "off"
    assert entry.declaration.file == __file__  # the line of the table, not of the adapter


def test_scores_to_select_from_are_queries(dp):
    def read(measurement, d_in=1, **given):
        return opendp.claimed(measurement, d_in, **given).declaration.keywords

    unknown = read(noisy_max(dp))
    assert (unknown["eps"], unknown["inputs"].lengths) == (1.0, (5,))
    sized = read(noisy_max(dp, float, 3), 2.0)
    assert sized["eps"] == 2.0
    assert ([2.0, 2.0, 2.0], [4.0, 0.0, 0.0]) in sized["pairs"]
    one_way = read(noisy_max(dp, monotonic=True), inputs=queries(4))
    assert one_way["eps"] == 0.5
    assert ([1] * 4, [2] * 4) in one_way["pairs"]
    assert ([1] * 4, [2, 0, 0, 0]) not in one_way["pairs"]
    narrow = read(noisy_max(dp, bounds=(3, 4)))
    assert ([4] * 5, [3] * 5) in narrow["pairs"]
    assert all(3 <= answer <= 4 for pair in narrow["pairs"] for side in pair for answer in side)


REFUSED = [
    (lambda dp: noisy_max(dp), 1, {"inputs": [[1, 2]]}, "Allowed: queries"),
    (lambda dp: noisy_max(dp, size=3), 1, {"inputs": queries(4)}, "No vectors of 4 entries"),
    (lambda dp: 3, 1, {}, "measurement=3. Allowed: a Measurement"),
    (number, -1, {}, "d_in=-1. Allowed: a distance by AbsoluteDistance.* must be positive"),
    (number, 1, {"eps": 1.0}, "eps=1.0. It is read from the measurement"),
    (number, 1, {"pairs": [(0, 2**40)]}, "is not in AtomDomain"),
    (total, 1, {"pairs": [([1], [1, 2, 2])]}, "It is 2.0 apart"),
    (total, 1, {}, "Write inputs="),
    (lambda dp: total(dp, 3), 1, {"inputs": ROWS}, "distance 2 by SymmetricDistance.* Write 2"),
    (keys, (1, 1, 1), {}, "Write pairs="),
    (keys, (1, 1, 1), {"pairs": [({"a": 3}, {})]}, r"\(1.0, 3.0, 3.0\) apart"),
]


@pytest.mark.filterwarnings("ignore:Value .* does not belong to carrier type")
@pytest.mark.parametrize(("make", "d_in", "given", "said"), REFUSED)
def test_what_a_measurement_does_not_promise_is_refused(dp, make, d_in, given, said):
    with pytest.raises(ClaimError, match=said):
        opendp.claimed(make(dp), d_in, **given)


def test_a_mechanism_of_diffprivlib_says_its_claim():
    from diffprivlib import mechanisms as m

    def read(mechanism):
        keywords = diffprivlib.claimed(mechanism).declaration.keywords
        return {name: value for name, value in keywords.items() if name != "beyond"}

    laplace = m.Laplace(epsilon=1, delta=0.1, sensitivity=2)
    assert read(laplace) == {"eps": 1.0, "delta": 0.1, "pairs": [(0, 2.0)]}
    ends = m.GeometricTruncated(epsilon=1, sensitivity=2, lower=0, upper=5)
    assert read(ends) == {"eps": 1.0, "pairs": [(0, 2), (3, 5)]}
    labels = m.Binary(epsilon=1, value0="yes", value1="no")
    assert read(labels)["inputs"].options == ("yes", "no")
    choice = m.Exponential(epsilon=1, sensitivity=1, utility=[1])
    for wrong, said in ((3, "an object of"), (choice, "Write")):
        with pytest.raises(ClaimError, match=said):
            read(wrong)


def test_events_and_losses_of_dp_accounting_are_guarantees():
    import dp_accounting as accounting

    coarse = {"value_discretization_interval": 0.01}
    pld = accounting.pld.privacy_loss_distribution.from_laplace_mechanism(1.0, **coarse)
    for promised, near in ((accounting.LaplaceDpEvent(1.0), 1e-3), (pld, 1e-2)):
        at_half = dp_accounting.guarantee(promised).function(0.5)
        assert at_half == pytest.approx(1 - math.exp(-0.25), rel=near)
    for wrong in (3, accounting.UnsupportedDpEvent()):
        with pytest.raises(ClaimError, match="Allowed: "):
            dp_accounting.guarantee(wrong)


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ClaimError, match=r"needs the package dp-accounting.*pip install dp-acc"):
        dp_accounting.guarantee(3)
