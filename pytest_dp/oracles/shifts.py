"""Shifts of draws that cancel the difference of two inputs, and the loss between shifted draws.

A *shift* says how much is added to each draw of a run. On a path of a mechanism, every sum of draws
that is released has to keep its value, and every sum that is compared has to stay on its side. Of
all shifts that do, the one with the smallest loss is the solution of a linear program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.checking import Pairing
from pytest_dp.oracles.handing_out import MAX_ELEMENTS, AnsweredRequest, Numbers, ReplayedRun, Shift
from pytest_dp.oracles.tracked import DrawSum, Form, is_tracked
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.raised import Raised
from pytest_dp.privacy import Guarantee, RenyiDP
from pytest_dp.privacy.concentrated import GaussianDP
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.laws import (
    EXPONENTIAL,
    GEOMETRIC,
    GUMBEL,
    LAPLACE,
    LOGISTIC,
    NORMAL,
    Law,
)

TWO_SIDED = (LAPLACE, LOGISTIC)
"""Laws whose log density falls with slope 1 at most: a shift of s loses |s| over the scale."""
UPWARDS = (EXPONENTIAL, GUMBEL, GEOMETRIC)
"""Laws that lose s over the scale by a shift of s upwards, and without bound by one downwards."""
WHOLE = 1e-9
"""How far a shift of whole numbers may be from whole ones, as a solution of a linear program is."""
MAX_VARIABLES = 2000
"""Draws in one linear program. With more, its solution takes seconds."""
MAX_FITTED = 40
"""Draws whose shifts are fitted. Each costs a run on each of a few replays."""
STEP = 1e-3
"""Scales by which draws move in a fit. Shorter steps lose digits, longer ones meet curves."""
DECIMALS = 7
"""Decimals of fitted shifts. More: rounding errors count as moves."""
NEGLIGIBLE = 1e-9
"""Solutions of linear programs this close to a whole number of steps are rounded to it."""


@dataclass(frozen=True, slots=True)
class LossBound:
    """An upper bound on the loss between the outputs on two inputs, in both directions."""

    pure: float
    """Loss in nats by draws whose log density is Lipschitz, such as Laplace draws; infinite if
    there is no bound."""
    mu: float
    """The norm of the shift of Gaussian draws, in standard deviations."""
    replay: Any = field(default=None, repr=False, compare=False)
    """The replay in which the loss is largest: its pairing, numbers and shift; None if unknown."""

    def eps_at(self, delta: float) -> float:
        """Return an ε in nats with which the pair is (ε, δ)-private; infinite if there is none."""
        if self.mu and not delta:
            return math.inf
        return self.pure + (GaussianDP(self.mu).eps_at(min(delta, 1 - 1e-16)) if self.mu else 0.0)

    def delta_at(self, eps: float) -> float:
        """Return a δ with which the pair is (ε, δ)-private, for an ε in nats; perhaps 1."""
        if eps < self.pure:
            return 1.0
        return min(GaussianDP(self.mu).delta_at(eps - self.pure), 1.0) if self.mu else 0.0

    def parameter_of(self, guarantee: Guarantee) -> float:
        """Return a bound on the parameter of a guarantee; raise CannotInstrument if none is known.

        Infinite if no eps holds. Rényi divergences and trade-off functions of independent Gaussian
        draws compose; beside other draws, only ε and δ are bounded.
        """
        if guarantee.parameter == "eps":
            return self.eps_at(guarantee.delta)
        known = isinstance(guarantee, RenyiDP) or guarantee.parameter in ("mu", "rho")
        if self.pure or guarantee.delta or not known:
            raise CannotInstrument(f"no bound on {guarantee.parameter} follows from the alignment")
        if isinstance(guarantee, RenyiDP):
            return max(order * self.mu**2 / 2 / unit for order, unit in guarantee.units)
        return self.mu if guarantee.parameter == "mu" else self.mu**2 / 2


def largest_bound(bounds: Sequence[LossBound]) -> LossBound:
    """Return a bound on the loss that holds wherever one of several bounds does."""
    return LossBound(
        max(bound.pure for bound in bounds),
        max(bound.mu for bound in bounds),
        max(bounds, key=lambda bound: bound.pure + bound.mu).replay,
    )


def loss_of_shift(requests: Sequence[AnsweredRequest], shift: Shift) -> LossBound:
    """Return the loss between the law of the draws of a run, and that of the draws plus a shift.

    Infinite if a shifted draw has no known law, or another number of draws than the shift.
    """
    pure, squares = 0.0, 0.0
    for each in requests:
        moved = shift.get(each.number)
        if moved is None or not moved.any():
            continue
        if each.law is None or len(moved) != each.count:
            return LossBound(math.inf, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(moved == 0, 0.0, moved / each.scale)
        if each.law.family is NORMAL:
            squares += float(np.square(steps).sum())
        else:
            pure += _pure_loss(each.law, steps)
    return LossBound(pure, math.sqrt(squares))


def _pure_loss(law: Law, steps: Floats) -> float:
    """Return the loss in nats of draws that move by `steps` scales; infinite without a bound."""
    if law.lattice and np.abs(steps - np.round(steps)).max() > WHOLE:
        return math.inf
    moved, (up, down) = steps[steps != 0], cost_per_step(law)
    return float((np.abs(moved) * np.where(moved > 0, up, down)).sum())


def cost_per_step(law: Law) -> tuple[float, float]:
    """Return the loss in nats of a shift by one scale, upwards and downwards; perhaps infinite.

    It is 1 for a Gaussian draw, which only serves to compare shifts.
    """
    if law.family in (*TWO_SIDED, NORMAL):
        return 1.0, 1.0
    if law.family is GEOMETRIC:
        return -math.log(law.parameter) if law.parameter else math.inf, math.inf
    return (1.0 if law.family in UPWARDS else math.inf), math.inf


# The shift on a path of two runs


def _constants_by_form(sums: Iterable[DrawSum]) -> dict[Form, list[float]]:
    """Return the constants of sums by their forms, in the order in which the sums were made.

    Forms are scaled so that their first coefficient is 1.
    """
    found: dict[Form, list[float]] = {}
    for each in sums:
        if each.form:
            by = each.form[0][1]
            scaled = tuple((at, factor / by) for at, factor in each.form)
            found.setdefault(scaled, []).append(each.constant / by)
    return found


def _find_released(output: Any) -> Iterable[DrawSum]:
    """Yield the tracked sums in an output and in its containers."""
    if is_tracked(output):
        yield from np.ravel(np.asarray(output.sums, object)).tolist()
    elif isinstance(output, dict | list | tuple):
        for value in output.values() if isinstance(output, dict) else output:
            yield from _find_released(value)


def _forms_to_keep(forms: Mapping[Form, Any], *, largest: bool) -> list[Form]:
    """Return the forms whose sums a shift should keep.

    By default those of single draws, and others with a draw that is in no such form; if `largest`,
    those whose draws are not all in one larger sum.
    """
    if not largest:
        single = {at for form in forms if len(form) == 1 for at, _ in form}
        return [form for form in forms if len(form) == 1 or not {at for at, _ in form} <= single]
    larger = [{at for at, _ in form} for form in forms if len(form) > 1]
    return [form for form in forms if not any({at for at, _ in form} < other for other in larger)]


def shift_of_sums(ours: ReplayedRun, theirs: ReplayedRun, *, largest: bool = False) -> Shift | None:
    """Return the shift of the draws of `ours` that gives its sums the values of those of `theirs`.

    Of sums of the same draws with several constants, the last keeps its value. `largest` chooses
    the sums as in `_forms_to_keep`. None if no shift does.
    """
    one, other = _constants_by_form(ours.record.sums), _constants_by_form(theirs.record.sums)
    equal = [
        (form, one[form][-1] - other[form][-1])
        for form in _forms_to_keep(one, largest=largest)
        if form in other
    ]
    return _cheapest_shift(ours.requests, equal, [])


def shift_of_path(ours: ReplayedRun, theirs: ReplayedRun) -> Shift | None:
    """Return the cheapest shift with which comparisons of two runs on one path have equal results.

    Sums that are released keep their values as well. None if the runs take different paths, or no
    shift does.
    """
    one, other = ours.record, theirs.record
    if one.path != other.path:
        return None
    compared = _constants_by_form(side for *both, _ in one.comparisons for side in both)
    released = _constants_by_form(_find_released(ours.output))
    sums, their_sums = _constants_by_form(one.sums), _constants_by_form(other.sums)
    singles = {at for form in compared if len(form) == 1 for at, _ in form}
    above = []
    for (*our_sides, result), (*their_sides, _) in zip(
        one.comparisons, other.comparisons, strict=True
    ):
        left, right = (first - second for first, second in (our_sides, their_sides))
        sign = 1.0 if result else -1.0
        signed = tuple((at, sign * by) for at, by in left.form)
        above.append((signed, sign * (left.constant - right.constant)))
    for largest in (False, True):
        equal = [
            (form, sums[form][-1] - their_sums[form][-1])
            for form in _forms_to_keep(sums, largest=largest)
            if form in their_sums
            and (
                form in released or (form not in compared and not {at for at, _ in form} <= singles)
            )
        ]
        if (shift := _cheapest_shift(ours.requests, equal, above)) is not None:
            return shift
    return None


Move = tuple[Form, float]
"""A form, and by how much its sum has to move."""


def _cheapest_shift(
    requests: Sequence[AnsweredRequest], equal: list[Move], above: list[Move]
) -> Shift | None:
    """Return the shift of least loss that moves sums by given amounts, and others by at least some.

    None if there is none, or too many draws.
    """
    by_number = {each.number: each for each in requests}
    shift: dict[int, Any] = {
        each.number: np.zeros(each.count) for each in requests if each.law is not None
    }
    if above or any(len(form) > 1 for form, _ in equal):
        variables = sorted({at for form, _ in (*equal, *above) for at, _ in form})
        if len(variables) > MAX_VARIABLES:
            return None
        units = []
        costs: list[tuple[float, float]] = []
        for at in variables:
            each = by_number[at // MAX_ELEMENTS]
            assert each.law is not None
            units.append(float(each.scale[at % MAX_ELEMENTS]) or 1.0)
            costs.append(cost_per_step(each.law))
        moves = _solve_program(variables, units, costs, equal, above)
        if moves is None:
            return None
        for at, moved in zip(variables, moves, strict=True):
            shift[at // MAX_ELEMENTS][at % MAX_ELEMENTS] = moved
    for form, value in equal:  # exactly, where the solution of a program is not
        number, place = divmod(form[0][0], MAX_ELEMENTS)
        if len(form) == 1 and number in shift:
            shift[number][place] = value
    return shift


def _solve_program(
    variables: Sequence[int],
    units: Sequence[float],
    costs: Sequence[tuple[float, float]],
    equal: Sequence[Move],
    above: Sequence[Move],
) -> Floats | None:
    """Return the cheapest moves of the variables; None if no moves meet the conditions.

    `units` are the scales of the variables, and `costs` the losses of one scale up and down.
    """
    from scipy.optimize import linprog  # loaded where it is of use

    position = {at: i for i, at in enumerate(variables)}
    count = len(variables)

    def conditions(rows: Sequence[Move], sign: float) -> tuple[Any, Any]:
        left = np.zeros((len(rows), 2 * count))
        for row, (form, _) in enumerate(rows):
            for at, by in form:
                left[row, position[at]] = sign * by * units[position[at]]
                left[row, count + position[at]] = -sign * by * units[position[at]]
        right = np.array([sign * value for _, value in rows])
        return (left, right) if rows else (None, None)

    both = [up for up, _ in costs] + [down for _, down in costs]
    result: Any = linprog(
        [cost if math.isfinite(cost) else 0.0 for cost in both],
        *conditions(above, -1.0),
        *conditions(equal, 1.0),
        bounds=[(0, None if math.isfinite(cost) else 0) for cost in both],
    )
    if result.status != 0:
        return None
    moves: Floats = (result.x[:count] - result.x[count:]) * np.array(units)
    whole = np.round(moves)
    rounded: Floats = np.where(np.abs(moves - whole) <= NEGLIGIBLE, whole, moves)
    return rounded


# The shift of draws whose sums are not tracked


def fit_shift(pairing: Pairing, replays: Sequence[Numbers]) -> Shift | None:
    """Run the mechanism; return the shift that gives outputs on the target the source's numbers.

    It is right if outputs are linear in the draws, whatever library adds them up. Makes a run for
    each draw and replay, to see how outputs change with the draw. None if outputs do not have the
    same numbers, or there are no draws, or too many.
    """
    drawn = [each for each in pairing.run_on_source(replays[0]).requests if each.law is not None]
    ends = np.cumsum([each.count for each in drawn])
    if not drawn or ends[-1] > MAX_FITTED:
        return None
    steps = np.concatenate(
        [np.ones(each.count) if each.law.lattice else STEP * each.scale for each in drawn]  # type: ignore[union-attr]
    )

    def shift_by(moves: Floats) -> Shift:
        parts = np.split(moves, ends[:-1])
        return {each.number: part for each, part in zip(drawn, parts, strict=True)}

    rows, gaps = [], []
    for numbers in replays:
        wanted = _numbers_in(pairing.run_on_source(numbers).output)
        found = [
            _numbers_in(pairing.run_on_target(numbers, shift_by(moves)).output)
            for moves in (np.zeros(len(steps)), *np.diag(steps))
        ]
        if not len(wanted) or any(len(each) != len(wanted) for each in found):
            return None
        rows.append(np.array(found[1:]).T - found[0][:, None])
        gaps.append(wanted - found[0])
    matrix, gap = np.concatenate(rows), np.concatenate(gaps)
    if not (np.isfinite(matrix).all() and np.isfinite(gap).all()):
        return None
    moves = np.linalg.lstsq(matrix, gap)[0] * steps
    return shift_by(np.round(moves, DECIMALS))


def _numbers_in(output: Any) -> Floats:
    """Return all floats in an output; an empty array if the run raised."""
    leaves = [] if isinstance(output, Raised) else flatten([output], {type(output)})[0]
    return np.array([float(leaf) for leaf in leaves if isinstance(leaf, float | np.floating)])


def are_equal(one: Shift, other: Shift) -> bool:
    """Return whether two shifts move the same draws, each by the same amount."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[number], other[number]) for number in one
    )
