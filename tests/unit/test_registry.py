"""Parts of other packages: entered by an entry point, and used by name."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import pytest

from pytest_dp import audit, registry
from pytest_dp.auditors.session import AuditFinding
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind
from pytest_dp.protocols import Explanation
from pytest_dp.results.outcome import Blame

CLAIM = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [[1, 2, 3]], "max_samples": 5_000}
LINE = Blame("elsewhere.py", 3, "noise", "no noise", "nothing is added", "add noise")


def count(records, rng):
    return len(records) + rng.laplace(scale=0.2)


@pytest.fixture
def entered(monkeypatch):
    """Let functions be entry points of another package."""

    def enter(*functions):
        points = [
            SimpleNamespace(name=f.__name__, value=f"other:{f.__name__}", load=lambda f=f: f)
            for f in functions
        ]
        monkeypatch.setattr(registry, "entry_points", lambda group: points)
        parts = {kind: dict(own) for kind, own in registry._PARTS.items()}
        monkeypatch.setattr(registry, "_PARTS", parts)
        registry.load_entry_points.cache_clear()

    yield enter
    registry.load_entry_points.cache_clear()


def test_a_method_of_another_package_audits_claims_by_its_name(entered):
    given = []

    def never_red(session):
        given.append(session.method.name)
        return AuditFinding(session.result("no violation"))

    def other():
        registry.enter("method", "never_red", never_red)

    entered(other)
    result = audit(count, **CLAIM, method="never_red", alpha=1e-3)
    assert (result.verdict, result.method, given) == ("no violation", "never_red", ["never_red"])
    assert result.notes == ()


@pytest.mark.slow
def test_a_reader_of_another_package_adds_its_features(entered):
    """Only the last bit of the parts of a hash tells: no feature of ours reads it."""

    def low_bit(place, table):
        numbers, codes = table.leaf(place)
        return numbers // 2**20 % 2, codes

    def read(sample):
        return [Feature(f"{f.text} >> 20 & 1", "low bit", f.argument) for f in sample.leaves]

    def other():
        KINDS["low bit"] = FeatureKind(low_bit, operands=lambda *_: None, whole=True)
        registry.enter("reader", "other", read)

    def report(records, rng):
        answer = len(records) % 2 if rng.random() < 0.95 else rng.integers(2)
        return int(rng.integers(2**20) + 2**20 * (2 * rng.integers(2**10) + answer))

    claim = {**CLAIM, "seed": 1, "n_jobs": 1, "max_samples": 2_000, "search": ()}
    assert audit(report, **claim).verdict != "violated"
    entered(other)
    result = audit(report, **claim)
    assert result.verdict == "violated"
    assert ">> 20 & 1" in repr(result)


@pytest.mark.slow
def test_explainers_add_their_lines_and_the_one_that_raises_is_named(entered):
    def fails(violation, seconds):
        raise ValueError("no idea")

    def other():
        registry.enter("explainer", "broken", fails)
        registry.enter("explainer", "other", lambda violation, seconds: Explanation((LINE,)))

    entered(other)
    result = audit(count, **CLAIM, seed=1, n_jobs=1)
    assert result.verdict == "violated"
    assert result.blame[-1] == LINE
    assert all(line.file.endswith("test_registry.py") for line in result.blame[:-1])
    assert any(
        note.startswith("explaining by broken failed: ValueError: no idea") for note in result.notes
    )


def test_an_entry_point_that_fails_is_named_in_a_warning(entered):
    def other():
        raise ImportError("no module named torch")

    entered(other)
    with pytest.warns(UserWarning, match=r"other = 'other:other' of pytest_dp failed: ImportError"):
        assert "sequential" in registry.names("method")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "sequential" in registry.names("method")
