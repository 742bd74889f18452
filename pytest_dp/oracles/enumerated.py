"""Losses on pairs of inputs whose outcomes are enumerated, with their probabilities.

All combinations of the values of independent parts of an output, such as bits that are flipped one
by one, may be too many to enumerate, but not the values of each part (`Factors`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints, Outputs
from pytest_dp.basics.reprs import plural
from pytest_dp.oracles.branching import Weight
from pytest_dp.oracles.deferred import is_draw
from pytest_dp.outputs.leaves import opaque_types
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import hashes, tabulate
from pytest_dp.privacy import HockeyStick
from pytest_dp.privacy.regions import LARGEST
from pytest_dp.results.outcome import Mode
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.count_tests import log_e_value

ROUNDING = 1e-9
"""Relative error after a few operations. Smaller: rounding makes a difference."""
FLOAT_ERROR = 2.0**-50
"""Relative error of one operation or two. Smaller: rounding may make a bound too small."""

MAX_COMBINATIONS = 20_000
"""Of the values of parts that differ between two inputs. With more, comparisons take seconds."""
SAME = 1e-12
"""Relative difference of probabilities that is rounding."""
DEPENDENT = "parts of its output depend on each other"
TOO_MANY = "too many paths"
NO_EQUALITY = "output without value equality"

CLEARLY_GROWS = 1.05
"""Derived: between these probabilities, the loss of rounded Gaussian noise grows by a quarter; that
of exponential tails is known to a part in ten thousand."""


@dataclass(frozen=True)
class Distribution:
    """The outcomes of a mechanism on an input, and bounds on their probabilities."""

    outcomes: tuple[Any, ...]
    """One of each set of equal outputs."""
    marks: Ints
    """Their hashes (`pytest_dp.outputs.table`), which are those of equal outputs."""
    weights: tuple[Weight, ...]
    """Lower bounds on their probabilities."""
    residual: float
    """The probability of outputs that were not enumerated."""
    rounding: float
    """Relative error of any of the weights; 0 where all are fractions."""

    @cached_property
    def probabilities(self) -> Floats:
        """The weights as floats."""
        return np.array([float(weight) for weight in self.weights])


def group_outputs(
    outputs: Sequence[Any], weights: Sequence[Weight], residual: Weight, rounding: float
) -> Distribution:
    """Return the distribution of outputs, which adds up the weights of equal ones.

    Raises CannotInstrument if outputs cannot be compared by value.
    """
    table = tabulate(list(outputs))
    if opaque_types(table.levels):
        raise CannotInstrument(NO_EQUALITY)
    marks = hashes(table)
    total: dict[int, Weight] = {}
    outcomes: dict[int, Any] = {}
    for mark, output, weight in zip(marks.tolist(), outputs, weights, strict=True):
        total[mark] = total.get(mark, 0) + weight
        outcomes.setdefault(mark, output)
    return Distribution(
        tuple(outcomes.values()),
        np.array(list(outcomes), np.int64),
        tuple(total.values()),
        float(residual),
        rounding,
    )


@dataclass(frozen=True, slots=True)
class PairProbabilities:
    """Probabilities of the same outcomes on two inputs, P on D and Q on D'."""

    marks: Ints
    """The hash of each outcome."""
    p: Floats
    """A lower bound on the probability of each on D."""
    q: Floats
    """A lower bound on the probability of each on D'."""
    residuals: tuple[float, float]
    """The probability on D and on D' that was not enumerated, which any outcomes may have."""
    rounding: float
    """Relative error of the probabilities."""

    @property
    def other_direction(self) -> PairProbabilities:
        """The probabilities with D and D' exchanged."""
        return PairProbabilities(self.marks, self.q, self.p, self.residuals[::-1], self.rounding)


