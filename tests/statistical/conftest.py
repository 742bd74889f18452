"""For tests of whole audits."""

import pytest


@pytest.fixture
def _verdict_only(monkeypatch, _without_blame):
    """Nor is a refuted claim shown on a smaller pair, or counted on held-out samples.

    The verdict of a sequential audit is known by then. For tests that ask for nothing else.
    """
    monkeypatch.setattr("pytest_dp.auditors.concluding.smallest", lambda game, state: (game, state))
    monkeypatch.setattr("pytest_dp.auditors.concluding._strongest", lambda *_: None)
