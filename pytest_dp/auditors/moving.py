"""How far one record moves the answer, in a sentence for people."""

from __future__ import annotations

import math

from pytest_dp.privacy import Guarantee
from pytest_dp.results.screened import Screened

MIN_TIMES = 3.0
"""How many times the claim the movement has to be, to be told. Smaller ones are told already by the
line that is blamed, as noise that is a little too small."""


def movement_sentence(screened: Screened, guarantee: Guarantee) -> str:
    """Return how far one record moves the answer, and what the noise covers; empty if unknown.

    It is told of claims of eps and mu, whose noise covers its scale times the claim.
    """
    finite = [moved.movement for moved in screened.largest if moved.movement.loss < math.inf]
    if guarantee.parameter not in ("eps", "mu") or not finite:
        return ""
    largest = finite[0]
    if not largest.scale or largest.loss < MIN_TIMES * guarantee.claimed:
        return ""
    covered = largest.scale * guarantee.claimed
    return (
        f"One record moves the answer by at most {largest.answer:.3g} "
        f"(over {screened.screened:,} pairs); the noise covers {covered:.3g}"
    )
