"""The outcome of an audit in one line."""

from __future__ import annotations

import math

from pytest_dp.report import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.privacy import Guarantee
    from pytest_dp.results.result import Counterexample, Result


def headline(result: Result) -> str:
    """Return the outcome in one line."""
    guarantee = result.claim.promise.guarantee
    if result.violated and result.outside:
        return f"outside the declared inputs: {_claimed_and_shown(result)[1]} for {result.outside}"
    if result.violated:
        claimed, shown = _claimed_and_shown(result)
        return f"claimed {claimed}, but {shown} ({numbers.confidence(result.alpha)} confidence)"
    claim = claim_text(guarantee)
    beyond = "" if result.beyond is None else f"; {headline(result.beyond)}"
    if result.verdict == "inconclusive":
        samples = numbers.format_count(result.samples)
        effort = f"{samples} samples in {numbers.format_seconds(result.seconds)}"
        why = " (blind): no event distinguishes the inputs, in" if result.blind else ""
        return f"inconclusive{why or f': could not test {claim} with'} {effort}{beyond}"
    found = f"no violation of {claim}"
    if result.rests_on_loss:
        return f"{found}: {result.worth} ({result.strength}){beyond}"
    now = numbers.not_ruled_out(result.may_lose, guarantee.parameter) if result.over_now else ""
    if result.far_below is not None:
        lost, claimed = (
            numbers.format_upper(result.far_below),
            numbers.claimed_number(result.claimed),
        )
        seen = f"the strongest attack shows a loss of at most {lost} of {claimed}"
        return f"{found} found; {seen} ({result.strength}){beyond}"
    if not math.isfinite(result.resolution):
        return f"{found} found, but {now or 'this run could have caught nothing'}{beyond}"
    caught = guarantee.true(numbers.format_upper(result.resolution))
    if guarantee.largest_ratio is None and not result.risks:
        too_small = 100 * (1 - 1 / max(guarantee.noise_below(result.resolution), 1.0))
        caught = f"{caught} (noise {math.ceil(too_small)} % too small)"
    worth = f"{caught} would have been caught" + (f", but {now}" if now else "")
    return f"{found} found; {worth} ({result.strength}){beyond}"


def _claimed_and_shown(result: Result) -> tuple[str, str]:
    """Return the claim of a violation and its bound as text: ``eps = 1.0``, ``eps >= 1.79``."""
    guarantee = result.claim.promise.guarantee
    if result.one_sided and result.counterexample is not None:
        return claim_text(guarantee), _on_one_side(result.counterexample)
    if not result.lower > result.claimed:
        return claim_text(guarantee), guarantee.more_than(numbers.claimed_number(result.claimed))
    claimed, bound = numbers.claim_and_bound(result.claimed, result.lower)
    return guarantee.written(claimed), guarantee.at_least(bound)


def _on_one_side(example: Counterexample) -> str:
    """Return how often an event came on D and never on D', by fresh runs if it came in any."""
    counts, runs = example.counts, example.runs
    if not counts[0] and example.bet_counts is not None and example.bet_runs is not None:
        counts, runs = example.bet_counts, example.bet_runs
    on_d, runs_on_d, others = map(numbers.format_count, (counts[0], *runs))
    return f"S comes in {on_d} of {runs_on_d} runs on D and in none of {others} on D'"


def claim_text(guarantee: Guarantee) -> str:
    """Return a claim as text: ``eps = 1.0``."""
    return guarantee.written(numbers.claimed_number(guarantee.claimed))
