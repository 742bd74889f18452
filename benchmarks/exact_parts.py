"""How many exact parts of an answer beside its noise are red inside of the claim, on 300 rows.

Counts of missing values, and groups, bins and ranges that are taken from the data. Each has a twin
that has noise there, or takes what is public.

Run with ``python -m benchmarks.exact_parts [--seeds 1] [--only bins ...] [--no-twins]``.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd

from benchmarks.common import Twins, progress, red, table

SECONDS = 30
REGIONS = ["n", "s", "w", "e"]


def _rows(size=300):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "pay": rng.uniform(0, 100, size).round(1),
            "region": rng.choice(REGIONS, size, p=[0.4, 0.3, 0.2, 0.1]),
            "age": rng.integers(18, 90, size),
        }
    )
    frame.loc[rng.random(size) < 0.05, "pay"] = np.nan
    return frame


def _total(frame, rng):
    return frame["pay"].fillna(0.0).clip(0, 100).sum() + rng.laplace(scale=200.0)


def keys(wrong):
    def totals(frame, rng):
        sums = frame["pay"].fillna(0.0).clip(0, 100).groupby(frame["region"]).sum()
        regions = list(sums.index) if wrong else REGIONS
        return {region: sums.get(region, 0.0) + rng.laplace(scale=200.0) for region in regions}

    return totals


def keys_of_dicts(wrong):
    def counts(rows, rng):
        found = {} if wrong else dict.fromkeys(REGIONS, 0)
        for row in rows:
            found[row["region"]] = found.get(row["region"], 0) + 1
        return {region: count + rng.laplace(scale=1.0) for region, count in found.items()}

    return counts


def bins(wrong):
    def histogram(values, rng):
        ends = (min(values), max(values)) if wrong and values else (0.0, 100.0)
        counts, edges = np.histogram(np.array(values, float), bins=5, range=ends)
        return [count + rng.laplace(scale=1.0) for count in counts], edges[-1]

    return histogram


def missing(wrong):
    def total_and_missing(frame, rng):
        count = int(frame["pay"].isna().sum())
        return _total(frame, rng), count if wrong else count + rng.laplace(scale=2.0)

    return total_and_missing


def missing_of_list(wrong):
    def total_and_missing(values, rng):
        known = [min(max(value, 0), 100) for value in values if value is not None]
        count = len(values) - len(known)
        shown = count if wrong else count + rng.laplace(scale=2.0)
        return sum(known) + rng.laplace(scale=200.0), shown

    return total_and_missing


def distinct(wrong):
    def total_and_ages(frame, rng):
        count = frame["age"].nunique()
        return _total(frame, rng), count if wrong else count + rng.laplace(scale=2.0)

    return total_and_ages


def largest(wrong):
    def total_and_range(frame, rng):
        top = int(frame["age"].max()) if wrong and len(frame) else 90
        return frame["age"].clip(0, top).sum() + rng.laplace(scale=90.0), top

    return total_and_range


ROWS = _rows()
DICTS = [{"region": region, "age": age} for region, age in zip(ROWS.region, ROWS.age, strict=True)]
WITH_NONE = [None if value != value else value for value in ROWS.pay.tolist()]
PARTS = (
    Twins("keys", keys, [ROWS]),
    Twins("keys of dicts", keys_of_dicts, [DICTS]),
    Twins("keys, replaced", keys, [ROWS], "replace_one"),
    Twins("bins", bins, [ROWS.pay.fillna(1.0).tolist()]),
    Twins("missing", missing, [ROWS]),
    Twins("missing of a list", missing_of_list, [WITH_NONE]),
    Twins("distinct", distinct, [ROWS]),
    Twins("largest", largest, [ROWS]),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--no-twins", action="store_true")
    options = parser.parse_args()
    rows, missed, alarms = [], 0, 0
    for part in PARTS:
        if options.only and part.name not in options.only:
            continue
        inside, _, cost = red(part, True, options.seeds, SECONDS)
        seeds = 0 if options.no_twins else options.seeds
        alarmed, told, cost_of_twins = red(part, False, seeds, SECONDS)
        missed += inside < options.seeds
        alarms += alarmed
        rows.append([part.name, inside, f"{cost:.1f}", alarmed, told, f"{cost_of_twins:.1f}"])
        progress(f"{rows[-1]}")
    print(table(["part", "red", "CPU s", "twin red", "twin beyond", "CPU s"], rows))
    sys.exit(missed + alarms > 0)


if __name__ == "__main__":
    main()