def pair_probabilities(on_d: Distribution, on_d2: Distribution) -> PairProbabilities:
    """Return the probabilities of all outcomes of two distributions, by their hashes."""
    marks = np.union1d(on_d.marks, on_d2.marks)
    p, q = np.zeros(len(marks)), np.zeros(len(marks))
    p[np.searchsorted(marks, on_d.marks)] = on_d.probabilities
    q[np.searchsorted(marks, on_d2.marks)] = on_d2.probabilities
    rounding = max(on_d.rounding, on_d2.rounding) + FLOAT_ERROR
    return PairProbabilities(marks, p, q, (on_d.residual, on_d2.residual), rounding)


@dataclass(frozen=True, slots=True)
class Loss:
    """Bounds on eps in nats in one direction of a pair, for a given delta."""

    lower: float
    upper: float
    """With a delta that is larger by `extra_delta`."""
    extra_delta: float
    """By outputs that were not enumerated; 0 where all were."""
    error: float
    """Error of `upper` by rounding."""


def delta_of(stick: HockeyStick, pair: PairProbabilities) -> tuple[float, float]:
    """Return bounds, perhaps below 0, on the largest excess of P over ``exp(eps) Q`` on any set."""
    factor = math.exp(stick.eps)
    worst = pair.p > factor * pair.q
    p, q = math.fsum(pair.p[worst]), math.fsum(pair.q[worst])
    on_d, on_d2 = pair.residuals
    slack = pair.rounding * (p + factor * q)
    return p - factor * (q + on_d2) - slack, p - factor * q + on_d + slack


def eps_at(delta: float, pair: PairProbabilities) -> Loss:
    """Return bounds on the smallest eps for which P exceeds ``exp(eps) Q`` by at most `delta`.

    Source: the hockey-stick divergence is piecewise linear in exp(eps), with a corner at each ratio
    of probabilities.
    """
    on_d, on_d2 = pair.residuals
    shrink = 1 - pair.rounding
    lower = _largest_log_ratio(delta, pair.p * shrink, pair.q / shrink, on_d2)
    extra_delta = on_d + math.exp(min(lower, LARGEST)) * on_d2
    upper = _largest_log_ratio(delta + extra_delta, pair.p, pair.q, 0.0)
    return Loss(lower, max(upper, lower), extra_delta, 2 * pair.rounding)


