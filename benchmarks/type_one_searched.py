"""How often a mechanism exactly at its claim is rejected, with all that searches for pairs at work.

The pairs that the claims give lose half of what is claimed. Pairs that lose all of it are left to
the search, which proposes those on which the answer moves most; each is bet on.

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


def rising(number: float, bend: int) -> float:
    """Return a value that rises by a half for each of the first numbers, then by one."""
    return 0.5 * min(number, bend) + max(number - bend, 0)


def noise(rng, times: float) -> float:
    """Return Laplace noise as a difference of two draws, which no alignment accounts for."""
    scale = 1 / (times * EPS)
    return rng.exponential(scale) - rng.exponential(scale)


def gated_answers(answers, rng, times=1.0):
    return [rising(one, 6) + noise(rng, times) for one in answers]


def gated_count(ages, rng, times=1.0):
    return rising(len(ages), 2) + noise(rng, times)


def gated_ages(ages, rng, times=1.0):
    return rising(sum(40 <= age < 60 for age in ages), 3) + noise(rng, times)


CLAIMS = {
    "vectors": (gated_answers, {"inputs": queries(2), "neighbors": "one_query"}),
    "examples": (gated_count, {"inputs": [[20, 71], [33]], "neighbors": "add_remove_one"}),
    "strategy": (
        gated_ages,
        {"inputs": st.lists(st.integers(18, 90), max_size=6), "neighbors": "add_remove_one"},
    ),
}


def trial(name: str, times: float, seed: int, samples: int) -> bool:
    """Return whether an audit refutes a mechanism that loses so many times its claim.

    Inside or outside of the declared inputs.
    """
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
    return result.violated or (result.beyond is not None and result.beyond.violated)


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
                red = sum(found)
                rejected += red if times == 1.0 else 0
                rows.append([name, times, audits, red])
                progress(f"{rows[-1]}")
    print(table(["claim", "loss / claim", "audits", "rejected"], rows))
    audits = len(CLAIMS) * options.audits
    limit = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / audits)
    print(f"\nOf {audits:,} at their claim, {rejected / audits:.2%} are red; allowed: {limit:.2%}.")
    sys.exit(rejected / audits > limit)


if __name__ == "__main__":
    main()
