"""What is read out of texts, exceptions and huge whole numbers."""

from __future__ import annotations

from pytest_dp.outputs.features import features
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.readers.text_features import readings


def test_texts_that_recur_are_only_categories():
    table = tabulate(["yes", "no", "perhaps"] * 100)
    assert readings("output", table) == []
    assert [feature.text for feature in features(table)] == ["output"]


def test_exceptions_are_told_apart_by_their_messages():
    kinds = [Raised("KeyError", "", m) for m in ("", "1", "2")] + [Raised("OSError", "", "1")]
    assert len(set(hashes(tabulate(kinds)).tolist())) == 4
    traced = [Raised("KeyError", trace, "1") for trace in ("one", "another")]
    assert len(set(hashes(tabulate(traced)).tolist())) == 1
