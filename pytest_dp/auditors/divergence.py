"""How far apart outputs on both inputs are, on held-out samples: what no single event can show.

The bet on a divergence is fixed by what is known of a pair of inputs; the samples that it is
settled on are drawn afterwards (`pytest_dp.evidence.divergence_bounds`).
"""

from __future__ import annotations

import numpy as np

from pytest_dp.attacks.binning import Reader
from pytest_dp.auditors.arms import Arm, joints_of
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pool import Pool
from pytest_dp.evidence.divergence_bounds import best_bet
from pytest_dp.privacy import Renyi
from pytest_dp.results.result import Distance
from pytest_dp.sampling.keys import Purpose

ALPHA_SHARE = 0.5
"""Share of alpha for the divergence; the rest is for events, which hold at the same time. By hand:
either costs little, as bounds go by the logarithm of alpha."""
MIN_HELD_OUT, PAIRS_A_BET, MAX_HELD_OUT = 4_000, 4, 50_000
"""Held-out pairs of outputs: at least, for each pair that was bet on, and at most. More take longer
and give a tighter bound. Chosen by hand."""


def count(context: Context, pool: Pool, arm: Arm, alpha: float) -> Distance | None:
    """A lower bound on a divergence that the claim bounds; None if nothing can be shown.

    Parameters
    ----------
    context : Context
    pool : Pool
    arm : Arm
        The pair of inputs, with what is known of it.
    alpha : float
        Probability that the bound is too high.

    Raises
    ------
    CannotCouple
        If outputs were to share their random numbers, and turn out not to.
    """
    guarantee, record = context.guarantee, arm.record
    if not guarantee.divergences or len(record.joint[0]) < 2:
        return None
    pairs = int(np.clip(PAIRS_A_BET * arm.drawn, MIN_HELD_OUT, MAX_HELD_OUT))
    pairs = int(min(pairs, context.to_test / 4, context.affordable() / 4))
    if pairs < 2:
        return None
    bet = best_bet(record.joint[0], record.increasing_scores, guarantee, pairs, alpha)
    draws, score = arm.draws(pool, pairs, Purpose.DIVERGENCE), arm.binnings[:1]
    reader = Reader(score, False, arm.outputs.extract)
    parts = context.sampler.measure(draws, reader, context.deadline)
    (joint,) = joints_of(parts, score)
    value = bet.lower(joint, alpha)
    bounds = dict(guarantee.divergences)
    return Distance(
        guarantee.shown_by_divergence(bet.order, value),
        Renyi(bet.order, value),
        Renyi(bet.order, bounds[bet.order]),
    )
