"""What a service sends to its dashboard, as JSON."""

import json

from pytest_dp import dp_claim

EVENTS = [{"kind": "crash"}, {"kind": "start"}, {"kind": "crash"}]


@dp_claim(eps=1.0, neighbors="replace_one", inputs=[EVENTS], max_samples=20_000)
def usage_payload(events, rng):
    crashes = sum(e["kind"] == "crash" for e in events)
    starts = len(events) - crashes
    counts = {
        "crashes": crashes + rng.laplace(scale=0.5),
        "starts": starts + rng.laplace(scale=4.0),
        "sent": "daily",
    }
    return json.dumps(counts)
