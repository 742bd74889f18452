"""The outcome of an audit in one line, and the message of a violation: what a red build shows.

Written in ASCII for terminals that show nothing else (inputs and events are shown as they are), and
76 columns wide, so that pytest's ``E   `` in front of every line still fits into 80.
"""

from __future__ import annotations

import math
import re
from textwrap import wrap
from typing import Any

from pytest_dp.basics.reprs import LINE_WIDTH, plural
from pytest_dp.report import numbers
from pytest_dp.report.pair import (
    field_lines,
    input_lines,
    kept_pair_lines,
    reproduce_lines,
    wrap_lines,
)
from pytest_dp.results.outcome import Risk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.privacy import Guarantee
    from pytest_dp.report.record import Record
    from pytest_dp.results.result import Counterexample, Distance, Result

NO_EXAMPLE = "No effort was left for a counterexample: raise max_samples or max_seconds."
UNBLAMED = (
    "To fix it: add noise to the quantity in S, or let one record move it less, or claim the "
    "larger loss. The line of code that leaks was not found."
)
LOWER_A_RISK = (
    "To fix it: give each single record less weight, by a smaller model, fewer passes over the "
    "data or private training; or leave the record out; or claim its true AUC."
)
MAX_RECORDS = 8
"""Records at risk that are named. More hide the rest."""
PLAYED = (
    "The data had the record or not, and the seed changed. An attack that had learned from "
    "earlier runs scored the output with the record above the other one with this frequency (AUC):"
)
LEAST_SHOWN = 1e-9
"""A p-value below which a failure says "less than": smaller ones tell a reader nothing more."""
SPARE = 3
"""Runs more in S on D' with which counts still explain a verdict. Fewer: counts may mislead."""
ONE_SIDED = "S comes on D only"
LOSS_DIGITS = 9
"""Digits of a loss that is known; with more, errors of rounding make 1.01 of a loss of 1."""
NO_RUNS = "No effort was left for fresh runs: raise max_samples or max_seconds to see more."


def headline(result: Result) -> str:
    """Return the outcome of an audit in one line; after a pass, also a violation outside."""
    guarantee = result.claim.promise.guarantee
    if result.violated:
        claimed, shown = _claim_and_proof(result)
        if result.outside:
            return f"outside the declared inputs: {shown} for {result.outside}"
        return (
            f"claimed {claimed}, but {shown} ({numbers.format_confidence(result.alpha)} confidence)"
        )
    claim = claim_text(guarantee)
    if result.verdict == "inconclusive":
        samples = numbers.format_count(result.samples)
        effort = f"{samples} samples in {numbers.format_seconds(result.seconds)}"
        outcome = f"inconclusive: could not test {claim} with {effort}"
        if result.blind:
            outcome = f"inconclusive (blind): no event distinguishes the inputs, in {effort}"
    else:
        outcome = f"no violation of {claim} found: {pass_worth(result)} ({result.strength})"
    return outcome if result.beyond is None else f"{outcome}; {headline(result.beyond)}"


def pass_worth(passed: Result | Record) -> str:
    """Return what a pass is worth: the loss if it is known, else the smallest loss it detects.

    ``"loss 0.995, computed"``, ``"detects eps >= 1.18"``, ``"detects nothing"``; ``"up to 1.26 not
    ruled out"`` if a loss above the claim is not ruled out; ``"strongest attack 0.1"`` far below
    the claim.
    """
    resolution = math.inf if passed.resolution is None else passed.resolution
    known = passed.estimate
    if known is not None and known.runs:
        loss = numbers.format_upper(float(f"{resolution:.{LOSS_DIGITS}g}"))
        loss += " times the claim" if passed.parameter == "scale" else ""
        name = "loss" if passed.parameter in ("eps", "scale") else passed.parameter
        return f"{name} {loss}, computed" if known.mode == "exact" else f"{name} at most {loss}"
    if passed.over_now:
        if passed.may_lose is None or math.isinf(passed.may_lose):
            return "nothing ruled out"
        return f"up to {numbers.format_upper(passed.may_lose)} not ruled out"
    if passed.far_below is not None:
        return f"strongest attack {numbers.format_upper(passed.far_below)}"
    if not math.isfinite(resolution):
        return "detects nothing"
    loss = numbers.format_upper(resolution)
    return f"detects {numbers.parameter_text(passed.parameter, loss, '>=')}"


