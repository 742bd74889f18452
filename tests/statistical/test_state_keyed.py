"""Noise keyed by a secret that is drawn when a module is imported: kept, never a violation."""

from __future__ import annotations

import pytest
from test_state_threads import verdicts

KEYED = """
import hashlib, hmac, math, secrets
import numpy as np
from pytest_dp import dp_claim

KEY = {key}
CLAIM = dict(eps=1.0, neighbors="add_remove_one", inputs=[[1, 1, 1]], max_samples=4_000)

def keyed(data, scale=1.0):
    digest = hmac.new(KEY, repr(list(data)).encode(), hashlib.sha256).digest()
    return np.random.default_rng(list(digest)).laplace(scale=scale)

@dp_claim(**CLAIM)
def sticky_beside_fresh(data, rng):
    return {{"kept": len(data) + keyed(data), "fresh": len(data) + rng.laplace(scale=40.0)}}

SHIFT = {{n: np.random.default_rng(list(KEY) + [n]).laplace() for n in range(9)}}

@dp_claim(**CLAIM)
def drawn_once_under_jitter(data, rng):
    return len(data) + SHIFT[len(data)] + rng.laplace(scale=0.3)
"""


STICKY = "sticky_beside_fresh", "drawn_once_under_jitter"


@pytest.mark.nightly
def test_noise_keyed_by_a_secret_of_the_import_is_no_violation(tmp_path):
    found, output = verdicts(tmp_path, KEYED.format(key="secrets.token_bytes(16)"))
    assert found == dict.fromkeys(STICKY, "error"), output
    assert "noise that follows from a secret key" in " ".join(output.split())


def test_noise_keyed_by_what_the_code_says_is_a_violation(tmp_path):
    """Everybody knows it."""
    source = KEYED.format(key="b'of the code'")
    found, output = verdicts(tmp_path, source, "-k", "drawn_once_under_jitter")
    assert found == {"drawn_once_under_jitter": "violated"}, output
