"""The nine cases of the StatDP paper: are the verdicts right, and what does each cost?

Run with ``python -m benchmarks.statdp_cases [--seeds 20] [--jobs 1]``.
"""

from __future__ import annotations

import argparse
from statistics import median

from joblib import Parallel, delayed

from benchmarks.cases import STATDP
from benchmarks.common import count, cpu_seconds, progress, table
from pytest_dp import audit

CLAIMS = (0.7, 1.5)


def trial(name: str, eps0: float, many: bool, seed: int) -> tuple[str, int, float]:
    """Verdict, samples and processor seconds of one audit; process start-up does not count."""
    case = STATDP[name]
    start = cpu_seconds()
    result = audit(
        case.vectorized if many else case.mechanism,
        **case.keywords(eps0, many=many),
        method="statdp",
        seed=seed,
        n_jobs=1,
    )
    return result.verdict, result.samples, cpu_seconds() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="audits at the same time")
    parser.add_argument("--only", choices=STATDP, help="one of the nine")
    options = parser.parse_args()

    rows, right_in_all, worst = [], {False: 0, True: 0}, {False: 0.0, True: 0.0}
    names = [options.only] if options.only else list(STATDP)
    with Parallel(n_jobs=options.jobs) as parallel:
        # The first audit of a process pays for imports.
        parallel(delayed(trial)(names[0], 0.7, True, 0) for _ in range(options.jobs))
        for name in names:
            for eps0 in CLAIMS:
                expected = "violated" if STATDP[name].violates(eps0) else "no violation"
                row = [name, eps0, f"{STATDP[name].truth(eps0):.3g}", expected]
                for many in (False, True):
                    trials = parallel(
                        delayed(trial)(name, eps0, many, seed) for seed in range(options.seeds)
                    )
                    verdicts, samples, seconds = zip(*trials, strict=True)
                    right = verdicts.count(expected)
                    right_in_all[many] += right
                    worst[many] = max(worst[many], median(seconds))
                    row += [right, count(median(samples)), f"{median(seconds):.2f}"]
                    progress(f"{name}, eps0 = {eps0}, {'vectorised' if many else 'scalar'}: {row}")
                rows.append(row)
    audits = len(names) * len(CLAIMS) * options.seeds
    header = ["case", "ε₀", "true ε", "expected verdict", f"right of {options.seeds}"]
    header += ["samples", "CPU s", "right, vectorised", "samples", "CPU s"]
    print(table(header, rows))
    print(
        f"\nRight: {right_in_all[False]} of {audits}; vectorised {right_in_all[True]} of {audits}. "
        f"Largest median: {worst[False]:.2f} CPU s; vectorised {worst[True]:.2f} CPU s.\n"
        "Published tool, per case: 4.2 M samples, 12 to 32 CPU s (ε₀ = 0.7, scalar mechanisms)."
    )


if __name__ == "__main__":
    main()
