"""Local hashing: right and wrong reports, read through the hash that the mechanism calls."""

from __future__ import annotations

import hashlib
import math
import zlib

import numpy as np
import pytest

from pytest_dp import audit, values

CITIES = values(["rome", "oslo", "lima"])


def olh(eps, g=3):
    """Optimised local hashing: the seed in a text, answers by randomised response."""

    def report(city, rng):
        seed = int(rng.integers(2**32))
        answer = zlib.crc32(f"{seed}:{city}".encode()) % g
        if rng.random() > math.exp(eps) / (math.exp(eps) + g - 1):
            answer = (answer + 1 + int(rng.integers(g - 1))) % g
        return seed, answer

    return report


def blh(eps):
    """Binary local hashing: the seed in a dict, answers of -1 and 1."""

    def report(city, rng):
        seed = int(rng.integers(2**32))
        sign = 2 * (hashlib.sha256(f"{city}/{seed}".encode()).digest()[0] % 2) - 1
        return {"seed": seed, "sign": sign if rng.random() < 1 / (1 + math.exp(-eps)) else -sign}

    return report


def number_of(city):
    return int.from_bytes(city.encode())


def own_hash(eps):
    """A hash that nothing is known of."""

    def report(city, rng):
        a, b = (int(rng.integers(1, 10_007)) for _ in range(2))
        bit = (a * number_of(city) + b) % 10_007 % 2
        return a, b, bit if rng.random() < 1 / (1 + math.exp(-eps)) else 1 - bit

    return report


@pytest.mark.spot(2)
@pytest.mark.parametrize("kind", [olh, blh])
def test_right_and_wrong_reports(kind):
    keywords = {"eps": 1.0, "inputs": CITIES, "seed": 1}
    wrong = audit(kind(2.0), **keywords)
    assert wrong.violated
    assert wrong.samples < 40_000
    assert wrong.lower <= 2.0
    right = audit(kind(1.0), **keywords, margin=1.5)
    assert right.verdict == "no violation"
    assert right.strength in ("fair", "strong")


def test_the_event_names_the_hash():
    broken = audit(olh(3.0), eps=1.0, inputs=CITIES, seed=2)
    said = str(broken.counterexample.event)
    assert "zlib.crc32(str(output[0]).encode() + b':" in said
    assert "% 3 == output[1]" in said


@pytest.mark.parametrize("eps", [1.0, 3.0])
def test_a_hash_that_is_not_known_leaves_it_blind(eps):
    result = audit(own_hash(eps), eps=1.0, inputs=CITIES, seed=1, max_samples=8_000)
    if not result.violated:
        assert (result.verdict, result.strength) == ("inconclusive", "blind")


def test_arrays_of_reports():
    """What one call gives: an array of seeds and answers."""

    def reports(city, rng, size):
        seeds = rng.integers(1_000, 2**31, size)
        hashes = np.array([zlib.crc32(city.encode(), int(seed)) % 2 for seed in seeds])
        return np.stack([seeds, hashes ^ (rng.random(size) > 0.95)], axis=1)

    assert audit(reports, eps=1.0, inputs=CITIES, vectorized="size", seed=1).violated
