"""Lines of a mechanism that no tried input reached."""

from __future__ import annotations

import functools
import inspect
import logging

import numpy as np
import pytest

from pytest_dp import audit, queries
from pytest_dp.pairs.unreached import LineTracer, find_unreached, lines_in_words


def left_out(function, *inputs, fixed=()):
    """What was not run, as lines counted from that of the definition."""
    tracer = LineTracer()
    with tracer.tracing():
        for data in inputs:
            function(data, np.random.default_rng(0))
    first = inspect.getsourcelines(getattr(function, "func", function))[1]
    places = find_unreached(tracer, fixed)
    return [line - first for _, line in places]


def branch(records, rng):
    scale = 1.0
    if len(records) > 3:
        scale = 0.5
    return len(records) + rng.laplace(scale=scale)


def checked(records, rng):
    if len(records) > 3:
        raise ValueError("too many")
    try:
        return sum(records)
    except TypeError:
        return 0


def with_context(records, rng):
    with np.errstate(all="ignore"):
        total = sum(records)
    assert total < 100
    return total


LOGGER = logging.getLogger(__name__)


def warning(records, rng):
    if len(records) > 3:
        LOGGER.warning("%d records", len(records))
    return len(records) + rng.laplace()


KIND = "laplace"


def by_constant(records, rng):
    if KIND == "gauss":
        return rng.normal()
    return len(records) + rng.laplace()


def by_parameter(records, rng, kind):
    if kind == "gauss":
        return rng.normal()
    return len(records) + rng.laplace()


def test_tells_what_never_ran():
    assert left_out(branch, [1]) == [3]
    assert left_out(branch, [1], [1] * 4) == []


@pytest.mark.parametrize("function", [checked, warning, by_constant, with_context])
def test_errors_logging_and_constants_decide_nothing(function):
    assert left_out(function, [1]) == []


def test_parameters_that_no_input_changes_decide_nothing():
    laplace = functools.partial(by_parameter, kind="laplace")
    assert left_out(laplace, [1]) == [2]
    assert left_out(laplace, [1], fixed=["kind"]) == []


def gated(answers, rng):
    if answers[0] > 1e7 and answers[1] % 7919 == 5:
        return answers[0] + rng.laplace(scale=0.1)
    return answers[0] + rng.laplace(scale=1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("_by_samples")
def test_a_pass_whose_code_did_not_all_run_is_at_most_fair():
    claim = {"eps": 1.0, "neighbors": "one_query", "inputs": queries(3)}
    result = audit(gated, **claim, seed=1, n_jobs=1, search=(), max_samples=20_000)
    line = inspect.getsourcelines(gated)[1] + 2
    assert result.verdict == "no violation"
    assert f"test_sensitivity_unreached.py:{line}" in result.unreached
    assert result.strength in ("fair", "weak")
    assert any("never ran" in note for note in result.notes)


def test_it_is_said_which_lines_to_reach():
    said = "a.py:31, a.py:47 never ran: give inputs that reach this code"
    assert lines_in_words([("src/a.py", 31), ("src/a.py", 47)]) == said
