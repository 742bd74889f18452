"""How methods that search and then test spend the samples of their search."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from pytest_dp import audit
from pytest_dp.methods.searching import FIRST_LOOK, search_by_halving
from pytest_dp.running.deadline import Deadline, OutOfTime


@dataclass
class State:
    """A pair of inputs, of which only the number of outputs is known."""

    number: int
    drawn: int = 0

    @property
    def outputs(self):
        return SimpleNamespace(pairs=self.drawn)


@dataclass
class Search:
    """A search that counts what is drawn; time is up after `most` pairs of outputs."""

    number: int
    most: float = float("inf")
    is_decided: bool = False
    states: list[State] = field(default_factory=list)

    def __post_init__(self):
        self.pairs = SimpleNamespace(claimed=self.number, accepted=self.states)

    @property
    def seen(self):
        return [state for state in self.states if state.drawn]

    @property
    def drawn(self):
        return sum(state.drawn for state in self.states)

    def begin(self, most, size, deadline):
        for number in range(most):
            self.states.append(State(number))
            self.draw(self.states[-1], size, deadline)
        return list(self.states)

    def draw(self, state, total, deadline):
        if self.drawn + total - state.drawn > self.most:
            raise OutOfTime("")
        state.drawn = max(state.drawn, total)


def found_on(states, worst):
    """What a method finds that knows which pair is the worst, the next one to it being better."""
    ranked = sorted(states, key=lambda state: abs(state.number - worst))
    return [SimpleNamespace(state=state) for state in ranked]


def searched(search, budget, worst=0, first=float("inf")):
    found = search_by_halving(
        search, budget, Deadline(60), lambda states: found_on(states, worst), first
    )
    return found[0].state.number


@pytest.mark.parametrize("number", [1, 2, 3, 16, 100, 500])
@pytest.mark.parametrize("budget", [40_000, 1_000_000])
@pytest.mark.parametrize("first", [500, float("inf")])
def test_the_worst_pair_is_left_within_the_budget(number, budget, first):
    search = Search(number)
    worst = number // 2
    assert searched(search, budget, worst, first) == worst
    runs = [2 * state.drawn for state in search.states]
    assert 0.85 * budget <= sum(runs) <= budget
    assert min(runs) >= 2 * FIRST_LOOK
    assert max(runs) == runs[worst]
    assert runs[worst] >= budget / (number.bit_length() + 1)


def test_of_more_pairs_than_there_are_samples_for_the_first_are_searched():
    search = Search(1_000)
    searched(search, 8_000)
    assert len(search.seen) == 100


def test_what_decides_early_ends_the_search():
    search = Search(4)

    def judge(states):
        search.is_decided = search.drawn >= 4 * 500
        return found_on(states, 2)

    found = search_by_halving(search, 1_000_000, Deadline(60), judge, first=500)
    assert found[0].state.number == 2
    assert [state.drawn for state in search.states] == [500] * 4


def test_where_time_runs_out_what_was_drawn_is_judged():
    search = Search(8, most=14_000)
    assert searched(search, 100_000, worst=1) == 1
    assert 12_000 < search.drawn <= 14_000
    with pytest.raises(OutOfTime):
        searched(Search(8, most=10), 100_000)


@pytest.mark.parametrize("method", ["statdp", "dpsniper"])
def test_pairs_with_an_input_that_is_rejected_are_passed_over(method):
    def total(records, rng):
        if not records:
            raise ValueError("no records")
        return len(records) + rng.laplace()

    given = {"inputs": [[1], [1, 2]], "neighbors": "add_remove_one", "n_jobs": 1}
    result = audit(total, eps=1.0, **given, max_samples=4_000, seed=1, method=method)
    assert not result.violated
    assert any("skipped" in note for note in result.notes)
