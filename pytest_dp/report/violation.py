"""The message of a violation: what a red build shows.

Written in ASCII for terminals that show nothing else (inputs and events are shown as they are), and
76 columns wide, so that pytest's ``E   `` in front of every line still fits into 80.
"""

from __future__ import annotations

import math
import re
import shlex
from textwrap import wrap
from typing import Any

from pytest_dp.limits import FEW, LINE, SHOWN_AT
from pytest_dp.report import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.privacy import Guarantee
    from pytest_dp.results.result import Counterexample, Distance, Result

TO_ADD = "If the mechanism takes such data, add an example, and the same audit is red:"
NEVER_GETS = 'If it never gets any, write beyond="off" into the claim.'


def headline(result: Result) -> str:
    """The outcome in one line."""
    guarantee = result.claim.promise.guarantee
    if result.violated and result.outside:
        return f"beyond your examples: {shown_more(result)} for {result.outside}"
    if result.violated:
        sure = f"({numbers.confidence(result.alpha)} confidence)"
        if not result.lower > result.claimed:
            more = guarantee.more_than(numbers.claimed(result.claimed))
            return f"claimed {written(guarantee)}, but {more} {sure}"
        claimed, bound = numbers.claim_and_bound(result.claimed, result.lower)
        return f"claimed {guarantee.written(claimed)}, but {guarantee.at_least(bound)} {sure}"
    claim = written(guarantee)
    beyond = "" if result.beyond is None else f"; {headline(result.beyond)}"
    if result.verdict == "inconclusive":
        effort = f"{numbers.count(result.samples)} samples in {numbers.seconds(result.seconds)}"
        why = " (blind): nothing tells the inputs apart, in" if result.blind else ""
        return f"inconclusive{why or f': could not test {claim} with'} {effort}{beyond}"
    found = f"no violation of {claim}"
    if result.strength in ("exact", "analytic"):
        return f"{found}: {result.worth} ({result.strength}){beyond}"
    now = numbers.may_lose(result.may_lose, guarantee.parameter) if result.over_now else ""
    if not math.isfinite(result.resolution):
        return f"{found} found, but {now or 'this run could have caught nothing'}{beyond}"
    caught = guarantee.true(numbers.upper(result.resolution))
    if guarantee.largest_ratio is None:
        too_small = 100 * (1 - 1 / guarantee.noise_below(result.resolution))
        caught = f"{caught} (noise {math.ceil(too_small)} % too small)"
    worth = f"{caught} would have been caught" + (f", but {now}" if now else "")
    return f"{found} found; {worth} ({result.strength}){beyond}"


def shown_more(result: Result) -> str:
    """What a violation shows: ``eps >= 1.79``."""
    guarantee = result.claim.promise.guarantee
    if not result.lower > result.claimed:
        return guarantee.more_than(numbers.claimed(result.claimed))
    return guarantee.at_least(numbers.claim_and_bound(result.claimed, result.lower)[1])


def written(guarantee: Guarantee) -> str:
    """A claim as text: ``eps = 1.0``."""
    return guarantee.written(numbers.claimed(guarantee.claimed))


def violation(result: Result) -> str:
    """The message of `PrivacyViolation`: the counterexample, its evidence, how to see it again."""
    lines = [headline(result)]
    if len(lines[0]) > LINE - len("PrivacyViolation: "):
        at = lines[0].find(" for ") if result.outside else lines[0].rfind(" (")
        lines = [lines[0][:at], *(f"  {line}" for line in wrap(lines[0][at:].strip(), LINE - 2))]
    example = result.counterexample
    if example is not None:
        block = counterexample(result, example, LINE - 2)
        lines += ["", *(f"  {line}".rstrip() for line in block), *_evidence(result, example)]
    else:
        lines += ["", *_evidence(result)]
    lines += _blamed(result)
    said = [line for line in (example.diagnosis if example else ()) if line]
    said = [*_leak(result, example), *said]
    said += [f"Note: {note}" for note in result.notes]
    if not result.replayable:
        said.append(
            "The mechanism draws on randomness that cannot be seeded: "
            "another run will show slightly different counts."
        )
    lines += ["", *(line for text in said for line in _wrapped(text)), *reproduce(result)]
    return "\n".join([*lines, *keep(result)])


def _blamed(result: Result) -> list[str]:
    """Lines of code at which privacy leaks, with what holds of each."""
    lines = [""] * bool(result.blame)
    for leak in result.blame:
        lines.append(f"Leaks at {leak.place}, in {leak.function}:")
        lines += [f"  {line}" for line in wrap(leak.message, LINE - 2, break_on_hyphens=False)]
    return lines


