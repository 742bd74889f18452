"""Smaller pairs: they stay neighbours, keep what breaks the claim, and are as small as can be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_dp.data.relations import AddRemoveOne, OneQuery, Pair
from pytest_dp.proposers.shrinking import shrink_records
from pytest_dp.running.deadline import OutOfTime

RECORDS = st.lists(st.integers(-50, 50), max_size=8)
HUGE = 10**400


def always(_: Pair) -> bool:
    return True


def test_values_become_simpler() -> None:
    for pair, relation, breaks, smallest in [
        (Pair([93, 0, 12], [0, 12]), AddRemoveOne(), lambda p: max(p.d1) > 60, ([61], [])),
        (Pair([40, 18, 33], [18, 33]), AddRemoveOne(), always, ([18], [])),  # between its numbers
        (Pair([40, 7], [41, 7]), OneQuery(), lambda p: max(p.d1) > 20, ([21, 0], [22, 0])),
        (Pair([HUGE, 0.5, 7], [0.5, 7]), AddRemoveOne(), lambda p: HUGE in p.d1, ([HUGE], [])),
    ]:
        small = shrink_records(pair, relation, breaks)
        assert (small.d1, small.d2) == smallest
        assert not relation.fault(small.d1, small.d2)


@pytest.mark.slow
@given(RECORDS, st.integers(-50, 50), st.sets(st.integers(-50, 50), min_size=1))
def test_what_is_kept_are_neighbours_that_break_the_claim(
    shared: list[int], own: int, gate: set[int]
) -> None:
    relation, pair = AddRemoveOne(), Pair([*shared, own], shared)

    def breaks(tried: Pair) -> bool:
        assert not relation.fault(tried.d1, tried.d2)
        assert len(tried.d1) <= len(pair.d1)
        return bool(gate & set(tried.d1))

    assume(gate & set(pair.d1))
    small = shrink_records(pair, relation, breaks)
    assert gate & set(small.d1)
    assert len(small.d1) <= 2  # the one that the pair differs in, and the one of the gate


def test_inside_a_claim_records_stay_those_that_it_gives() -> None:
    rows = [(at, f"{at}x") for at in range(6)]
    seen: list[Pair] = []
    small = shrink_records(
        Pair(rows, rows[:5]), AddRemoveOne(), lambda p: bool(seen.append(p)), mixes=False
    )
    assert (small.d1, small.d2) == (rows, rows[:5])
    assert {row for pair in seen for row in (*pair.d1, *pair.d2)} <= set(rows)


def test_it_ends_where_there_is_no_more_time() -> None:
    left = 3

    def breaks(pair: Pair) -> bool:
        nonlocal left
        left -= 1
        if not left:
            raise OutOfTime
        return len(pair.d1) >= 3

    small = shrink_records(Pair(list(range(2000)), list(range(1999))), AddRemoveOne(), breaks)
    assert (len(small.d1), left) == (1001, 0)


def test_frames_keep_their_columns_and_types() -> None:
    frame = pd.DataFrame(
        {"city": pd.Categorical(list("abca")), "age": np.array([30, 20, 40, 50], np.int8)}
    )
    pair = Pair(frame, frame.iloc[:3].reset_index(drop=True))
    small = shrink_records(pair, AddRemoveOne(), lambda p: len(p.d1) > len(p.d2))
    assert (len(small.d1), len(small.d2)) == (1, 0)
    assert list(small.d2.dtypes) == list(frame.dtypes)
