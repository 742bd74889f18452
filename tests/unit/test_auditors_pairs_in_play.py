"""Which pairs of inputs an audit looks at, and in which order."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_dp.auditors import pairs_in_play, sequential
from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.auditors.session import begin_session
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.data.relations import Pair
from pytest_dp.pairs import make_pair_source
from pytest_dp.pairs.sources import PairSource
from pytest_dp.privacy import ApproximateDP
from pytest_dp.running.calling import prepare


class Listed:
    """Proposes each of some batches of pairs."""

    def __init__(self, *batches, name="others"):
        self.batches, self.name = list(batches), name

    def propose(self):
        return self.batches.pop(0) if self.batches else []


def pair(number):
    return Pair([number], [])


def looked_at(queue, most):
    """The pairs of inputs that are looked at, in order."""
    while len(queue.seen) < most and queue.pick_new_pair() is not None:
        pass
    return [state.pair for state in queue.seen]


def test_urgent_pairs_come_before_those_of_the_claim_and_these_before_others():
    given, moves, other = [pair(number) for number in range(4)], pair(10), pair(11)
    source = PairSource(given, [Listed([other]), Listed([moves], name="movement")])
    queue = ClaimPairs(source, ApproximateDP(1.0, 0.0), given, urgent=[given[2], moves])
    assert looked_at(queue, 2) == [given[2], moves]
    assert not queue.is_searched
    assert looked_at(queue, 9) == [given[2], moves, given[0], given[1], given[3], other]
    assert queue.all_seen
    assert queue.is_searched


def test_urgent_pairs_apart_are_kept_for_a_second_audit():
    given, apart, inside = [pair(0)], pair(10), pair(11)
    source, claim = (
        PairSource(given, [Listed([apart, inside], name="movement")]),
        ApproximateDP(1.0, 0.0),
    )
    urgent = {"is_apart": lambda pair: pair is apart, "urgent": [apart, inside]}
    queue = ClaimPairs(source, claim, given, **urgent)
    assert looked_at(queue, 9) == [inside, given[0]]
    assert queue.left_out == [apart]


@pytest.mark.parametrize("given", [[pair(0)], []], ids=["of the claim", "outside of it"])
def test_only_pairs_of_the_claim_may_not_all_raise(monkeypatch, given):
    checked = []
    monkeypatch.setattr(pairs_in_play, "_skip_rejected_input", lambda *_: None)
    monkeypatch.setattr(pairs_in_play, "set_target", lambda *_: None)
    monkeypatch.setattr(pairs_in_play, "raise_if_nothing_returned", lambda *_: checked.append(1))
    queue = ClaimPairs(PairSource([pair(0)]), ApproximateDP(1.0), given, waiting=[pair(1)])
    promise = SimpleNamespace(inputs=None)
    session = SimpleNamespace(
        sampler=None, settings=None, claim=SimpleNamespace(promise=promise), pairs=[pair(0)]
    )
    pairs_in_play.judge_first_outputs(session, queue, queue.pick_new_pair())
    assert bool(checked) == bool(given)


def test_proposers_take_turns_and_are_asked_until_they_have_nothing_left():
    one, other = Listed([pair(1), pair(0).reverse(), pair(2)], [pair(3)]), Listed([pair(4)])
    source = PairSource([pair(0)], [one, other])
    assert [source.propose_pair() for _ in range(5)] == [pair(1), pair(4), pair(2), pair(3), None]
    assert source.is_exhausted


def gated(records, rng):
    return len(records) + rng.laplace(scale=0.25 if 7 in records else 1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("numbers", "verdict"), [(range(1, 8), "violated"), (range(1_000, 2_000), "no violation")]
)
def test_pairs_that_join_late_are_bet_on_and_have_a_share_of_an_audit(numbers, verdict):
    (claim,) = expand({"eps": 1.0, "pairs": [([0], [])]})
    source = PairSource(
        make_pair_source(claim, 1, "pairs=...").given, [Listed(*[[pair(n)] for n in numbers])]
    )
    settings = Settings(seed=3, jobs=1).over(claim.effort)
    session = begin_session(claim, prepare(gated, claim.arguments), source, settings, "gated")
    assert sequential.audit(session).result.verdict == verdict
    assert 5 < len(session.source.pairs) < 200  # a twentieth of the runs, by a dozen each
