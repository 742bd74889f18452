"""Ten claims of OpenDP's measurements, all correct, with default settings: wall and CPU seconds.

Their noise is the operating system's, so nothing replays and no random numbers are shared between
inputs: what every mechanism costs that takes its randomness from elsewhere. Exit status 1 if a
claim is called violated or ends inconclusive, or if all of them take more than 100 s.

Needs the package opendp. Run with ``python -m benchmarks.opendp_claims [--jobs 2] [--only NAME]``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.common import count, cpu_seconds, progress, table
from pytest_dp import audit, values

ALLOWED = 100.0
"""Seconds for all ten, on two cores."""


def measurements() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Each measurement, as a plain function of the data, with the claim that OpenDP makes."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    real, whole = dp.atom_domain(T=float, nan=False), dp.atom_domain(T=int)
    reals = dp.vector_domain(real)
    wholes = dp.vector_domain(whole)
    records = wholes, dp.symmetric_distance()
    one_real, one_whole = dp.absolute_distance(T=float), dp.absolute_distance(T=int)
    value = {"pairs": [(3.0, 4.0)]}
    integer = {"pairs": [(3, 4)]}
    rows = {"neighbors": "add_remove_one", "inputs": [[1, 2], [1, 2, 2], [5, 1, 2, 0]]}
    laplace = dp.m.make_laplace(real, one_real, scale=1.0)
    laplace_int = dp.m.make_laplace(whole, one_whole, scale=1.0)
    laplace_vector = dp.m.make_laplace(reals, dp.l1_distance(T=float), scale=1.0)
    geometric = dp.m.make_geometric(whole, one_whole, scale=1.0)
    coin = dp.m.make_randomized_response_bool(prob=0.73)
    four = dp.m.make_randomized_response([0, 1, 2, 3], prob=0.47)
    noisy_max = dp.m.make_noisy_max(wholes, dp.linf_distance(T=int), dp.max_divergence(), scale=2.0)
    length = records >> dp.t.then_count() >> dp.m.then_laplace(scale=1.0)
    clamped = records >> dp.t.then_clamp((0, 5))
    total = clamped >> dp.t.then_sum() >> dp.m.then_laplace(scale=5.0)
    histogram = (
        records
        >> dp.t.then_count_by_categories(categories=[0, 1, 2])
        >> dp.m.then_laplace(scale=1.0)
    )
    vector = {"pairs": [([1.0, 2.0, 3.0], [1.0, 3.0, 3.0])]}
    answers = {"pairs": [([1, 2, 3], [2, 1, 2]), ([1, 1, 1], [2, 1, 1])]}
    return {
        "Laplace, float": (laplace, {"eps": 1.0, **value}),
        "Laplace, int": (laplace_int, {"eps": 1.0, **integer}),
        "Laplace, vector": (laplace_vector, {"eps": 1.0, **vector}),
        "geometric": (geometric, {"eps": 1.0, **integer}),
        "randomised response, bool": (coin, {"eps": 1.0, "inputs": values([True, False])}),
        "randomised response, 4": (four, {"eps": 1.0, "inputs": values([0, 1, 2, 3])}),
        "noisy max": (noisy_max, {"eps": 1.0, **answers}),
        "count": (length, {"eps": 1.0, **rows}),
        "sum": (total, {"eps": 1.0, **rows}),
        "histogram": (histogram, {"eps": 1.0, **rows}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=None, help="processes; all cores by default")
    parser.add_argument("--only", default="", help="claims with this in their name")
    options = parser.parse_args()

    rows, wrong, seconds = [], [], 0.0
    for name, (measurement, claim) in measurements().items():
        if options.only not in name:
            continue

        def mechanism(data: Any, measurement: Any = measurement) -> Any:
            return measurement(data)

        started, cpu = time.monotonic(), cpu_seconds()
        result = audit(mechanism, seed=1, n_jobs=options.jobs, **claim)
        took = time.monotonic() - started
        seconds += took
        if result.verdict != "no violation":
            wrong.append(name)
        row = [name, result.verdict, count(result.samples), f"{result.resolution:.3g}"]
        rows.append([*row, f"{took:.1f}", f"{cpu_seconds() - cpu:.1f}"])
        progress(f"{rows[-1]} {result.notes}")
    header = ["measurement", "verdict", "samples", "would catch from", "s", "CPU s, this process"]
    print(table(header, rows))
    print(f"\nAll together {seconds:.1f} s (allowed on two cores: {ALLOWED:g}).")
    if wrong:
        print(f"Not cleared: {', '.join(wrong)}.")
    sys.exit(bool(wrong) or seconds > ALLOWED)


if __name__ == "__main__":
    main()
