"""Outputs that are linear functions of as many independent draws: A X + b on D, A' X' + b' on D'.

In the coordinates of the draws on D, each draw on D' is one of these, stretched and moved. They are
independent, so their losses add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Floats
from pytest_dp.known.experiments import APART, Experiment, Moved, Tailed, Unbounded
from pytest_dp.known.outcomes import Outcome
from pytest_dp.limits import EQUAL, ROUNDED
from pytest_dp.randomness.laws import (
    DIFFERENCES,
    NORMAL,
    UNIFORM,
    Law,
)
from pytest_dp.randomness.stand_ins import CannotInstrument


@dataclass(frozen=True, slots=True)
class Noise:
    """A sum of draws with factors, which moves outputs in one direction."""

    parts: tuple[tuple[Law, float], ...]
    """More than one if their sum has no closed form."""

    @property
    def law(self) -> Law | None:
        """Of the sum, in its standard form."""
        return self.parts[0][0] if len(self.parts) == 1 else None

    @property
    def scale(self) -> float:
        """Of the sum; of one without closed form, the largest."""
        return max((factor for _, factor in self.parts), key=abs)


@dataclass(frozen=True, slots=True)
class Linear:
    """Outputs as ``matrix @ X + constant``, where X is one standard draw of each noise."""

    matrix: Floats
    """Of shape (outputs, noises)."""
    constant: Floats
    noises: list[Noise]

    @property
    def normal(self) -> bool:
        """Whether all noise is normal."""
        return all(noise.law == Law(NORMAL) for noise in self.noises)

    @property
    def lattice(self) -> bool:
        """Whether some of it is whole numbers."""
        return any(law.lattice for noise in self.noises for law, _ in noise.parts)

    def rows(self, numbers: Sequence[int]) -> Linear:
        return Linear(self.matrix[numbers], self.constant[numbers], self.noises)


def linear(ours: Outcome, theirs: Outcome, at: Sequence[int]) -> list[Experiment]:
    """What tells linear outputs on D and on D' apart, whose leaves `at` are all `Affine`.

    Raises CannotInstrument if there is no closed form.
    """
    p, q = linear_of(ours, at), linear_of(theirs, at)
    scale = np.abs(p.constant).max() + np.abs(q.constant).max()
    error = (ROUNDED / 10) * max(scale, np.abs(p.matrix).max())
    rank = int(np.linalg.matrix_rank(p.matrix, tol=EQUAL * np.abs(p.matrix).max()))
    if rank < len(at):
        if p.lattice or q.lattice:
            raise CannotInstrument("outputs of whole numbers depend on each other")
        null = np.linalg.svd(p.matrix)[0][:, rank:].T
        moves = np.abs(null @ q.matrix).max() > EQUAL * np.abs(q.matrix).max()
        if moves or np.abs(null @ (p.constant - q.constant)).max() > error:
            return [APART]
        rows = independent_rows(p.matrix)
        p, q = p.rows(rows), q.rows(rows)
    if p.normal and q.normal:
        return _gaussian(p, q)
    if p.matrix.shape != q.matrix.shape or p.matrix.shape[0] != p.matrix.shape[1]:
        raise CannotInstrument("outputs depend on more draws than there are outputs")
    if abs(np.linalg.det(q.matrix / np.abs(q.matrix).max(axis=1, keepdims=True))) < EQUAL:
        raise CannotInstrument("outputs on the two inputs depend on draws in different ways")
    return _coordinates(p, q, error)


def independent_rows(matrix: Floats) -> list[int]:
    """Rows that do not depend on those before."""
    rows: list[int] = []
    for row in range(len(matrix)):
        rank = np.linalg.matrix_rank(matrix[[*rows, row]], tol=EQUAL * np.abs(matrix).max())
        if rank > len(rows):
            rows.append(row)
    return rows


def _coordinates(p: Linear, q: Linear, error: float) -> list[Experiment]:
    """Each noise on D against that on D' which takes its place."""
    inverse = np.linalg.inv(q.matrix)
    change = inverse @ p.matrix
    shifts = inverse @ (p.constant - q.constant)
    error *= float(np.abs(inverse).sum(axis=1).max())
    change[np.abs(change) < EQUAL * np.abs(change).max()] = 0
    experiments: list[Experiment] = []
    for row, shift, theirs in zip(change, shifts, q.noises, strict=True):
        if np.count_nonzero(row) != 1:
            raise CannotInstrument("outputs on the two inputs mix draws in different ways")
        (column,) = np.flatnonzero(row)
        ours, factor = p.noises[column], float(row[column])
        shift = -(shift if abs(shift) > error else 0.0) / factor
        experiments.append(_coordinate(ours, theirs, factor, float(shift)))
    return experiments


