"""How far the noiseless answer moves on pairs of inputs: an estimate, which decides no verdict."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

from pytest_dp.data.relations import Pair

WANTED_PAIRS = 1_000
"""Pairs of small inputs that are screened. With fewer, a pair that loses more than the others is
missed more often; each takes one run to four."""
LEAST_PAIRS = 250
"""Pairs of large inputs that are screened, whose runs take longer. With more, an audit of a frame
of some hundred rows takes seconds."""
SCREENED_RECORDS = 100_000
"""Records in all pairs that are screened. With more, the same."""


def wanted_pairs(records: int) -> int:
    """Return how many pairs of inputs of so many records are screened."""
    return max(LEAST_PAIRS, min(WANTED_PAIRS, SCREENED_RECORDS // max(records, 1)))


@dataclass(frozen=True, slots=True)
class Movement:
    """How far apart the noiseless answers of two inputs are."""

    loss: float
    """Estimated loss: by Laplace noise the sum of moves over scales, by Gaussian noise the root of
    their squares. Infinite where something differs that no noise covers."""
    answer: float = 0.0
    """The largest difference of a number of the output."""
    scale: float = 0.0
    """Of the noise of that number, if it is one draw on the whole line; 0 where it is not."""
    kind: Hashable = ()
    """What moves: equal for pairs that show the same."""

    @property
    def order(self) -> tuple[float, float]:
        """The key by which larger movements come first when sorted downwards.

        Losses that differ by rounding are equal; among infinite ones the answer counts.
        """
        return float(f"{self.loss:.9g}"), self.answer if math.isinf(self.loss) else 0.0


@dataclass(frozen=True, slots=True)
class Moved:
    """A pair, and how far the noiseless answer moves on it."""

    pair: Pair
    movement: Movement


@dataclass(frozen=True, slots=True)
class Screened:
    """The results of a screening of pairs."""

    screened: int = 0
    """Pairs inside the claim whose movement was computed."""
    is_all: bool = False
    """Whether these are all pairs that the claim gives."""
    largest: tuple[Moved, ...] = ()
    """Pairs inside the claim, the largest movement first; one of each kind of movement."""
    wanted: int = WANTED_PAIRS
    """Pairs after which enough are screened."""
    urgent: tuple[Pair, ...] = ()
    """Pairs on which the answer moves farther than the claim allows, those inside of it first: they
    are bet on before all others."""
    note: str = ""
    """Why no pair was screened, or no more; empty where nothing stopped it."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs, the largest movement first."""
        return tuple(moved.pair for moved in self.largest)

    @property
    def movements(self) -> tuple[Movement, ...]:
        """Their movements."""
        return tuple(moved.movement for moved in self.largest)

    @property
    def is_enough(self) -> bool:
        """True if a pass may rest on the loss of the largest of these pairs."""
        return self.is_all or self.screened >= self.wanted
