"""Losses on a claim's pairs that are derived without bets, and their comparison with real runs.

The bets decide. A mechanism that draws where no stand-in sees it looks as if it had no noise at
all. So a loss is shown only where the outputs of real runs, some thousand, look as derived.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pytest_dp.auditors.pairs_in_play import OTHER_OUTPUTS
from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Outputs
from pytest_dp.basics.reach import reach
from pytest_dp.oracles.alignment import (
    REPLAYS,
    REPLAYS_OF_LARGEST,
    AboveClaim,
    Alignment,
    align_within_claim,
    replays_of_each,
)
from pytest_dp.oracles.checking import TOO_FEW_RUNS, Memory
from pytest_dp.oracles.enumerated import EnumeratedPair, compare_laws
from pytest_dp.oracles.enumerating import enumerate_law
from pytest_dp.oracles.shifts import LossBound
from pytest_dp.pairs import Pair
from pytest_dp.privacy import Guarantee
from pytest_dp.results.outcome import Estimate, Mode
from pytest_dp.running.calling import Call, RunCounter
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.generators import seed_randomness
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA

ROUNDING = 1e-9
"""Relative error of a parameter. Smaller: rounding makes a loss larger than the claim."""
ENUMERATING_TIME = 0.1
"""Share of the time to enumerate outcomes. Smaller: losses of slow mechanisms are not known."""
REFUTED = math.log(1_000)
"""Log evidence that refutes a derived law. Smaller: right laws are given up, one in a thousand."""
ALIGNING_TIME = 0.5
"""Share of the time to look for alignments, if runs are slow. Larger: bets have less."""
REPLAY_TIME = 0.1
"""Share of the time left to replay a pair, beyond the fewest replays. Smaller: fewer replays."""
MAX_ALIGNED = 64
"""Pairs of a claim that are aligned before all bets. More: claims of many pairs bet late; fewer:
they use up their effort on bets though losses could be known."""
MAX_PAIRS = 16
"""The same for outcomes that are enumerated, which takes longer."""
REPLAY_SHARE = 0.4
"""Share of all runs that replays may take; half of it if rows of calls are checked as well. Larger:
small efforts cannot show a violation; smaller: they know no losses."""
RUNS_A_REPLAY = 3
"""Runs that a replay takes, about. Fewer: replays take more than their share."""
RUNS_OF_COPY = 2
"""Runs of the copy that is looked at. With one, what only the second run changes goes unseen."""
KEEPS = "it keeps something from run to run"
TOO_SLOW = "its runs take too long"
TOO_FEW = "too few real runs to check it"


KnownPair = EnumeratedPair | Alignment
"""The loss between the outputs on D and on D', as far as it is known."""


def parameter_of(known: KnownPair, guarantee: Guarantee) -> tuple[float, float]:
    """Return the parameter of a guarantee on a pair, and its error (0.0 for an alignment).

    Raises CannotInstrument if it is not known, as for enumerated pairs and parameters but eps.
    """
    if isinstance(known, Alignment):
        return known.parameter_of(guarantee), 0.0
    if guarantee.parameter != "eps":
        raise CannotInstrument(f"a claim of {guarantee.parameter}")
    value, error = known.eps_at(guarantee.delta)
    if guarantee.delta and value > guarantee.claimed:  # a leak of delta may round to more
        value, error = known.eps_at(guarantee.delta * (1 + ROUNDING))
    return value, error