def _leak(result: Result, example: Counterexample | None) -> list[str]:
    """What the event shows of delta, which of a rare event is more telling than its eps."""
    claim = result.claim.promise.guarantee
    shown = None if example is None else example.delta_lower
    if claim.eps is None or not claim.delta or shown is None or shown <= claim.delta:
        return []
    return [
        f"With eps = {numbers.claimed(claim.eps)}, delta is at least "
        f"{numbers.probability(shown, 'down')}; with delta = {claim.delta:g}, "
        f"{claim.at_least(numbers.lower(result.lower))}."
    ]


def counterexample(result: Result, example: Counterexample, width: int) -> list[str]:
    """D, D' and S, then expected against observed, aligned."""
    lines = [*_pair(example, width), *field("S  = ", f"{{{example.event}}}", width)]
    lines += [*_examples(example, width), ""]
    if _by_bets(result, example):
        lines += [*wrap(_bets_in_words(result, example), width), ""]
        if not any(example.runs):
            lines.append(
                "No effort was left for fresh runs: raise max_samples or max_seconds to see more."
            )
            return [*lines[:-1], *wrap(lines[-1], width)]
        heading = (
            "Fresh runs of the mechanism M with an output in S, too few to refute the claim by "
            "themselves:"
        )
    else:
        heading = "Fresh runs of the mechanism M with an output in S:"
    return [*lines, *wrap(heading, width), *_counts(result, example)]


def _by_bets(result: Result, example: Counterexample) -> bool:
    """Whether it was the bets that refuted the claim, and fresh runs alone would not."""
    return result.e_value is not None and example.lower <= result.claimed


def _bets_in_words(result: Result, example: Counterexample) -> str:
    """What was seen in the runs that were bet on, and what the bets make of it."""
    claim = result.claim.promise.guarantee
    proof = (
        f"Bets against {written(claim)}, each made before the runs that decided it, "
        f"multiplied their stake by {numbers.e_value(result.e_value or 0.0)}."
    )
    if example.bet_counts is None or example.bet_runs is None:
        return proof
    (c1, c2), (n1, n2) = example.bet_counts, example.bet_runs
    if n1 == 0 or n2 == 0 or c1 / n1 <= claim.largest_probability(c2 / n2):
        return proof  # S alone does not explain it
    here, there = (f"{numbers.count(c)} of {numbers.count(n)}" for c, n in ((c1, n1), (c2, n2)))
    often = f"S came {here} times on D, and never in {numbers.count(n2)} on D'"
    if c2:
        ratio = numbers.ratio(c1 * n2 / (n1 * c2), digits=2)
        often = f"S came {ratio} times as often on D ({here}) as on D' ({there})"
    if claim.largest_ratio is None:
        most = numbers.probability(claim.largest_probability(c2 / n2), "up")
        allowed = f"{written(claim)} allows a probability of {most} on D"
    else:
        ratio = numbers.ratio_of(claim.largest_ratio)
        allowed = f"{written(claim)} allows {ratio} times as often"
    return f"In {numbers.count(n1 + n2)} runs, {often}; {allowed}. {proof}"


def _counts(result: Result, example: Counterexample) -> list[str]:
    """How many fresh runs were in S, and what follows."""
    counts = [
        f"{numbers.count(c)}/{numbers.count(n)}"
        for c, n in zip(example.counts, example.runs, strict=True)
    ]
    widest = max(map(len, counts))
    p1, p2 = (c / n for c, n in zip(example.counts, example.runs, strict=True))
    shown = [
        f"at least {numbers.probability(example.intervals[0][0], 'down')}",
        f"at most  {numbers.probability(example.intervals[1][1], 'up')}",
    ]
    by_bets = _by_bets(result, example)  # then bounds that fall short seem to take the claim back
    table = [
        (f"Pr[M(D)  in S]  {counts[0]:>{widest}} =", numbers.probability(p1), shown[0]),
        (f"Pr[M(D') in S]  {counts[1]:>{widest}} =", numbers.probability(p2), shown[1]),
        *_ratio_or_most(result, example, p1, p2),
    ]
    left, middle = (max(len(row[i]) for row in table) for i in (0, 1))
    return [f"{a:{left}} {b:{middle}}   {'' if by_bets else c}".rstrip() for a, b, c in table]


