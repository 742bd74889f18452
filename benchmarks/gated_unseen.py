"""Further members of the families of `benchmarks.gated`, written after the search was tuned.

Their score says what the search does for code that it was not made for.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from benchmarks.common import EPS, Twins
from benchmarks.gated import NAMES
from pytest_dp import queries


def two_coordinates(leaks):
    def noisy_answers(answers, rng):
        scale = 1.0
        if answers[1] < -20 and answers[4] > 300:
            scale = 0.5 if leaks else 1.0
        return [answer + rng.laplace(scale=scale / EPS) for answer in answers]

    return noisy_answers


def mean_above(leaks):
    def noisy_mean(answers, rng):
        mean = np.mean(answers)
        noise = rng.laplace(scale=1 / EPS)
        return mean + (noise / 3 if leaks and mean > 55.5 else noise)

    return noisy_mean


def spread(leaks):
    def noisy_range(answers, rng):
        width = max(answers) - min(answers)
        scale = 2 / EPS
        if width > 700 and leaks:
            scale /= 4
        return width + rng.laplace(scale=scale)

    return noisy_range


def multiple_of_97(leaks):
    def noisy_answer(answers, rng):
        special = answers[2] != 0 and answers[2] % 97 == 0
        scale = 0.4 if special and leaks else 1.0
        return answers[2] + rng.laplace(scale=scale / EPS)

    return noisy_answer


def a_word_within(leaks):
    def noisy_count(names, rng):
        staff = [name for name in names if "ab" in name.lower()]
        noise = rng.laplace(scale=1 / EPS)
        return len(names) + (noise / 4 if len(staff) >= 2 and leaks else noise)

    return noisy_count


class Limits:
    by_kind = {"food": 120.0, "rent": 900.0, "fun": 60.0}  # noqa: RUF012

    def exceeded(self, payments):
        return sum(amount > self.by_kind[kind] for kind, amount in payments)


def limits_of_a_class(leaks):
    limits = Limits()

    def noisy_total(payments, rng):
        total = sum(min(max(amount, 0.0), 1000.0) for _, amount in payments)
        scale = 1000 / EPS
        if limits.exceeded(payments) > 1 and leaks:
            scale *= 0.3
        return total + rng.laplace(scale=scale)

    return noisy_total


def cast_to_bytes(leaks):
    def noisy_answers(answers, rng):
        kept = np.asarray(answers).astype(np.int8 if leaks else np.int64)
        return kept + rng.laplace(scale=1 / EPS, size=len(answers))

    return noisy_answers


def opened_below(leaks):
    def noisy_answer(answers, rng):
        if answers[3] + rng.laplace(scale=4 / EPS) < -250:
            scale = 0.4 if leaks else 4 / 3
            return answers[3] + rng.laplace(scale=scale / EPS)
        return 0.0

    return noisy_answer


PAYMENTS = st.lists(
    st.tuples(st.sampled_from(["food", "rent", "fun"]), st.floats(0, 1000)), max_size=6
)

UNSEEN = (
    Twins("two coordinates", two_coordinates, queries(6), "one_query"),
    Twins("mean", mean_above, queries(4), "all_queries"),
    Twins("spread", spread, queries(6), "all_queries"),
    Twins("multiple of 97", multiple_of_97, queries(5), "one_query"),
    Twins("a word within", a_word_within, NAMES),
    Twins("limits of a class", limits_of_a_class, PAYMENTS),
    Twins("cast to bytes", cast_to_bytes, queries(4), "one_query"),
    Twins("opened below", opened_below, queries(5), "one_query"),
)
