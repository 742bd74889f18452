"""Whatever a search proposes is what the claim speaks of: neighbours, in data that it allows."""

from __future__ import annotations

import zlib
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pytest_dp import add_remove_one, queries, replace_one
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.data.relations import Pair
from pytest_dp.pairs import resolved, source_of
from pytest_dp.proposers import widened
from pytest_dp.running.calling import prepare

pytestmark = pytest.mark.slow

FRAME = pd.DataFrame(
    {
        "user_id": list("aabccc"),
        "age": np.array([1, 2, 3, 4, 5, 120], dtype=np.int8),
        "city": pd.Categorical(list("xyxxyx"), categories=list("xyz")),
    }
)
CLAIMS = [
    {"neighbors": add_remove_one(unit="user_id", rows=3), "inputs": [FRAME]},
    {"neighbors": replace_one(unit="user_id", rows=3), "inputs": [FRAME]},
    {"neighbors": "replace_special", "inputs": [[3, 1, None, 2]]},
    {"neighbors": "add_remove_one", "inputs": [{3, 1}, {2}]},
    {"neighbors": "add_remove_one", "inputs": [np.array([3, 255], dtype=np.uint8)]},
    {"neighbors": "one_query", "inputs": queries(3)},
]


def scrambled(data: Any, rng: np.random.Generator) -> float:
    """Return an answer that moves farther on some pairs than on others."""
    content = str(data.to_dict("list") if isinstance(data, pd.DataFrame) else data)
    if len(data) == 4:
        content += "4"
    return float(zlib.crc32(content.encode()) % 1_000) + rng.laplace()


def proposed(keywords: dict[str, Any], most: int, seed: int = 5) -> tuple[Any, list[Pair]]:
    (claim,) = expand({"eps": 1.0, **keywords})
    promise = resolved(claim.promise)
    settings = Settings(seed=seed)
    given = source_of(claim, seed, "inputs=...")
    source = widened(given, promise, prepare(scrambled, claim.arguments), settings)
    pairs: list[Pair] = []
    while len(pairs) < most and (pair := source.more()) is not None:
        pairs.append(pair)
    return promise.relation, pairs


@pytest.mark.parametrize("keywords", CLAIMS, ids=lambda k: "-".join(map(str, k.values()))[:40])
def test_it_is_what_the_claim_speaks_of(keywords: dict[str, Any]) -> None:
    found = (proposed(keywords, 60, seed) for seed in range(5, 20))
    relation, pairs = next((relation, pairs) for relation, pairs in found if pairs)
    for pair in pairs:
        assert not relation.fault(pair.d1, pair.d2), pair
        if relation.name == "one_query":
            assert min(*pair.d1, *pair.d2) >= 0, "counts are not negative"
            assert "(the patterns have 0 to 2)" in pair.beyond
        for data in (pair.d1, pair.d2):
            if getattr(relation, "rows", None):
                assert max(Counter(data["user_id"]).values(), default=0) <= 3
            if isinstance(data, pd.DataFrame):
                assert list(data.dtypes) == list(FRAME.dtypes)
