"""Which hours were busy: the sparse vector technique, without noise on its queries."""

from pytest_dp import dp_claim, queries


@dp_claim(eps=1.0, inputs=queries(5), max_samples=20_000)
def busy_hours(visits, rng):
    threshold = 1 + rng.laplace(scale=2.0)
    busy = []
    for count in visits:
        busy.append(bool(count >= threshold))
        if sum(busy) == 2:
            break
    return busy
