"""Ordinary unit tests. They pass with every patch in regressions/ applied as well."""

import numpy as np
import pytest

from clinic_stats.alarms import first_overload
from clinic_stats.averages import mean_age, mean_vitals, mean_wait
from clinic_stats.billing import bed_days, total_cost
from clinic_stats.counts import AGE_GROUPS, age_groups, seniors, towns
from clinic_stats.diagnoses import ANSWERS, DIAGNOSES, most_common, smoking_answer
from clinic_stats.report import monthly_report
from clinic_stats.training import train

MANY_AGES = [10] * 1000 + [30] * 2000 + [50] * 3000 + [80] * 4000


@pytest.fixture
def rng():
    return np.random.default_rng(2024)


def test_seniors_is_close(rng):
    assert seniors(MANY_AGES, rng) == pytest.approx(4000, abs=20)


def test_seniors_starts_at_65(rng):
    assert seniors([64] * 1000, rng) < 100 < seniors([65] * 1000, rng)


def test_age_groups_are_close(rng):
    assert age_groups(MANY_AGES, rng) == pytest.approx([1000, 2000, 3000, 4000], abs=60)


def test_age_groups_shape(rng):
    groups = len(AGE_GROUPS) - 1
    assert age_groups([], rng).shape == (groups,)
    assert age_groups([], rng, size=7).shape == (7, groups)


def test_mean_age_is_close(rng):
    assert mean_age(MANY_AGES, rng) == pytest.approx(54, abs=2)


def test_mean_wait_is_close(rng):
    assert mean_wait([10] * 50_000 + [30] * 50_000, rng) == pytest.approx(20, abs=1)


@pytest.mark.parametrize("winner", range(len(DIAGNOSES)))
def test_most_common_finds_a_clear_winner(winner, rng):
    counts = [100] * len(DIAGNOSES)
    counts[winner] = 1000
    assert DIAGNOSES[winner] in most_common(counts, epsilon=1.0, rng=rng)


def test_smoking_answer_is_one_of_the_answers(rng):
    assert {smoking_answer("daily", rng) for _ in range(200)} == set(ANSWERS)


def test_smoking_answer_is_mostly_true(rng):
    answers = [smoking_answer("daily", rng) for _ in range(2000)]
    assert answers.count("daily") > 1000


def test_first_overload(rng):
    assert first_overload([0, 0, 0, 900], beds=500, rng=rng) == [False, False, False, True]


def test_first_overload_without_one(rng):
    assert first_overload([0] * 5, beds=500, rng=rng) == [False] * 5


def test_bed_days_are_close():
    assert bed_days([3] * 10_000) == pytest.approx(30_000, rel=0.1)


def test_total_cost_is_close():
    assert total_cost([500.0] * 20_000) == pytest.approx(10_000_000, rel=0.1)


def test_monthly_report(rng):
    report = monthly_report([(80, 500.0)] * 20_000, rng)
    assert report["seniors"] == pytest.approx(20_000, abs=20)
    assert report["total cost"] == pytest.approx(10_000_000, rel=0.1)


def test_mean_vitals_are_close(rng):
    assert mean_vitals([(120, 80, 60, 15)] * 10_000, rng) == pytest.approx([120, 80, 60, 15], abs=1)


def test_towns_are_close(rng):
    assert towns(["Ulm"] * 1000 + ["Bonn"] * 100, rng) == pytest.approx(
        {"Bonn": 100, "Ulm": 1000}, abs=20
    )


def test_a_town_of_one_patient_is_not_named(rng):
    assert towns(["Ulm"] * 1000 + ["Bonn"], rng).keys() == {"Ulm"}


def test_the_model_learns_who_comes_back(rng):
    features = rng.normal(size=(20_000, 2))
    came_back = features[:, :1] > features[:, 1:]
    model = train(np.hstack([features, came_back]), rng)[-1]
    assert model == pytest.approx([2, -2], abs=0.5)