def _largest_log_ratio(delta: float, p: Floats, q: Floats, residual: float) -> float:
    """Return the largest log of (P(S) - delta) / (Q(S) + residual) of a set S, at least 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, p / q, 0.0)
    order = np.argsort(-ratio, kind="stable")
    numerator, denominator = np.cumsum(p[order]) - delta, np.cumsum(q[order]) + residual
    if not len(p) or not (numerator > 0).any():
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where(numerator > 0, numerator / denominator, 0.0)
    largest = float(quotient.max())
    return max(math.log(largest), 0.0) if largest > 0 else 0.0


def evidence_against_distribution(marks: Ints, distribution: Distribution) -> float:
    """Return the log e-value against the hypothesis that hashes are from a distribution."""
    order = np.argsort(distribution.marks)
    of_outcomes = distribution.marks[order]
    at = np.minimum(np.searchsorted(of_outcomes, marks), len(of_outcomes) - 1)
    inside = of_outcomes[at] == marks
    counts = np.bincount(order[at[inside]], minlength=len(order))
    outside = int((~inside).sum())
    return log_e_value(counts, distribution.probabilities, outside, distribution.residual)


@dataclass(frozen=True)
class EnumeratedPair:
    """The loss on a pair by the distributions of outputs on D and on D'."""

    distributions: tuple[Distribution, Distribution]
    mode: ClassVar[Mode] = "exact"
    mu: ClassVar[None] = None
    checked: ClassVar[int] = 20_000

    @cached_property
    def directions(self) -> tuple[PairProbabilities, PairProbabilities]:
        """The probabilities in the two directions: from D to D', and from D' to D."""
        pair = pair_probabilities(*self.distributions)
        return pair, pair.other_direction

    @property
    def residual(self) -> float:
        """The probability of outcomes that were not enumerated, on the input with more of it."""
        return max(distribution.residual for distribution in self.distributions)

    @property
    def basis(self) -> str:
        """The number of outcomes, in words for reports."""
        count, residual = len(self.directions[0].marks), self.residual
        missing = f", all but a probability of {residual:.0e}" if residual else ""
        return f"{plural(count, 'outcome')}{missing}"

    @cached_property
    def by_rounding(self) -> bool:
        """True if numbers in two outcomes differ by rounding errors alone."""
        outcomes = [o for distribution in self.distributions for o in distribution.outcomes]
        return any(map(differ_by_rounding, tabulate(outcomes).numbers.T))

    def eps_at(self, delta: float) -> tuple[float, float]:
        """Return the smallest eps in nats beside a delta, and its error; infinite if there is none.

        Raises CannotInstrument if outcomes that were not enumerated may make it larger.
        """
        if (
            not delta
            and self.residual
            and any(_grows_in_the_tail(each, self.residual) for each in self.directions)
        ):
            raise CannotInstrument("outcomes in the tails lose more than likelier ones")
        losses = [eps_at(delta, each) for each in self.directions]
        beside, error = max(loss.extra_delta for loss in losses), max(loss.error for loss in losses)
        if beside > ROUNDING or error > 100 * ROUNDING:
            raise CannotInstrument(f"{beside:.2g} of the probability was not enumerated")
        return max(loss.upper for loss in losses), error + beside

    def delta_at(self, eps: float) -> tuple[float, float]:
        """Return bounds on the smallest delta beside an eps in nats."""
        bounds = [delta_of(HockeyStick(eps, 0.0), each) for each in self.directions]
        lower, upper = map(max, zip(*bounds, strict=True))
        return max(lower, 0.0), min(max(upper, 0.0), 1.0)

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """Return the log e-value against outputs of one side (0: D) being from its distribution.

        Raises CannotInstrument if an enumerated exception never came: the mechanism may need a real
        generator.
        """
        distribution, marks = self.distributions[side], hashes(tabulate(list(outputs)))
        for outcome, mark in zip(distribution.outcomes, distribution.marks, strict=True):
            if isinstance(outcome, Raised) and mark not in marks:
                raise CannotInstrument(f"enumerated, it {outcome!r}, which no real run does")
        return evidence_against_distribution(marks, distribution)


def _grows_in_the_tail(direction: PairProbabilities, residual: float) -> bool:
    """Return whether rare outcomes lose more than likely ones: then rarer ones may lose anything.

    Outcomes that are hardly likelier than the residual, of which no loss is known, do not count.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.abs(np.log(direction.p) - np.log(direction.q))
    often = np.maximum(direction.p, direction.q) / residual
    rare, likely = (np.nanmax(loss[often > least], initial=0.0) for least in (1e4, 1e7))
    return bool(rare > CLEARLY_GROWS * likely)


def differ_by_rounding(numbers: Floats) -> bool:
    """Return whether two of the numbers, unless all are whole, differ by rounding alone."""
    ordered = np.unique(numbers[np.isfinite(numbers)])
    if not len(ordered) or (ordered % 1 == 0).all():
        return False
    return bool((np.diff(ordered) <= ROUNDING * np.abs(ordered).max()).any())


# Outputs of independent parts


Key = tuple[tuple[str, Any], ...]
"""Types and values of some leaves of an output."""


@dataclass(frozen=True, slots=True)
class Factors:
    """The laws of independent parts of an output, by the places of their leaves in the output."""

    structure: Hashable
    parts: dict[tuple[int, ...], dict[Key, Weight]]
    rounding: float


@dataclass(frozen=True)
class FactoredPair(EnumeratedPair):
    """The loss on a pair by those parts of outputs whose laws differ between D and D'."""

    structures: tuple[Hashable, Hashable]
    places: tuple[int, ...]

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """Return the log e-value against parts of outputs being from the joint law of a side."""
        return super().evidence_against(side, [self._part_of(side, each) for each in outputs])

    def _part_of(self, side: int, output: Any) -> Any:
        """Return the leaves of those parts; a text if the output has another structure."""
        leaves: list[Any] = []
        known = not isinstance(output, Raised)
        if known and flatten_output(output, leaves) == self.structures[side]:
            return key_of_leaves(leaves, self.places)
        return "another structure"


