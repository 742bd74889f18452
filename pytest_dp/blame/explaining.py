"""Explanations of a violation, besides its counterexample: lines that leak, and idle fields."""

from __future__ import annotations

from pytest_dp.blame import blamed
from pytest_dp.blame.idle import idle_fields
from pytest_dp.protocols import Explanation, Violation


def explain(violation: Violation, seconds: float) -> Explanation:
    """Return the lines at which a mechanism leaks, and the fields that change nothing.

    Each of both takes about so many seconds at most.
    """
    call, pair = violation.call, violation.pair
    about = violation.claim, violation.lower, violation.event
    lines = blamed(call, pair.inputs, *about, seconds, violation.root, violation.others)
    return Explanation(lines, idle_fields(call, pair, violation.examples, seconds))