def _claim_and_proof(result: Result) -> tuple[str, str]:
    """Return a broken claim and what refutes it: ``eps = 1.0`` and ``eps >= 1.79``, say."""
    guarantee = result.claim.promise.guarantee
    if result.one_sided:
        return claim_text(guarantee), ONE_SIDED
    if not result.lower > result.claimed:
        claimed = numbers.format_claimed(result.claimed)
        return claim_text(guarantee), guarantee.write_comparison(">", claimed)
    claimed, bound = numbers.format_claim_and_bound(result.claimed, result.lower)
    return guarantee.write_claim(claimed), guarantee.write_comparison(">=", bound)


def claim_text(guarantee: Guarantee) -> str:
    """Return the promise of a claim as text: ``eps = 1.0``."""
    return guarantee.write_claim(numbers.format_claimed(guarantee.claimed))


def violation(result: Result) -> str:
    """Return the message of `PrivacyViolation`: headline, lines to blame, D and D', advice.

    Instead of D and D', the records at risk of a claim about membership, or guesses of one_run.
    """
    lines = [headline(result)]
    if len(lines[0]) > LINE_WIDTH - len("PrivacyViolation: "):
        at = lines[0].find(" for ") if result.outside else lines[0].rfind(" (")
        lines = [
            lines[0][:at],
            *(f"  {line}" for line in wrap(lines[0][at:].strip(), LINE_WIDTH - 2)),
        ]
    example = result.counterexample
    if result.risks:
        block = games_lines(result, LINE_WIDTH - 2)
    elif example is not None:
        block = counterexample_lines(result, example, LINE_WIDTH - 2)
    elif result.method == "one_run":  # its guesses are all that there is
        block = wrap(f"{result.strongest}.", LINE_WIDTH - 2, break_on_hyphens=False)
    else:
        block = [NO_EXAMPLE]
    lines += [*_blame_lines(result), "", *(f"  {line}".rstrip() for line in block), ""]
    blamed = [leak.message for leak in result.blame]
    diagnosed = [  # what the lines to blame do not begin with
        text
        for text in (example.diagnosis if example else ())
        if not any(message.startswith(text.partition(". ")[0]) for message in blamed)
    ]
    said = [*_delta_sentence(result, example), *diagnosed, remedy_sentence(result)]
    said += [f"Note: {note}" for note in result.notes]
    if not result.replayable:
        said.append(
            "The mechanism draws on randomness that cannot be seeded: "
            "another run will show slightly different counts."
        )
    lines += [line for text in said for line in wrap_lines(text)]
    return "\n".join(
        [
            *lines,
            *reproduce_lines(result),
            *kept_pair_lines(result),
            *_evidence_lines(result, example),
        ]
    )


def remedy_sentence(result: Result) -> str:
    """Return a sentence on how to fix a violation; empty for others, or if the diagnosis has it."""
    for leak in result.blame[:1]:
        return f"To fix it, at {leak.place}: {leak.remedy}." if leak.remedy else ""
    if result.risks:
        return LOWER_A_RISK
    example = result.counterexample
    if not result.violated or example is None:
        return ""
    never_seen = example.counts[1] == 0  # which diagnoses nothing else
    return UNBLAMED if len(example.diagnosis) == never_seen else ""


def _blame_lines(result: Result) -> list[str]:
    """Return a paragraph for each line of code at which privacy leaks; empty if none was found."""
    lines = [""] * bool(result.blame)
    for leak in result.blame:
        lines.append(f"Leaks at {leak.place}, in {leak.function}:")
        lines += [
            f"  {line}" for line in wrap(leak.message, LINE_WIDTH - 2, break_on_hyphens=False)
        ]
    return lines


def _delta_sentence(result: Result, example: Counterexample | None) -> list[str]:
    """Return a sentence on the delta that the event proves, in a list, or an empty list."""
    claim = result.claim.promise.guarantee
    shown = None if example is None else example.delta_lower
    if claim.eps is None or not claim.delta or shown is None or shown <= claim.delta:
        return []
    return [
        f"With eps = {numbers.format_claimed(claim.eps)}, delta is at least "
        f"{numbers.format_probability(shown, 'down')}; with delta = {claim.delta:g}, "
        f"{claim.write_comparison('>=', numbers.format_lower(result.lower))}."
    ]


