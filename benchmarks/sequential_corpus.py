"""All wrong mechanisms of the corpus, with the full search: samples and seconds to detection.

StatDP takes 4.2 M samples for each, DP-Sniper 8 to 20 M at a reduced effort and hundreds of
millions at its own. alpha is 1e-6.

Run with ``python -m benchmarks.sequential_corpus [--seeds 20] [--only SVT3 ...] [--eps0 0.1 1]``.
"""

from __future__ import annotations

import argparse
import math
import sys
from statistics import median

from benchmarks.cases import CORPUS
from benchmarks.common import count, cpu_seconds, progress, table
from pytest_dp import Sequential, audit

MOST = 5_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--eps0", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CORPUS])
    parser.add_argument("--independent", action="store_true", help="no coupled draws")
    options = parser.parse_args()

    rows, missed = [], 0
    for eps0 in options.eps0:
        for case in CORPUS:
            if (options.only and case.name not in options.only) or not case.violates(eps0):
                continue
            found, samples, seconds, bounds = [], [], [], []
            for seed in range(options.seeds):
                before = cpu_seconds()
                result = audit(
                    case.vectorized,
                    **case.keywords(eps0, many=True),
                    max_samples=MOST,
                    max_seconds=3600,
                    method=Sequential(coupled=not options.independent),
                    seed=seed,
                    n_jobs=1,
                )
                seconds.append(cpu_seconds() - before)
                found.append(result.bet_samples if result.violated else math.inf)
                samples.append(result.samples)
                bounds.append(result.eps_lower)
            missed += found.count(math.inf)
            rows.append(
                [
                    case.name,
                    f"{case.claimed(eps0):g}",
                    f"{case.truth(eps0):.3g}",
                    f"{options.seeds - found.count(math.inf)}/{options.seeds}",
                    count(median(found)),
                    count(max(found)),
                    count(median(samples)),
                    f"{median(bounds):.3g}",
                    f"{median(seconds):.1f}",
                ]
            )
            progress(f"{rows[-1]}")
    header = ["mechanism", "claim", "true ε", "caught", "samples bet, median", "max"]
    print(table([*header, "with those shown", "bound shown", "CPU s"], rows))
    draws = "independent" if options.independent else "coupled"
    print(f"\n{draws.capitalize()} draws, {options.seeds} seeds, at most {count(MOST)} samples.")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