def _ratio_or_most(
    result: Result, example: Counterexample, p1: float, p2: float
) -> list[tuple[str, str, str]]:
    """What the claim allows: a ratio where that is all it speaks of, else a probability on D."""
    claim = result.claim.promise.guarantee
    if claim.largest_ratio is None:
        most = claim.largest_probability(p2), claim.largest_probability(example.intervals[1][1])
        nearest, surely = numbers.probability(most[0]), numbers.probability(most[1], "up")
        by = written(claim) if len(written(claim)) <= len("eps = 1.0") + 2 else "the claim"
        return [(f"allowed on D by {by}", nearest, f"at most  {surely}")]
    bound = example.lower
    allowed, proven = numbers.allowed_and_proven(claim.largest_ratio, bound)
    more = f"at least {proven}" if bound > claim.largest_ratio else f"more than {allowed}"
    return [
        ("ratio", numbers.ratio(p1 / p2 if p2 else math.inf), more),
        (f"allowed by {written(claim)}", allowed, ""),
    ]


def reproduce(result: Result) -> list[str]:
    """How to run this audit again; the command is never broken, so that it can be pasted."""
    label = "Reproduce:" if result.replayable else "Run again:"
    line = f"{label}  {command(result)}"
    return [line] if len(line) <= LINE else [label, f"  {command(result)}"]


def command(result: Result) -> str:
    """What runs this audit again, with pytest or without; the seed only where it repeats it."""
    seed = numbers.seed(result.seed)
    if "::" in result.name:
        name = result.name
        quoted = shlex.quote(name) if set(name) & set('"$`\\!') else f'"{name}"'
        seeded = [f"--dp-seed={seed}"] if result.replayable else []
        return " ".join([f"pytest {quoted}", *seeded, *_options(result)])
    return f"audit(..., seed=0x{seed})" if result.replayable else "audit(...)"


def keep(result: Result) -> list[str]:
    """The pair as source, for a test of its own; nothing if the claim names it, or it is long."""
    example = result.counterexample
    if example is None or result.claim.promise.pairs is not None:
        return []
    from pytest_dp.datasets.source import as_source

    if result.outside:
        more = [as_source(data) or "" for data in result.to_add]
        line = f"  inputs=[..., {', '.join(more)}]"
        if more and all(more) and len(line) <= 4 * LINE:
            return [*_wrapped(TO_ADD), line, *_wrapped(NEVER_GETS)]
    sources = as_source(example.d1), as_source(example.d2)
    line = f"pairs=[({sources[0]}, {sources[1]})]"
    params = {name: as_source(value) for name, value in example.params.items()}
    if params:
        line += f", params={{{', '.join(f'{name!r}: {value}' for name, value in params.items())}}}"
    if None in (*sources, *params.values()) or len(line) > 4 * LINE:
        return []
    label = "As a test:  "
    return [f"{label}{line}"] if len(label + line) <= LINE else [label.rstrip(), f"  {line}"]


def _options(result: Result) -> list[str]:
    """Options without which it would be another audit."""
    from pytest_dp.settings import NO_MARGIN, Settings

    written = Settings().over(result.claim.effort)
    options = []
    if result.method != written.method.name:
        options.append(f"--dp-method={result.method}")
    if result.alpha != written.alpha:
        options.append(f"--dp-alpha={result.alpha!r}")
    if result.max_samples not in (None, written.max_samples):
        options.append(f"--dp-max-samples={result.max_samples}")
    if result.max_seconds not in (None, written.max_seconds):
        options.append(f"--dp-max-seconds={result.max_seconds:g}")
    if result.method == "sequential" and result.margin not in (None, written.margin):
        margin = "none" if result.margin == NO_MARGIN else f"{result.margin:g}"
        options.append(f"--dp-margin={margin}")
    return [*options, "--dp-accumulate"] if result.earlier_runs else options


def _pair(example: Counterexample, width: int) -> list[str]:
    # Imported late: the table and the headline need no inputs, and pytest shows them at every exit.
    from pytest_dp.datasets import describe, only_in

    room = (2 * FEW - 1) * (width - 5)
    shown = describe(example.d1, width=room), describe(example.d2, width=room)
    lines1, lines2 = field("D  = ", shown[0], width), field("D' = ", shown[1], width)
    if example.difference:
        remark = f"({example.difference})"
        column = max(len(lines1[-1]) if len(lines1) == 1 else 0, len(lines2[-1]), 25) + 3
        if column + len(remark) > width:
            column = len(lines2[-1]) + 3
        if len(lines2) == 1 and column + len(remark) <= width:
            lines2[0] = f"{lines2[0]:{column}}{remark}"
        else:
            lines2 += field(" " * 5, remark, width)
    if any(text.endswith(" records)") for text in shown):  # what is shown of both may be the same
        extra = only_in(example.d1, example.d2), only_in(example.d2, example.d1)
        for name, records in zip(("D", "D'"), extra, strict=True):
            if records:
                lines2 += field(f"only in {name}: ", describe(records, width=2 * width), width)
    if example.params:
        values = (f"{name} = {describe(value, room)}" for name, value in example.params.items())
        lines2 += field("with ", ", ".join(values), width)
    return lines1 + lines2


