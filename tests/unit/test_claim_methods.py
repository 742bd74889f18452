"""Claims that choose an auditor, and the keywords that not every auditor uses."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from pytest_dp import ClaimError, DPSniper, Sequential, StatDP, audit
from pytest_dp.claim import expand
from pytest_dp.keywords import CLASSIFIERS, KEYWORDS
from pytest_dp.settings import METHODS, SEARCHES, USED_BY, Settings, unused

GOOD = {"eps": 1.0, "pairs": [([0], [])]}


def effort(**keywords):
    (one,) = expand({**GOOD, **keywords})
    return one.effort


def count(records, rng, size):
    return len(records) + rng.laplace(size=size)


def never(records):
    raise AssertionError("it was run")


def test_sequential_is_the_default_and_the_published_ones_the_choice():
    assert list(METHODS) == ["sequential", "statdp", "dpsniper"]
    assert "method" not in effort()
    assert Settings().over(effort()).method == Sequential()
    for method, value in (
        ("sequential", Sequential()),
        ("statdp", StatDP()),
        ("dpsniper", DPSniper()),
    ):
        assert effort(method=method) == effort(method=value) == {"method": value}


def test_a_method_takes_the_place_of_another_with_all_that_was_said_of_it():
    settings = Settings().over({"method": DPSniper(c=0.01)}, effort(method="dpsniper"))
    assert settings.method == DPSniper()


def test_a_method_is_shown_as_it_is_written():
    assert repr(Sequential()) == "Sequential()"
    assert repr(DPSniper(c=0.01, coupled=False)) == "DPSniper(c=0.01, coupled=False)"
    assert repr(StatDP()) == "StatDP()"


@pytest.mark.parametrize("given", [DPSniper, 3, ["sequential"], None.__class__])
def test_what_is_no_method_is_told_what_is(given):
    said = (
        r"Valid choices: 'sequential', 'statdp', 'dpsniper', or with more to say Sequential\(\), "
        r"StatDP\(\), DPSniper\(\)\."
    )
    with pytest.raises(ClaimError, match=f"Invalid method=.*{said}"):
        effort(method=given)


def test_without_its_keywords_a_method_has_its_defaults():
    unset = dict.fromkeys(USED_BY.keys() - {"margin"})  # of which None is a value
    for plain in (effort(), effort(**unset)):
        settings = Settings().over(plain)
        assert {name: getattr(settings, name) for name in USED_BY} == {
            "features": None,
            "floating_point": False,
            "margin": 1.25,
            "search": SEARCHES,
            "beyond": "tell",
        }


def test_a_margin_is_a_multiple_of_the_claim_or_none():
    assert Settings().over(effort()).margin == 1.25
    assert Settings().over(effort(margin=2)).margin == 2.0
    assert Settings().over({"margin": 1.5}, effort(margin=None)).margin == 1.0  # never reached
    assert Settings().over(effort(margin=1.5), {"margin": 3.0}).margin == 3.0
    for wrong in (1, 0.5, "1.25", True, math.inf, math.nan):
        with pytest.raises(ClaimError, match=r"Invalid margin=.*Allowed: a number above 1, such"):
            effort(margin=wrong)


def test_keywords_of_some_methods_are_keywords_of_a_claim():
    assert USED_BY.keys() < set(KEYWORDS)
    assert all(set(methods) < set(METHODS) for methods in USED_BY.values())


@pytest.mark.parametrize(
    ("method", "useless"),
    [
        ("sequential", []),
        ("statdp", ["features", "floating_point"]),
        ("dpsniper", []),
    ],
)
def test_what_a_method_does_not_use(method, useless):
    assert unused(effort(features=len, floating_point=True), method) == useless
    assert unused(effort(features=None, floating_point=False), method) == []


@pytest.mark.parametrize("given", [True, False])
def test_coupled_is_a_flag(given):
    assert effort(method=Sequential(coupled=given))["method"].coupled is given


@pytest.mark.parametrize("given", [0, 1, "no", 0.5, [], np.True_])
def test_a_coupled_that_is_no_flag(given):
    with pytest.raises(ClaimError, match=r"Invalid coupled=.*\. Allowed: True or False\.$"):
        effort(method=Sequential(coupled=given))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_by_name(name):
    assert effort(method=Sequential(classifier=name))["method"].classifier == name


class Tree:
    """The least that a classifier must have."""

    def fit(self, X, y): ...

    def predict_proba(self, X): ...


@pytest.mark.parametrize(
    "given",
    [
        Tree(),
        LogisticRegression(),
        RandomForestClassifier(),  # has no truth value before it is fitted
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifierCV(SVC()),
    ],
)
def test_classifiers_by_interface(given):
    assert effort(method=Sequential(classifier=given))["method"].classifier is given


CALIBRATED = r"Write sklearn.calibration.CalibratedClassifierCV\(SVC\(...\)\) or"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Tree, "It is a class: write Tree()"),
        (MLPClassifier, r"It is a class: write MLPClassifier\(\)\."),
        (SVC, CALIBRATED),
        (SVC(), rf"Invalid classifier=SVC\(\). It has no predict_proba. {CALIBRATED}"),
        (SVC(), r"before scikit-learn 1.9, SVC\(probability=True\)"),
        (LinearSVC(), r"or sklearn.calibration.CalibratedClassifierCV\(LinearSVC\(...\)\)\."),
        (SGDClassifier(loss="hinge"), r"CalibratedClassifierCV\(SGDClassifier\(...\)\)"),
        (make_pipeline(StandardScaler(), LinearSVC()), "It has no predict_proba. Allowed: 'addit"),
        (LinearRegression(), r"predict_proba\(X\), such as sklearn.*LogisticRegression\(\)\.$"),
        (SimpleNamespace(predict_proba=len), "It has no fit. Allowed"),
        (SimpleNamespace(predict_proba=1, fit=len), "It has no predict_proba. Allowed"),
        (np.zeros(3), "It has no fit and no predict_proba"),
    ],
)
def test_classifiers_without_what_is_needed(given, message):
    with pytest.raises(ClaimError, match=message) as caught:
        effort(method=Sequential(classifier=given))
    assert "\n" not in str(caught.value)


def test_a_predict_proba_that_is_there_on_some_conditions():
    class Switched(Tree):
        def __init__(self, on):
            self.on = on

        @property
        def predict_proba(self):
            if not self.on:
                raise AttributeError("off")
            return len

    assert effort(method=Sequential(classifier=Switched(on=True)))
    with pytest.raises(ClaimError, match="It has no predict_proba"):
        effort(method=Sequential(classifier=Switched(on=False)))


def test_the_network_needs_scikit_learn_and_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in ("additive", "logistic"):
        assert effort(method=Sequential(classifier=name))
    with pytest.raises(ClaimError, match=r'pip install "pytest-dp\[sklearn\]"'):
        effort(method=Sequential(classifier="mlp"))


def test_features_are_any_callable():
    for given in (len, lambda output: [output], np.asarray, float):
        assert effort(features=given)["features"] is given


@pytest.mark.parametrize("given", [0.01, 0.999, np.float32(0.5), np.float64(0.25)])
def test_c_is_a_probability(given):
    c = effort(method=DPSniper(c=given))["method"].c
    assert (type(c), c) == (float, float(given))


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"method": Sequential(classifier="tree")}, "classifier"),
        ({"method": DPSniper(classifier=object())}, "classifier"),
        ({"features": "max"}, "features"),
        ({"method": DPSniper(c=1.0)}, "c"),
        ({"floating_point": "no"}, "floating_point"),
        ({"method": Sequential(coupled="yes")}, "coupled"),
        ({"method": DPSniper(coupled=None)}, "coupled"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.5}, "alpha"),
        ({"method": "sniper"}, "method"),
    ],
)
@pytest.mark.parametrize("method", [None, *METHODS])
def test_nothing_is_run_before_the_claim_makes_sense(bad, name, method):
    with pytest.raises(ClaimError, match=f"Invalid {name}="):
        audit(never, **{**GOOD, "method": method, **bad})


@pytest.fixture
def contexts(monkeypatch):
    """What was given to DP-Sniper, in whose place nothing is done."""
    given = []

    def stand_in(context):
        given.append(context)
        return context.result("inconclusive")

    module = SimpleNamespace(audit=stand_in)
    monkeypatch.setitem(sys.modules, "pytest_dp.auditors.dpsniper", module)
    return given


def test_each_method_has_its_auditor(contexts):
    quick = {**GOOD, "vectorized": "size", "max_samples": 2000}
    assert audit(count, **quick).method == "sequential"
    assert audit(count, **quick, method="sequential").method == "sequential"
    assert audit(count, **quick, method="statdp").method == "statdp"
    assert not contexts
    result = audit(count, **quick, method=DPSniper(c=0.01), floating_point=True, features=float)
    assert result.method == "dpsniper"
    assert result.notes == ()
    [context] = contexts
    assert (context.method.c, context.settings.floating_point) == (0.01, True)
    assert context.settings.features is float


def test_statdp_notes_what_it_does_not_use():
    quick = {**GOOD, "vectorized": "size", "max_samples": 2000, "method": "statdp"}
    assert not any("does not use" in note for note in audit(count, **quick).notes)
    result = audit(count, **quick, features=float, floating_point=True)
    assert "method statdp does not use features, floating_point" in result.notes


def test_the_default_uses_all_that_is_said_of_it():
    quick = {**GOOD, "vectorized": "size", "max_samples": 300}
    used = {
        "method": Sequential(classifier="logistic", coupled=False),
        "features": float,
        "floating_point": True,
    }
    assert not any("does not use" in note for note in audit(count, **quick, **used).notes)
