"""One verdict from both classical tests of the same fresh counts.

StatDP's test and DP-Sniper's bound use the same counts in different ways; neither is always the
stronger. Each gets half of alpha (Bonferroni), so that the larger of the two bounds holds at alpha,
and the p-value is at most alpha exactly if that bound reaches the claim.
"""

from __future__ import annotations

from pytest_dp.evidence import clopper_pearson, statdp


def p_value(c1: int, c2: int, runs: int, eps: float) -> float:
    """A valid p-value of the claim: twice the smaller of both tests' p-values.

    Which input is called first must not depend on the counts, as DP-Sniper's bound looks in one
    direction only.
    """
    return min(
        1.0,
        2 * statdp.p_value_both(c1, c2, runs, eps),
        2 * clopper_pearson.p_value(c1, runs, c2, runs, eps),
    )


def eps_lower(c1: int, c2: int, runs: int, alpha: float) -> float:
    """Lower bound on ε in nats with confidence ``1 - alpha``; order of inputs as in `p_value`."""
    return max(
        statdp.eps_lower(c1, c2, runs, alpha / 2),
        clopper_pearson.eps_lower(c1, runs, c2, runs, alpha / 2),
    )
