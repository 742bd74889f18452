"""What membership games tell, record by record, as text."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_dp.limits import SEVERAL
from pytest_dp.report import numbers
from pytest_dp.report.pair import field
from pytest_dp.reprs import counted
from pytest_dp.results.risk import Risk

PLAYED = (
    "With the record in the data and without it, all else the same but the seed, an attack that "
    "had learned from earlier runs scored the output with it above the other one so often (AUC):"
)


def games(risks: Sequence[Risk], width: int) -> list[str]:
    """The games of the records that are told best, a few lines for each."""
    worst = sorted(risks, key=lambda risk: (-risk.lower, -risk.auc))
    lines = field("", PLAYED, width)
    for risk in worst[:SEVERAL]:
        lines += [
            "",
            *field(f"{risk.record} = ", risk.value, width),
            *field("  ", told(risk), width),
        ]
    more = len(risks) - SEVERAL
    return [*lines, "", f"... and {counted(more, 'more record')}"] if more > 0 else lines


def told(risk: Risk) -> str:
    """What was found of one record, in a sentence."""
    low, high = risk.interval
    pairs = counted(risk.pairs, "pair")
    if risk.last < risk.pairs:
        pairs = f"the last {risk.last:,} of {pairs}"
    by = f", mostly by {risk.told_by}" if risk.told_by else ""
    between = f"{numbers.probability(low, 'down')} to {numbers.probability(high, 'up')}"
    said = f"AUC {numbers.probability(risk.auc)} in {pairs} of runs (95 % interval {between}){by}"
    return f"{said}; p-value {numbers.p_value(risk.p_value)}"
