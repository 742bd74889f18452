"""Evidence that outlives a run: which audits are the same, and a store that survives much."""

from __future__ import annotations

import os
import shutil
from itertools import product

import pytest

from pytest_dp.claiming.claim import Arguments, Promise
from pytest_dp.data.relations import AddRemoveOne
from pytest_dp.privacy import ApproximateDP
from pytest_dp.records.evidence_store import Store, StoredRun
from pytest_dp.records.identity import identity
from pytest_dp.results.outcome import Evidence

CLAIM, ABOUT = "shop/stats.py::count[eps=1.0]", "0123456789ab"


def of_run(log_e, samples=100):
    return Evidence((2 * log_e, log_e), 1, samples)


def stored(seed, log_e, samples=100, alpha=1e-6, number=0):
    e_values = of_run(log_e).log_e_values
    return StoredRun(CLAIM, ABOUT, seed, f"2026-01-01T00:00:{number:02}", samples, e_values, alpha)


def filled(root, *log_es):
    store = Store(root)
    for number, log_e in enumerate(log_es):
        store.add(stored(f"{number:x}", log_e, number=number))
    assert not store.problems
    return store


def files_of(root):
    return sorted((root / ".dp/evidence").rglob("*.json"))


# The store


def test_a_seed_counts_once(tmp_path):
    """A repeated run begins as its first one did, also once there are later runs."""
    store = filled(tmp_path, 1.5, -0.5, 4.0)
    store.add(stored("1", 9.0))
    assert store.sum_earlier(CLAIM, ABOUT, "ff", 1e-6).log_e_value == 5.0
    again = store.sum_earlier(CLAIM, ABOUT, "1", 1e-6)
    assert again == Evidence((3.0, 1.5), 1, 100)


@pytest.mark.slow
@pytest.mark.parametrize(("alphas", "length"), [((1e-6,), 4), ((1e-2, 1e-6), 3)])
def test_once_refuted_stays_refuted_in_each_short_history(tmp_path, monkeypatch, alphas, length):
    """Runs that show much or little, also at another alpha, and at last those that show nothing."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    for number, history in enumerate(product(product((-12.0, 3.0, 15.0), alphas), repeat=length)):
        store, red = Store(tmp_path / str(number)), set()
        last = (-20.0, alphas[0]), (-20.0, alphas[-1])
        for at, (log_e, alpha) in enumerate((*history, *last)):
            earlier = store.sum_earlier(CLAIM, ABOUT, f"{at:x}", alpha)
            refuted = earlier.refutes(alpha) or (earlier + of_run(log_e)).refutes(alpha)
            store.add(stored(f"{at:x}", log_e, alpha=alpha, number=at))
            assert refuted or not any(at <= alpha for at in red), history
            red |= {alpha} if refuted else set()
        assert store.sum_earlier(CLAIM, ABOUT, "0", 1e-6).refutes(1e-6) or 1e-6 not in red
        assert not store.problems


def test_merging_twice_changes_nothing(tmp_path):
    filled(tmp_path / "one", 1.5, -0.5)
    other = Store(tmp_path / "other")
    other.add(stored("77", 0.25, samples=7))
    for _ in range(2):
        shutil.copytree(tmp_path / "other/.dp", tmp_path / "one/.dp", dirs_exist_ok=True)
    merged = Store(tmp_path / "one").sum_earlier(CLAIM, ABOUT, "ff", 1e-6)
    assert (merged.log_e_value, merged.runs, merged.samples) == (1.25, 3, 207)
    assert (tmp_path / "one/.dp/.gitignore").read_text().endswith("*\n")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda text: text[: len(text) // 2], ""),
        (lambda text: text.replace('"version": 1', '"version": 2'), "its version is 2"),
        (lambda text: text.replace('"samples"', '"simples"'), "damaged"),
        (lambda text: text.replace('"seed": "0"', '"seed": "5"'), "damaged"),
        (lambda text: text.replace("1.5", "NaN"), "damaged"),
        (lambda text: text.replace('"2026-01-01T00:00:00"', "null"), "damaged"),
    ],
)
def test_a_file_that_makes_no_sense_is_left_out_and_told(tmp_path, damage, told):
    filled(tmp_path, 1.5, -0.5)
    file = next(file for file in files_of(tmp_path) if file.stem == "0")
    file.write_text(damage(file.read_text()))
    store = Store(tmp_path)
    assert store.sum_earlier(CLAIM, ABOUT, "ff", 1e-6).log_e_value == -0.5
    (problem,) = store.problems
    assert str(file) in problem
    assert told in problem


# Which audits are the same


ONE = {"inputs": [[1]], "params": {"scale": 1.0}, "code": "code", "more": ()}


def about(eps=1.0, **changed):
    given = ONE | changed
    params, code, more = (given.pop(name) for name in ("params", "code", "more"))
    promise = Promise(ApproximateDP(eps), **given)
    return identity(promise, Arguments(params=params), code, *more)


def test_what_makes_a_difference_is_another():
    changes = [
        {"eps": 2.0},
        {"inputs": [[2]]},
        {"relation": AddRemoveOne(group=2)},
        {"params": {"scale": 2.0}},
        {"code": "other code"},  # which code is the same is the matter of `test_identity`
        {"more": ("beyond",)},
    ]
    told = {about(**changed) for changed in (ONE, *changes)}
    assert len(told) == 1 + len(changes)
    assert about() in told


def test_a_pass_is_found_by_the_same_claim_and_identity_alone(tmp_path):
    store = Store(tmp_path)
    assert store.find_pass(CLAIM, ABOUT) is None
    store.keep_pass(CLAIM, ABOUT, {"status": "no violation"})
    assert store.find_pass(CLAIM, ABOUT) == {"status": "no violation"}
    assert store.find_pass(CLAIM, f"{ABOUT}0") is None
    assert store.find_pass(f"{CLAIM}0", ABOUT) is None
    store.keep_pass(CLAIM, f"{ABOUT}0", {})
    assert store.find_pass(CLAIM, ABOUT) is None, "what has changed since takes its place"
    for _ in range(2):
        store.keep_pass(CLAIM, f"{ABOUT}0", None)
        assert store.find_pass(CLAIM, f"{ABOUT}0") is None
