"""Texts about a claim and its result."""

from __future__ import annotations

import math
from textwrap import wrap

from pytest_dp.basics.reprs import LINE_WIDTH, plural
from pytest_dp.report import numbers
from pytest_dp.report.games import risk_sentence
from pytest_dp.report.pair import field
from pytest_dp.report.record import Record
from pytest_dp.results.outcome import MAX_FAIR, MAX_STRONG, Estimate

MANY_RUNS = 1_000
"""Runs after which outputs that may go unseen are not mentioned. More: each pass has one line
more; fewer: what is rare is not mentioned."""


def proven_bound(record: Record) -> float:
    """Return the lower bound of a record, which may be infinite."""
    return math.inf if record.lower is None else record.lower


def verbose(record: Record) -> list[str]:
    """Return the lines that ``-v`` adds about one claim."""
    lines = [record.name, *(f"  {line}" for line in wrap(record.headline, LINE_WIDTH - 2))]
    for name, text in facts(record):
        lines += [f"  {line}" for line in field(f"{name:<12} ", text, LINE_WIDTH - 2)]
    return lines


def estimate_text(record: Record) -> str:
    """Return estimates of the parameter, besides bounds: ``exact on these pairs.

    Eps = 1.000000``.
    """
    known = record.estimate
    if known is None:
        return ""
    where = "these pairs"
    if known.pairs < record.pairs_available:
        where = f"{_share(known.pairs, record.pairs_available)} pairs"
    beside = f" at delta = {numbers.claimed_number(record.delta)}" if record.delta else ""
    basis = f" ({known.basis})" if known.basis else ""
    if known.mode == "aligned":
        return _alignment_text(record, known, beside)
    value = numbers.value(record.parameter, numbers.known_number(known.value, known.error))
    return f"{known.mode} on {where}: {value}{beside}{basis}{_borne(known)}"


def _alignment_text(record: Record, known: Estimate, beside: str) -> str:
    """Return the upper bound by alignment, and the number of pairs and replays behind it."""
    value = numbers.known_number(known.value, known.error)
    name = "loss" if record.parameter in ("eps", "scale") else record.parameter
    over = f"{numbers.format_count(known.pairs)} pair{'s' * (known.pairs != 1)}"
    if record.screened:
        over += f" of {numbers.format_count(record.screened)} screened"
    said = f"{name} at most {value}{beside}, by alignment ({over}; {known.basis})"
    if not known.unseen:
        return said
    seldom = numbers.format_count(int(1 / known.unseen))
    return f"{said}; what differs in fewer than 1 of {seldom} replays may go unseen"


def _borne(known: Estimate) -> str:
    """Return how many runs bear it out, and what they would not have shown if they are few."""
    if not known.runs:
        return ""
    said = f", checked against {numbers.format_count(known.runs)} runs"
    if known.runs >= MANY_RUNS or not known.unseen:
        return said
    return f"{said}; what happens in less than 1 of {int(1 / known.unseen)} runs may go unseen"


def facts(record: Record) -> list[tuple[str, str]]:
    """Return the facts about a claim besides its headline, by name."""
    known = (
        ("method", _method(record)),
        ("pairs tried", _pairs(record)),
        ("screened", _screening_text(record)),
        ("strongest", record.strongest),
        ("known", estimate_text(record)),
        ("grade", _grade(record)),
        ("rare leaks", _rare_leaks(record)),
        ("p-value", _p_value(record)),
        ("e-value", _e_value(record)),
        ("spent", _spent_text(record)),
        ("samples", _samples(record)),
        ("seed", record.seed),
        ("reason", record.reason),
        *((risk.record, risk_sentence(risk)) for risk in record.risks),
        *(("note", note) for note in record.notes if note != record.reason),
    )
    return [(name, text) for name, text in known if text]


def _pairs(record: Record) -> str:
    if not record.pairs_available:
        return ""
    said = _share(record.pairs_tried, record.pairs_available)
    more = record.pairs_proposed
    return f"{said}, and {numbers.format_count(more)} more that a search proposed" if more else said


def _share(some: int, of: int) -> str:
    return f"{numbers.format_count(some)} of {numbers.format_count(of)}"


def _screening_text(record: Record) -> str:
    """Return on how many pairs a mechanism ran without noise, and where its answer moves most."""
    if not record.screened:
        return ""
    said = f"{plural(record.screened, 'pair')}, by runs without noise"
    if not record.largest_pair:
        return said
    if record.largest_movement is None or math.isinf(record.largest_movement):
        return f"{said}. Something without noise differs on {record.largest_pair}"
    loss = f"an estimated loss of {record.largest_movement:.3g}"
    return f"{said}. The answer differs most on {record.largest_pair}: {loss}"


def _e_value(record: Record) -> str:
    if record.e_value is None or not record.bet_samples:
        return ""
    samples = numbers.format_count(record.bet_samples)
    return f"{numbers.format_e_value(record.e_value)} after {samples} samples"


def _samples(record: Record) -> str:
    taken = record.samples
    return (
        f"{numbers.format_count(taken)} in {numbers.format_seconds(record.seconds)}"
        if taken
        else ""
    )


def _grade(record: Record) -> str:
    """Return why a pass is not worth more; empty if its reason or a computed loss says so."""
    if record.far_below is not None or record.strength not in ("weak", "fair"):
        return ""
    if record.over_now:
        return "weak: a loss above the claim is not ruled out"
    if record.strength == "weak":
        return f"weak: noise {MAX_FAIR:g} times too small might have passed"
    if record.unreached:
        return "at most fair: not all of its code ran"
    leaks = ", or a leak ten times as likely as delta," if record.delta else ""
    return f"fair: noise {MAX_STRONG:g} times too small{leaks} might have passed"


def _rare_leaks(record: Record) -> str:
    if record.status != "no violation" or record.rarest is None:
        return ""
    if record.rarest >= 1:
        return "an output that only one input gives might go unseen"
    often = numbers.seldom(record.rarest)
    return f"an output that only one input gives would be found if it came in 1 of {often} runs"


def _method(record: Record) -> str:
    if not record.method:
        return ""
    alpha = "" if record.alpha is None else f"{record.alpha:g}"
    return f"{record.method}, alpha {alpha} (chance of a false alarm)"


def _p_value(record: Record) -> str:
    if record.p_value is None:
        return ""
    counted = record.method in ("dpsniper", "dpfinder")
    floor = counted and record.p_value <= 0.011 * (record.alpha or 0.0)
    whose = "" if record.e_value is None else ", by the bets"
    return ("<= " if floor else "") + numbers.format_p_value(record.p_value) + whose


def _spent_text(record: Record) -> str:
    """Return the largest loss that was computed or proven, besides the claimed one."""
    lower, known = proven_bound(record), record.estimate
    if known is not None and known.mode == "exact" and known.error < known.value:
        lower = max(lower, known.value - known.error)
    if not record.strength or lower <= 0 or record.claimed is None:
        return ""
    spent, claimed = numbers.format_lower(lower), numbers.claimed_number(record.claimed)
    if record.parameter == "scale":
        return numbers.value("scale", spent, ">=")
    what = "loss" if record.parameter == "eps" else record.parameter
    return f"{what} at least {spent} of the {claimed} that is claimed"
