"""Which instructions a run takes, and that whoever traces already is left alone."""

from __future__ import annotations

import json
import sys

import pytest

from pytest_dp.search.tracing import Tracer


def gated(x):
    return 1 if x > 6 and x % 2 else 0


def steps_of(x):
    tracer = Tracer()
    with tracer.tracing():
        gated(x)
        json.dumps([x])
    return tracer.steps


def test_ways_differ_by_branches_on_one_line():
    ways = [steps_of(x) for x in (3, 8, 9)]
    assert len(set(map(frozenset, ways))) == 3
    assert steps_of(11) == ways[2]


def test_only_code_of_the_project_is_followed():
    assert {file for file, _, _ in steps_of(1)} == {__file__}


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
    with pytest.raises(KeyError), Tracer().tracing():
        raise KeyError
    assert sys.gettrace() is before
    if hasattr(sys, "monitoring"):
        assert all(sys.monitoring.get_tool(tool) is None for tool in (3, 4))
