"""Claims: what the decorator records, what validation makes of it, and what a record shows."""

from __future__ import annotations

import math
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_dp import (
    ClaimError,
    DPFinder,
    DPSniper,
    OneRun,
    PrivacyProfile,
    RenyiDP,
    Sequential,
    StatDP,
    TradeOff,
    add_remove_one,
    dp_claim,
    queries,
    replace_one,
)
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings, unused_settings
from pytest_dp.records.entries import make_entry
from pytest_dp.records.judging import claim_changes

PAIRS = [([0], [])]


def response_profile(eps):
    return max(0.0, (math.e - math.exp(eps)) / (1 + math.e))


def response_tradeoff(x):
    return max(1 - math.e * x, (1 - x) / math.e)


def test_the_decorator_returns_the_same_function_and_records_the_place():
    def mechanism(records, rng):
        return rng.laplace()

    decorated = dp_claim(eps=1.0, pairs=PAIRS)(mechanism)
    assert decorated is mechanism
    (declaration,) = mechanism.__dp_claims__
    assert declaration.file == __file__
    assert "decorated = dp_claim" in Path(__file__).read_text().splitlines()[declaration.line - 1]


def test_a_decorator_without_parentheses_or_keywords_is_refused_when_audited():
    bare, unnamed = dp_claim(lambda records: 0), dp_claim(1.0)(lambda records: 0)
    with pytest.raises(ClaimError, match="A claim needs one of eps"):
        expand(bare.__dp_claims__[0].keywords)
    with pytest.raises(ClaimError, match=r"given 1\.0 without a keyword"):
        expand(unnamed.__dp_claims__[0].keywords)


@pytest.mark.parametrize(
    ("given", "label", "parameter"),
    [
        ({"eps": 1, "delta": 1e-6}, "eps=1.0-delta=1e-06", "eps"),
        ({"rho": 0.5}, "rho=0.5", "rho"),
        ({"mu": 1.0, "neighbors": add_remove_one(group=3)}, "mu=3.0", "mu"),
        ({"guarantee": RenyiDP({8: 0.5})}, "RenyiDP({8: 0.5})", "rdp"),
        (
            {"guarantee": PrivacyProfile(response_profile)},
            "PrivacyProfile(response_profile)",
            "scale",
        ),
        ({"guarantee": TradeOff(response_tradeoff)}, "TradeOff(response_tradeoff)", "scale"),
    ],
)
def test_every_notion_of_privacy(given, label, parameter):
    (claim,) = expand({**given, "pairs": PAIRS})
    assert (claim.label, claim.promise.guarantee.parameter) == (label, parameter)
    assert str(claim).startswith(f"@dp_claim({next(iter(given))}=")


def test_params_give_one_claim_each():
    given = {"rho": "rho", "params": {"rho": [0.1, 0.5], "k": [1, 2], "c": 3}, "pairs": PAIRS}
    claims = expand(given)
    labels = [claim.label for claim in claims]
    assert labels == ["rho=0.1-k=1", "rho=0.1-k=2", "rho=0.5-k=1", "rho=0.5-k=2"]
    assert claims[1].arguments.params == {"rho": 0.1, "k": 2, "c": 3}
    assert {claim.arguments.privacy_param for claim in claims} == {"rho"}
    both = {"eps": "epsilon", "delta": "slack", "params": {"epsilon": 1, "slack": [1e-6, 1e-5]}}
    labels = [claim.label for claim in expand({**both, "pairs": PAIRS})]
    assert labels == ["eps=1.0-delta=1e-06", "eps=1.0-delta=1e-05"]


