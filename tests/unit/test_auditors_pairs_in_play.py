"""Which pairs of inputs an audit looks at first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from pytest_dp import audit
from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.data.relations import Pair
from pytest_dp.pairs.sources import PairSource
from pytest_dp.privacy import ApproximateDP


@dataclass
class Listed:
    pairs: list[Pair] = field(default_factory=list)
    name: str = "others"

    def propose(self):
        pairs, self.pairs = self.pairs, []
        return pairs


def looked_at(queue, most):
    """The pairs of inputs that are looked at, in order."""
    while len(queue.seen) < most and queue.newcomer() is not None:
        pass
    return [state.pair for state in queue.seen]


def test_urgent_pairs_come_before_those_of_the_claim_and_these_before_others():
    given = [Pair([number], []) for number in range(4)]
    moves, other = Pair([10], []), Pair([11], [])
    proposers = [Listed([other]), Listed([moves], "movement")]
    source = PairSource(given, proposers)
    queue = ClaimPairs(source, ApproximateDP(1.0, 0.0), given, urgent=[given[2], moves])
    assert looked_at(queue, 2) == [given[2], moves]
    assert [state.pair for state in queue.seen_given] == [given[2]]
    assert not queue.is_searched
    order = [given[2], moves, given[0], given[1], given[3], other]
    assert looked_at(queue, 9) == order
    assert queue.all_seen
    assert queue.is_searched


def test_urgent_pairs_apart_are_kept_for_a_second_audit():
    given, apart, inside = [Pair([0], [])], Pair([10], []), Pair([11], [])
    source = PairSource(given, [Listed([apart, inside], "movement")])
    queue = ClaimPairs(
        source,
        ApproximateDP(1.0, 0.0),
        given,
        is_apart=lambda pair: pair is apart,
        urgent=[apart, inside],
    )
    assert looked_at(queue, 9) == [inside, given[0]]
    assert queue.left_out == [apart]


def group_sums(frame, rng):
    sums = frame["pay"].fillna(0.0).groupby(frame["team"]).sum()
    return [sums.get(team, 0.0) + rng.laplace(scale=100.0) for team in ("a", "b", "c")]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_forgotten_clip_is_told_after_few_runs_though_examples_give_many_pairs():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"pay": rng.uniform(0, 100, 40).round(1), "team": rng.choice(["a", "b", "c"], 40)}
    )
    frame.loc[::9, "pay"] = np.nan
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [frame]}
    result = audit(group_sums, **claim, seed=1, n_jobs=1, max_samples=1_500)
    assert result.beyond is not None
