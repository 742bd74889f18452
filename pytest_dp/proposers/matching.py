"""Texts that regular expressions in a mechanism's code match."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

from hypothesis import errors
from hypothesis import strategies as st

from pytest_dp.pairs.drawing import draws
from pytest_dp.proposers.constants import reachable_patterns

MAX_PATTERNS = 20
"""Regular expressions that are sampled."""
SAMPLES = 12
"""Texts of each that are drawn: a strategy of texts may not allow the letters of all."""
_PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)


def matching_texts(mechanism: Any, params: dict[str, Any], seed: int) -> list[str]:
    """Return a few texts that match each regular expression, the shortest first."""
    found: list[str] = []
    for pattern in islice(dict.fromkeys(reachable_patterns(mechanism, params)), MAX_PATTERNS):
        try:
            strategy = st.from_regex(pattern, fullmatch=True, alphabet=_PRINTABLE)
            drawn = [one.value for one in islice(draws(strategy, seed), SAMPLES) if one is not None]
        except (re.error, errors.InvalidArgument):
            continue
        found += sorted(dict.fromkeys(drawn), key=len)
    return found
