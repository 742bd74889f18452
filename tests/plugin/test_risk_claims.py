"""Claims about membership in pytest: collected, run and reported as any other claim."""

from __future__ import annotations

import json

import pytest

CLAIMS = """
import pytest
from pytest_dp import Claimed, claims, risk_claim, riskiest

PEOPLE = [[20 + i % 7, i % 3, "ab"[i % 2]] for i in range(30)] + [[99, 9, "z"]]
ABOUT = {"auc": 0.7, "data": "shop:PEOPLE", "records": riskiest(1), "max_samples": 400}


@risk_claim(auc=0.6, data=lambda: PEOPLE, records=riskiest(2), max_samples=600)
def memoriser(data, rng):
    return [data[i] for i in rng.permutation(len(data))]


@risk_claim(**ABOUT, params={"count": [3, 5]})
def usual(data, count, rng):
    return [[int(age), 1, "a"] for age in rng.integers(20, 30, count)]


@pytest.mark.xfail(strict=True)
@risk_claim(**ABOUT)
def known(data, rng):
    return memoriser(data, rng)


table = claims({"kept": Claimed(memoriser, **ABOUT)})


@pytest.mark.dp_claim(**ABOUT)
def test_by_hand(dp_check):
    assert dp_check(lambda data, rng: rng.normal()).verdict == "no violation"
"""


@pytest.mark.slow
def test_risks_are_audited_and_told(pytester):
    pytester.makepyfile(shop=CLAIMS)
    result = pytester.runpytest("shop.py", "--dp-report=run.json", "-v", "-m", "dp_claim")
    result.assert_outcomes(passed=3, failed=2, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*PrivacyViolation: claimed auc = 0.6, but auc*",
            "*record 30 = *99, 9, 'z'*",
            "*AUC 1 in * pairs of runs (95 % interval *), mostly by*",
            '*Reproduce:  pytest "shop.py::memoriser*auc=0.6*" --dp-seed=*',
            "*memoriser *auc 0.6*VIOLATED  auc >*",
            "*usual?count=3? *auc 0.7*",
            "*usual?count=5? *auc 0.7*",
        ]
    )
    records = {r["name"]: r for r in json.loads((pytester.path / "run.json").read_text())["claims"]}
    told = records["memoriser[auc=0.6]"]
    assert (told["parameter"], told["claimed"], told["method"]) == ("auc", 0.6, "membership")
    assert {risk["record"] for risk in told["risks"]} >= {"record 30"}
    assert told["p_value"] <= told["alpha"] < records["usual[auc=0.7-count=3]"]["p_value"]


@pytest.mark.slow
def test_a_claim_on_record_is_about_its_records(pytester):
    pytester.makepyfile(shop=CLAIMS.replace("riskiest(2)", "[30, 2]"))
    pytester.runpytest("shop.py", "--dp-claims=update", "-k", "usual")
    kept = json.loads((pytester.path / "dp-claims.json").read_text())
    (entry, *_) = (e for name, e in kept["claims"].items() if "usual" in name)
    assert entry["promise"] == {"auc": 0.7}
    assert "riskiest(1)" in json.dumps(entry)
    pytester.makepyfile(shop=CLAIMS.replace('"auc": 0.7', '"auc": 0.8'))
    weaker = pytester.runpytest("shop.py", "-k", "usual")
    weaker.stdout.fnmatch_lines(["*auc=0.7*"])
    assert weaker.ret == 1
