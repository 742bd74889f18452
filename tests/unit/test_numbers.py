"""Small numerical functions of our own, against those of scipy."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from pytest_dp.statistics.regression import fit_nondecreasing


@pytest.mark.parametrize("length", [1, 2, 3, 10, 255])
def test_isotonic_regression(length):
    rng = np.random.default_rng(length)
    for _ in range(20):
        values = rng.integers(0, 9, length) / 8 if rng.random() < 0.5 else rng.normal(size=length)
        weights = rng.uniform(0.1, 5, length)
        expected = isotonic_regression(values, weights=weights).x
        np.testing.assert_allclose(
            fit_nondecreasing(values, weights), expected, rtol=1e-12, atol=1e-14
        )


def test_workers_do_without_scipy():
    """Eight of them start at once for a slow mechanism, on two cores perhaps."""
    code = (
        "import sys, pytest_dp.running.workers, pytest_dp.betting.binning\n"
        "print(*(name for name in ('scipy', 'pytest', 'hypothesis') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
