"""Pairs by how far the answer without noise moves on them, in units of its noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pytest_dp.basics import clocks
from pytest_dp.claiming.claim import Promise
from pytest_dp.claiming.settings import Settings
from pytest_dp.data import kind_of
from pytest_dp.data.conversion import length
from pytest_dp.data.record_relations import AddRemoveOne, OfRecords
from pytest_dp.data.relations import AnyTwo, Pair
from pytest_dp.pairs.screening import (
    Screening,
    can_take_parts,
    draw_any_two,
    draw_parts,
    rank_moves,
)
from pytest_dp.pairs.sources import Moved, PairSource, Screened, Screener, mark_pairs
from pytest_dp.pairs.unreached import Line
from pytest_dp.proposers.interesting_values import far_values, missing_values, odd_pairs
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import OutOfTime

if TYPE_CHECKING:  # with Hypothesis, which not all claims load
    from pytest_dp.pairs.generated import Generated

MAX_PROPOSED = 6
"""Pairs inside the claim that are proposed. Fewer leave out other moves than the largest."""
MAX_OPENED = 1_000
"""Pairs around inputs that take new branches, which are screened. Fewer miss comparisons."""
MAX_OUTSIDE = 400
"""Pairs outside the claim that are screened. Fewer try odd values in fewer records."""
MAX_WHOLES, MAX_WHOLE_ROWS = 24, 2_000_000
"""Pairs of whole large examples that are screened, and their rows. Fewer miss what shows in the
whole alone."""
WHOLE_SECONDS = 5.0
"""Seconds for these pairs, if no more are left. With fewer, a busy machine runs none."""
FAR_ABOVE = 2.0
"""How many times the claim a loss has to be, to draw no further pairs of a strategy. With less, a
violation is looked for on a pair that shows it by little."""
FARTHER = 10_000
"""How many times as far values are tried where far ones show no violation. Smaller ones stay within
the noise of code whose examples are small, such as flags."""
CLEARLY_FARTHER = 1.25
"""How many times as far the answer has to move on a proposed pair outside the claim."""
CLEARLY_MORE = 1.0001
"""How many times as far the answer has to move as on given pairs. With less, rounding counts."""

WANTED_PAIRS = 1_000
"""Pairs of small inputs that are screened. Fewer miss the pair that loses most more often."""
LEAST_PAIRS = 250
"""Pairs of large inputs that are screened. With more, a frame of some hundred rows takes
seconds."""
SCREENED_RECORDS = 100_000
"""Records in all pairs that are screened. With more, the same."""


def wanted_pairs(records: int) -> int:
    """Return how many pairs to screen, 250 to 1,000, if the largest input has this many records."""
    return max(LEAST_PAIRS, min(WANTED_PAIRS, SCREENED_RECORDS // max(records, 1)))


T = TypeVar("T")


class Clock:
    """A countdown of the seconds that a search may use."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: clocks.Stopwatch | None = None

    @property
    def remaining(self) -> float:
        """Seconds that are left; below 0 after an overrun."""
        return self._seconds - (self._since.effort_seconds() if self._since is not None else 0.0)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time that passes inside as spent; nested uses count once."""
        if self._since is not None:
            yield
            return
        self._since = clocks.Stopwatch()
        try:
            yield
        finally:
            self._seconds, self._since = self.remaining, None

    def count_time(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, and count the time for making each of them as spent."""
        iterator = iter(items)
        while True:
            with self.running():
                found = list(islice(iterator, 1))
            if not found:
                return
            yield from found


