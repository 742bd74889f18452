"""Which pairs of inputs an audit looks at first."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from pytest_dp import audit
from pytest_dp.auditors.bandit import Bandit
from pytest_dp.auditors.pool import Pool
from pytest_dp.datasets.relations import Pair
from pytest_dp.inputs.sources import PairSource
from pytest_dp.privacy import ApproximateDP


@dataclass
class Listed:
    pairs: list[Pair] = field(default_factory=list)
    name: str = "others"

    def propose(self, past):
        pairs, self.pairs = self.pairs, []
        return pairs


def looked_at(bandit, most):
    """The pairs of inputs that are looked at, in order."""
    while len(bandit.seen) < most and (state := bandit.newcomer()) is not None:
        bandit.seen.append(state)
    return [state.pair for state in bandit.seen]


def test_urgent_pairs_come_before_those_of_the_claim_and_these_before_others():
    given = [Pair([number], []) for number in range(4)]
    moves, other = Pair([10], []), Pair([11], [])
    proposers = [Listed([other]), Listed([moves], "movement")]
    bandit = Bandit(
        PairSource(given, proposers), Pool(), ApproximateDP(1.0, 0.0), [given[2], moves]
    )
    assert bandit.has_urgent
    assert looked_at(bandit, 2) == [given[2], moves]
    assert not bandit.has_urgent
    assert [state.pair for state in bandit.seen_given] == [given[2]]
    order = [given[2], moves, given[0], given[1], given[3], other]
    assert looked_at(bandit, 9) == order
    assert bandit.all_seen


def test_without_urgent_pairs_those_of_the_claim_come_in_their_order():
    given = [Pair([number], []) for number in range(3)]
    bandit = Bandit(PairSource(given), Pool(), ApproximateDP(1.0, 0.0))
    assert looked_at(bandit, 9) == given


def group_sums(frame, rng):
    sums = frame["pay"].fillna(0.0).groupby(frame["team"]).sum()
    return [sums.get(team, 0.0) + rng.laplace(scale=100.0) for team in ("a", "b", "c")]


def test_a_forgotten_clip_is_told_after_few_runs_though_examples_give_many_pairs():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"pay": rng.uniform(0, 100, 40).round(1), "team": rng.choice(["a", "b", "c"], 40)}
    )
    frame.loc[::9, "pay"] = np.nan
    claim = {"eps": 1.0, "neighbors": "add_remove_one", "inputs": [frame]}
    result = audit(group_sums, **claim, seed=1, n_jobs=1, max_samples=1_500)
    assert result.beyond is not None
