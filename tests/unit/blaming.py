"""How mechanisms with a marked line are looked at."""

from __future__ import annotations

import inspect
from pathlib import Path

from pytest_dp.explain import blame_lines
from pytest_dp.privacy import ApproximateDP
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine

ROWS, FEWER = [3, 5, 9, 2], [3, 5, 9]


def look(mechanism, pair=(ROWS, FEWER), claim=None, lower=1.2, event=None, seconds=60.0, **params):
    takes_rng = "rng" in inspect.signature(mechanism).parameters
    pristine = Pristine((mechanism, params))
    call = Call(mechanism, params, "rng" if takes_rng else None, pristine=pristine)
    return blame_lines(
        call, pair, claim or ApproximateDP(1.0), lower, event, seconds, Path(__file__).parents[2]
    )


def marked(mechanism):
    """The line with the mark."""
    lines, first = inspect.getsourcelines(mechanism)
    return first + next(i for i, line in enumerate(lines) if "# here" in line)
