"""The switch that plays the new betting loop (`pytest_dp.auditing`) in place of `auditors.game`.

Benchmarks and tests ask for it by the environment variable `SWITCH`, to compare both loops. It
takes no part in what users run.
"""

from __future__ import annotations

import os

SWITCH = "PYTEST_DP_NEW_LOOP"
"""The environment variable; any value but the empty one asks for the new loop."""


def is_asked_for() -> bool:
    """Return whether the new loop should be played."""
    return bool(os.environ.get(SWITCH))