def compare_laws(on_d: Distribution | Factors, on_d2: Distribution | Factors) -> EnumeratedPair:
    """Return the loss on a pair by the laws of outputs on D and D'.

    Raises CannotInstrument if laws are not of the same parts, or parts have too many values.
    """
    if isinstance(on_d, Distribution) and isinstance(on_d2, Distribution):
        return EnumeratedPair((on_d, on_d2))
    if isinstance(on_d, Distribution) or isinstance(on_d2, Distribution):
        raise CannotInstrument(TOO_MANY)
    if on_d.structure != on_d2.structure or on_d.parts.keys() != on_d2.parts.keys():
        raise CannotInstrument(DEPENDENT)
    differ = [at for at, law in on_d.parts.items() if not have_equal_laws(law, on_d2.parts[at])]
    joint = tuple(
        _joint_law([side.parts[at] for at in differ], side.rounding) for side in (on_d, on_d2)
    )
    places = tuple(itertools.chain.from_iterable(differ))
    return FactoredPair((joint[0], joint[1]), (on_d.structure, on_d2.structure), places)


def _joint_law(parts: Sequence[dict[Key, Weight]], rounding: float) -> Distribution:
    """Return the joint law of independent parts: each outcome joins one outcome of every part.

    `rounding` is the error of each probability of a part. Raises CannotInstrument if outcomes are
    too many.
    """
    if math.prod(map(len, parts)) > MAX_COMBINATIONS:
        raise CannotInstrument(TOO_MANY)
    combinations = list(itertools.product(*(part.items() for part in parts)))
    outputs = [
        tuple(itertools.chain.from_iterable(key for key, _ in combination))
        for combination in combinations
    ]
    weights = [math.prod(weight for _, weight in combination) for combination in combinations]
    return group_outputs(outputs, weights, 0, rounding * max(len(parts), 1))


def key_of_leaves(leaves: Sequence[Any], places: Sequence[int]) -> Key:
    """Return the types and values of the leaves at some places of an output."""
    return tuple((type(leaves[at]).__name__, leaves[at]) for at in places)


def have_equal_laws(one: dict[Key, Weight], other: dict[Key, Weight]) -> bool:
    """Return whether two laws have the same outcomes, with the same probabilities to rounding."""
    return one.keys() == other.keys() and all(
        math.isclose(weight, other[key], rel_tol=SAME) for key, weight in one.items()
    )


def flatten_output(output: Any, leaves: list[Any]) -> Hashable:
    """Add the leaves of an output to a list, and return the structure that they have in it.

    Raises CannotInstrument if the output holds an object of another type.
    """
    if is_draw(output):
        leaves.append(output)
        return "number"
    if isinstance(output, np.ndarray):
        if output.dtype.kind == "f":
            leaves += output.ravel().tolist()
            return ("array", output.shape)
        for element in output.astype(object).view(np.ndarray).ravel():
            flatten_output(_as_float(element), leaves)
        return ("array", output.shape)
    if isinstance(output, dict):
        items = [
            (flatten_output(key, []), repr(key), flatten_output(v, leaves))
            for key, v in output.items()
        ]
        return ("dict", *items)
    if isinstance(output, list | tuple):
        return (type(output).__qualname__, *(flatten_output(element, leaves) for element in output))
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = (getattr(output, field.name) for field in dataclasses.fields(output))
        return (type(output).__qualname__, *(flatten_output(value, leaves) for value in fields))
    if isinstance(output, np.generic):
        output = output.item()
    if not isinstance(output, bool | int | float | complex | str | bytes | None):
        raise CannotInstrument(f"its outputs hold objects of type {type(output).__qualname__}")
    leaves.append(output)
    return "number"


def _as_float(element: Any) -> Any:
    """Return an element of an array, as a float if it is a number that floats hold exactly."""
    return float(element) if isinstance(element, bool | int) and abs(element) < 2**53 else element
