"""The loss on a pair of inputs by alignment of draws, checked by replays.

An alignment never shows that a claim is broken: where there is none within it, nothing follows.

Why a bound follows from it: let T move the draws of a run on D by a shift that depends on nothing
but the path that the run takes, and let the run on D' with the moved draws take the same path and
give the same output. On each path T is a translation, and the images of different paths do not
overlap, as each lies on its own path. So the probability of a set of outputs on D is at most exp(ε)
times that on D', where ε is the largest loss between the laws of z and of z + s on any path.
Gaussian draws have to move alike on all paths: the loss of a translation depends on its direction.

Where one shift does for all runs, it is a translation of all draws, and so is its inverse: the
replays that show the one show the other, and each direction has the loss of its own shift.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.random import default_rng

from pytest_dp.basics.arrays import Floats, Outputs
from pytest_dp.oracles.checking import Memory, NotAligned, Pairing, Replayer, differences
from pytest_dp.oracles.direction import CheckedShifts, Direction
from pytest_dp.oracles.handing_out import Numbers, Plan
from pytest_dp.oracles.shifts import LossBound, largest_bound, loss_of_shift
from pytest_dp.outputs.flatten import flatten
from pytest_dp.outputs.leaves import as_float
from pytest_dp.outputs.raised import Raised
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import Mode
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument, Request, Site
from pytest_dp.running.laws import Law
from pytest_dp.statistics.count_tests import fisher_p_value, kolmogorov_smirnov_p_value

TAIL_SHARE = 0.4
"""Of all replays, the share whose draws are from tails."""
MANY_REPLAYS = 100
"""Replays from which outputs on the second input are made as well, if one direction was replayed.
Larger: wrong replays go unseen on small efforts."""
OUTPUTS_ON_TARGET = 40
"""Outputs on the second input to compare with real ones. Fewer: only gross differences show."""
REPLAYS_OF_LARGEST = 200
"""Replays of the pair that moves most, in both directions. Fewer miss the effects of rare draws."""
REPLAYS = 20
"""Replays of each of many other pairs. Fewer miss what is rare on one of them alone."""
REPLAYS_OF_ALL = 200
"""Replays that all other pairs share. Fewer miss a branch that 1 of 30 runs takes."""
ROUNDING = 1e-9
"""Relative excess over the claim that is rounding of sums of shifts."""
MAX_COLUMNS = 50
"""Numbers of an output that are compared with real ones. With more, long outputs cost more."""
MAX_OUTPUTS = 4000
"""Real outputs that are compared with those of replays."""
SINGLE_ROWS = 20
"""Rows of a call that are compared with calls of one row. More: each size of calls takes longer."""
ROW_ROUNDING = 1e-9
"""Difference of rows that is rounding, relative to their largest number."""
SHARED = "rows of a vectorised call are not what calls of one row give with the same draws"


@dataclass(frozen=True, slots=True)
class Move:
    """The distance by which one request's draws move so that the output on D' is that on D."""

    stack: tuple[Site, ...]
    """The lines that lead to the request, innermost first."""
    request: Request
    distances: Floats
    """How far each draw moves."""
    scales: Floats
    """The scale of each draw."""
    loss: LossBound
    """What these moves cost."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """A bound on the loss of a pair by a shift of its draws, and the replays that agree with it."""

    bound: LossBound
    replays: int
    """How many replays agree: each shows both directions, or one where shifts differ by path."""
    from_laws: int
    """How many of them show one direction with draws from the laws, not from the tails."""
    outputs: tuple[Sequence[Any], Sequence[Any]] = field(repr=False, default=((), ()))
    """Outputs on D and on D' of replays with draws from the laws."""
    moves: tuple[Move, ...] = ()
    """How far draws move in the replay with the largest loss, by lines of code."""
    mode: ClassVar[Mode] = "aligned"
    by_rounding: ClassVar[bool] = False
    checked: ClassVar[int] = MAX_OUTPUTS
    basis: ClassVar[str] = "draws aligned"

    @property
    def mu(self) -> float | None:
        """The bound in mu of Gaussian privacy; None if draws of other laws move."""
        return None if self.bound.pure else self.bound.mu

    def parameter_of(self, guarantee: Guarantee) -> float:
        """Return a bound on the parameter of a guarantee; raise CannotInstrument if unknown."""
        return self.bound.parameter_of(guarantee)

    def evidence_against(self, side: int, outputs: Outputs) -> float:
        """Return the log e-value against outputs of real runs on a side having the law of replays.

        By the smallest of several p-values, corrected for their number; 0.0 without two outputs of
        either.
        """
        replayed = self.outputs[side]
        if len(replayed) < 2 or len(outputs) < 2:
            return 0.0
        p_values = list(_p_values(replayed, list(outputs)))
        p = min(1.0, len(p_values) * min(p_values))
        return -0.5 * math.log(max(p, 1e-300)) - math.log(2)


