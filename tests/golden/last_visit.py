"""The day of the last visit to a clinic, with noise of some days."""

from datetime import date, timedelta

from pytest_dp import dp_claim

VISITS = [date(2024, 3, 1), date(2024, 3, 9), date(2024, 3, 28)]


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[VISITS], max_samples=20_000)
def last_visit(visits, rng):
    last = max(visits)
    return last + timedelta(days=round(rng.laplace(scale=7.0)))
