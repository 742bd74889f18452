"""How many sums and means without their clip are told, and how many of their twins are red.

A value far outside of the examples shows such a mistake: inside the claim where the examples hold
one, and beyond the examples where they do not. Both count as told.

Run with ``python -m benchmarks.forgotten_clip [--seeds 1] [--only ratio ...]``.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd

from benchmarks.common import Twins, progress, red, table

SECONDS = 30
TOP = 100.0


def _clip(values, wrong):
    return values if wrong else np.clip(values, 0.0, TOP)


def _rows(size, missing=0.0, columns=1):
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {f"c{at}": rng.uniform(0, TOP, size).round(1) for at in range(columns)}
    ).assign(region=rng.choice(["n", "s", "w"], size), member=rng.random(size) < 0.5)
    frame.loc[rng.random(size) < missing, "c0"] = np.nan
    return frame


def plain(wrong):
    def total(values, rng):
        return float(np.sum(_clip(np.array(values, float), wrong))) + rng.laplace(scale=TOP)

    return total


def with_none(wrong):
    def total(values, rng):
        known = np.array([value for value in values if value is not None], float)
        return float(np.sum(_clip(known, wrong))) + rng.laplace(scale=TOP)

    return total


def of_column(wrong):
    def total(frame, rng):
        return _clip(frame["c0"].dropna(), wrong).sum() + rng.laplace(scale=TOP)

    return total


def of_last_column(wrong):
    def total(frame, rng):
        return _clip(frame["c11"].fillna(0.0), wrong).sum() + rng.laplace(scale=TOP)

    return total


def ratio(wrong):
    def mean(values, rng):
        values = np.array(values, float)
        total = _clip(np.nan_to_num(values, posinf=TOP, neginf=0.0), wrong).sum()
        total += rng.laplace(scale=2 * TOP)
        return total / max(len(values) + rng.laplace(scale=2.0), 1.0)

    return mean


def two_releases(wrong):
    def both(values, rng):
        values = np.array(values, float)
        total = _clip(values, wrong).sum() + rng.laplace(scale=2 * TOP)
        return {"total": total, "n": len(values) + rng.laplace(scale=2.0)}

    return both


def by_group(wrong):
    def totals(frame, rng):
        sums = _clip(frame["c0"].fillna(0.0), wrong).groupby(frame["region"]).sum()
        return [sums.get(region, 0.0) + rng.laplace(scale=TOP) for region in ("n", "s", "w")]

    return totals


def of_members(wrong):
    def total(frame, rng):
        kept = frame.loc[frame["member"].astype(bool), "c0"].fillna(0.0)
        return _clip(kept, wrong).sum() + rng.laplace(scale=TOP)

    return total


def shares(wrong):
    def total(values, rng):
        values = np.array(values, float)
        values = values if wrong else np.clip(values, 0.0, 1.0)
        return values.sum() + rng.laplace(scale=1.0)

    return total


def clipped_below(wrong):
    def total(values, rng):
        values = np.array(values, float)
        low = -np.inf if wrong else 0.0
        return np.clip(values, low, TOP).sum() + rng.laplace(scale=TOP)

    return total


def whole_numbers(wrong):
    def total(values, rng):
        return sum(v if wrong else min(max(v, 0), 100) for v in values) + rng.laplace(scale=TOP)

    return total


def of_dicts(wrong):
    def total(rows, rng):
        known = np.array([row["pay"] for row in rows if row["pay"] is not None], float)
        return float(np.sum(_clip(known, wrong))) + rng.laplace(scale=TOP)

    return total


def of_pairs(wrong):
    def totals(rows, rng):
        sums = dict.fromkeys(("a", "b", "c"), 0.0)
        for team, pay in rows:
            if team in sums:
                sums[team] += float(_clip(np.array(pay, float), wrong))
        return [total + rng.laplace(scale=TOP) for total in sums.values()]

    return totals


def of_array(wrong):
    def total(rows, rng):
        return _clip(np.nan_to_num(rows[:, 7]), wrong).sum() + rng.laplace(scale=TOP)

    return total


def of_nullable(wrong):
    def total(frame, rng):
        return _clip(frame["n"].fillna(0).astype(float), wrong).sum() + rng.laplace(scale=TOP)

    return total


VALUES = [12.5, 80.0, 3.1, 99.0, 40.2]
DICTS = [{"pay": pay, "team": "a"} for pay in (*VALUES, None)]
TEAMS = [("a", 1), ("b", 3), ("a", 5), ("c", 0), ("b", 2)]
NULLABLE = pd.DataFrame({"n": pd.array([1, None, 3, 10, 7], dtype="Int64"), "t": list("abaab")})
VARIANTS = (
    Twins("plain", plain, [VALUES]),
    Twins("None among them", with_none, [[*VALUES, None]]),
    Twins("missing in a column", of_column, [_rows(40, 0.1)]),
    Twins("12 columns", of_last_column, [_rows(40, columns=12)]),
    Twins("ratio", ratio, [VALUES]),
    Twins("two releases", two_releases, [VALUES]),
    Twins("group-by sum", by_group, [_rows(40, 0.1)]),
    Twins("of some rows", of_members, [_rows(40)]),
    Twins("0.0 and 1.0", shares, [[0.0, 1.0]]),
    Twins("lower end", clipped_below, [VALUES]),
    Twins("whole numbers", whole_numbers, [[0, 1, 1, 0]]),
    Twins("None in dicts", of_dicts, [DICTS]),
    Twins("groups of pairs", of_pairs, [TEAMS]),
    Twins("array with NaN", of_array, [_rows(30, columns=9).iloc[:, :9].to_numpy(float)]),
    Twins("nullable", of_nullable, [NULLABLE]),
    Twins("far below the end", plain, [[0.2, 0.9, 0.4]]),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+")
    options = parser.parse_args()
    rows, missed, alarms = [], 0, 0
    for variant in VARIANTS:
        if options.only and variant.name not in options.only:
            continue
        inside, beyond, cost = red(variant, True, options.seeds, SECONDS)
        alarmed, told, cost_of_twins = red(variant, False, options.seeds, SECONDS)
        missed += inside + beyond < options.seeds
        alarms += alarmed
        rows.append(
            [variant.name, inside, beyond, f"{cost:.1f}", alarmed, told, f"{cost_of_twins:.1f}"]
        )
        progress(f"{rows[-1]}")
    header = ["variant", "red", "beyond", "CPU s", "twin red", "twin beyond", "CPU s"]
    print(table(header, rows))
    sys.exit(missed + alarms > 0)


if __name__ == "__main__":
    main()
