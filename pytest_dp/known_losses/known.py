"""Knowledge of a claim's pairs without a sample: sets of outputs to bet on, and the loss.

It only proposes: the bets decide. A mechanism that draws where no stand-in sees it looks as if it
had no noise at all. A loss is told only where outputs of real runs, some thousand, look as derived.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pytest_dp.auditors.pairs_in_play import OTHER_OUTPUTS
from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Outputs
from pytest_dp.oracles.alignment import (
    REPLAYS,
    REPLAYS_OF_LARGEST,
    AboveClaim,
    Alignment,
    align_within_claim,
    replays_of_each,
)
from pytest_dp.oracles.checking import Memory
from pytest_dp.oracles.factors import compare, law_of
from pytest_dp.oracles.handing_out import TOO_FEW_RUNS
from pytest_dp.oracles.known_pairs import KnownPair
from pytest_dp.oracles.shifts import LossBound
from pytest_dp.pairs import Pair
from pytest_dp.privacy import Guarantee, gaussian_sigma
from pytest_dp.results.outcome import Estimate, Mode
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA

ROUNDING = 1e-9
"""Relative error of a parameter. Smaller: rounding makes a loss larger than the claim."""
ENUMERATING_TIME = 0.1
"""Share of the time in which outcomes are enumerated. Larger: bets have less; smaller: losses of
slow mechanisms are not known."""
KEPT_RUNS = 1_000
"""Outputs of a pair that are held against its loss, at least. More take longer; fewer miss what is
rare."""

REFUTED = math.log(1_000)
"""Log of the evidence against a derived law by which it is given up. Smaller: right laws are given
up, one in a thousand; larger: wrong ones are kept."""
ALIGNING_TIME = 0.5
"""Share of the time after which a search for alignments is given up, which ends long before unless
runs are slow. With more, slow mechanisms without one have less time for bets."""
REPLAY_TIME = 0.1
"""Share of the time that is left in which a pair is replayed, unless the fewest replays take
longer. With more, a trainer takes longer to pass; with less, it is replayed less often."""
MAX_ALIGNED = 64
"""Pairs of a claim for which alignments are looked for before all bets, as long as there are some.
With more, claims of many pairs are late to bet; with fewer, an audit spends all its effort on bets
on such claims though their losses could be known."""
MAX_PAIRS = 16
"""The same for outcomes that are enumerated, which takes longer."""
REPLAY_SHARE = 0.4
"""Share of all runs that replays may take; half of it where rows of calls are checked as well. With
more, small efforts have too few runs left to show a violation; with less, they know no losses."""
RUNS_A_REPLAY = 3
"""Runs that a replay takes, about: on both inputs, and to look for other shifts. With more, small
efforts replay a pair less often than they could; with fewer, replays take more than their share."""
TOO_SLOW = "its runs take too long"


Pairs = TypeVar("Pairs", bound=KnownPair)


class Deriving(Generic[Pairs]):
    """One way to know pairs of inputs: the law of outputs on an input, and how two compare."""

    def __init__(
        self,
        law_of: Callable[[Any, Deadline], Any],
        compare: Callable[[Any, Any, Deadline], Pairs],
    ) -> None:
        self._law_of, self._compare = law_of, compare
        self._laws: dict[object, tuple[Any, Any]] = {}

    def pair(self, inputs: tuple[Any, Any], deadline: Deadline) -> Pairs:
        """Return what is known of a pair; raises CannotInstrument, or what the mechanism raises."""
        on_d, on_d2 = (self.law(data, deadline) for data in inputs)
        return self._compare(on_d, on_d2, deadline)

    def law(self, data: Any, deadline: Deadline) -> Any:
        """Return the law of outputs on an input, the same object for equal inputs."""
        frozen = Input(data).frozen
        key = id(data) if frozen is None else frozen
        if key not in self._laws:  # with the data, of which no other object may get the id
            self._laws[key] = data, self._law_of(data, deadline)
        return self._laws[key][1]


@dataclass(slots=True)
class Known:
    """The known losses of pairs, by number, and why there are no more; empty if there could be.

    Those that the claim gives are known from the start; `add` adds one that a search proposes.
    """

    pairs: dict[int, KnownPair] = field(default_factory=dict)
    refusal: str = ""
    deriving: Deriving[Any] | None = None
    alignments: Deriving[Any] | None = None
    """Bounds on losses, which are asked for before `deriving`."""
    above: LossBound | None = None
    """A bound by an alignment that is above the claim."""
    added: set[int] = field(default_factory=set)
    """Pairs that were looked at by `add`."""

    def add(self, number: int, pair: Pair, deadline: Deadline) -> None:
        """Look for what can be known of one more pair, in the same way as of those before.

        Slow mechanisms alone get to the deadline.
        """
        if number in self.added:
            return
        self.added.add(number)
        for deriving in (self.alignments, self.deriving):
            if deriving is None or number in self.pairs:
                continue
            try:
                self.pairs[number] = deriving.pair(pair.inputs, deadline)
            except (OutOfTime, CannotInstrument, Exception):  # what only proposes breaks no audit
                continue

    def is_aligned(self, pair: Pair, deadline: Deadline) -> bool:
        """Return whether an alignment bounds the loss on one more pair within the claim."""
        if self.alignments is None:
            return False
        try:
            self.alignments.pair(pair.inputs, deadline)
        except (OutOfTime, CannotInstrument, Exception):  # what only proposes breaks no audit
            return False
        return True

    def cheaper_claim(self, guarantee: Guarantee) -> str:
        """Return which mu= to claim in place of eps and delta; empty for other claims or noise."""
        is_gaussian = self.is_above or any(pair.mu for pair in self.pairs.values())
        if not (guarantee.delta and guarantee.eps and is_gaussian):
            return ""
        mu = math.floor(1000 / gaussian_sigma(guarantee.eps, guarantee.delta)) / 1000
        said = f"claim mu={mu:g}: it asks the same of Gaussian noise, and takes fewer runs"
        return said if mu else ""

    @property
    def is_above(self) -> bool:
        """Return whether Gaussian noise moves alike on all paths, by more than the claim allows.

        That the loss is as large is not known, only likely.
        """
        bound = self.above
        return bound is not None and bound.mu > 0 == bound.pure and not bound.varies

    @property
    def by_rounding(self) -> bool:
        """Return whether on some pair outputs count as different that differ by rounding alone."""
        return any(pair.by_rounding for pair in self.pairs.values())


TOO_FEW = "too few real runs to check it"


def hold_against(known: KnownPair, sides: tuple[Outputs, Outputs]) -> None:
    """Raise CannotInstrument if outputs of real runs refute what is known of a pair."""
    for side, outputs in enumerate(sides):
        if known.evidence_against(side, outputs[: known.checked]) >= REFUTED:
            raise CannotInstrument(OTHER_OUTPUTS)


def estimate_of(
    known: Sequence[KnownPair], value: float, error: float, runs: int = 0, unseen: float = 0.0
) -> Estimate:
    """Return a loss on some pairs, known by the one that knows least, and of the most outcomes."""
    mode: Mode = "exact"
    basis = max((pair.basis for pair in known), key=lambda text: (len(text), text))
    aligned = [pair for pair in known if isinstance(pair, Alignment)]
    if aligned:
        mode = "aligned"
        basis = f"{sum(each.replays for each in aligned):,} replays"
        replays = max(min(each.from_laws for each in aligned), 1)
        unseen = -math.expm1(math.log(SHOWN_ALPHA) / replays)
    return Estimate(
        float(value), error, mode, pairs=len(known), basis=basis, runs=runs, unseen=unseen
    )


def derive_losses(session: Session) -> Known:
    """Return what is known of the claim's first pairs.

    Losses are bounded by alignments. Where there is none within the claim, outcomes are enumerated
    as far as they can be. All of it goes by counts of runs: time ends it only where runs are slow.
    """
    known = _find_alignments(session)
    if known.refusal:
        derived = _enumerate_losses(session)
        refusal = "; ".join(filter(None, (derived.refusal, known.refusal)))
        pairs = {**known.pairs, **derived.pairs}
        known = replace(derived, pairs=pairs, refusal=refusal, above=known.above)
    return known


def _find_alignments(session: Session) -> Known:
    """Return bounds by alignments on the claim's first pairs, those of largest movement first."""
    largest = (session.screened.pairs or session.pairs)[:1]
    share = REPLAY_SHARE if session.call.size is None else REPLAY_SHARE / 2
    most = share * session.settings.max_samples
    given, memory = session.pairs[:MAX_ALIGNED], Memory(max_runs=most)
    of_others = replays_of_each(len(given))
    seconds = session.budget.max_seconds

    def compare(on_d: Any, on_d2: Any, deadline: Deadline) -> KnownPair:
        replays = REPLAYS_OF_LARGEST if {id(on_d), id(on_d2)} in of_largest else of_others
        left, made = memory.max_runs - memory.made, memory.made
        replays = min(replays, int(left / RUNS_A_REPLAY))
        if replays < REPLAYS:
            raise CannotInstrument(TOO_FEW_RUNS)
        in_time = session.budget.runs_in_time(REPLAY_TIME) / RUNS_A_REPLAY
        if replays > max(in_time, REPLAYS):
            planned, replays = replays, max(int(in_time), REPLAYS)
            session.sampler.note(
                f"a run takes {session.budget.run_text}: a pair was replayed "
                f"{replays} times in place of {planned}, as that takes too long"
            )
        try:
            known = align_within_claim(
                session.call, (on_d, on_d2), session.guarantee, replays, deadline, memory
            )
        except AboveClaim as found:
            above.append(found.bound)
            raise
        finally:
            session.sampler.looked += memory.made - made
        return known

    alignments, deadline = (
        Deriving(lambda data, _: data, compare),
        session.budget.deadline_in(ALIGNING_TIME * seconds),
    )
    of_largest = [{id(alignments.law(data, deadline)) for data in p.inputs} for p in largest]
    contents, known = {pair.content for pair in largest}, Known(alignments=alignments)
    order = sorted(range(len(given)), key=lambda at: given[at].content not in contents)
    above: list[LossBound] = []
    known.refusal = _until_refused(known.pairs, given, order, alignments, deadline)
    known.above = above[0] if above else None
    return replace(known, alignments=None) if known.refusal else known


def _enumerate_losses(session: Session) -> Known:
    """Return losses on the claim's first pairs by enumeration of outcomes."""
    enumeration = Deriving(
        lambda data, deadline: law_of(session.call, data, deadline),
        lambda on_d, on_d2, _: compare(on_d, on_d2),
    )
    known, given = Known(deriving=enumeration), session.pairs[:MAX_PAIRS]
    deadline = session.budget.deadline_in(ENUMERATING_TIME * session.budget.max_seconds)
    known.refusal = _until_refused(known.pairs, given, range(len(given)), enumeration, deadline)
    return known


def _until_refused(
    known: dict[int, KnownPair],
    given: Sequence[Pair],
    order: Iterable[int],
    deriving: Deriving[Any] | None,
    deadline: Deadline,
) -> str:
    """Add what is known of pairs, in this order; return why nothing is of the next, if so."""
    assert deriving is not None
    for number in order:
        try:
            known[number] = deriving.pair(given[number].inputs, deadline)
        except OutOfTime:
            return TOO_SLOW
        except CannotInstrument as reason:
            return str(reason)
        except Exception as error:  # the mechanism's own: what only proposes breaks no audit
            return f"{type(error).__name__}: {error}"
    return ""
