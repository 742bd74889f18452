"""What a person reads of failures: the line, the event, the sentence, the remedy."""

from __future__ import annotations

import inspect
import json
from datetime import date, timedelta

import pytest

from pytest_dp import audit
from pytest_dp.report.violation import violation

pytestmark = pytest.mark.slow


def as_json(data, rng):
    counts = {
        "oslo": rng.laplace(),
        "rome": sum(data) + rng.laplace(scale=0.4),  # here
    }
    return json.dumps(counts)


def missing(data, rng):
    rome = {"rome": rng.laplace()} if sum(data) else {}
    return {"oslo": rng.laplace(), **rome}


def not_a_number(data, rng):
    return json.dumps({"oslo": rng.laplace(), "rome": rng.laplace() if sum(data) else float("nan")})


def label(data, rng):
    return {
        "mean": rng.laplace(),
        "level": "high" if sum(data) else "low",  # here
    }


def day(data, rng):
    return str(date(2024, 1, 1) + timedelta(days=int(30 * sum(data) + rng.laplace(scale=6))))


def raised(data, rng):
    if not sum(data) and rng.random() < 0.3:
        raise ValueError(f"no data: {rng.random()}")
    return rng.laplace()


def spread(data, rng):
    return [sum(data) * (-1) ** i * 0.7 + float(x) for i, x in enumerate(rng.laplace(size=10))]


CASES = [
    (raised, "raises ValueError", "Outputs of runs that raise ValueError come", "The exception"),
    (as_json, "json.loads(output)['rome']", "with output['rome'] ", "more noise (about 2.5"),
    (label, "output['level'] == ", "Outputs where output['level'] == '", "add noise to it"),
    (not_a_number, "isnan(json.loads(output)['rome'])", "rome'] NaN come", "is NaN on D ("),
    (spread, "score(output) > ", "Outputs with a score above", "mostly by output["),
    (day, "date.fromisoformat(output) < date(2024, 1, ", "Outputs below date(", "on D'; 2.72 is"),
    (missing, "'rome'", "Outputs with", "Which keys are there tells the inputs apart"),
]


@pytest.mark.spot(2)
@pytest.mark.parametrize(("mechanism", "event", "sentence", "more"), CASES)
def test_a_failure_reads_well(mechanism, event, sentence, more):
    result = audit(mechanism, eps=1.0, pairs=[([1], [0])], max_samples=20_000, seed=1, n_jobs=1)
    text = violation(result)
    said = " ".join(text.split())
    assert event in str(result.counterexample.event)
    assert sentence in said
    assert more in said
    assert max(map(len, text.splitlines())) <= 76
    lines, first = inspect.getsourcelines(mechanism)
    for line in [first + i for i, code in enumerate(lines) if "# here" in code]:
        assert f"test_failures_in_words.py:{line}, in {mechanism.__name__}" in said