def _examples(example: Counterexample, width: int) -> list[str]:
    """Some outputs inside a learned attack and outside, as its score says little by itself."""
    if not any(example.examples):
        return []
    lines = field(" " * 5, "score: learned log odds, ln Pr[D | output] - ln Pr[D' | output]", width)
    score = getattr(example.event, "score", None)
    for label, outputs in zip(("in S:      ", "not in S:  "), example.examples, strict=True):
        for output in outputs:
            scored = "" if score is None else f"score {score(output):.3g}: "
            line = f"     {label}{scored}{_sketched(output)}"
            lines.append(line if len(line) <= width else f"{line[: width - 4]} ...")
            label = " " * len(label)
    return lines


def _sketched(output: Any) -> str:
    """An output on one line, its numbers to four digits."""
    text = " ".join(repr(output.tolist() if hasattr(output, "tolist") else output).split())
    return re.sub(r"-?\d+\.\d{4,}(e[-+]?\d+)?", lambda match: f"{float(match[0]):.4g}", text)


def _p_value(result: Result, example: Counterexample) -> str:
    """StatDP's; of pairs, and of claims of more than ε, one that says nothing below a level."""
    if example.both is None and result.claim.promise.guarantee.largest_ratio is not None:
        return f"StatDP p-value {numbers.p_value(example.p_value)}"
    whose = "p-value" if example.both is None else "paired p-value"
    below = example.p_value < SHOWN_AT
    return (
        f"{whose} < {numbers.p_value(SHOWN_AT)}"
        if below
        else f"{whose} {numbers.p_value(example.p_value)}"
    )


def _evidence(result: Result, example: Counterexample | None = None) -> list[str]:
    said = []
    if example is not None and not _by_bets(result, example):
        bound = example.eps_clopper_pearson
        parts = [_p_value(result, example)]
        if result.eps_lower is not None:
            parts.append(f"DP-Sniper bound {numbers.lower(bound) if bound > 0 else 'none'}")
        if result.e_value is None:
            parts.append(f"{numbers.count(result.samples)} samples")
        said.append(" | ".join(parts))
    if result.e_value is not None:
        said.append(f"e-value {e_value(result.e_value, result.bet_samples or result.samples)}")
    if example is None:
        said.append(
            "There was no effort left to show a counterexample: raise max_samples or max_seconds."
        )
    elif example.divergence is not None and result.lower == example.divergence.lower:
        said.append(_divergence_text(result, example.divergence))
    elif result.lower > max(1.005 * example.lower, result.claimed):
        more = result.claim.promise.guarantee.at_least(numbers.lower(result.lower))
        said.append(f"A learned attack on the same pair, with another S, shows {more}.")
    often = numbers.one_in(result.alpha)
    said.append(f"A mechanism that keeps its claim fails at most {often} such audits.")
    return [f"  {line}" for text in said for line in wrap(text, LINE - 2)]


def _divergence_text(result: Result, distance: Distance) -> str:
    """What is broken by all of the outputs, and not by any event."""
    order, value = distance.shown
    kind = "Kullback-Leibler divergence" if order == 1 else f"Renyi divergence of order {order:g}"
    more = result.claim.promise.guarantee.at_least(numbers.lower(distance.lower))
    allowed, least = numbers.upper(distance.allowed.bound), numbers.lower(value)
    times = result.claim.promise.guarantee.noise_below(distance.lower)
    share = numbers.probability(1 / times, "up")
    return (
        f"As a whole, outputs on D and D' differ by a {kind} of at least {least}, and the claim "
        f"allows {allowed}: {more}. If the noise is Gaussian, it is at most {share} of what is "
        "needed."
    )


def e_value(value: float, samples: int) -> str:
    """``4e9 after 1,840 samples``."""
    return f"{numbers.e_value(value)} after {numbers.count(samples)} samples"


def field(label: str, text: str, width: int) -> list[str]:
    """`text` after `label`, wrapped under itself, and cut when it gets very long."""
    room = width - len(label)
    lines = [
        line
        for part in text.splitlines() or [""]
        for line in wrap(part, room, break_on_hyphens=False) or [""]
    ]
    if len(lines) > 2 * FEW:
        left_out = sum(len(line) for line in lines[2 * FEW - 1 :])
        lines = [*lines[: 2 * FEW - 1], f"... ({numbers.count(left_out)} more characters)"]
    return [
        f"{label if i == 0 else ' ' * len(label)}{line}".rstrip() for i, line in enumerate(lines)
    ]


def _wrapped(text: str) -> list[str]:
    return [
        line
        for part in text.splitlines()
        for line in wrap(part, LINE, subsequent_indent="  ", break_on_hyphens=False)
    ]
