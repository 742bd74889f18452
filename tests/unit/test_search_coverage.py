"""Which instructions a run takes, and that whoever traces already is left alone."""

from __future__ import annotations

import gc
import json
import sys
import threading

import pytest

from pytest_dp.proposers.coverage import covered


def gated(x):
    return 1 if x > 6 and x % 2 else 0


class Finalized:
    def __del__(self):
        gated(8)


def steps_of(x):
    steps = set()
    with covered(steps) as watched:
        gated(x)
        json.dumps([x])
    return steps if watched else None


def test_ways_differ_by_branches_on_one_line():
    ways = [steps_of(x) for x in (3, 8, 9)]
    assert len(set(map(frozenset, ways))) == 3
    assert steps_of(11) == ways[2]


def test_only_code_of_the_project_is_followed():
    assert {file for file, _, _ in steps_of(1)} == {__file__}


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_that_is_collected_meanwhile_is_no_part_of_it(collects):
    steps, kept = set(), [Finalized() for _ in range(2000)]
    for garbage in kept:
        garbage.itself = garbage
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with covered(steps):
            kept.clear()
            kept.extend(map(list, [()] * 2000))  # as many as let Python collect
            gated(3)
        assert gc.isenabled() is collects
    finally:
        (gc.enable if before else gc.disable)()
    assert steps == steps_of(3)


def test_other_threads_are_no_part_of_it():
    steps = set()
    with covered(steps):
        other = threading.Thread(target=gated, args=(8,))
        other.start()
        other.join()
        gated(3)
    assert steps == steps_of(3)


@pytest.mark.skipif(hasattr(sys, "monitoring"), reason="monitoring has room for several")
def test_another_tracer_is_left_alone():
    events = []

    def other(frame, event, argument):
        events.append(event)
        return other

    before = sys.gettrace()
    sys.settrace(other)
    try:
        steps = steps_of(1)
        assert sys.gettrace() is other
    finally:
        sys.settrace(before)
    assert steps is None
    assert "line" in events


def test_nothing_is_left_behind():
    before = sys.gettrace()
    with pytest.raises(KeyError), covered(set()):
        raise KeyError
    assert sys.gettrace() is before
    if hasattr(sys, "monitoring"):
        assert all(sys.monitoring.get_tool(tool) is None for tool in (3, 4))