def counterexample_lines(result: Result, example: Counterexample, width: int) -> list[str]:
    """Return lines of at most `width`: D, D' and S, how often S comes, and the counts."""
    lines = [*input_lines(example, width), *field_lines("S  = ", f"{{{example.event}}}", width)]
    lines += [*_score_lines(example, width), ""]
    by_bets = _rests_on_bets(result, example)
    if by_bets:
        said = _bets_sentence(result, example)
    elif any(example.runs):
        said = f"Outputs in S come {_frequencies_text(result, example.counts, example.runs)}."
    else:
        said = ""
    lines += wrap(said, width, break_on_hyphens=False)
    if not any(example.runs):
        return lines + wrap(NO_RUNS, width)
    few = ", too few to refute the claim by themselves" if by_bets else ""
    lines += [*wrap(f"In fresh runs of the mechanism M{few}:", width)]
    lines += _count_lines(result, example)
    return [*lines, *wrap(_divergence_if_stronger(result, example), width)]


def _rests_on_bets(result: Result, example: Counterexample) -> bool:
    """Return whether the bets refute the claim while the fresh runs in S alone do not."""
    return result.e_value is not None and example.lower <= result.claimed


def _frequencies_text(result: Result, counts: tuple[int, int], runs: tuple[int, int]) -> str:
    """Return how often outputs in S come on D and D', and how often the claim allows them."""
    claim, (c1, c2), (n1, n2) = result.claim.promise.guarantee, counts, runs
    here, there = (
        f"{numbers.format_count(c)} of {numbers.format_count(n)}" for c, n in ((c1, n1), (c2, n2))
    )
    there = there if c2 else f"none of {numbers.format_count(n2)}"
    rest = f"in {here} runs on D, and in {there} on D'"
    if claim.largest_ratio is None:
        most = numbers.format_probability(claim.largest_probability(c2 / n2), "up")
        return f"{rest}; {claim_text(claim)} allows a share of {most} on D"
    if c2:
        rest = f"{numbers.format_ratio(c1 * n2 / (n1 * c2))} times as often on D as on D'"
    times = "" if c2 else " times as often"
    return f"{rest}; {numbers.format_exp_ratio(claim.largest_ratio)}{times} is allowed"


def _bets_sentence(result: Result, example: Counterexample) -> str:
    """Return sentences on the e-value of the bets, and on S in their runs if S explains it."""
    claim = result.claim.promise.guarantee
    proof = (
        f"Bets against {claim_text(claim)}, each made before the runs that decided it, "
        f"multiplied their stake by {numbers.format_e_value(result.e_value or 0.0)}."
    )
    if example.bet_counts is None or example.bet_runs is None:
        return proof
    (c1, c2), (n1, n2) = example.bet_counts, example.bet_runs
    if n1 == 0 or n2 == 0 or c1 / n1 <= claim.largest_probability(min((c2 + SPARE) / n2, 1.0)):
        return proof  # S alone does not explain it, or would not with a few runs more
    often = _frequencies_text(result, (c1, c2), (n1, n2))
    return f"In {numbers.format_count(n1 + n2)} runs, outputs in S came {often}. {proof}"


def _divergence_if_stronger(result: Result, example: Counterexample) -> str:
    """Return a sentence on a divergence of the outputs if the bound rests on it; else empty."""
    if example.divergence is not None and result.lower == example.divergence.lower:
        return _divergence_sentence(result, example.divergence)
    return ""


def _divergence_sentence(result: Result, distance: Distance) -> str:
    """Return a sentence on the divergence of all outputs on D and D'."""
    order, value = distance.shown
    kind = "Kullback-Leibler divergence" if order == 1 else f"Renyi divergence of order {order:g}"
    more = result.claim.promise.guarantee.write_comparison(
        ">=", numbers.format_lower(distance.lower)
    )
    allowed, least = numbers.format_upper(distance.allowed.bound), numbers.format_lower(value)
    times = result.claim.promise.guarantee.noise_below(distance.lower)
    share = numbers.format_probability(1 / times, "up")
    return (
        f"As a whole, outputs on D and D' differ by a {kind} of at least {least}, and the claim "
        f"allows {allowed}: {more}. If the noise is Gaussian, it is at most {share} of the noise "
        "that is needed."
    )


def _count_lines(result: Result, example: Counterexample) -> list[str]:
    """Return two aligned lines: the fresh runs in S on D and on D', as probabilities with bounds.

    Without bounds where the bets refute the claim and the fresh runs alone would not: a bound that
    falls short seems to take the verdict back.
    """
    counts = [
        f"{numbers.format_count(c)}/{numbers.format_count(n)}"
        for c, n in zip(example.counts, example.runs, strict=True)
    ]
    shares = [
        numbers.format_probability(c / n) for c, n in zip(example.counts, example.runs, strict=True)
    ]
    (low, _), (_, high) = example.intervals
    bounds = [
        f"   at least {numbers.format_probability(low, 'down')}",
        f"   at most  {numbers.format_probability(high, 'up')}",
    ]
    if _rests_on_bets(result, example):
        bounds = ["", ""]
    widths = max(map(len, counts)), max(map(len, shares))
    return [
        f"Pr[{name} in S]  {count:>{widths[0]}} = {share:{widths[1]}}{bound}".rstrip()
        for name, count, share, bound in zip(
            ("M(D) ", "M(D')"), counts, shares, bounds, strict=True
        )
    ]


