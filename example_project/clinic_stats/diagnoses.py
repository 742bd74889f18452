"""Which diagnosis is the most common, and what patients say in the smoking survey."""

import math
from collections.abc import Sequence

import numpy as np
from pytest_dp import dp_claim, queries, values

DIAGNOSES = ("asthma", "diabetes", "fracture", "influenza", "migraine")

EPS_SURVEY = 1.0
ANSWERS = ("never", "sometimes", "daily")


@dp_claim(
    eps="epsilon",
    params={"epsilon": [0.5, 1.0]},
    neighbors="all_queries",
    inputs=queries(len(DIAGNOSES)),
)
def most_common(counts: Sequence[int], epsilon: float, rng: np.random.Generator) -> str:
    """Name of the most common diagnosis, and nothing else.

    A patient can have every diagnosis, so one patient may move each count by 1: report noisy max
    with noise of scale 2 / epsilon (Dwork & Roth 2014, section 3.3).
    """
    noisy = np.asarray(counts) + rng.laplace(scale=2 / epsilon, size=len(counts))
    return DIAGNOSES[noisy.argmax()]


@dp_claim(eps=EPS_SURVEY, neighbors="any_two", inputs=values(ANSWERS))
def smoking_answer(truth: str, rng: np.random.Generator) -> str:
    """What the app sends instead of a patient's answer (local privacy: randomised response).

    The truth is exp(EPS_SURVEY) times as likely as each of the other answers.
    """
    others = [answer for answer in ANSWERS if answer != truth]
    weight = math.exp(EPS_SURVEY)
    if rng.random() < weight / (weight + len(others)):
        return truth
    return others[rng.integers(len(others))]
