"""For tests of whole audits."""

import pytest


@pytest.fixture
def _without_blame(monkeypatch):
    """No lines to blame after a violation: for tests of hundreds of verdicts, which ask for none.

    Looking for them takes several times as long as a small audit does.
    """
    monkeypatch.setattr("pytest_dp.blame.blamed", lambda *_: ())
