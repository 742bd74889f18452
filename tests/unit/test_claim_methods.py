"""Claims that choose an auditor, and the settings that not every auditor uses."""

from __future__ import annotations

import sys
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_dp import ClaimError, OneRun, Sequential, audit
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.method_settings import METHODS
from pytest_dp.claiming.settings import unused_settings

GOOD = {"eps": 1.0, "pairs": [([0], [])]}


def effort(**keywords):
    (one,) = expand({**GOOD, **keywords})
    return one.effort


def never(records):
    raise AssertionError("it was run")


@pytest.mark.parametrize(
    ("method", "useless"),
    [
        ("sequential", []),
        ("statdp", ["features", "floating_point"]),
        ("dpsniper", ["margin", "search", "beyond"]),
    ],
)
def test_settings_that_a_method_has_no_use_for(method, useless):
    given = {"features": len, "floating_point": True}
    if method == "dpsniper":
        given |= {"margin": 2.0, "search": (), "beyond": "off"}
    assert unused_settings(effort(**given), method) == useless
    assert unused_settings(effort(features=None, floating_point=False), method) == []


@pytest.mark.parametrize(
    "given",
    [
        *({"canaries": value} for value in ("many", [], 0, {"a": 1}, 2.5)),
        *({"guesses": value} for value in (0, (1, 2, 3), (-1, 4), "all", (0.5, 1), (0, 0))),
        *({"runs": value} for value in (0, 1.5, True)),
        {"score": "loss"},
    ],
)
def test_what_one_run_does_not_take(given):
    ((name, _),) = given.items()
    with pytest.raises(ClaimError, match=rf"Invalid {name}=.*Allowed: "):
        effort(method=OneRun(**given))


def of_sklearn(given):
    """A classifier of scikit-learn by module and name, called if it ends in brackets."""
    module, _, name = given.rpartition(".")
    kind = getattr(import_module(f"sklearn.{module}"), name.removesuffix("()"))
    return kind() if name.endswith("()") else kind


class Tree:
    """The least that a classifier must have."""

    def fit(self, X, y): ...

    def predict_proba(self, X): ...


CALIBRATED = r"Write sklearn.calibration.CalibratedClassifierCV\(SVC\(...\)\) or"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Tree, "It is a class: write Tree()"),
        ("svm.SVC", CALIBRATED),
        ("svm.SVC()", rf"Invalid classifier=SVC\(\). It has no predict_proba. {CALIBRATED}"),
        ("svm.SVC()", r"before scikit-learn 1.9, SVC\(probability=True\)"),
        ("svm.LinearSVC()", r"or sklearn.calibration.CalibratedClassifierCV\(LinearSVC\(...\)\)"),
        ("linear_model.LinearRegression()", r"such as sklearn.*LogisticRegression\(\)\.$"),
        (SimpleNamespace(predict_proba=len), "It has no fit. Allowed: 'additive'"),
        (SimpleNamespace(predict_proba=1, fit=len), "It has no predict_proba. Allowed"),
        (np.zeros(3), "It has no fit and no predict_proba"),
    ],
)
def test_classifiers_without_what_is_needed(given, message):
    given = of_sklearn(given) if isinstance(given, str) else given
    with pytest.raises(ClaimError, match=message) as caught:
        effort(method=Sequential(classifier=given))
    assert "\n" not in str(caught.value)


def test_the_network_needs_scikit_learn_and_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert effort(method=Sequential(classifier="logistic"))
    with pytest.raises(ClaimError, match=r'pip install "pytest-dp\[sklearn\]"'):
        effort(method=Sequential(classifier="mlp"))


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_run_before_the_claim_makes_sense(method):
    with pytest.raises(ClaimError, match="Invalid features="):
        audit(never, **GOOD, method=method, features="max")