GOOD = {"eps": 1.0, "pairs": PAIRS}


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"pairs": PAIRS}, "A claim needs one of eps"),
        ({"eps": 1.0}, "needs inputs= or pairs=, one of the two; neither given"),
        ({**GOOD, "inputs": queries(3)}, "both given"),
        ({**GOOD, "neighbours": "one_query"}, "Did you mean 'neighbors'"),
        ({**GOOD, "eps": "epsilon"}, "refers to a parameter in params="),
        (
            {**GOOD, "eps": "e", "params": {"e": [0.0]}},
            r"Invalid eps=0.0.* Here eps is params\['e'\]\.",
        ),
        ({"mu": "1.5", "pairs": PAIRS}, "Write mu=1.5, without quotes"),
        ({"guarantee": RenyiDP({1.0: 0.5}), "pairs": PAIRS}, r"Invalid orders=\{1.0: 0.5\}"),
        (
            {"guarantee": RenyiDP({8: 0.5}), "neighbors": add_remove_one(group=2), "pairs": PAIRS},
            r"group=2 of guarantee=RenyiDP\(\{8: 0.5\}\): Rényi privacy has no rule",
        ),
        (
            {"eps": 1, "neighbors": replace_one(group=3), "inputs": queries(3)},
            r"neighbors=replace_one\(group=3\) does not fit inputs=",
        ),
        ({"guarantee": PrivacyProfile(lambda eps: eps), "pairs": PAIRS}, r"PrivacyProfile\(f\)"),
        ({"guarantee": TradeOff(lambda x: 1 - x * x), "pairs": PAIRS}, r"TradeOff\(f\)"),
        ({**GOOD, "neighbors": "remove_one"}, "Valid choices: 'add_remove_one'"),
        ({"eps": 1, "inputs": [[0], [1]]}, "must say which are neighbours"),
        ({**GOOD, "alpha": 0}, "Invalid alpha=0"),
        (
            {**GOOD, "margin": 1},
            "Invalid margin=1. Allowed: a number above 1, such as 1.25, or None",
        ),
        ({**GOOD, "search": ["all"]}, "Invalid search='all'. Valid choices: 'guided'"),
        ({**GOOD, "search": 3}, "Invalid search=3. Allowed: 'guided', .* for no search"),
        ({**GOOD, "beyond": True}, "Invalid beyond=True. Valid choices: 'off', 'tell', 'fail'"),
        ({**GOOD, "max_samples": 0}, "Invalid max_samples=0"),
        ({**GOOD, "max_seconds": 0}, "Invalid max_seconds=0"),
        (
            {**GOOD, "method": "guess"},
            "Invalid method='guess'. Valid choices: 'sequential', 'statdp', 'dpsniper'",
        ),
        (
            {**GOOD, "method": Sequential(classifier="aditive")},
            "'additive', 'logistic', 'mlp'. Did you mean 'add",
        ),
        ({**GOOD, "features": "max"}, "Invalid features='max'. Allowed: a function of an output"),
        (
            {**GOOD, "method": DPSniper(c=0)},
            "Invalid c=0. Allowed: a probability between 0 and 1, such as 0.01",
        ),
        (
            {**GOOD, "method": DPFinder(restarts=0)},
            "Invalid restarts=0. Allowed: a whole number of restarts, 1 or more",
        ),
        (
            {**GOOD, "method": StatDP},
            r"or with more to say Sequential\(\), .*, DPFinder\(\), OneRun\(\)\.$",
        ),
        ({**GOOD, "method": Sequential(coupled=1)}, "Invalid coupled=1. Allowed: True or False"),
        ({**GOOD, "floating_point": 1}, "Invalid floating_point=1. Allowed: True or False"),
        ({**GOOD, "vectorized": 3}, "Allowed: the name of a parameter, such as 'size'"),
        ({**GOOD, "rng": 1}, "Invalid rng=1"),
        ({**GOOD, "params": [1]}, "Allowed: a mapping"),
        ({**GOOD, "params": {"k": []}}, "is empty"),
        ({"eps": 1, "pairs": []}, "non-empty list of pairs"),
    ],
)
def test_bad_keywords_say_what_is_allowed(keywords, message):
    with pytest.raises(ClaimError, match=message):
        expand(keywords)


def effort(**keywords):
    (one,) = expand({**GOOD, **keywords})
    return one.effort


def test_settings_that_a_method_has_no_use_for():
    given = effort(features=len, floating_point=True, margin=2.0, search=(), beyond="off")
    useless = {method: unused_settings(given, method) for method in ("sequential", "dpsniper")}
    assert useless == {"sequential": [], "dpsniper": ["margin", "search", "beyond"]}
    assert unused_settings(effort(features=None, floating_point=False), "statdp") == []


@pytest.mark.parametrize(
    "given",
    [
        *({"canaries": value} for value in ([], 0)),
        *({"guesses": value} for value in (0, (1, 2, 3), (-1, 4))),
        {"runs": 1.5},
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


CALIBRATED = r"or sklearn.calibration.CalibratedClassifierCV\(SVC\(...\)\)\.$"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("svm.SVC()", rf"Invalid classifier=SVC\(\). Allowed: 'additive', .* {CALIBRATED}"),
        ("linear_model.LinearRegression()", r"such as sklearn.*LogisticRegression\(\) or"),
        (SimpleNamespace(predict_proba=len), "Allowed: 'additive'"),
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


def test_what_is_on_record_is_told_as_it_is_written():
    def of(**keywords):
        (claim,) = expand({"eps": 1.0, "inputs": [[(1, 2)]], **keywords})
        return make_entry(claim, Settings().over(claim.effort))

    old = of(neighbors=add_remove_one(unit=0, rows=3))
    new = of(neighbors=add_remove_one(unit=0, rows=2))
    (change,) = claim_changes(old, new)
    assert str(change) == (
        "neighbours neighbors=add_remove_one(unit=0, rows=3) -> "
        "neighbors=add_remove_one(unit=0, rows=2)"
    )