class ByMovement(Screener):
    """A search for pairs on which the answer moves most in runs with fixed draws."""

    name = "movement"

    def __init__(
        self,
        source: PairSource,
        promise: Promise,
        call: Call,
        clock: Clock,
        settings: Settings,
        constants: Callable[[], Sequence[Any]] = list,
    ) -> None:
        seed, self._beyond = settings.seed or 0, settings.beyond != "off"
        self._source, self._promise, self._clock = source, promise, clock
        self._call, self._constants = call, constants
        self._is_guided = any(isinstance(option, str) for option in settings.search)
        self._rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        self._screening = Screening(call, clock.remaining, raising=source.generated is not None)
        self._screening_outside = self._screening
        if source.bounds.is_sample:
            self._screening_outside = Screening(call, clock.remaining)
        self._screened: Screened | None = None
        self._proposed: list[Moved] = []
        self._outside: list[Moved] = []
        self._not_screened: list[Pair] = []

    def screen(self) -> Screened:
        """Run the mechanism on pairs in the first call; return how far the answer moves on them."""
        if self._screened is None:
            with self._clock.running():
                self._screened = self._screen_all()
        return self._screened

    def find_unreached_lines(self) -> list[Line]:
        """Return the lines of code that no run reached; may run the given inputs again."""
        given = self._source.given
        inputs = [data for pair in given[:MAX_PROPOSED] for data in pair.inputs]
        fixed = {*self._call.params, self._call.size or ""} - given[0].params.keys()
        return self._screening.find_unreached_lines(inputs, fixed)

    def propose(self) -> Iterable[Pair]:
        """Screen in the first call; return pairs that move farther than the given ones.

        Pairs that lose more than the claim allows come first, and pairs outside of the claim last,
        if `beyond` is not off. If nothing could be screened, a few pairs with odd values are
        returned. Each is returned by one call only.
        """
        self.screen()
        moved, self._proposed, self._outside = [*self._proposed, *self._outside], [], []
        urgent_first = sorted(moved, key=lambda one: not self._is_urgent(one))
        proposed = [*(one.pair for one in urgent_first), *self._not_screened]
        self._not_screened = []
        return mark_pairs(proposed, self._source.bounds, wanted=self._beyond)

    def _is_urgent(self, moved: Moved) -> bool:
        """Return whether the answer moves farther on a pair than the claim allows."""
        return moved.movement.loss > CLEARLY_MORE * self._promise.guarantee.claimed

    def _screen_all(self) -> Screened:
        """Screen pairs inside and outside of the claim; note which to propose."""
        source, given = self._source, self._source.given
        inputs = [data for pair in given for data in (pair.d1, pair.d2)]
        sizes = (length(data) if kind_of(data) else 1 for data in inputs)
        self._wanted = wanted = wanted_pairs(max(sizes, default=1))
        done, known = self._screening.screen(given, wanted)
        pairs, is_all = self._further_pairs()
        is_drawn = source.generated is not None  # which takes most of the time
        enough = FAR_ABOVE * self._promise.guarantee.claimed if is_drawn else math.inf
        more, found = self._screening.screen(pairs, wanted - done, enough=enough)
        is_all = is_all and done + more < wanted and not self._screening.has_enough
        if not self._screening.note:
            whole, farthest_of_whole = self._screen_wholes()
            more, found = more + whole, rank_moves([*found, *farthest_of_whole])
        turns = [(pair, source.bounds.beyond(pair)) for pair in self._pairs_at_new_branches()]
        within = [pair for pair, beyond in turns if not beyond]
        opened, closest = self._screening.screen(within, MAX_OPENED, twice=True)
        more, found = more + opened, rank_moves([*found, *closest])
        farthest = known[0].movement.order if known else (0.0, 0.0)
        kinds = {moved.movement.kind for moved in known}
        inside = []
        for moved in found:
            is_new = moved.movement.kind not in kinds and math.isinf(moved.movement.loss)
            if len(self._proposed) < MAX_PROPOSED and (is_new or _moves_farther(moved, farthest)):
                self._proposed.append(moved)
            inside.append(moved)
            if moved.movement.kind == "raised":  # an input that it refuses is told
                self._not_screened = [moved.pair]
        largest = tuple(rank_moves([*known, *inside]))
        if self._beyond:
            self._screen_outside(largest, [pair for pair, beyond in turns if beyond])
        first = rank_moves([*known, *self._proposed]) + self._outside
        urgent = tuple(moved.pair for moved in first if self._is_urgent(moved))
        why = self._screening.note or self._screening.cut_off
        is_enough = is_all or done + more >= wanted
        return Screened(done + more, is_enough, largest, urgent, why)

    def _screen_outside(self, inside: Sequence[Moved], turns: Sequence[Pair]) -> None:
        """Screen pairs outside of the claim; keep those that move farther than all `inside` it.

        `turns` are pairs around other branches. Nothing if a move inside is infinite. Where nothing
        can be screened, a few pairs with values that no example holds are kept as they are.
        """
        inputs, relation = self._promise.inputs, self._promise.relation
        farthest = inside[0].movement.loss if inside else 0.0
        if math.isinf(farthest):
            return
        self._screen_farther(turns, farthest, twice=True)
        given = self._source.given
        if not (isinstance(inputs, list | tuple) and inputs and isinstance(relation, OfRecords)):
            return
        if any(pair.params or pair.is_large for pair in given):  # to change the whole takes long
            return
        # Missing values break most code that was not written for them: what numbers break says
        # more, and comes first.
        far = partial(odd_pairs, inputs, relation)
        if self._screening.note:
            kinds = (far_values, missing_values)
            self._not_screened += [p for of in kinds for p in islice(far(of), MAX_PROPOSED)]
            return
        self._screen_farther(far(far_values), farthest)
        if not any(map(self._is_urgent, [*inside, *self._outside])):
            self._screen_farther(far(partial(far_values, times=FARTHER)), farthest)
        self._screen_farther(far(missing_values), farthest)

    def _screen_farther(
        self, pairs: Iterable[Pair], farthest: float, *, twice: bool = False
    ) -> None:
        """Screen pairs; keep those outside of the claim that move clearly farther than a loss.

        `farthest` is that loss, in nats.
        """
        most = min(MAX_OUTSIDE, self._wanted // 2)
        _, found = self._screening_outside.screen(pairs, most, twice=twice)
        farther = [moved for moved in found if moved.movement.loss > CLEARLY_FARTHER * farthest]
        self._outside += [
            replace(moved, pair=replace(moved.pair, beyond=self._source.bounds.beyond(moved.pair)))
            for moved in farther[:MAX_PROPOSED]
        ]

    def _pairs_at_new_branches(self) -> list[Pair]:
        """Return pairs around inputs that take other branches; empty without a guided search.

        Also empty for large or stated pairs and those with parameters; ends if user code raises.
        """
        given, is_stated = self._source.given, self._promise.relation is None
        if self._screening.note or not self._is_guided or is_stated:
            return []
        if any(pair.params or pair.is_large for pair in given):
            return []
        from pytest_dp.proposers.turns import pairs_at_new_branches  # loads Hypothesis

        about = self._source, self._promise, self._call, int(self._rng.integers(2**32))
        found: list[Pair] = []
        with suppress(OutOfTime, Exception):  # what the user's own objects raise: it only proposes
            found.extend(islice(pairs_at_new_branches(*about, self._constants), MAX_OPENED))
        return found

    def _further_pairs(self) -> tuple[Iterator[Pair], bool]:
        """Return an iterator of further pairs of the claim, and whether these are all there are."""
        promise, source = self._promise, self._source
        relation = promise.relation
        if source.generated is not None:
            return self._draw_pairs(source.generated), False
        inside = (replace(pair, origin="") for pair in source.following if not pair.beyond)
        if isinstance(promise.inputs, list | tuple) and can_take_parts(relation):
            assert isinstance(relation, AddRemoveOne)
            return draw_parts(promise.inputs, relation, self._rng), False
        return inside, True

    def _screen_wholes(self) -> tuple[int, list[Moved]]:
        """Screen pairs of whole large examples; return how many could be run, and the largest.

        Their noise is probed anew, as large inputs may have other noise than small ones.
        """

        def wholes() -> Iterator[Pair]:
            rows = 0
            for pair in islice(self._source.wholes, MAX_WHOLES):
                yield pair
                rows += length(pair.d1)
                if rows >= MAX_WHOLE_ROWS:
                    return

        seconds = max(self._clock.remaining, WHOLE_SECONDS)
        screening = Screening(self._call, seconds, tracer=self._screening.tracer)
        return screening.screen(wholes(), MAX_WHOLES, twice=True)

    def _draw_pairs(self, generated: Generated) -> Iterator[Pair]:
        """Yield pairs of a strategy: those that wait, any two of its values, others."""
        pool = [*self._source.given, *generated.pool]
        yield from generated.pool
        if isinstance(self._promise.relation, AnyTwo):
            yield from draw_any_two(pool, self._rng)
        yield from generated.propose()


def _moves_farther(moved: Moved, largest: tuple[float, float]) -> bool:
    """Return whether a pair clearly moves farther than `largest`, a loss and a move of the answer.

    The move of the answer counts if both losses are infinite.
    """
    loss, answer = moved.movement.order
    if loss == largest[0]:
        return math.isinf(loss) and answer > CLEARLY_MORE * largest[1]
    return loss > CLEARLY_MORE * largest[0]
