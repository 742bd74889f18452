"""How often a mechanism exactly at its claim is rejected; at most alpha is allowed.

A test that never rejects would pass, so the same mechanisms are also audited at half as much again.

Run with ``python -m benchmarks.type_one [--audits 1000] [--jobs 2]``, or, for the sequential
auditor with coupled and independent draws, ``--method sequential --alpha 0.01 --eps 2
--max-samples 1000 --audits 840``, which makes 10,080 audits.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping
from statistics import median
from typing import Any

from joblib import Parallel, delayed

from benchmarks import mechanisms, vectorized
from benchmarks.common import count, progress, table
from pytest_dp import Sequential, audit, queries, values

_DATASETS = {"inputs": [[1, 0, 1], [1, 0]], "neighbors": "add_remove_one"}
_MANY = {"inputs": values(range(3))}
BOUNDARY = {
    "Laplace": (vectorized.noisy_count, _DATASETS),
    "randomised response": (vectorized.randomized_response, {"inputs": values([0, 1])}),
    "geometric": (vectorized.geometric_count, _DATASETS),
    "histogram": (vectorized.histogram, {"inputs": queries(5), "neighbors": "one_query"}),
    "5-ary response": (vectorized.kary_response, _MANY),
    "unary encoding": (mechanisms.unary_encoding, _MANY),
}
"""Mechanisms that lose exactly `eps`, each on many events; the last one gives one output a call."""
FEW = ("Laplace", "randomised response", "geometric")
"""Those for auditors of fixed size, which need more samples."""


ABOVE = 1.5
"""Loss over claim of the mechanisms that ought to be rejected."""


def trial(name: str, ratio: float, keywords: Mapping[str, Any], seed: int) -> tuple[str, int]:
    """Verdict and samples of one audit of a mechanism that loses `ratio` times its claim."""
    mechanism, inputs = BOUNDARY[name]
    many = None if mechanism is mechanisms.unary_encoding else "size"
    params = {"eps": ratio * keywords["eps"]}
    result = audit(
        mechanism, params=params, vectorized=many, **inputs, **keywords, seed=seed, n_jobs=1
    )
    return result.verdict, result.samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2, help="audits at the same time")
    parser.add_argument("--eps", type=float, default=1.0)
    parser.add_argument("--max-samples", type=int, default=40_000)
    parser.add_argument("--method", default="statdp")
    parser.add_argument("--alpha", type=float, default=0.05)
    options = parser.parse_args()

    alpha, audits = options.alpha, options.audits
    allowed = alpha + 2 * math.sqrt(alpha * (1 - alpha) / audits)
    common = {
        "eps": options.eps,
        "alpha": alpha,
        "max_samples": options.max_samples,
        "max_seconds": 600,
        "method": options.method,
    }
    sequential = options.method == "sequential"
    rows, rejected = [], []
    with Parallel(n_jobs=options.jobs, batch_size=10) as parallel:

        def verdicts(name: str, ratio: float, n: int, coupled: bool) -> tuple[list[str], float]:
            keywords = {**common, "method": Sequential(coupled=coupled)} if sequential else common
            trials = parallel(delayed(trial)(name, ratio, keywords, seed) for seed in range(n))
            return [verdict for verdict, _ in trials], median(samples for _, samples in trials)

        for name in BOUNDARY if sequential else FEW:
            for coupled in (True, False) if sequential else (True,):
                start = time.perf_counter()
                found, samples = verdicts(name, 1.0, audits, coupled)
                rejected.append(found.count("violated"))
                few = max(1, audits // 10)
                above = verdicts(name, ABOVE, few, coupled)[0].count("violated") / few
                row = [name, ("coupled" if coupled else "independent") if sequential else "-"]
                row += [f"{rejected[-1] / audits:.2%}", f"{allowed:.2%}"]
                rows.append([*row, found.count("inconclusive"), count(samples), f"{above:.0%}"])
                progress(f"{rows[-1]} in {time.perf_counter() - start:.0f} s")
    header = ["mechanism at its claim", "draws", "rejected", "allowed (alpha + 2 s.e.)"]
    header += ["inconclusive", "median samples", f"rejected at {ABOVE} x the claim"]
    print(table(header, rows))
    everything = audits * len(rejected)
    limit = alpha + 2 * math.sqrt(alpha * (1 - alpha) / everything)
    share = sum(rejected) / everything
    print(
        f"\n{audits:,} audits each (a tenth in the last column), ε = {options.eps}, alpha = "
        f"{alpha}. Of all {everything:,}, {share:.2%} are rejected; allowed are {limit:.2%}."
    )
    sys.exit(share > limit or max(rejected) > audits * (alpha + 3 * (allowed - alpha) / 2))


if __name__ == "__main__":
    main()