class Enumerator:
    """An enumeration of outcomes on pairs; the law of the outputs on each input is kept."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._laws: dict[object, tuple[Any, Any]] = {}

    def enumerate_pair(self, inputs: tuple[Any, Any], deadline: Deadline) -> EnumeratedPair:
        """Return the loss on a pair by all outcomes on both inputs, with their probabilities.

        Raises CannotInstrument if outcomes cannot be enumerated in time, or the mechanism's own
        error.
        """
        on_d, on_d2 = (self._law_of_outputs(data, deadline) for data in inputs)
        return compare_laws(on_d, on_d2)

    def _law_of_outputs(self, data: Any, deadline: Deadline) -> Any:
        """Return the law of outputs on an input; enumerate it unless it was kept."""
        frozen = Input(data).frozen
        key = id(data) if frozen is None else frozen
        if key not in self._laws:  # with the data, of which no other object may get the id
            self._laws[key] = data, enumerate_law(self._call, data, deadline)
        return self._laws[key][1]


class Aligner:
    """A search for alignments of a claim's pairs, which share runs and a limit on their number.

    An alignment is a shift of random draws that gives the output on D from the run on D'.
    """

    def __init__(self, session: Session) -> None:
        share = REPLAY_SHARE if session.call.size is None else REPLAY_SHARE / 2
        self._session = session
        self._memory = Memory(max_runs=share * session.settings.max_samples)
        self._replays_of_others = replays_of_each(min(len(session.pairs), MAX_ALIGNED))
        self._largest = {pair.content for pair in largest_pairs(session)}
        self.bound_above: LossBound | None = None
        """The first bound that was found above the claim."""

    def align_pair(self, pair: Pair, deadline: Deadline) -> Alignment:
        """Run replays of a pair, and return an alignment whose bound is within the claim.

        Adds a note if there is time for fewer replays than planned. Raises CannotInstrument if
        there is no such alignment or too few runs are left, the mechanism's own errors, and
        OutOfTime.
        """
        session, memory = self._session, self._memory
        planned = REPLAYS_OF_LARGEST if pair.content in self._largest else self._replays_of_others
        made = memory.made
        replays = min(planned, int((memory.max_runs - made) / RUNS_A_REPLAY))
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
            return align_within_claim(
                session.call, pair.inputs, session.guarantee, replays, deadline, memory
            )
        except AboveClaim as found:
            self.bound_above = self.bound_above or found.bound
            raise
        finally:
            session.sampler.looked += memory.made - made


def largest_pairs(session: Session) -> Sequence[Pair]:
    """Return the pair on which the answer moves most, if pairs were screened, else the first."""
    return (session.screened.pairs or session.pairs)[:1]


@dataclass(slots=True)
class DerivedLosses:
    """The losses on pairs that are known without bets, and the means to derive more."""

    pairs: dict[int, KnownPair] = field(default_factory=dict)
    """By the numbers of the pairs."""
    refusal: str = ""
    """Why the loss on a pair of the claim is not known; empty if all are."""
    aligner: Aligner | None = None
    """None if a pair of the claim has no alignment."""
    enumerator: Enumerator | None = None
    """None if outcomes were not enumerated."""
    bound_above: LossBound | None = None
    """A bound by an alignment that is above the claim; None if there was none."""

    def add(self, number: int, pair: Pair, deadline: Deadline) -> None:
        """Derive the loss on one more pair, and keep it under the number of the pair if found.

        An error of the mechanism, or time that is up, leaves the loss unknown.
        """
        with suppress(OutOfTime, CannotInstrument, Exception):  # proposals break no audit
            if number not in self.pairs and self.aligner is not None:
                self.pairs[number] = self.aligner.align_pair(pair, deadline)
        with suppress(OutOfTime, CannotInstrument, Exception):
            if number not in self.pairs and self.enumerator is not None:
                self.pairs[number] = self.enumerator.enumerate_pair(pair.inputs, deadline)

    def is_aligned(self, pair: Pair, deadline: Deadline) -> bool:
        """Run replays; return whether an alignment bounds the loss on a pair within the claim.

        False as well if the mechanism raises, time is up, or alignments are not looked for.
        """
        with suppress(OutOfTime, CannotInstrument, Exception):  # proposals break no audit
            return self.aligner is not None and bool(self.aligner.align_pair(pair, deadline))
        return False

    @property
    def gaussian_is_above(self) -> bool:
        """True if Gaussian noise alone has to move, by more than the claim allows.

        That the loss is as large is not known, only likely.
        """
        bound = self.bound_above
        return bound is not None and bound.mu > 0 == bound.pure

    @property
    def by_rounding(self) -> bool:
        """True if outputs on a pair count as different that differ by rounding alone."""
        return any(pair.by_rounding for pair in self.pairs.values())


def hold_against(known: KnownPair, sides: tuple[Outputs, Outputs]) -> None:
    """Raise CannotInstrument if outputs of real runs on D and on D' refute the loss on a pair."""
    for side, outputs in enumerate(sides):
        if known.evidence_against(side, outputs[: known.checked]) >= REFUTED:
            raise CannotInstrument(OTHER_OUTPUTS)


