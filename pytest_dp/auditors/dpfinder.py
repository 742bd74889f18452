"""DP-Finder: move inputs along the gradient of the loss, and count on fresh samples what it found.

Restarts of `pytest_dp.search.gradient` end with pairs of inputs, each with an estimate of its loss
by correlated runs of copies (M-CLT), which is told as such. The best of them are then looked at
beside the pairs that the claim gives, as by StatDP, and the most suspicious event is counted once
on held-out samples, as by DP-Sniper. So the bound is exact, whatever the search did; the paper has
a solver for probabilities in that place.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder: Finding Differential Privacy
Violations by Sampling and Optimization", CCS 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_dp.auditors import held_out
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.dpsniper import conclude
from pytest_dp.auditors.game import Game
from pytest_dp.auditors.result import AuditResult
from pytest_dp.auditors.statdp import runs_of_test, suspect
from pytest_dp.auditors.two_stage import search_then_test
from pytest_dp.auditors.witness import Witness
from pytest_dp.datasets import describe
from pytest_dp.inputs import Pair
from pytest_dp.limits import FEW, LABEL, LONG_STEP_TIME, SAMPLES_SHARE
from pytest_dp.methods import DPFinder
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.reprs import counted
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.search.gradient import Gradients, gradients_of


@dataclass(frozen=True, slots=True)
class _Estimated:
    """A pair that a restart ended with, and about what it loses, in nats."""

    pair: Pair
    loss: float
    error: float

    @property
    def surely(self) -> float:
        return self.loss - self.error if self.error < self.loss else 0.0


def audit(context: Context) -> AuditResult:
    """Audit one claim with DP-Finder; errors are those of `sequential.audit`.

    The result is ``violated`` exactly if the lower bound exceeds the claim, and ``inconclusive`` as
    for StatDP. Of pairs beyond what the claim gives, unless they are to fail, it is told beside the
    verdict what breaks it. Raises ClaimError if the inputs hold no numbers to move.
    """
    found = _found(context)
    beyond = [one.pair for one in found if context.only_told(one.pair)][:FEW]
    inside = [one.pair for one in found if not context.only_told(one.pair)][:FEW]
    if not beyond:
        return _audited(context, [*inside, *context.pairs])
    all_samples, all_time = context.max_samples, context.deadline
    context.max_samples = all_samples // 2
    context.deadline = all_time.sooner(LONG_STEP_TIME)
    result = _audited(context, [*inside, *context.pairs])
    if result.violated:
        return result
    context.max_samples, context.deadline = all_samples, all_time
    said = len(context.sampler.notes)
    told = _audited(context, beyond)
    if not told.violated:
        return result
    bounds, example = context.source.bounds, told.counterexample
    assert example is not None
    pair = Pair(example.d1, example.d2)
    told = replace(told, outside=bounds.beyond(pair), to_add=bounds.to_add(pair))
    told = replace(told, notes=told.notes[said:], hindrances=())
    return replace(result, beyond=told, samples=told.samples, seconds=told.seconds)


def _audited(context: Context, pairs: Sequence[Pair]) -> AuditResult:
    return search_then_test(context, suspect, _test, conclude, coupled=False, pairs=pairs)


def _test(game: Game, witness: Witness) -> held_out.Tested | None:
    """Count the event in held-out samples, as many as the search says are needed."""
    runs = runs_of_test(game, witness)
    return held_out.count_apart(game.context, game.pool, witness, (runs, runs))


def _found(context: Context) -> list[_Estimated]:
    """What the restarts ended with, the largest loss first, as far as time allows."""
    assert isinstance(context.method, DPFinder)
    seconds = SAMPLES_SHARE * context.settings.max_seconds
    promise, seed, whose = context.claim.promise, context.seed, "method='dpfinder'"
    found: list[_Estimated] = []
    try:
        gradients = gradients_of(promise, context.call, seed, Deadline(seconds), whose)
        for number in range(context.method.restarts):
            found += _restarted(context, gradients, number)
    except (CannotCopy, CannotInstrument) as reason:
        context.sampler.note(f"only the pairs of the claim are tested: no gradient, as {reason}")
    except OutOfTime:
        context.sampler.note(f"after {len(found)} restarts there was no time: raise max_seconds")
    found.sort(key=lambda one: -one.surely)
    if found:
        best = found[0]
        inputs = " and ".join(describe(data, LABEL) for data in (best.pair.d1, best.pair.d2))
        context.sampler.note(
            f"of {counted(len(found), 'restart')}, the best found a loss of {best.loss:.3g} ± "
            f"{best.error:.2g} (approximate: M-CLT, of correlated runs) on {inputs}"
        )
    return found


def _restarted(context: Context, gradients: Gradients, number: int) -> list[_Estimated]:
    """What one restart ended with, if that is of interest."""
    found = gradients.restart(number)
    if found is None or (pair := found.pair) is None:
        return []
    beyond = context.source.bounds.beyond(pair)
    if beyond and context.settings.beyond == "off":
        return []
    return [_Estimated(replace(pair, beyond=beyond), *gradients.estimate(found))]
