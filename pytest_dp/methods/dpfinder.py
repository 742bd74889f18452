"""DP-Finder: move inputs along the gradient of the loss, and test the event found on fresh samples.

Restarts of `methods.gradient` end with pairs of inputs, each with an output and an estimate of its
loss by correlated runs of copies (M-CLT); a note calls it approximate. If the best estimate is
above the claim, that output is tested. Otherwise the best pairs and those of the claim are searched
as by StatDP. One event is counted once on held-out samples, as by DP-Sniper, so the bound is exact
however the search chooses. The paper computes probabilities by a solver instead.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder: Finding Differential Privacy
Violations by Sampling and Optimization", CCS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pytest_dp.auditors.session import AuditFinding, AuditResult, Session
from pytest_dp.auditors.witness import Witness, find_conjunction
from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.reprs import LABEL_LENGTH, plural
from pytest_dp.claiming.claim import Promise
from pytest_dp.claiming.method_settings import DPFinder
from pytest_dp.data import describe
from pytest_dp.methods.families import PairFamily, families_of
from pytest_dp.methods.gradient import MIN_SHARE, Gradients, make_gradients
from pytest_dp.methods.smooth import Output
from pytest_dp.methods.statdp import find_suspicious_event
from pytest_dp.methods.two_stage import PairSearch, search_then_test
from pytest_dp.outputs.features import features
from pytest_dp.pairs import Pair
from pytest_dp.proposers.by_movement import Clock
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.event_test import EventTest

OUTSIDE_SHARE = 0.5
"""Share of alpha for pairs outside of the inputs. Larger: pairs inside need more samples."""
MAX_SUSPECTS = 3
"""Pairs of the search that are tested. More share the samples; fewer: the best is missed."""
OUTPUTS_TO_COUNT = 256
"""Outputs that a smoothed run should count. More: fewer steps; fewer: gradients are noise."""
INSIDE_TIME = 0.5
"""Share of the time for pairs inside of the inputs. Larger: less is left for pairs outside."""
FIRST_LOOK_TIME = 0.4
"""Share of the time for first outputs. Larger: less search; smaller: too few outputs."""
SEARCH_SHARE = 0.25
"""Share of samples and time for the search. Larger: wider bounds; smaller: worse pairs."""

SEARCH_RESTARTS = 8
"""Restarts of ``search="gradient"``. More take longer; fewer may miss the leak."""
LOOKED_AT = 2 * 1_000
"""Outputs on either input for a readable event. Derived: one of 1 % comes twenty times."""


@dataclass(frozen=True, slots=True)
class _Estimated:
    """A pair at the end of a restart, with an output and the estimate of its loss."""

    pair: Pair
    output: Output
    thresholds: Floats
    loss: float
    """In nats; infinite if the output came on one input only."""
    error: float
    """Approximate error of the loss, in nats."""

    @property
    def least_loss(self) -> float:
        """The loss less its error, at least 0; infinite if the output came on one input only."""
        return self.loss if math.isinf(self.loss) else max(self.loss - self.error, 0.0)

    @property
    def text(self) -> str:
        """The loss and its error, for people."""
        if math.isinf(self.loss):
            return "an output that came on one of them only"
        return f"a loss of {self.loss:.3g} ± {self.error:.2g}"


def audit(session: Session) -> AuditFinding:
    """Run the mechanism to audit one claim with DP-Finder; return and raise as `search_then_test`.

    A violation on a pair outside of the declared inputs is a second result beside the first, unless
    such pairs shall fail. Also raises ClaimError if the inputs hold no numbers to move.
    """
    found = _run_restarts(session)
    beyond = [one for one in found if session.is_report_only(one.pair)]
    inside = [one for one in found if not session.is_report_only(one.pair)]
    if not beyond:
        return AuditFinding(_audit_pairs(session, inside, 1.0, session.pairs))
    # Pairs outside of the declared inputs have a test of their own, at their own share of alpha.
    all_samples, all_time = session.budget.max_samples, session.budget.deadline
    session.budget.max_samples = all_samples // 2
    session.budget.deadline = all_time.with_reserve(INSIDE_TIME)
    try:
        result = _audit_pairs(session, inside, 1 - OUTSIDE_SHARE, session.pairs)
    finally:
        session.budget.max_samples, session.budget.deadline = all_samples, all_time
    if result.violated:
        return AuditFinding(result)
    said = len(session.sampler.notes)
    told = _audit_pairs(session, beyond, OUTSIDE_SHARE)
    if not told.violated:
        return AuditFinding(result)
    bounds, example = session.source.bounds, told.counterexample
    assert example is not None
    pair = Pair(example.d1, example.d2)
    told = replace(told, outside=bounds.beyond(pair), to_add=bounds.to_add(pair))
    told = replace(told, notes=told.notes[said:], hindrances=())
    return AuditFinding(result, beyond=AuditFinding(told))


def _audit_pairs(
    session: Session, found: Sequence[_Estimated], share: float, given: Sequence[Pair] = ()
) -> AuditResult:
    """Test the output of the best restart if its estimate breaks the claim, else search as StatDP.

    `found` has the largest loss first; `given` are pairs of the claim. The test spends `share` (0
    to 1) of alpha. A restart's output that is tested in vain makes a claim with pairs inconclusive.
    """
    guarantee = session.guarantee
    play = partial(search_then_test, session, proof=EventTest, share=share)
    if not (found and guarantee.parameter == "eps" and found[0].least_loss > guarantee.claimed):
        return play(
            find_suspicious_event, pairs=[*(one.pair for one in found[:MAX_SUSPECTS]), *given]
        )
    result = play(partial(_event_of_restart, found[0]), pairs=[found[0].pair])
    if result.violated or not given:
        return result
    note = "only the pair that a restart ended on was tested, in vain: raise max_samples"
    return replace(
        result,
        verdict="inconclusive",
        pairs=(1, 1 + len(given)),
        notes=(*result.notes, note),
        hindrances=(*result.hindrances, note),
    )


def _event_of_restart(found: _Estimated, pairs: PairSearch) -> Witness | None:
    """Run the pair of a restart, and return its output as a readable event.

    If the outputs do not show such an event, return that of `find_suspicious_event`.
    """
    session = pairs.session
    runs = max(1, min(LOOKED_AT, int(SEARCH_SHARE * session.budget.runs_left / 2)))
    (state,) = pairs.begin(1, runs, session.budget.deadline.with_reserve(FIRST_LOOK_TIME))
    table, on_d = state.outputs.table()
    if table.is_extract:
        return find_suspicious_event(pairs)
    inside = np.array([found.output.contains(output, found.thresholds) for output in table.raw])
    about = features(table, inside)
    agreeing = find_conjunction(table, inside, about, partial(np.subtract, dtype=float), 1)
    if agreeing is None or agreeing.rank <= 0:
        return find_suspicious_event(pairs)
    within = agreeing.event.mask(table)
    c1, c2 = (int((within & side).sum()) for side in (on_d, ~on_d))
    pairs.is_decided = True  # the test takes as many samples as these counts say
    return Witness(state, agreeing.event, 1, c1 / runs, c2 / runs)


def _run_restarts(session: Session) -> list[_Estimated]:
    """Run restarts, and return their pairs, the largest loss first; add notes on the outcome.

    Fewer if the time is up, or if pairs have no known loss; empty if the mechanism has no
    gradients. Raises ClaimError as `families_of`.
    """
    assert isinstance(session.method, DPFinder)
    seconds = SEARCH_SHARE * session.settings.max_seconds
    families = families_of(session.claim.promise, "method='dpfinder'")
    counted_on = session.budget.max_samples / 4  # of each input, where two tests are made
    least = min(max(2 * OUTPUTS_TO_COUNT / counted_on, MIN_SHARE), SEARCH_SHARE)
    found: list[_Estimated] = []
    try:
        gradients = make_gradients(families, session.call, session.seed, Deadline(seconds), least)
        for number in range(session.method.restarts):
            found += _run_restart(session, gradients, number)
    except (CannotCopy, CannotInstrument) as reason:
        session.sampler.note(f"only the pairs of the claim are tested: no gradient, as {reason}")
    except OutOfTime:
        session.sampler.note(f"after {len(found)} restarts there was no time: raise max_seconds")
    found.sort(key=lambda one: -one.least_loss)
    if found:
        best = found[0]
        inputs = " and ".join(describe(data, LABEL_LENGTH) for data in (best.pair.d1, best.pair.d2))
        session.sampler.note(
            f"of {plural(len(found), 'restart')}, the best ended on {inputs}, with {best.text} "
            "(approximate: M-CLT, of correlated runs)"
        )
    return found


def _run_restart(session: Session, gradients: Gradients, number: int) -> list[_Estimated]:
    """Run one restart, and return its pair in a list; empty if the pair has no known loss.

    Also empty for a pair outside of the declared inputs if the settings have such pairs off.
    """
    found = gradients.run_restart(number)
    if found is None or (pair := found.pair) is None:
        return []
    beyond = session.source.bounds.beyond(pair)
    if beyond and session.settings.beyond == "off":
        return []
    loss, error = gradients.estimate(found)
    if math.isnan(loss):
        return []
    pair = replace(pair, beyond=beyond)
    return [_Estimated(pair, found.output, found.thresholds, loss, error)]


class ByGradients:
    """A search that proposes the pairs at the ends of restarts; raises as `families_of`."""

    name = "gradient"

    def __init__(self, promise: Promise, call: Call, clock: Clock, seed: int) -> None:
        self._reason = ""
        self._pairs = self._propose(families_of(promise, "search='gradient'"), call, clock, seed)

    def propose(self) -> Iterator[Pair]:
        """Return the one iterator over pairs, which runs restarts until the time is up."""
        return self._pairs

    def notes(self) -> list[str]:
        """Return a note on why no gradient was followed; empty if one was followed."""
        return [f"no gradient was followed, as {self._reason}"] if self._reason else []

    def _propose(
        self,
        families: Callable[[np.random.Generator], PairFamily],
        call: Call,
        clock: Clock,
        seed: int,
    ) -> Iterator[Pair]:
        """Run restarts and yield their pairs until time is up; keep the reason for no gradient."""
        try:
            gradients = make_gradients(families, call, seed, Deadline(clock.remaining))
            for number in range(SEARCH_RESTARTS):
                found = gradients.run_restart(number)
                if found is not None and (pair := found.pair) is not None:
                    yield replace(pair, origin="D was moved along the gradient of its loss")
        except (CannotCopy, CannotInstrument) as reason:
            self._reason = str(reason)
        except OutOfTime:
            return
