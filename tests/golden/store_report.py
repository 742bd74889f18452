"""A nested report: stores, and their departments."""

from pytest_dp import dp_claim

SALES = [
    {"store": "north", "items": {"food": 2, "toys": 1}},
    {"store": "north", "items": {"food": 1}},
    {"store": "south", "items": {"toys": 3}},
]


@dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[SALES], max_samples=20_000)
def store_report(sales, rng):
    stores = []
    for name in ("north", "south"):
        here = [sale["items"] for sale in sales if sale["store"] == name]
        toys = sum(min(items.get("toys", 0), 3) for items in here)
        stores.append(
            {
                "store": name,
                "departments": {
                    "food": {"sales": len(here) + float(rng.laplace(scale=4.0))},
                    "toys": {"sales": toys + float(rng.laplace(scale=1.0))},
                },
            }
        )
    return {"stores": stores, "currency": "EUR"}
