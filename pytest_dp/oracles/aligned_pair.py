"""Pairs of inputs whose loss is bounded by an alignment, and what real runs say against it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Outputs
from pytest_dp.oracles.alignment import Alignment, align
from pytest_dp.oracles.checking import Memory, NotAligned
from pytest_dp.oracles.shift_loss import LossBound
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.leaves import as_float
from pytest_dp.outputs.raised import Raised
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import Mode
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.assumptions import same_law, two_samples

REPLAYS_OF_LARGEST = 200
"""Replays of a pair on which the answer moves most, in both directions. With fewer, outputs that
only rare draws lead to differ unseen more often."""
REPLAYS = 20
"""Replays of each of many other pairs. With more, audits of many pairs take longer than a second;
with fewer, what is rare on one of them alone is missed more often."""
REPLAYS_OF_ALL = 200
"""Replays that the pairs of a claim share, but for the largest. With fewer, a branch
that is taken in 1 of 30 runs on one of a few pairs is missed."""
ROUNDING = 1e-9
"""Relative excess over the claim that is rounding of sums of shifts."""
MAX_COLUMNS = 50
"""Numbers of an output that are compared with real ones. With more, long outputs cost more."""
MAX_OUTPUTS = 4000
"""Real outputs that are compared with those of replays."""


class AboveClaim(CannotInstrument):
    """An alignment was found, whose bound is above the claim."""

    def __init__(self, reason: str, bound: LossBound) -> None:
        super().__init__(reason)
        self.bound = bound


@dataclass(frozen=True)
class AlignedPair:
    """A pair whose loss is at most that of a shift of its draws."""

    alignment: Alignment
    mode: Mode = "aligned"
    by_rounding: bool = False

    @property
    def basis(self) -> str:
        return "draws aligned"

    @property
    def mu(self) -> float | None:
        bound = self.alignment.bound
        return None if bound.pure or bound.rare else bound.mu

    @property
    def checked(self) -> int:
        return MAX_OUTPUTS

    def parameter_of(self, guarantee: Guarantee) -> float:
        """Return a bound on the parameter of a guarantee; raises CannotInstrument if unknown."""
        return self.alignment.bound.parameter_of(guarantee)

    def excesses(self, guarantee: Guarantee) -> Iterator[Any]:  # noqa: ARG002
        """Return nothing: an alignment shows no set of outputs that breaks a claim."""
        return iter(())

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """Return evidence that real runs and replays have different outputs.

        The logarithm of an e-value, by two-sample tests of the structure and of each number, which
        are corrected for how many there are.
        """
        replayed = self.alignment.outputs[side]
        if len(replayed) < 2 or len(outputs) < 2:
            return 0.0
        p_values = list(_p_values(replayed, list(outputs)))
        p = min(1.0, len(p_values) * min(p_values))
        return -0.5 * math.log(max(p, 1e-300)) - math.log(2)


def replays_of_each(pairs: int) -> int:
    """Return how many replays each of so many pairs gets, but for the largest."""
    return max(REPLAYS, min(REPLAYS_OF_LARGEST, REPLAYS_OF_ALL // max(pairs, 1)))


def aligned_pair(
    call: Call,
    inputs: tuple[Any, Any],
    guarantee: Guarantee,
    replays: int,
    deadline: Deadline,
    memory: Memory | None = None,
) -> AlignedPair:
    """Return the pair with a bound on its loss that is within the claim.

    Of a vectorised mechanism, calls of one row are replayed (see `rows`). `memory` is what the
    alignments of several pairs of one mechanism share.

    Raises CannotInstrument if there is none, which is `AboveClaim` if there is one with a larger
    bound, and OutOfTime.
    """

    def is_within(bound: LossBound) -> bool:
        try:
            return bound.parameter_of(guarantee) <= guarantee.claimed * (1 + ROUNDING)
        except CannotInstrument:
            return False

    try:
        found = align(call, inputs, is_within, replays, deadline, memory)
    except NotAligned as reason:
        raise CannotInstrument(f"not aligned: {reason}") from None
    value = found.bound.parameter_of(guarantee)
    if not is_within(found.bound):
        bound = guarantee.equal(f"{value:.3g}")
        said = f"an alignment bounds the loss by {bound} only, above the claim"
        raise AboveClaim(said, found.bound)
    return AlignedPair(found)


def _p_values(replayed: Sequence[Any], real: Sequence[Any]) -> Iterator[float]:
    (ours, our_columns), (theirs, their_columns) = _read(replayed), _read(real)
    lengths = {*ours, *theirs}
    for length in lengths if len(lengths) > 1 else ():
        yield two_samples((ours[length], theirs[length]), (len(replayed), len(real)))
    for key in list(our_columns)[:MAX_COLUMNS]:
        one, other = np.array(our_columns[key]), np.array(their_columns.get(key, []))
        if len(one) > 1 and len(other) > 1:
            yield same_law(one, other)
    yield 1.0


def _read(outputs: Sequence[Any]) -> tuple[Counter[int], dict[Hashable, list[float]]]:
    """Return how many outputs have how many leaves, and the numbers at each place of these."""
    plain = [f"raises {o.kind}" if isinstance(o, Raised) else o for o in outputs]
    leaves, _, offsets, *_ = flatten(plain, set(map(type, plain)))
    lengths: Counter[int] = Counter()
    columns: dict[Hashable, list[float]] = {}
    for start, end in pairwise(offsets.tolist()):
        own = leaves[start:end]
        lengths[len(own)] += 1
        for place, leaf in enumerate(own):
            if isinstance(leaf, int | float | np.number) and math.isfinite(as_float(leaf)):
                columns.setdefault((len(own), place), []).append(as_float(leaf))
    return lengths, columns
