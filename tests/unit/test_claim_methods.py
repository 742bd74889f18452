"""Claims that choose an auditor, and the keywords that not every auditor uses."""

from __future__ import annotations

import math
import subprocess
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

from pytest_dp import ClaimError, audit
from pytest_dp.claim import expand
from pytest_dp.keywords import CLASSIFIERS, KEYWORDS, METHODS
from pytest_dp.settings import SEARCHES, USED_BY, Settings, unused

GOOD = {"eps": 1.0, "pairs": [([0], [])]}


def effort(**keywords):
    (one,) = expand({**GOOD, **keywords})
    return one.effort


def count(records, rng, size):
    return len(records) + rng.laplace(size=size)


def never(records):
    raise AssertionError("it was run")


def test_sequential_is_the_default_and_the_published_ones_the_choice():
    assert METHODS == ("sequential", "statdp", "dpsniper")
    assert "method" not in effort()
    assert Settings().over(effort()).method == "sequential"
    for method in METHODS:
        assert Settings().over(effort(method=method)).method == method


def test_without_its_keywords_a_method_has_its_defaults():
    unset = dict.fromkeys(USED_BY.keys() - {"margin"})  # of which None is a value
    for plain in (effort(), effort(**unset)):
        settings = Settings().over(plain)
        assert {name: getattr(settings, name) for name in USED_BY} == {
            "classifier": None,
            "features": None,
            "c": None,
            "floating_point": False,
            "coupled": True,
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
        ("sequential", ["c"]),
        ("statdp", ["classifier", "features", "floating_point", "c", "coupled"]),
        ("dpsniper", []),
    ],
)
def test_what_a_method_does_not_use(method, useless):
    every = effort(classifier="mlp", features=len, floating_point=True, c=0.01, coupled=False)
    assert unused(every, method) == useless
    assert unused(effort(coupled=True, floating_point=False), method) == []


@pytest.mark.parametrize("given", [True, False])
def test_coupled_is_a_flag(given):
    assert effort(coupled=given)["coupled"] is given


@pytest.mark.parametrize("given", [0, 1, "no", 0.5, [], np.True_])
def test_a_coupled_that_is_no_flag(given):
    with pytest.raises(ClaimError, match=r"Invalid coupled=.*\. Allowed: True or False\.$"):
        effort(coupled=given)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_by_name(name):
    assert effort(classifier=name)["classifier"] == name


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
    assert effort(classifier=given)["classifier"] is given
    assert unused(effort(classifier=given), "statdp") == ["classifier"]


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
        effort(classifier=given)
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

    assert effort(classifier=Switched(on=True))
    with pytest.raises(ClaimError, match="It has no predict_proba"):
        effort(classifier=Switched(on=False))


def test_the_network_needs_scikit_learn_and_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    for name in ("additive", "logistic"):
        assert effort(classifier=name)
    with pytest.raises(ClaimError, match=r'pip install "pytest-dp\[sklearn\]"'):
        effort(classifier="mlp")


def test_validation_does_not_load_scikit_learn():
    code = (
        "import sys; from pytest_dp.claim import expand\n"
        "expand({'eps': 1.0, 'pairs': [(0, 1)], 'classifier': 'mlp'})\n"
        "print([name for name in ('sklearn', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_features_are_any_callable():
    for given in (len, lambda output: [output], np.asarray, float):
        assert effort(features=given)["features"] is given


@pytest.mark.parametrize("given", [0.01, 0.999, np.float32(0.5), np.float64(0.25)])
def test_c_is_a_probability(given):
    assert effort(c=given)["c"] == float(given)
    assert type(effort(c=given)["c"]) is float


@pytest.mark.parametrize(
    "bad",
    [
        {"classifier": "tree"},
        {"classifier": object()},
        {"features": "max"},
        {"c": 1.0},
        {"floating_point": "no"},
        {"coupled": "yes"},
        {"alpha": 0.0},
        {"alpha": 1.5},
        {"method": "sniper"},
    ],
)
@pytest.mark.parametrize("method", [None, *METHODS])
def test_nothing_is_run_before_the_claim_makes_sense(bad, method):
    (name,) = bad
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
    result = audit(count, **quick, method="dpsniper", c=0.01, floating_point=True, features=float)
    assert result.method == "dpsniper"
    assert result.notes == ()
    [context] = contexts
    assert (context.settings.c, context.settings.floating_point) == (0.01, True)
    assert context.settings.features is float


def test_statdp_notes_what_it_does_not_use():
    quick = {**GOOD, "vectorized": "size", "max_samples": 2000, "method": "statdp"}
    assert not any("does not use" in note for note in audit(count, **quick).notes)
    result = audit(count, **quick, c=0.01, classifier=RandomForestClassifier())
    assert "method statdp does not use classifier, c" in result.notes
    result = audit(count, **quick, features=float, floating_point=True, coupled=False)
    assert "method statdp does not use features, floating_point, coupled" in result.notes


def test_the_default_notes_what_it_does_not_use():
    quick = {**GOOD, "vectorized": "size", "max_samples": 300}
    used = {"classifier": "logistic", "features": float, "floating_point": True, "coupled": False}
    assert not any("does not use" in note for note in audit(count, **quick, **used).notes)
    assert "method sequential does not use c" in audit(count, **quick, c=0.01).notes
