"""Shifts of draws that make up for the difference of two inputs, by what the draws are added to.

On a path of a mechanism, every sum of draws that is released has to stay where it is, and every
sum that is compared has to stay on its side. Of all shifts that do, the cheapest is a solution of a
linear program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.checking import Pairing
from pytest_dp.oracles.handing_out import MAX_ELEMENTS, AnsweredRequest, ReplayedRun, Shift
from pytest_dp.oracles.shift_loss import cost_per_step
from pytest_dp.oracles.standard_draws import Numbers
from pytest_dp.oracles.tracked import DrawSum, Form, is_tracked
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.raised import Raised

MAX_VARIABLES = 2000
"""Draws in one linear program. With more, its solution takes seconds."""
NEGLIGIBLE = 1e-9
"""Solutions of linear programs this close to a whole number of steps are rounded to it."""


def forms_of(sums: Iterable[DrawSum]) -> dict[Form, list[float]]:
    """Return the constants of sums by their forms, in the order in which they were made.

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
    """Return the tracked sums in an output."""
    if is_tracked(output):
        yield from np.ravel(np.asarray(output.sums, object)).tolist()
    elif isinstance(output, dict):
        for value in output.values():
            yield from _find_released(value)
    elif isinstance(output, list | tuple):
        for value in output:
            yield from _find_released(value)


def _forms_to_keep(forms: dict[Form, list[float]], *, final: bool) -> dict[Form, list[float]]:
    """Return the forms that a shift has to keep: of single draws, or those of no larger sum."""
    if not final:
        single = {at for form in forms if len(form) == 1 for at, _ in form}
        return {
            form: constants
            for form, constants in forms.items()
            if len(form) == 1 or not {at for at, _ in form} <= single
        }
    larger = [{at for at, _ in form} for form in forms if len(form) > 1]
    return {
        form: constants
        for form, constants in forms.items()
        if not any({at for at, _ in form} < other for other in larger)
    }


def shift_of_centres(
    ours: ReplayedRun, theirs: ReplayedRun, *, final: bool = False
) -> Shift | None:
    """Return the shift of the draws of `ours` that keeps every sum; None if there is none.

    Of sums of the same draws with several constants, the last is kept.
    """
    one, other = forms_of(ours.record.sums), forms_of(theirs.record.sums)
    equal = [
        (form, constants[-1] - other[form][-1])
        for form, constants in _forms_to_keep(one, final=final).items()
        if form in other
    ]
    return _cheapest(ours.drawn, equal, [])


def shift_of_path(ours: ReplayedRun, theirs: ReplayedRun) -> Shift | None:
    """Return the cheapest shift on the path of two runs; None if there is none."""
    for final in (False, True):
        if (shift := _shift_of_path(ours, theirs, final=final)) is not None:
            return shift
    return None


def _shift_of_path(ours: ReplayedRun, theirs: ReplayedRun, *, final: bool) -> Shift | None:
    one, other = ours.record, theirs.record
    compared = forms_of(side for *both, _ in one.comparisons for side in both)
    kept = forms_of(_find_released(ours.output))
    sums, their_sums = forms_of(one.sums), forms_of(other.sums)
    singles = {at for form in compared if len(form) == 1 for at, _ in form}
    equal = [
        (form, constants[-1] - their_sums[form][-1])
        for form, constants in _forms_to_keep(sums, final=final).items()
        if form in their_sums
        and (form in kept or (form not in compared and not {at for at, _ in form} <= singles))
    ]
    if one.path != other.path:
        return None
    above = []
    for (*ours_compared, result), (*theirs_compared, _) in zip(
        one.comparisons, other.comparisons, strict=True
    ):
        left, right = (first - second for first, second in (ours_compared, theirs_compared))
        sign = 1.0 if result else -1.0
        signed = tuple((at, sign * by) for at, by in left.form)
        above.append((signed, sign * (left.constant - right.constant)))
    return _cheapest(ours.drawn, equal, above)


