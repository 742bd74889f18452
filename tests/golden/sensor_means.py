"""Means of two sensors, from a wide table of polars."""

import numpy as np
import polars as pl

from pytest_dp import dp_claim

BOUND = 40.0


def measurements():
    rng = np.random.default_rng(1)
    columns = {f"sensor_{i:02}": rng.uniform(0, BOUND, 5_000).round(1) for i in range(19)}
    return pl.DataFrame({"site": [f"s{i % 7}" for i in range(5_000)], **columns})


def one_site_less():
    table = measurements()
    changed = table.with_row_index().with_columns(
        pl.when(pl.col("index") == 41).then(0.0).otherwise(pl.col("sensor_04")).alias("sensor_04"),
        pl.when(pl.col("index") == 41).then(0.0).otherwise(pl.col("sensor_11")).alias("sensor_11"),
    )
    return [(table, changed.drop("index"))]


@dp_claim(eps=1.0, neighbors="replace_one", pairs=one_site_less, max_samples=5_000)
def sensor_means(table, rng):
    totals = table.select(pl.col("sensor_04", "sensor_11").clip(0.0, BOUND)).sum().row(0)
    noise = rng.laplace(scale=BOUND / 2, size=2)
    return [total + float(x) for total, x in zip(totals, noise, strict=True)]
