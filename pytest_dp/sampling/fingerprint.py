"""Telling by their first outputs whether two chunks drew the very same random numbers."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.arrays import Outputs
from pytest_dp.reprs import shown

COINCIDENCE_SURPRISE = 14.0
"""Derived: the negative logarithm of the chance, one in a million, of a coincidence that is taken
for a copied generator."""
UNIQUE_SURPRISE = COINCIDENCE_SURPRISE + 2 * math.log(1e9)
"""Surprise of outputs that tell a chunk from a billion others."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What some outputs look like."""

    digest: bytes
    surprise: float
    """How unlikely the same outputs would be by chance, as a negative logarithm."""


def fingerprint(outputs: Outputs) -> Fingerprint:
    """The fingerprint of as many outputs as it takes; the outputs alone decide how many."""
    texts: list[str] = []
    for look in (32, 128, 512):
        texts += map(_text, outputs[len(texts) : look])
        if len(texts) < look or _surprise_of_values(texts) >= UNIQUE_SURPRISE:
            break
    return Fingerprint(digest(texts), surprise(texts))


def _text(output: Any) -> str:
    if isinstance(output, np.ndarray) and output.dtype.kind in "biufc":  # its repr is slow
        rest = hashlib.sha256(output.tobytes()).hexdigest()
        return f"{output.ravel()[:8].tolist()} {rest}"
    return shown(output)


def digest(texts: list[str]) -> bytes:
    """A digest of texts."""
    return hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).digest()


_LONG_FLOAT = re.compile(r"\.\d{9}")


def surprise(texts: list[str]) -> float:
    """The negative logarithm of the chance that independent outputs read like these again.

    Outputs that show all digits of a float are worth more than their frequency says, as those
    hardly ever come twice; unless one of them did.
    """
    long = sum(n == 1 and bool(_LONG_FLOAT.search(text)) for text, n in Counter(texts).items())
    return _surprise_of_values(texts) + long * max(0.0, 20.0 - math.log(len(texts) or 1))


def _surprise_of_values(texts: list[str]) -> float:
    """From frequencies alone: no distribution makes the same independent outputs more likely."""
    return sum(-n * math.log(n / len(texts)) for n in Counter(texts).values())
