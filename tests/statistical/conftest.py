"""For tests of whole audits."""

import pytest


@pytest.fixture
def _without_blame(monkeypatch):
    """No lines to blame after a violation: for tests of hundreds of verdicts, which ask for none.

    Looking for them takes several times as long as a small audit does.
    """
    monkeypatch.setattr("pytest_dp.blame.blamed", lambda *_: ())


@pytest.fixture
def _verdict_only(monkeypatch, _without_blame):
    """Nor is a refuted claim shown on a smaller pair, or counted on held-out samples.

    The verdict of a sequential audit is known by then. For tests that ask for nothing else.
    """
    monkeypatch.setattr("pytest_dp.auditors.concluding.smallest", lambda game, arm: (game, arm))
    monkeypatch.setattr("pytest_dp.auditors.concluding._strongest", lambda *_: None)
