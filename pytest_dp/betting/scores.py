"""Scores of outputs by a posterior, and attacks that go by them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats
from pytest_dp.betting.models import Posterior
from pytest_dp.outputs.table import Table, tabulate


def scores(model: Posterior, table: Table) -> Floats:
    """Return the log odds, rounded so that equal outputs score the same in batches of any size."""
    rounded: Floats = np.round(model.log_odds(table), 9) + 0.0
    return rounded


@dataclass(frozen=True, slots=True)
class Attack:
    """A randomised event: outputs that score above a threshold, and a share of those right at it.

    ``attack(output)`` is the probability that the attack includes an output. The score is the
    learned log odds of the input that it points to against the other.
    """

    model: Posterior = field(repr=False)
    sign: int
    """1 if it includes outputs that point to D, -1 if those that point to D'."""
    threshold: float
    """In nats: ``sign`` times the log odds."""
    tie: float = 0.0
    """Probability with which outputs at the threshold are included."""
    digits: int = field(default=4, repr=False, compare=False)
    """With which the threshold reads apart from the scores that are shown beside it."""
    told_by: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """The quantities that add most to the score, with typical values inside and outside."""

    def hits(self, table: Table) -> tuple[Bools, Bools]:
        """Return which outputs score above the threshold, and which right at it."""
        signed = self.scores(table)
        return signed > self.threshold, signed == self.threshold

    def scores(self, table: Table) -> Floats:
        """Return the score of each output, in nats."""
        return self.sign * scores(self.model, table)

    def score(self, output: Any) -> float:
        """Return the score of one output, in nats."""
        return float(self.scores(tabulate([output]))[0])

    def mask(self, table: Table) -> Bools:
        """Return which outputs score above the threshold."""
        return self.hits(table)[0]

    def __call__(self, output: Any) -> float:
        above, at = self.hits(tabulate([output]))
        return float(above[0]) or self.tie * float(at[0])

    @property
    def said(self) -> str:
        """The event as the subject of a sentence."""
        return f"outputs with a score above {self.threshold:.{self.digits}g}"

    def __str__(self) -> str:
        share = f", and a random {self.tie:.0%} of those at it" if self.tie else ""
        return f"score(output) > {self.threshold:.{self.digits}g}{share}"
