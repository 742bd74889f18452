"""A sentence for the daily mail."""

from pytest_dp import dp_claim

TICKETS = ["login fails", "refund", "login fails", "typo"]


@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[TICKETS], max_samples=20_000)
def status_mail(tickets, rng):
    noisy = max(0, round(len(tickets) + rng.laplace(scale=1.0)))
    if "refund" in tickets:
        return f"Today about {noisy} tickets came in, refunds among them."
    return f"Today about {noisy} tickets came in."
