"""Mechanisms of diffprivlib and OpenDP on datasets that strategies draw, and what becomes of them.

diffprivlib 0.6.6 gives no noise to a coefficient of `LinearRegression` if the lower bound of the
data is 0 (its issue 105): it is found from bounds alone. Its `count_nonzero` takes the number of
records for public, and returns no more: so it keeps no claim on added records. The others keep
their claims.
"""

from __future__ import annotations

import opendp.prelude as dp
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.tools import count_nonzero, histogram
from hypothesis import strategies as st

from benchmarks import diffprivlib_bug
from pytest_dp.strategies import categories, numbers, tables

dp.enable_features("contrib")
POINTS = st.lists(st.tuples(numbers(0, 10), numbers(0, 10)), min_size=2, max_size=2)
PEOPLE = {"age": numbers(0, 99), "city": categories(["Basel", "Bern", "Zug"])}


def slope(points, rng):
    """Of a line through the origin."""
    return diffprivlib_bug.slope(points, 1.0, rng)


def elders(frame):
    """Counted by diffprivlib."""
    return count_nonzero(frame["age"] >= 65, epsilon=1.0, accountant=BudgetAccountant())


def ages(frame):
    """A histogram by diffprivlib."""
    counts, _ = histogram(
        frame["age"].to_numpy(), epsilon=1.0, bins=4, range=(0, 99), accountant=BudgetAccountant()
    )
    return counts.tolist()


_sum = (
    dp.t.make_clamp(
        dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance(), bounds=(0, 99)
    )
    >> dp.t.then_sum()
    >> dp.m.then_laplace(scale=99.0)
)
_count = dp.t.make_count(
    dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
) >> dp.m.then_laplace(scale=1.0)


def total_age(frame):
    """Summed by OpenDP."""
    return _sum(frame["age"].to_list())


def people(frame):
    """Counted by OpenDP."""
    return _count(frame["city"].to_list())


def _claim(inputs, neighbors="add_remove_one"):
    return {"eps": 1.0, "inputs": inputs, "neighbors": neighbors}


_pandas, _polars = (tables(PEOPLE, kind=kind, max_size=20) for kind in ("pandas", "polars"))
LIBRARIES = {
    "diffprivlib LinearRegression": (slope, _claim(POINTS, "replace_one"), "violated"),
    "diffprivlib count_nonzero, replaced": (elders, _claim(_pandas, "replace_one"), "no violation"),
    "diffprivlib count_nonzero, added": (elders, _claim(_pandas), "violated"),
    "diffprivlib histogram, polars": (ages, _claim(_polars), "no violation"),
    "OpenDP sum, pandas": (total_age, _claim(_pandas), "no violation"),
    "OpenDP count, polars": (people, _claim(_polars), "no violation"),
}
