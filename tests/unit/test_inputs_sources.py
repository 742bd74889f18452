"""Pairs that are given, and pairs that are proposed while an audit goes on."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_dp.auditors import sequential
from pytest_dp.auditors.session import Session, begin_session
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.pairs import Pair, pairs_of
from pytest_dp.pairs.sources import PairSource
from pytest_dp.running.calling import prepare


class Listed:
    """Proposes each of some batches of pairs."""

    def __init__(self, *batches: list[Pair]) -> None:
        self.batches = list(batches)

    def propose(self) -> list[Pair]:
        return self.batches.pop(0) if self.batches else []


def pair(n: int) -> Pair:
    return Pair([n], [])


def test_proposers_take_turns_and_are_asked_until_they_have_nothing_left() -> None:
    one, other = Listed([pair(1), pair(2)], [pair(3)]), Listed([pair(4)])
    source = PairSource([pair(0)], [one, other])
    got = [source.more() for _ in range(5)]
    assert got == [pair(1), pair(4), pair(2), pair(3), None]
    assert source.exhausted
    assert source.pairs == [pair(0), pair(1), pair(4), pair(2), pair(3)]


def test_what_is_known_is_not_proposed_again_not_even_the_other_way_round() -> None:
    source = PairSource([pair(0)], [Listed([pair(0).reversed(), pair(1), pair(1)])])
    assert source.more() == pair(1)
    assert source.more() is None


def gated(records: list[int], rng: np.random.Generator) -> float:
    scale = 0.25 if 7 in records else 1.0
    return len(records) + rng.laplace(scale=scale)


def audited(proposer: Listed, **keywords: object) -> tuple[Session, str]:
    (claim,) = expand({"eps": 1.0, "pairs": [([0], [])], **keywords})
    source = PairSource(pairs_of(claim.promise), [proposer])
    settings = Settings(seed=3, jobs=1).over(claim.effort)
    session = begin_session(claim, prepare(gated, claim.arguments), source, settings, "gated")
    return session, sequential.audit(session).result.verdict


@pytest.mark.slow
def test_pairs_that_join_late_are_bet_on() -> None:
    proposer = Listed([pair(n) for n in range(1, 7)], [pair(7)])
    session, verdict = audited(proposer)
    assert verdict == "violated"
    assert session.source.pairs[-1] == pair(7)


@pytest.mark.slow
def test_an_audit_ends_at_its_margin_once_proposals_have_had_their_share() -> None:
    proposer = Listed(*[[pair(n)] for n in range(1000, 2000)])
    session, verdict = audited(proposer)
    assert verdict == "no violation"
    assert 5 < len(session.source.pairs) < 200  # a twentieth of the runs, by a dozen each


def test_proposers_of_a_name_are_asked_before_their_turn() -> None:
    one, other = Listed([pair(1), pair(2)]), Listed([pair(3), pair(4)])
    other.name = "other"
    source = PairSource([pair(0)], [one, other])
    assert [source.more("other") for _ in range(3)] == [pair(3), pair(4), None]
    assert [source.more() for _ in range(3)] == [pair(1), pair(2), None]
