from pytest_dp.betting.pair_queue import (
    FIRST_PROPOSED,
    PROPOSED_SHARE,
    WON_BY_CHANCE,
    PairQueue,
    PairStatus,
)
from pytest_dp.data.relations import Pair


def pairs(count, start=0):
    return [Pair([k], []) for k in range(start, start + count)]


def queue_of(count, proposed=()):
    waiting = iter(proposed)
    return PairQueue(pairs(count), lambda: next(waiting, None), PairStatus)


def draw(status, size, edge_bound):
    status.drawn += size
    status.edge_bound = edge_bound


def test_the_largest_bound_is_next_once_all_were_looked_at():
    queue = queue_of(3)
    for bound in (0.1, 0.3, 0.2):
        draw(queue.pick(), 12, bound)
    assert queue.pick() is queue.seen[1]
    draw(queue.seen[1], 12, 0.15)
    assert queue.pick() is queue.seen[2]
    assert queue.drawn == 48


def test_refused_pairs_are_never_drawn_again():
    queue = queue_of(2)
    first = queue.pick()
    first.refused = True
    second = queue.pick()
    second.refused = True
    assert (second.pair.d1, queue.pick()) == ([1], None)


def test_proposed_pairs_get_a_bounded_share():
    queue = queue_of(1, pairs(100, start=1))
    draw(queue.pick(), 40_000, 0.0)
    while (status := queue.pick()) is not queue.seen[0]:
        draw(status, 100, 0.0)
    on_proposed = queue.drawn - 40_000
    assert PROPOSED_SHARE * queue.drawn < on_proposed <= PROPOSED_SHARE * queue.drawn + 100
    small = queue_of(1, pairs(100, start=1))
    draw(small.pick(), 100, 0.0)
    while (status := small.pick()) is not small.seen[0]:
        draw(status, 100, 0.0)
    assert small.drawn - 100 == FIRST_PROPOSED + 100


def test_proposed_pairs_that_win_are_drawn_beyond_their_share():
    queue = queue_of(1, pairs(1, start=1))
    draw(queue.pick(), 100, 0.1)
    winning = queue.pick()
    draw(winning, 5_000, 0.3)
    winning.earned = WON_BY_CHANCE
    assert queue.pick() is winning
    winning.earned = WON_BY_CHANCE / 2
    assert queue.pick() is queue.seen[0]
