"""Events about what texts are, and about what functions of the user return."""

from __future__ import annotations

import csv
import functools
import json
import math
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import isnan, nan
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from searching import best_events, values

from pytest_dp.auditors.witness import drop_needless_conditions
from pytest_dp.basics.errors import ClaimError
from pytest_dp.outputs.events import Between, Event
from pytest_dp.outputs.feature import leaf
from pytest_dp.outputs.features import features
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.outputs.user_features import user_features
from pytest_dp.privacy import ApproximateDP
from pytest_dp.readers.parsed import parse_text
from pytest_dp.statistics.event_bets import rank_for

PYTHON = {
    "csv": csv,
    "json": json,
    "isnan": isnan,
    "parse_qs": parse_qs,
    "urlsplit": urlsplit,
    "date": date,
    "datetime": datetime,
}
RUNS = 300


def rounded(x):
    return f"{x:.3f}"


def day(x):
    return (date(2024, 1, 1) + timedelta(days=round(20 * x))).isoformat()


def moment(x):
    return (datetime(2024, 1, 1) + timedelta(hours=round(9 * x))).isoformat()


def rome(x, other, n):
    return {"rome": x if n else nan, "oslo": other}


TEXTS = {
    "number": (lambda x, o, n: rounded(x + 4 * n), "float(output)"),
    "json": (lambda x, o, n: json.dumps({"a": x + 4 * n, "b": o}), "json.loads(output)['a']"),
    "nan": (lambda x, o, n: json.dumps(rome(x, o, n)), "json.loads(output)['rome']"),
    "key": (lambda x, o, n: json.dumps({"a": x, **({"b": o} if n else {})}), "'b' in json."),
    "label": (lambda x, o, n: json.dumps({"a": x, "b": "xyz"[n]}), "json.loads(output)['b'] == "),
    "csv": (lambda x, o, n: f"a,b\n{o:.3f},{x + 4 * n:.3f}", "float(list(csv.reader(output."),
    "date": (lambda x, o, n: day(x + 4 * n), "date.fromisoformat(output)"),
    "moment": (lambda x, o, n: moment(x + 4 * n), "datetime.fromisoformat(output)"),
    "url": (
        lambda x, o, n: f"https://a.org/q?z={o:.3f}&n={x + 4 * n:.3f}",
        "float(parse_qs(urlsplit(output).query)['n'][0])",
    ),
}


def without_characters(*outputs):
    return [f for f in features(*outputs) if f.kind != "reading of characters"]


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_read_as_what_they_are_and_events_are_python(name):
    make, wanted = TEXTS[name]
    r = np.random.default_rng(0)
    outputs = [make(*r.laplace(size=2).tolist(), n) for n in (0, 1) for _ in range(RUNS)]
    [found] = best_events(outputs, without_characters)
    text = str(found.event)
    assert wanted in text
    for output, inside in zip(outputs, found.event.mask(tabulate(outputs)), strict=True):
        assert eval(text, {"output": output, **PYTHON}) == inside, (text, output)


def test_texts_of_another_kind_are_absent_and_do_not_change_what_is_read():
    outputs = [json.dumps({"a": float(i)}) for i in range(99)]
    [feature] = [f for f in features(tabulate(outputs)) if f.text == "json.loads(output)['a']"]
    numbers, codes = feature.columns(tabulate([outputs[7], "{", None, 3.0, "[1]"]))
    assert numbers[0] == 7
    assert codes.tolist() == [-1, -2, -2, -2, -2]
    assert not [f for f in features(tabulate(["20240101", "7"] * 99)) if f.kind == "parsed"]


def test_bytes_are_parsed_and_one_kind_of_exception_is_told_from_outputs():
    outputs = [json.dumps({"a": float(i)}).encode() for i in range(99)]
    assert "json.loads(output)['a']" in [f.text for f in features(tabulate(outputs))]
    raised = [Raised("ValueError", "", str(i)) if i % 3 else float(i) for i in range(99)]
    assert "raises ValueError" in [f.text for f in features(tabulate(raised))]


