"""Further gates, each on several values at once; written before symbolic runs were built.

Arithmetic on fields, tables of weights, patterns of text, sorts, joins, folds of case, dates,
remainders. As in `benchmarks.gated`, each claims eps = 1 and has a twin without a leak.
"""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
from hypothesis import strategies as st

from benchmarks.common import EPS, Twins
from pytest_dp import queries


def _counting(is_gate):
    """Counts records, with too little noise behind the gate."""

    def make(leaks):
        def noisy_count(records, rng):
            scale = 0.35 if is_gate(records) and leaks else 1.0
            return len(records) + rng.laplace(scale=scale / EPS)

        return noisy_count

    return make


def linear_form(records):
    return any(3 * a - 7 * b == 41 and b > 10 for a, b in records)


def balance(records):
    return any(paid - received - fee > 190 for paid, received, fee in records)


def totals(records):
    hours = sum(record["hours"] for record in records)
    bonus = sum(record["bonus"] for record in records)
    return 12 * hours - bonus == 1234


RATES = {"age": 0.3, "income": 0.02, "visits": 0.5}


def risk(records):
    scores = [sum(RATES[name] * record[name] for name in RATES) for record in records]
    return max(scores, default=0) > 95.5


def plate(names):
    return any(re.fullmatch(r"[A-C]{2}\d{3}", name) for name in names)


TEMPORARY = re.compile(r"^x-\d+\.a$")


def temporary(names):
    return sum(1 for name in names if TEMPORARY.match(name)) > 0


def runner_up(records):
    ordered = sorted(records, key=lambda record: record[0], reverse=True)
    return len(ordered) > 1 and ordered[0][1] < 3 and ordered[1][1] > 97


def joined(records):
    left = [(key, value) for side, key, value in records if side == 0]
    right = [(key, value) for side, key, value in records if side == 1]
    pairs = [a + b for key, a in left for other, b in right if key == other]
    return any(total > 185 for total in pairs)


def underpaid_boss(records):
    pay = {person: salary for person, _, salary in records}
    return any(boss in pay and salary > pay[boss] + 80 for _, boss, salary in records)


def administrator(names):
    return any(name.casefold() == "admin" for name in names)


def tester(names):
    return any(name.strip().lower().startswith("qa_") for name in names)


def leap_day(days):
    return any(day.month == 2 and day.day == 29 for day in days)


def a_year_apart(stays):
    return any((end - start).days == 365 for start, end in stays)


def weighted(leaks):
    weights = (3, 1, 4, 1, 5, 9)

    def noisy_answers(answers, rng):
        score = sum(w * a for w, a in zip(weights, answers, strict=True))
        scale = 0.35 if leaks and score > 5000 and answers[5] < 10 else 1.0
        return [answer + rng.laplace(scale=scale / EPS) for answer in answers]

    return noisy_answers


def gap(leaks):
    def noisy_total(answers, rng):
        ordered = np.sort(np.asarray(answers, dtype=float))
        scale = 5.0
        if ordered[1] - ordered[0] > 333 and ordered[3] - ordered[2] > 333:
            scale = 1.5 if leaks else 5.0
        return ordered.sum() + rng.laplace(scale=scale / EPS)

    return noisy_total


def remainder(leaks):
    def noisy_answer(answers, rng):
        checked = (7 * answers[0] + 3 * answers[1]) % 1009 == 530
        scale = 0.35 if checked and leaks else 1.0
        return answers[0] + rng.laplace(scale=scale / EPS)

    return noisy_answer


AMOUNTS = st.integers(0, 200)
PERCENT = st.integers(0, 100)
TEXTS = st.lists(st.text("ABCDMINadminQqx_-.0123456789 ", max_size=8), max_size=5)
DAYS = st.dates(dt.date(2001, 1, 1), dt.date(2030, 12, 31))


def _rows(*columns):
    return st.lists(st.tuples(*columns), max_size=6)


def _dicts(**columns):
    return st.lists(st.fixed_dictionaries(columns), max_size=6)


SYMBOLIC = (
    Twins("linear form", _counting(linear_form), _rows(AMOUNTS, AMOUNTS)),
    Twins("balance", _counting(balance), _rows(AMOUNTS, AMOUNTS, st.integers(0, 20))),
    Twins("totals", _counting(totals), _dicts(hours=PERCENT, bonus=st.integers(0, 500))),
    Twins(
        "risk",
        _counting(risk),
        _dicts(age=PERCENT, income=st.integers(0, 2_000), visits=st.integers(0, 60)),
    ),
    Twins("weights", weighted, queries(6), "one_query"),
    Twins("plate", _counting(plate), TEXTS),
    Twins("compiled pattern", _counting(temporary), TEXTS),
    Twins("gap after sort", gap, queries(5), "all_queries"),
    Twins("runner-up", _counting(runner_up), _rows(AMOUNTS, PERCENT)),
    Twins("join", _counting(joined), _rows(st.integers(0, 1), AMOUNTS, PERCENT)),
    Twins("join with itself", _counting(underpaid_boss), _rows(AMOUNTS, AMOUNTS, PERCENT)),
    Twins("case folded", _counting(administrator), TEXTS),
    Twins("stripped, lower", _counting(tester), TEXTS),
    Twins("leap day", _counting(leap_day), st.lists(DAYS, max_size=6)),
    Twins("a year apart", _counting(a_year_apart), _rows(DAYS, DAYS)),
    Twins("remainder", remainder, queries(4), "one_query"),
)
