"""Hours worked in a week: the noise has no decimals."""

from pytest_dp import dp_claim


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[[38.5, 40.0, 12.25]], max_samples=20_000)
def total_hours(hours, rng):
    total = sum(min(max(h, 0.0), 60.0) for h in hours)
    noise = rng.laplace(scale=60.0)
    return total + round(noise)
