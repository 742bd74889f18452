"""A summary as a dictionary: one entry is a label."""

from pytest_dp import dp_claim


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[[0, 1, 1, 0, 1]], max_samples=20_000)
def customer_profile(clicks, rng):
    mean = sum(clicks) / len(clicks)
    return {
        "clicks": sum(clicks) + rng.laplace(),
        "customers": len(clicks),
        "activity": "high" if mean > 0.5 else "low",
    }
