"""Sales in ten weeks: each has too little noise, and together they tell a shop by its score."""

from pytest_dp import dp_claim

ALL_SHOPS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
LESS_ONE = [3.7, 0.3, 4.7, 0.3, 5.7, 8.3, 2.7, 5.3, 5.7, 2.3]


@dp_claim(eps=1.0, pairs=[(ALL_SHOPS, LESS_ONE)], max_samples=20_000)
def season_shape(sales, rng):
    return [week + float(x) for week, x in zip(sales, rng.laplace(size=10), strict=True)]
