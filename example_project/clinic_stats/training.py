"""A model of who will be back within 30 days: logistic regression by DP-SGD (Abadi et al. 2016).

Patients are rows of an array: their features, then 1 if they came back and 0 if not.
"""

import math

import numpy as np
from pytest_dp import dp_claim
from pytest_dp.privacy import gdp_to_eps

CLIP = 1.0  # largest norm of a patient's gradient
NOISE = 2.0  # standard deviation, in multiples of CLIP
LARGEST = 100.0  # what a feature may be at most; they are standardised
LEARNING_RATE = 4.0
PATIENTS_A_YEAR = 20_000  # about: how many there were this year is private
STEPS = 4

# One patient moves the sum of the clipped gradients by at most CLIP: Gaussian differential privacy
# with mu = 1 / NOISE. Over the steps it adds up in squares (Dong, Roth & Su 2022). The data
# protection officer asks for an epsilon and a delta.
MU_STEP = 1 / NOISE
DELTA_STEP = 1e-5
EPS_STEP = math.ceil(10 * gdp_to_eps(MU_STEP, DELTA_STEP)) / 10
MU_MODEL = math.sqrt(STEPS) * MU_STEP


@dp_claim(
    mu=MU_STEP,
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:patients",
    params={"weights": [(0.0, 0.0)]},
    vectorized="size",
)
@dp_claim(
    eps=EPS_STEP,
    delta=DELTA_STEP,
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:patients",
    params={"weights": [(0.0, 0.0)]},
    vectorized="size",
)
def sgd_step(
    patients: np.ndarray, weights: np.ndarray, rng: np.random.Generator, size: int | None = None
) -> np.ndarray:
    """The weights after a step on all patients; with `size`, after so many independent steps."""
    known = np.clip(np.nan_to_num(patients), -LARGEST, LARGEST)  # what is missing counts as zero
    features, came_back = known[:, :-1], known[:, -1]
    predicted = 1 / (1 + np.exp(-features @ weights))
    gradients = (predicted - came_back)[:, None] * features
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    total = (gradients / np.maximum(norms / CLIP, 1)).sum(axis=0)
    shape = total.shape if size is None else (size, *total.shape)
    noisy = total + rng.normal(scale=NOISE * CLIP, size=shape)
    return weights - LEARNING_RATE * noisy / PATIENTS_A_YEAR


@dp_claim(
    mu=MU_MODEL,
    composes={sgd_step: STEPS},
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:patients",
    max_samples=20_000,  # a run takes 100 microseconds
)
def train(patients: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The weights after every step, from none: the last row is the model that we publish."""
    path = [np.zeros(patients.shape[1] - 1)]
    for _ in range(STEPS):
        path.append(sgd_step(patients, path[-1], rng))
    return np.array(path[1:])
