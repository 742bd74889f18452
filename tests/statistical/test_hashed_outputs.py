"""Local hashing: right and wrong reports, read through the hash that `features` computes."""

from __future__ import annotations

import math
import zlib

import pytest

from pytest_dp import audit, values

NAMES = ["rome", "oslo", "lima"]
CITIES = values(NAMES)
G = 3


def hashed(seed, city):
    return zlib.crc32(f"{seed}:{city}".encode()) % G


def fits(output):
    """Which cities the answer is the hash of."""
    seed, answer = output
    return [float(hashed(seed, city) == answer) for city in NAMES]


def olh(eps):
    """Optimised local hashing: the seed in a text, answers by randomised response."""

    def report(city, rng):
        seed = int(rng.integers(2**32))
        answer = hashed(seed, city)
        if rng.random() > math.exp(eps) / (math.exp(eps) + G - 1):
            answer = (answer + 1 + int(rng.integers(G - 1))) % G
        return seed, answer

    return report


@pytest.mark.nightly
@pytest.mark.slow
def test_right_and_wrong_reports():
    keywords = {"eps": 1.0, "inputs": CITIES, "features": fits, "seed": 1}
    wrong = audit(olh(2.0), **keywords)
    assert wrong.violated
    assert wrong.samples < 40_000
    assert wrong.lower <= 2.0
    right = audit(olh(1.0), **keywords, margin=1.5)
    assert right.verdict == "no violation"
    assert right.strength in ("fair", "strong")


@pytest.mark.nightly
@pytest.mark.parametrize("eps", [1.0, 3.0])
def test_without_the_hash_the_audit_is_blind(eps):
    result = audit(olh(eps), eps=1.0, inputs=CITIES, seed=1, max_samples=8_000)
    if not result.violated:
        assert (result.verdict, result.strength) == ("inconclusive", "blind")
