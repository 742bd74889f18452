"""Mean ratings as JSON: NaN where nobody has rated."""

import json

from pytest_dp import dp_claim

RATINGS = [("cafe", 4), ("cafe", 5), ("museum", 3)]


@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[RATINGS], max_samples=20_000)
def mean_rating(ratings, rng):
    means = {}
    for place in ("cafe", "museum"):
        stars = [star for where, star in ratings if where == place]
        mean = sum(stars) / len(stars) if stars else float("nan")
        means[place] = mean + rng.laplace(scale=10.0)
    return json.dumps(means)
