"""Local privacy: what a device sends of its one answer."""

from pytest_dp import dp_claim, values

DISEASES = ["none", "flu", "asthma"]


@dp_claim(eps=1.0, inputs=values(DISEASES), max_samples=20_000)
def device_ping(disease, rng):
    answer = DISEASES[rng.integers(3)]
    if rng.random() < 0.75:
        answer = disease
    return {"version": 3, "disease": answer}