def _cheapest(
    drawn: Sequence[AnsweredRequest],
    equal: list[tuple[Form, float]],
    above: list[tuple[Form, float]],
) -> Shift | None:
    """Return the shift of least loss with these sums, and with at least these."""
    by_number = {each.number: each for each in drawn}
    shift: dict[int, Any] = {
        each.number: np.zeros(each.count) for each in drawn if each.law is not None
    }
    if not above and all(len(form) == 1 for form, _ in equal):
        for ((at, _),), value in equal:
            number, place = divmod(at, MAX_ELEMENTS)
            if number in shift:
                shift[number][place] = value
        return shift
    variables = sorted({at for form, _ in (*equal, *above) for at, _ in form})
    if len(variables) > MAX_VARIABLES:
        return None
    units = []
    costs: list[tuple[float, float]] = []
    for at in variables:
        each = by_number[at // MAX_ELEMENTS]
        assert each.law is not None
        units.append(float(each.scale[min(at % MAX_ELEMENTS, len(each.scale) - 1)]) or 1.0)
        costs.append(cost_per_step(each.law))
    solution = _solve(variables, units, costs, equal, above)
    if solution is None:
        return None
    for at, unit, step in zip(variables, units, solution, strict=True):
        number, place = divmod(at, MAX_ELEMENTS)
        shift[number][place] = step * unit
    singles = ((form[0][0], value) for form, value in equal if len(form) == 1)
    for at, value in singles:  # exactly, where a program is not
        shift[at // MAX_ELEMENTS][at % MAX_ELEMENTS] = value
    return shift


def _solve(
    variables: Sequence[int],
    units: Sequence[float],
    costs: Sequence[tuple[float, float]],
    equal: Sequence[tuple[Form, float]],
    above: Sequence[tuple[Form, float]],
) -> Floats | None:
    """Solve the linear program, in steps of one scale up and down for each draw."""
    from scipy.optimize import linprog  # loaded where it is of use

    position = {at: i for i, at in enumerate(variables)}
    count = len(variables)

    def matrix(rows: Sequence[tuple[Form, float]], sign: float) -> tuple[Any, Any]:
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
        *matrix(above, -1.0),
        *matrix(equal, 1.0),
        bounds=[(0, None if math.isfinite(cost) else 0) for cost in both],
    )
    if result.status != 0:
        return None
    steps = result.x[:count] - result.x[count:]
    scaled = steps * np.array(units)
    whole = np.round(scaled)
    close = np.abs(scaled - whole) <= NEGLIGIBLE
    rounded: Floats = np.where(close, whole / np.array(units), steps)
    return rounded


def are_equal(one: Shift, other: Shift) -> bool:
    """Return whether two shifts move the same draws as far."""
    return one.keys() == other.keys() and all(
        np.array_equal(one[number], other[number]) for number in one
    )


MAX_DRAWS = 40
"""Draws whose shifts are solved for. Each costs a run in each round on each of a few replays."""
ROUNDS = 5
"""Steps of least squares: outputs that are no sums of draws take a few."""
STEP = 1e-3
"""Scales by which draws are moved for derivatives. Shorter steps lose digits, longer ones are less
accurate where outputs are curved."""
SETTLED = 1e-11
"""Relative change of the steps after which another round gains rounding errors only."""
REPLAYS = 3
"""Replays over which the squares of differences are least."""
DECIMALS = 7
"""Decimals of shifts that are taken to have no more, where the next three are 0."""


class _NoNumbersError(Exception):
    """Outputs are not as many finite numbers as before."""


def solve_shift(pairing: Pairing, replays: Sequence[Numbers], start: Shift) -> Shift | None:
    """Return the shift with which outputs on the target are closest to those on the source.

    None if the outputs do not have the same numbers, or there are too many draws.
    """
    from scipy.optimize import least_squares  # loaded where it is of use

    used = replays[:REPLAYS]
    ours = [pairing.on_source(numbers) for numbers in used]
    drawn = [each for each in ours[0].drawn if each.law is not None]
    movable = [
        each for each in drawn if each.law is not None and min(cost_per_step(each.law)) < np.inf
    ]
    count = sum(each.count for each in movable)
    wanted = _numbers([run.output for run in ours])
    if wanted is None or not 0 < count <= MAX_DRAWS or pairing.gaps[0] or pairing.gaps[1]:
        return None
    scales = np.concatenate([each.scale for each in movable])
    cuts = np.cumsum([each.count for each in movable])[:-1]

    def moved(steps: Floats) -> Shift:
        parts = np.split(steps * scales, cuts)
        return {
            **{each.number: np.zeros(each.count) for each in drawn},
            **{each.number: part for each, part in zip(movable, parts, strict=True)},
        }

    def excess(steps: Floats) -> Floats:
        runs: list[ReplayedRun] = [pairing.on_target(numbers, moved(steps)) for numbers in used]
        found = _numbers([run.output for run in runs])
        if found is None or len(found) != len(wanted) or not np.isfinite(found).all():
            raise _NoNumbersError
        off: Floats = np.pad(found - wanted, (0, max(count - len(found), 0)))
        return off

    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.concatenate(
            [start.get(each.number, np.zeros(each.count)) / each.scale for each in movable]
        )
    if not np.isfinite(steps).all():
        return None
    try:
        steps = least_squares(
            excess,
            steps,
            method="lm",
            diff_step=np.full(count, STEP),
            xtol=SETTLED,
            max_nfev=ROUNDS * (count + 1),
        ).x
    except _NoNumbersError:
        return None
    return moved(_round_shifts(steps * scales) / scales)


def _round_shifts(shift: Floats) -> Floats:
    """Return the shifts, each rounded if rounding changes it by less than the solver's error."""
    short = np.round(shift, DECIMALS)
    close = np.abs(shift - short) <= 1e-3 * 10.0**-DECIMALS * np.maximum(np.abs(short), 1.0)
    rounded: Floats = np.where(close, short, shift)
    return rounded


def _numbers(outputs: Sequence[Any]) -> Floats | None:
    """Return all floats in outputs; None if one of them raised."""
    if any(isinstance(output, Raised) for output in outputs):
        return None
    leaves = flatten(outputs, set(map(type, outputs)))[0]
    found = [float(leaf) for leaf in leaves if isinstance(leaf, float | np.floating)]
    return np.array(found) if found else None
