"""Numerical functions of our own load no scipy."""

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_workers_do_without_scipy():
    """Eight of them start at once for a slow mechanism, on two cores perhaps."""
    code = (
        "import sys, pytest_dp.running.workers, pytest_dp.betting.binning\n"
        "print(*(name for name in ('scipy', 'pytest', 'hypothesis') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
