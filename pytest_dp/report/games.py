"""Text of membership games, record by record."""

from __future__ import annotations

from pytest_dp.basics.reprs import plural
from pytest_dp.report import numbers
from pytest_dp.report.pair import field
from pytest_dp.results.outcome import Risk

MAX_RECORDS = 8
"""Records at risk that are named. More hide the rest."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.results.result import Result

PLAYED = (
    "The data had the record or not, and the seed changed. An attack that had learned from "
    "earlier runs scored the output with the record above the other one with this frequency (AUC):"
)


def games(result: Result, width: int) -> list[str]:
    """Return lines for the games of records that break a claim, and for how many others."""
    worst = sorted(result.risks, key=lambda risk: (-risk.lower, -risk.auc))
    level = result.alpha / len(worst)  # each record has its share
    broken = [risk for risk in worst if risk.p_value <= level] or worst[:1]
    lines = field("", PLAYED, width)
    for risk in broken[:MAX_RECORDS]:
        lines += ["", *field(f"{risk.record} = ", risk.value, width)]
        lines += field("  ", risk_sentence(risk), width)
    more, others = len(broken) - MAX_RECORDS, len(worst) - len(broken)
    if more > 0:
        lines += ["", f"... and {plural(more, 'more record')} that break it"]
    if others:
        said = f"Tried as well, and not seen to break the claim: {plural(others, 'other record')}."
        lines += ["", *field("", said, width)]
    return lines


def risk_sentence(risk: Risk) -> str:
    """Say in a sentence what was found of one record."""
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