def test_conditions_that_do_not_pay_on_new_outputs_are_dropped():
    r = np.random.default_rng(0)
    outputs = [[x, y] for x, y in r.laplace(size=(2 * RUNS, 2)).tolist()]
    for row in range(RUNS):
        outputs[row][0] += 3
    first = np.arange(2 * RUNS) < RUNS
    needed, needless = Between(leaf("output[0]"), low=2.0), Between(leaf("output[1]"), low=-3.0)
    rank = rank_for(ApproximateDP(1.0), 0.0)(RUNS)
    event = drop_needless_conditions(Event((needless, needed)), tabulate(outputs), first, rank, 0.8)
    assert event.conditions == (needed,)


def test_a_sentence_with_a_comma_is_no_table():
    assert parse_text("Three came, one of them early.") is None
    assert parse_text("3.5,oslo")[1] == [["3.5", "oslo"]]
    assert parse_text("city,n\noslo,rome")[1][1] == ["oslo", "rome"]


def total(output):
    return sum(output)


def ends(output):
    return min(output), max(output)


ALLOWED = "Allowed: a number, or a list"


def test_functions_of_the_user():
    for function, outputs, want in [
        (total, [[1.0, 2.0], [3.0]], {"total(output)": [3.0, 3.0]}),
        (
            ends,
            [[1.0, 2.0], [3.0, 0.5]],
            {"ends(output)[0]": [1.0, 0.5], "ends(output)[1]": [2.0, 3.0]},
        ),
        (lambda x: x > 1, [0.0, 2.0], {"<lambda>(output)": [0.0, 1.0]}),
        (lambda x: Fraction(1, 2), [None], {"<lambda>(output)": [0.5]}),
        (lambda x: 10**400, [1.0], {"<lambda>(output)": [math.inf]}),
        (lambda x: [[True, 1], (0.5, 2)][x], [0, 1], {"<lambda>(output)[0]": [1.0, 0.5]}),
        (functools.partial(math.pow, 2), [3.0], {"pow(output)": [8.0]}),
    ]:
        found = {f.text: f for f in user_features(function, tabulate(outputs))}
        assert want.keys() <= found.keys()
        for text, numbers in want.items():
            assert values(found[text], outputs) == numbers
            assert hash(found[text])


NO_NUMBERS = ("3", [1, "a"], (), 1j)


@pytest.mark.parametrize(
    ("results", "said"),
    [
        *(([1.0, bad], f"output 1. {ALLOWED}") for bad in NO_NUMBERS),
        ([None, 1.0], f"output 0. {ALLOWED}"),
        ([[1.0, 2.0], [1.0]], "a sequence of 1, but a sequence of 2 for another output"),
        ([1.0, [1.0]], "a sequence of 1, but a single number for another output"),
    ],
)
def test_results_other_than_as_many_numbers_are_refused(results, said):
    def odd(output):
        return results[output]

    outputs = tabulate([0, 0, 1])
    with pytest.raises(ClaimError) as caught:
        user_features(odd, outputs)
    wrong = results[0] if "output 0" in said else results[1]
    assert str(caught.value).startswith(f"The function odd of an output returned {wrong!r}")
    assert said in str(caught.value)
    assert type(wrong).__name__ in str(caught.value) or "another output" in said
    if "output 0" not in said:
        feature = user_features(odd, tabulate([0, 0]))[0]
        for later in (outputs, tabulate([1])):
            with pytest.raises(ClaimError, match=said):
                feature.columns(later)


def test_a_function_that_raises_is_refused():
    def odd(output):
        return 1 / output

    with pytest.raises(ClaimError) as caught:
        user_features(odd, tabulate([2.0, 0.0]))
    assert str(caught.value) == (
        "The function odd of an output raised ZeroDivisionError: float division by zero, for the "
        "output 0.0."
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    feature = user_features(odd, tabulate([2.0]))[0]
    with pytest.raises(ClaimError, match="raised ZeroDivisionError"):
        feature.columns(tabulate([0.0]))
