"""Noise keyed by a value that the code says: everybody knows it, so it is no noise."""

from __future__ import annotations

from test_state_threads import verdicts

KEYED = """
import hashlib, hmac
import numpy as np
from pytest_dp import dp_claim

KEY = b"of the code"
SHIFT = {n: np.random.default_rng(list(KEY) + [n]).laplace() for n in range(9)}

@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[[1, 1, 1]], max_samples=4_000)
def drawn_once_under_jitter(data, rng):
    return len(data) + SHIFT[len(data)] + rng.laplace(scale=0.3)
"""


def test_noise_keyed_by_what_the_code_says_is_a_violation(tmp_path):
    found, output = verdicts(tmp_path, KEYED)
    assert found == {"drawn_once_under_jitter": "violated"}, output
