"""Weights of a linear model, by sufficient statistics."""

import numpy as np

from pytest_dp import dp_claim

ROWS = np.array([[1.0, 0.2, 0.5], [0.3, 0.9, 0.1], [0.7, 0.4, 0.8], [0.1, 0.6, 1.0]])


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[ROWS], max_samples=20_000)
def churn_model(rows, rng):
    rows = np.clip(rows, 0.0, 1.0)
    x, y = rows[:, :2], rows[:, 2]
    weights = np.linalg.solve(x.T @ x + np.eye(2), x.T @ y)
    weights += rng.laplace(scale=3.0, size=2)
    intercept = y.mean() - x.mean(axis=0) @ weights
    return np.array([intercept, *weights])
