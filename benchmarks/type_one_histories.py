"""Evidence over many runs of mechanisms exactly at their claim, and how soon it finds broken ones.

``python -m benchmarks.type_one_histories 2000`` simulates so many histories of a few runs each, at
alpha = 0.05, of mechanisms whose true loss is the claim. ``python -m benchmarks.type_one_histories
broken`` runs a Laplace mechanism with 2 % too little noise night after night, at alpha = 1e-6.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import count, progress, table
from pytest_dp import Sequential
from pytest_dp.auditors import run
from pytest_dp.auditors.session import Past
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.results.outcome import Evidence

ALPHA, NIGHTS, SAMPLES = 0.05, 4, 1_500
PAIR = {"pairs": [([1], [])], "vectorized": "size", "margin": None}


def laplace(records, rng, size, scale=1.0):
    return sum(records) + rng.laplace(scale=scale, size=size)


def geometric(records, rng, size):
    p = 1 - math.exp(-1.0)
    return sum(records) + rng.geometric(p, size) - rng.geometric(p, size)


def response(records, rng, size):
    truth = rng.random(size) < 1 / (1 + math.exp(-1.0))
    return np.where(truth, sum(records), 1 - sum(records))


def gaussian(records, rng, size):
    return sum(records) + rng.normal(size=size)


CLAIMS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Laplace": (laplace, {"eps": 1.0}),
    "Laplace, independent": (laplace, {"eps": 1.0, "method": Sequential(coupled=False)}),
    "geometric": (geometric, {"eps": 1.0}),
    "randomised response": (response, {"eps": 1.0}),
    "Gaussian, rho": (gaussian, {"rho": 0.5}),
    "Gaussian, mu": (gaussian, {"mu": 1.0}),
}


def history(
    mechanism: Callable[..., Any], keywords: dict[str, Any], seed: int, nights: int
) -> tuple[bool, int, int]:
    """Runs one after the other until the claim is refuted: whether, after how many, and samples."""
    (claim,) = expand(keywords)
    total = Evidence()
    for night in range(nights):
        settings = Settings(seed=1_000 * seed + night, jobs=1).over(claim.effort)
        past = Past(evidence=lambda promise, seed, before=total: before)
        result = run(claim, mechanism, settings, "history", past=past)
        total += result.evidence
        if result.violated:
            return True, night + 1, total.samples
    return False, nights, total.samples


def at_the_claim(name: str, seed: int) -> bool:
    mechanism, notion = CLAIMS[name]
    keywords = notion | PAIR | {"alpha": ALPHA, "max_samples": SAMPLES}
    return history(mechanism, keywords, seed, NIGHTS)[0]


def broken(seed: int, samples: int = 40_000, times: float = 1.02) -> tuple[bool, int, int]:
    params = {"params": {"scale": 1 / times}, "max_samples": samples}
    return history(laplace, {"eps": 1.0} | PAIR | params, seed, 60)


def main() -> None:
    if sys.argv[1:] == ["broken"]:
        rows = [[seed, *broken(seed)] for seed in range(20)]
        print(table(["seed", "refuted", "runs", "samples"], rows))
        print("median runs:", float(np.median([row[2] for row in rows])))
        return
    histories = int(sys.argv[1]) if sys.argv[1:] else 200
    rows = []
    for name in CLAIMS:
        each = histories // len(CLAIMS)
        rejected = 0
        for seed in range(each):
            rejected += at_the_claim(name, seed)
            progress(f"{name}: {rejected} of {seed + 1}")
        rows.append([name, count(each), rejected, f"{ALPHA * each:.0f}"])
    print(table(["mechanism", "histories", "rejected", "alpha allows"], rows))


if __name__ == "__main__":
    main()