def check_keeps_nothing(call: Call, data: Any, deadline: Deadline) -> None:
    """Run a copy of the mechanism twice; raise CannotInstrument if the copy has changed.

    Later runs may then differ from enumerated or replayed runs. Passes on the mechanism's errors;
    raises CannotCopy and OutOfTime.
    """
    copied, (on_copy,) = call.copy(data)
    copied = replace(copied, made=RunCounter())  # these are no samples
    before = content_of(copied)
    sequence = np.random.SeedSequence(0)
    with interruptible(deadline, None), seed_randomness(sequence, copied.captured) as rng:
        for _ in range(RUNS_OF_COPY):
            copied.draw_one(on_copy, rng)
    caches = [
        value
        for value, _ in reach((copied.mechanism, ""))
        if isinstance(value, functools._lru_cache_wrapper)  # noqa: SLF001
    ]
    if any(cache.cache_info().currsize for cache in caches) or content_of(copied) != before:
        raise CannotInstrument(KEEPS)


def content_of(call: Call) -> bytes:
    """Return a mechanism and its parameters as bytes: equal as long as nothing in them changes."""
    return Pristine((call.mechanism, call.params)).content


def unseen_share(runs: int) -> float:
    """Return the share of runs in which other behaviour goes unseen in `runs` runs; 0 for 0 runs.

    It is the largest such share of which that has a probability of 5 % or more.
    """
    return -math.expm1(math.log(SHOWN_ALPHA) / runs) if runs else 0.0


def estimate_of(
    known: Sequence[KnownPair], value: float, error: float, runs: int = 0, unseen: float = 0.0
) -> Estimate:
    """Return a loss on several pairs as an estimate, which is as sure as on the least sure pair.

    `runs` is the number of real runs that agree; `unseen` bounds the share of runs in which they
    could miss other behaviour, and alignments replace it.
    """
    mode: Mode = "exact"
    basis = max((pair.basis for pair in known), key=lambda text: (len(text), text))
    aligned = [pair for pair in known if isinstance(pair, Alignment)]
    if aligned:
        mode = "aligned"
        basis = f"{sum(each.replays for each in aligned):,} replays"
        unseen = unseen_share(max(min(each.from_laws for each in aligned), 1))
    return Estimate(
        float(value), error, mode, pairs=len(known), basis=basis, runs=runs, unseen=unseen
    )


def derive_losses(session: Session) -> DerivedLosses:
    """Derive the losses on the claim's first pairs, and return them; never raise for the mechanism.

    Losses are bounded by alignments, the pair of largest movement first. If a pair has none within
    the claim, outcomes are enumerated as far as they can be; `refusal` gives the reason. Counts of
    runs limit both; time ends them only if runs are slow.
    """
    aligner, found = Aligner(session), DerivedLosses()
    given, seconds = session.pairs[:MAX_ALIGNED], session.budget.max_seconds
    largest = {pair.content for pair in largest_pairs(session)}
    order = sorted(range(len(given)), key=lambda at: given[at].content not in largest)
    deadline = session.budget.deadline_in(ALIGNING_TIME * seconds)
    no_alignment = _derive_until_refused(
        found, order, lambda at: aligner.align_pair(given[at], deadline)
    )
    found.bound_above = aligner.bound_above
    if not no_alignment:
        found.aligner = aligner
        return found
    found.enumerator = enumerator = Enumerator(session.call)
    within = session.budget.deadline_in(ENUMERATING_TIME * seconds)
    refusal = _derive_until_refused(
        found,
        range(len(given[:MAX_PAIRS])),
        lambda at: enumerator.enumerate_pair(given[at].inputs, within),
    )
    found.refusal = "; ".join(filter(None, (refusal, no_alignment)))
    return found


def _derive_until_refused(
    found: DerivedLosses, order: Iterable[int], derive: Callable[[int], KnownPair]
) -> str:
    """Add the losses on pairs, by their numbers, to `found`, until one cannot be derived.

    Return the reason, which may be the mechanism's error or lack of time; "" if all are known.
    """
    for number in order:
        try:
            found.pairs[number] = derive(number)
        except OutOfTime:
            return TOO_SLOW
        except CannotInstrument as reason:
            return str(reason)
        except Exception as error:  # the mechanism's own: what only proposes breaks no audit
            return f"{type(error).__name__}: {error}"
    return ""