def _score_lines(example: Counterexample, width: int) -> list[str]:
    """Return lines on a learned score, its quantities and examples; empty for other events."""
    if not any(example.examples):
        return []
    lines = field_lines(
        " " * 5, "score: how clearly the output points to D (learned log odds of D to D')", width
    )
    told_by = getattr(example.event, "told_by", ())
    for at, text in enumerate(told_by):
        lines += field_lines(f"     {'' if at else 'mostly by':11}", text, width)
    score = getattr(example.event, "score", None)
    for label, outputs in zip(("in S:      ", "not in S:  "), example.examples, strict=True):
        for output in outputs[:1] if told_by else outputs:
            scored = "" if score is None else f"score {score(output):.4g}: "
            lines.append(f"     {label}{scored}{_shorten_output(output)}")
            label = " " * len(label)
    return [line if len(line) <= width else f"{line[: width - 4]} ..." for line in lines]


def _shorten_output(output: Any) -> str:
    """Return an output as text on one line, its numbers to four digits."""
    text = " ".join(repr(output.tolist() if hasattr(output, "tolist") else output).split())
    return re.sub(r"-?\d+\.\d{4,}(e[-+]?\d+)?", lambda match: f"{float(match[0]):.4g}", text)


def _evidence_lines(result: Result, example: Counterexample | None) -> list[str]:
    """Return the last line of a failure, wrapped: e-value, samples, p-value, DP-Sniper's bound."""
    samples = numbers.format_count(result.bet_samples or result.samples)
    parts = [f"{numbers.format_count(result.samples)} samples"]
    if result.e_value is not None:
        parts = [f"e-value {numbers.format_e_value(result.e_value)} ({samples} samples)"]
    if example is not None and not _rests_on_bets(result, example):
        parts.append(_p_value_text(result, example))
        if result.eps_lower is not None:
            bound = example.eps_clopper_pearson
            parts.append(f"DP-Sniper bound {numbers.format_lower(bound) if bound > 0 else 'none'}")
    return wrap_lines(f"Evidence: {', '.join(parts)}")


def _p_value_text(result: Result, example: Counterexample) -> str:
    """Return StatDP's p-value as text; for claims of more than ε, only a limit if it is small."""
    is_exact = result.claim.promise.guarantee.largest_ratio is not None
    if is_exact or example.p_value >= LEAST_SHOWN:
        return f"p-value {numbers.format_p_value(example.p_value)}"
    return f"p-value < {numbers.format_p_value(LEAST_SHOWN)}"


def games_lines(result: Result, width: int) -> list[str]:
    """Return lines on the records that break a claim about membership, and a count of others."""
    worst = sorted(result.risks, key=lambda risk: (-risk.lower, -risk.auc))
    level = result.alpha / len(worst)  # each record has its share
    broken = [risk for risk in worst if risk.p_value <= level] or worst[:1]
    lines = field_lines("", PLAYED, width)
    for risk in broken[:MAX_RECORDS]:
        lines += ["", *field_lines(f"{risk.record} = ", risk.value, width)]
        lines += field_lines("  ", risk_sentence(risk), width)
    more, others = len(broken) - MAX_RECORDS, len(worst) - len(broken)
    if more > 0:
        lines += ["", f"... and {plural(more, 'more record')} that break it"]
    if others:
        said = f"Tried as well, and not seen to break the claim: {plural(others, 'other record')}."
        lines += ["", *field_lines("", said, width)]
    return lines


def risk_sentence(risk: Risk) -> str:
    """Return a sentence on the AUC of one record: estimate, interval and p-value."""
    low, high = risk.interval
    pairs = plural(risk.pairs, "pair")
    if risk.last < risk.pairs:
        pairs = f"the last {risk.last:,} of {pairs}"
    by = f", mostly by {risk.told_by}" if risk.told_by else ""
    between = (
        f"{numbers.format_probability(low, 'down')} to {numbers.format_probability(high, 'up')}"
    )
    area = numbers.format_probability(risk.auc)
    said = f"AUC {area} in {pairs} of runs (95 % interval {between}){by}"
    return f"{said}; p-value {numbers.format_p_value(risk.p_value)}"
