"""How much faster an audit is on two workers of a Dask cluster than on one, side by side.

``python -m benchmarks.cluster``: 100,000 runs of a mechanism of 1 ms, on clusters of one process
and of two on this machine, in turn.
"""

from __future__ import annotations

import sys
import time

import joblib

from benchmarks.common import table
from pytest_dp import audit

PAIR = {"pairs": [([1], [])], "margin": None, "max_seconds": 600, "seed": 1}


def count(records, rng):
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        pass
    return len(records) + rng.laplace()


def seconds(workers: int, runs: int) -> tuple[float, object]:
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        joblib.parallel_config("dask", client=client),
    ):
        audit(count, eps=1.0, n_jobs=workers + 1, max_samples=2_000, **PAIR)  # loads what it needs
        started = time.perf_counter()
        result = audit(count, eps=1.0, n_jobs=workers + 1, max_samples=runs, **PAIR)
        return time.perf_counter() - started, result


def main() -> None:
    runs = int(sys.argv[1]) if sys.argv[1:] else 100_000
    rows = []
    for workers in (1, 2):
        took, result = seconds(workers, runs)
        rows.append([workers, f"{took:.1f}", result.verdict, result.samples, result.e_value])
    print(table(["workers", "seconds", "verdict", "samples", "e-value"], rows))
    print(f"ratio: {float(rows[0][1]) / float(rows[1][1]):.2f}")


if __name__ == "__main__":
    main()
