"""Outputs of hundreds or thousands of numbers: what leaks is found, in bounded time and memory."""

import numpy as np
import pytest

from benchmarks.long_outputs import atom, encoding
from pytest_dp import Sequential, audit
from pytest_dp.auditors import pairs_in_play

ZEROS = [0.0] * 100


pytestmark = pytest.mark.usefixtures("_without_blame")


def moved(at):
    return [float(i == at) for i in range(100)]


def audited(mechanism, pair, **keywords):
    keywords = {"eps": 1.0, "max_samples": 8_000, "max_seconds": 600, "seed": 0} | keywords
    return audit(mechanism, pairs=[pair], n_jobs=1, **keywords)


def quieter_there(answers, size, rng, scale):
    """The coordinate that moves has less noise than the others, unless the scale is 1."""
    noise = rng.laplace(size=(size, len(answers)))
    noise[:, 62] *= scale
    return np.asarray(answers) + noise


MANY = {"vectorized": "size"}
CASES = {
    "one of 100": (quieter_there, (moved(62), ZEROS), "scale", (1 / 4, 1.0), MANY),
    "atom": (atom, (moved(37), ZEROS), "leak", (0.05, 0.0), MANY),
    "bits": (encoding, (3, 700), "eps", (1.3, 1.0), MANY | {"max_samples": 20_000}),
}


@pytest.mark.usefixtures("_verdict_only")
@pytest.mark.parametrize("case", CASES)
def test_a_leak_in_a_long_output_is_found_and_its_twin_passes(case):
    mechanism, pair, name, (broken, right), keywords = CASES[case]
    assert audited(mechanism, pair, params={name: broken}, **keywords).violated
    keywords = keywords | {"max_samples": 2_500}
    twin = audited(mechanism, pair, params={name: right}, **keywords)
    assert twin.verdict == "no violation"


def with_gaps(answers, rng, scale):
    noise = rng.laplace(size=len(answers))
    noise[62] *= scale
    noisy, gaps = np.asarray(answers) + noise, rng.random(len(answers)) < 0.06
    return [None if gap else x for x, gap in zip(noisy.tolist(), gaps, strict=True)]


@pytest.mark.usefixtures("_verdict_only")
def test_extracts_take_over_where_there_is_no_room_for_outputs(monkeypatch):
    monkeypatch.setattr(pairs_in_play, "TOTAL_ROOM", 10_000)
    monkeypatch.setattr(pairs_in_play, "MIN_ROOM", 10_000)
    claim = {"method": Sequential(coupled=False)}
    pair = moved(62), ZEROS
    assert audited(with_gaps, pair, params={"scale": 0.3}, max_samples=6_000, **claim).violated
    twin = audited(with_gaps, pair, params={"scale": 1.0}, max_samples=2_000, **claim)
    assert twin.verdict == "no violation"
