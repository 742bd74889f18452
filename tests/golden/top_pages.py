"""Noisy visits of each page, the most visited first."""

from collections import Counter

from pytest_dp import dp_claim

VIEWS = ["home", "home", "help"]


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[VIEWS], max_samples=20_000)
def top_pages(views, rng):
    counts = Counter({"home": 0, "help": 0, "jobs": 0})
    counts.update(views)
    return {page: n + rng.laplace(scale=4.0) for page, n in counts.most_common()}
