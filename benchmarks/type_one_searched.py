"""How often a mechanism exactly at its claim is rejected, with all that searches for pairs at work.

Both mechanisms have gates, behind which they lose just as much: constants, comparisons
and bisection propose pairs there, and each is bet on.

Run with ``python -m benchmarks.type_one_searched [--audits 1000] [--jobs 1]``.
"""

from __future__ import annotations

import argparse
import math
import sys

from hypothesis import strategies as st
from joblib import Parallel, delayed

from benchmarks.common import progress, table
from pytest_dp import audit, queries

EPS = 2.0
ALPHA = 0.01


def gated_answers(answers, rng, times=1.0):
    scale = 1 / (times * EPS)
    if answers[0] >= 6 or sum(answers) % 7 == 3:
        return [one + rng.exponential(scale) - rng.exponential(scale) for one in answers]
    return [one + rng.laplace(scale=scale) for one in answers]


def gated_count(ages, rng, times=1.0):
    scale = 1 / (times * EPS)
    if (len(ages) > 4 and max(ages) >= 65) or len(set(ages)) < len(ages):
        return len(ages) + rng.exponential(scale) - rng.exponential(scale)
    return len(ages) + rng.laplace(scale=scale)


CLAIMS = {
    "vectors": (gated_answers, {"inputs": queries(2), "neighbors": "one_query"}),
    "examples": (gated_count, {"inputs": [[20, 71], [33]], "neighbors": "add_remove_one"}),
    "strategy": (
        gated_count,
        {"inputs": st.lists(st.integers(18, 90), max_size=6), "neighbors": "add_remove_one"},
    ),
}


def trial(name: str, times: float, seed: int, samples: int) -> tuple[bool, int]:
    """Whether an audit of a mechanism that loses so many times its claim is red; pairs searched."""
    mechanism, inputs = CLAIMS[name]
    result = audit(
        mechanism,
        **inputs,
        eps=EPS,
        alpha=ALPHA,
        params={"times": times},
        max_samples=samples,
        max_seconds=600,
        seed=seed,
        n_jobs=1,
    )
    return result.violated, result.proposed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000, help="for each of three claims")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--max-samples", type=int, default=6_000)
    options = parser.parse_args()
    rows, rejected = [], 0
    with Parallel(n_jobs=options.jobs, batch_size=10) as parallel:
        for name in CLAIMS:
            for times, audits in ((1.0, options.audits), (1.5, max(1, options.audits // 10))):
                found = parallel(
                    delayed(trial)(name, times, seed, options.max_samples) for seed in range(audits)
                )
                red, proposed = (sum(column) for column in zip(*found, strict=True))
                rejected += red if times == 1.0 else 0
                rows.append([name, times, audits, red, f"{proposed / audits:.1f}"])
                progress(f"{rows[-1]}")
    print(table(["claim", "loss / claim", "audits", "rejected", "pairs searched, mean"], rows))
    audits = len(CLAIMS) * options.audits
    limit = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / audits)
    print(f"\nOf {audits:,} at their claim, {rejected / audits:.2%} are red; allowed: {limit:.2%}.")
    sys.exit(rejected / audits > limit)


if __name__ == "__main__":
    main()
