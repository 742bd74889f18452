"""Correct mechanisms on data that keeps a constraint, declared by examples: none may be red.

Their records are one-hot, intervals, codes, sorted, unique and so on. Each keeps its claim exactly
inside, on what its examples hold, and breaks it beyond, on records that nobody stated. Its leaky
twin breaks it inside. `constrained_truth` says what is inside, and shows both without samples.

Run with ``python -m benchmarks.constrained [--seeds 3] [--only order ...]``. Exit status 1 if a
correct one is red, or a twin is not.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from typing import Any

from benchmarks import constrained_numbers, constrained_records
from benchmarks.common import progress, table
from benchmarks.constrained_truth import Constrained
from pytest_dp import audit

ZOO = [*constrained_numbers.ZOO, *constrained_records.ZOO]


def audited(twins: Constrained, *, wrong: bool, seed: int, max_samples: int | None = None) -> Any:
    """The result of one audit; without a limit of samples, that of the default settings."""
    effort = {"max_samples": max_samples, "max_seconds": 600, "n_jobs": 1}
    return audit(twins.make(wrong), **twins.claim(), **effort, seed=seed)


def said(result: Any) -> str:
    """What a result says in short, with the inputs that it is about."""
    text = str(result).partition("]")[2].strip(": ")
    told = result if result.violated else result.beyond
    if told is None or told.counterexample is None:
        return text
    pair = told.counterexample.d1, told.counterexample.d2
    return f"{text}: {' and '.join(' '.join(str(data).split()) for data in pair)}"


def main() -> int:
    """Audit every mechanism and its twin with some seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--max-samples", type=int, help="by default as an audit has them")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names")
    options = parser.parse_args()
    chosen = [twins for twins in ZOO if any(part in twins.name for part in options.only)]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    effort = {"max_samples": options.max_samples}
    rows, totals = [], Counter[str]()
    for twins in chosen:
        results = [audited(twins, wrong=False, seed=seed, **effort) for seed in seeds]
        red = sum(result.violated for result in results)
        told = sum(result.beyond is not None for result in results)
        caught = sum(audited(twins, wrong=True, seed=seed, **effort).violated for seed in seeds)
        totals.update(red=red > 0, caught=caught == len(seeds), told=told > 0)
        example = next((r for r in results if r.violated or r.beyond), results[0])
        counts = [f"{n}/{len(seeds)}" if n else "" for n in (red, told, caught)]
        rows.append([twins.name, *counts, said(example)])
        progress(" | ".join(rows[-1]))
    print(table(["mechanism", "red", "told beyond", "twin red", "said of the correct one"], rows))
    all_of_them = len(chosen)
    print(
        f"\nred {totals['red']} of {all_of_them}, twins red {totals['caught']} of {all_of_them}, "
        f"told beyond the examples {totals['told']}"
    )
    return int(totals["red"] > 0 or totals["caught"] < all_of_them)


if __name__ == "__main__":
    sys.exit(main())
