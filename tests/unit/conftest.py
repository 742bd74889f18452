"""Fixtures for tests that run mechanisms in worker processes; failing helpers tell why."""

import pytest

from pytest_dp.sampling import sampler, workers

pytest.register_assert_rewrite("coupling", "searching")


@pytest.fixture
def always_share(monkeypatch):
    """However little there is to do, workers do it."""
    monkeypatch.setattr(sampler, "START_WORKERS_FROM", 0.0)
    monkeypatch.setattr(sampler, "USE_WORKERS_FROM", 0.0)


@pytest.fixture(scope="module")
def stop_workers():
    yield
    workers.stop()