def _coordinate(ours: Noise, theirs: Noise, factor: float, shift: float) -> Experiment:
    """A noise on D against one on D' that is ``factor`` times it, and moved."""
    if ours.law is None:
        if abs(abs(factor) - 1) > EQUAL or not _alike(ours, theirs, factor):
            raise CannotInstrument("sums of draws differ between the inputs")
        return _tailed(ours, shift)
    if ours.law != theirs.law or (ours.law.lattice and abs(abs(factor) - 1) > EQUAL):
        raise CannotInstrument("draws have other laws on the two inputs")
    if factor < 0 and not ours.law.symmetric:
        raise CannotInstrument("a draw is turned around on one of the inputs")
    if ours.law.lattice and abs(shift - round(shift)) <= EQUAL:
        shift = float(round(shift))
    stretch = 1 / abs(factor)
    return Moved(ours.law, shift, 1.0 if abs(stretch - 1) <= 1e-12 else stretch)


def _alike(ours: Noise, theirs: Noise, factor: float) -> bool:
    """Whether two sums are of the same draws."""
    mine = [(law, np.sign(factor) * by / ours.scale) for law, by in ours.parts]
    others = [(law, by / theirs.scale) for law, by in theirs.parts]
    if all(law.symmetric for law, _ in mine + others):
        mine, others = ([(law, abs(by)) for law, by in parts] for parts in (mine, others))
    key = lambda part: (part[0].family.name, part[1])  # noqa: E731
    pairs = zip(sorted(mine, key=key), sorted(others, key=key), strict=False)
    return len(mine) == len(others) and all(
        a[0] == b[0] and math.isclose(a[1], b[1], rel_tol=EQUAL) for a, b in pairs
    )


def _tailed(noise: Noise, shift: float) -> Experiment:
    """A sum without closed form, moved by a shift in units of its largest factor."""
    if any(law.lattice for law, _ in noise.parts):
        raise CannotInstrument("a sum of whole numbers has no closed form")
    tails = [abs(by) for law, by in noise.parts if law.family.exponential_tails]
    heaviest = max(tails, default=0.0)
    families = {law.family for law, _ in noise.parts}
    if not heaviest or any(
        not family.exponential_tails and family not in (NORMAL, UNIFORM) for family in families
    ):
        names = sorted(family.name for family in families)
        raise CannotInstrument(f"a sum of draws has no closed form here ({', '.join(names)})")
    return Tailed(shift * abs(noise.scale) / heaviest)


def _gaussian(p: Linear, q: Linear) -> list[Experiment]:
    """Normal outputs, by their covariances and means."""
    ours, theirs = p.matrix @ p.matrix.T, q.matrix @ q.matrix.T
    if not np.allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(ours).max()):
        if len(p.matrix) > 1:
            return [Unbounded()]
        scale = math.sqrt(ours[0, 0])
        shift = float(q.constant[0] - p.constant[0]) / scale
        return [Moved(Law(NORMAL), shift, math.sqrt(theirs[0, 0]) / scale)]
    difference = q.constant - p.constant
    mu = math.sqrt(max(float(difference @ np.linalg.solve(ours, difference)), 0.0))
    return [Moved(Law(NORMAL), mu)]


def linear_of(outcome: Outcome, at: Sequence[int]) -> Linear:
    """Leaves, all of which are `Affine`, in terms of standard noises."""
    leaves = [outcome.leaves[i] for i in at]
    draws = sorted({draw for leaf in leaves for draw in leaf.terms})
    columns = np.array([[leaf.terms.get(draw, 0.0) for leaf in leaves] for draw in draws]).T
    groups: dict[tuple[float, ...], list[tuple[Law, float]]] = {}
    for draw, column in zip(draws, columns.T, strict=True):
        factor = float(column[np.flatnonzero(column)[0]])
        direction = tuple(np.round(column / factor, 12))
        groups.setdefault(direction, []).append((outcome.laws[draw], factor))
    noises = [Noise(_added(parts)) for parts in groups.values()]
    matrix = np.array(list(groups)).T * [noise.scale for noise in noises]
    return Linear(matrix, np.array([leaf.constant for leaf in leaves], float), noises)


def _added(parts: list[tuple[Law, float]]) -> tuple[tuple[Law, float], ...]:
    """The sum of draws, as a single one where the sum's law is known."""
    normal = [by for law, by in parts if law.family is NORMAL]
    rest = [part for part in parts if part[0].family is not NORMAL]
    if normal:
        rest.append((Law(NORMAL), math.hypot(*normal)))
    if len(rest) == 2:
        (law, by), (other, against) = rest
        if law == other and math.isclose(by, -against, rel_tol=1e-12):
            difference = DIFFERENCES.get(law.family)
            if difference is not None:
                return ((Law(difference, law.parameter), abs(by)),)
    return tuple((law, abs(by) if law.symmetric else by) for law, by in rest)
