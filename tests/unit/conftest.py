"""Fixtures for tests that run mechanisms in worker processes; failing helpers tell why."""

import sys

import pytest

from pytest_dp.running import sampler, workers

pytest.register_assert_rewrite("coupling", "searching")


@pytest.fixture
def always_share(monkeypatch):
    """However little there is to do, workers do it."""
    monkeypatch.setattr(sampler, "START_WORKERS_FROM", 0.0)
    monkeypatch.setattr(sampler, "NOTICED_SECONDS", 0.0)


@pytest.fixture(scope="module")
def stop_workers():
    yield
    workers.stop()


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write modules below a root; sys.path and sys.modules are restored afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(**sources):
        for name, source in sources.items():
            file = tmp_path.joinpath(*name.split("__")).with_suffix(".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source)
        return tmp_path

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