def align(
    call: Call,
    inputs: tuple[Any, Any],
    is_within: Callable[[LossBound], bool],
    replays: int,
    deadline: Deadline,
    memory: Memory | None = None,
) -> Alignment:
    """Run replays of a pair of inputs, and return an alignment of the draws with which they agree.

    Shifts are tried until one has a bound that `is_within` the claim, else the cheapest is taken.
    `replays` are made in both directions together. Adds runs to `memory`.

    Raises NotAligned if there is none (the message says why in a sentence), and OutOfTime if the
    deadline passes.
    """
    memory = memory or Memory()
    replayer = Replayer(call, inputs, deadline, memory.max_runs - memory.made)
    try:
        with replayer:
            return _find_alignment(replayer, inputs, is_within, replays, memory)
    except (CannotInstrument, CannotCopy) as reason:
        raise NotAligned(str(reason)) from None
    finally:
        memory.made += replayer.runs


def _find_alignment(
    replayer: Replayer,
    inputs: tuple[Any, Any],
    is_within: Callable[[LossBound], bool],
    replays: int,
    memory: Memory,
) -> Alignment:
    """Search for shifts from one input to the other; return the alignment.

    The other direction is searched as well, unless the opposite of the shifts found is within the
    claim. The bound is the largest of both directions, and may be above the claim. Adds runs to
    `memory`. Raises NotAligned if a direction has no shifts, or if a repeated replay gives another
    output.
    """
    found: list[tuple[Direction, CheckedShifts]] = []
    bounds: list[LossBound] = []
    keys = [replayer.key_of_input(side) for side in (0, 1)]
    first = memory.side_with_runs(keys, _plan_replays(0, replays))
    for number, source in enumerate((first, 1 - first)):
        plan = _plan_replays(number, replays)
        known = memory.runs_on(keys[source], inputs[source], plan)
        numbers = plan.numbers()
        by_path = len(numbers) if number else max(len(numbers) // 2, 1)
        pairing = Pairing(replayer, source, 1 - source)
        direction = Direction(pairing, numbers, by_path, known, memory)
        shifts = direction.find_shifts(is_within)
        found.append((direction, shifts))
        bounds.append(shifts.bound)
        if shifts.turned is not None and is_within(shifts.turned):
            bounds.append(shifts.turned)
            break
    replayer.renew_copy()
    for direction, shifts in found:
        direction.check_repeatable(shifts.replays[-1])
    outputs = {each.pairing.source: each.outputs(shifts.replays) for each, shifts in found}
    from_laws = min(map(len, outputs.values()))
    if len(found) == 1:
        most = OUTPUTS_ON_TARGET if replays >= MANY_REPLAYS else 0
        outputs[1 - first] = found[0][0].outputs_on_target(found[0][1].replays, most)
    made = sum(len(shifts.replays) for _, shifts in found)
    bound = largest_bound(bounds)
    moves, bound = _find_moves(bound.replay), replace(bound, replay=None)
    return Alignment(bound, made, from_laws, (outputs[0], outputs[1]), moves)


def _plan_replays(number: int, replays: int) -> Plan:
    """Return the plan of all replays in direction 0, or of half as many in direction 1."""
    each = max(replays if number == 0 else replays // 2, 2)
    tails = int(TAIL_SHARE * each)
    return Plan(number, each - tails, tails)


def _find_moves(replay: Any) -> tuple[Move, ...]:
    """Run a replay again, and return how far each of its requests' draws move.

    `replay` is its pairing, numbers and shift; () if it is None.
    """
    if replay is None:
        return ()
    pairing, numbers, shift = replay
    return tuple(
        Move(each.stack, each.request, shift[each.number], each.scale, loss_of_shift([each], shift))
        for each in pairing.run_on_source(numbers, tracked=True).requests
        if each.law is not None and np.any(shift.get(each.number, 0.0))
    )


class AboveClaim(CannotInstrument):
    """An error for an alignment whose bound is above the claim."""

    def __init__(self, reason: str, bound: LossBound) -> None:
        super().__init__(reason)
        self.bound = bound


def replays_of_each(pairs: int) -> int:
    """Return how many replays each pair of a claim gets, except pairs of largest movement."""
    return max(REPLAYS, min(REPLAYS_OF_LARGEST, REPLAYS_OF_ALL // max(pairs, 1)))


def align_within_claim(
    call: Call,
    inputs: tuple[Any, Any],
    guarantee: Guarantee,
    replays: int,
    deadline: Deadline,
    memory: Memory | None = None,
) -> Alignment:
    """Return an alignment whose bound on the loss of a pair is within the claim.

    Of a vectorised mechanism, calls of one row are replayed (see `check_rows`). `memory` is shared
    by the alignments of several pairs of one mechanism.

    Raises CannotInstrument if there is none, `AboveClaim` if there is one with a larger bound, and
    OutOfTime.
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
        bound = guarantee.write_comparison("=", f"{value:.3g}")
        said = f"an alignment bounds the loss by {bound} only, above the claim"
        raise AboveClaim(said, found.bound)
    return found


def _p_values(replayed: Sequence[Any], real: Sequence[Any]) -> Iterator[float]:
    """Yield p-values of outputs having one law: by numbers of leaves, by each number, then 1.0."""
    (ours, our_columns), (theirs, their_columns) = (
        _columns_of_outputs(replayed),
        _columns_of_outputs(real),
    )
    lengths = {*ours, *theirs}
    for length in lengths if len(lengths) > 1 else ():
        yield fisher_p_value((ours[length], theirs[length]), (len(replayed), len(real)))
    for key in list(our_columns)[:MAX_COLUMNS]:
        one, other = np.array(our_columns[key]), np.array(their_columns.get(key, []))
        if len(one) > 1 and len(other) > 1:
            yield kolmogorov_smirnov_p_value(one, other)
    yield 1.0


def _columns_of_outputs(outputs: Sequence[Any]) -> tuple[Counter[int], dict[Hashable, list[float]]]:
    """Count outputs by their number of leaves; return that, and numbers by number and place."""
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


# Rows of vectorised calls
#
# Where the draws of rows change places, their outputs have to, and a call of one row with the draws
# of a row has to give its output. So rows share no draws, their places make no difference, and what
# is known of calls of one row holds for each of them.


class RowDraws:
    """The draws of chosen rows of a call of `count` rows: rows are the first axis of draws."""

    def __init__(self, numbers: Numbers, count: int, chosen: Sequence[int]) -> None:
        self._numbers, self._count, self._chosen = numbers, count, chosen
        self.seed = numbers.seed

    def standard(self, order: int, law: Law, count: int) -> Floats:
        """Return `count` standard draws; raise CannotInstrument if rows cannot share them."""
        each = count // len(self._chosen)
        if each * len(self._chosen) != count:
            raise CannotInstrument(SHARED)
        drawn = self._numbers.standard(order, law, each * self._count)
        own: Floats = drawn.reshape(self._count, each)[list(self._chosen)].ravel()
        return own


def check_rows(call: Call, data: Any, sizes: Iterable[int], deadline: Deadline) -> int:
    """Run vectorised calls of some sizes to compare their rows; return how many rows were made.

    Each call is compared with one that is smaller by a row, and whose rows are in another order.
    Draws are from their laws, and from the tails if the size is odd.

    Raises CannotInstrument if a row is not the output of a call of one row, and OutOfTime.
    """
    made = 0
    with Replayer(call, [data], deadline) as replayer:

        def rows_of(numbers: Numbers, size: int, chosen: Sequence[int]) -> Sequence[Any]:
            output = replayer.run(0, RowDraws(numbers, size, chosen), rows=len(chosen)).output
            return [output] if len(chosen) == 1 else list(output)

        for size in sizes:
            numbers = Plan(size, 1 - size % 2, size % 2).numbers()[0]
            outputs = rows_of(numbers, size, range(size))
            order = default_rng(size).permutation(size).tolist()[1:]
            moved = rows_of(numbers, size, order) if order else []
            if not _are_close([outputs[number] for number in order], moved):
                raise CannotInstrument(SHARED)
            single = (0, size - 1, *order[:SINGLE_ROWS])
            for number in single:
                if not _are_close([outputs[number]], rows_of(numbers, size, [number])):
                    raise CannotInstrument(SHARED)
            made += size + len(order) + len(single)
    return made


def _are_close(one: Any, other: Any) -> bool:
    """Return whether two lists of rows are equal to rounding."""
    found = differences(one, other)
    if found is None or not found.any():
        return found is not None
    try:
        largest = np.nanmax(np.abs(np.asarray(other, float)), initial=1.0)
    except (TypeError, ValueError):  # no array of numbers
        largest = 1.0
    return bool((found <= ROW_ROUNDING * largest).all())
