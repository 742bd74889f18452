"""The shop's weekly figure: average spending, from the table of all orders."""

import numpy as np
import pandas as pd

from pytest_dp import dp_claim

COLUMNS = [f"feature_{i}" for i in range(17)]


def orders(rows=5_000):
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.normal(size=(rows, 17)).round(3), columns=COLUMNS)
    table.insert(3, "city", rng.choice(["oslo", "rome", "lima"], rows))
    table.insert(9, "spent", rng.uniform(0, 50, rows).round(2))
    table["age"] = rng.integers(18, 90, rows)
    return table


def one_large_order():
    table = orders()
    other = table.copy()
    other.loc[3_217] = other.loc[12]
    other.loc[3_217, "spent"] = 4_999.0
    return [(table, other)]


@dp_claim(eps=1.0, neighbors="replace_one", pairs=one_large_order, max_samples=5_000)
def average_basket(orders, rng):
    spent = orders["spent"]
    total = spent.sum()
    return total / len(spent) + rng.laplace(scale=50 / len(spent))
