"""How far apart outputs on both inputs are, on held-out samples: what no single event can show.

The bet on a divergence is fixed by what is known of a pair of inputs; the samples that it is
settled on are drawn afterwards (`pytest_dp.evidence.divergence_bounds`).
"""

from __future__ import annotations

import numpy as np

from pytest_dp.attacks.binning import Reader, joint_counts
from pytest_dp.auditors.arms import Arm
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pool import DIVERGENCE_KEY, Pool
from pytest_dp.auditors.result import Distance
from pytest_dp.evidence.divergence_bounds import best_bet
from pytest_dp.privacy import Renyi
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.sampler import Draw

ALPHA_SHARE = 0.5
"""Share of alpha for the divergence; the rest is for events, which hold at the same time."""
MIN_PAIRS, PAIRS_A_BET, MAX_PAIRS = 4_000, 4, 50_000
"""Held-out pairs of outputs: at least, for each pair that was bet on, and at most."""


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
    """
    guarantee, record = context.guarantee, arm.record
    if not guarantee.divergences or len(record.joint[0]) < 2:
        return None
    pairs = int(np.clip(PAIRS_A_BET * arm.drawn, MIN_PAIRS, MAX_PAIRS))
    pairs = int(min(pairs, context.to_test / 4, context.affordable() / 4))
    if pairs < 2:
        return None
    scores = np.arange(float(len(record.joint[0]))) if record.scores is None else record.scores
    bet = best_bet(record.joint[0], scores, guarantee, pairs, alpha)
    try:
        joint = _draw(context, pool.inputs[arm.input1], pool.inputs[arm.input2], arm, pairs)
    except CannotCouple:
        return None
    value = bet.lower(joint, alpha)
    bounds = dict(guarantee.divergences)
    return Distance(
        guarantee.shown_by_divergence(bet.order, value),
        Renyi(bet.order, value),
        Renyi(bet.order, bounds[bet.order]),
    )


def _draw(context: Context, d1: Input, d2: Input, arm: Arm, pairs: int) -> np.ndarray:
    """Counts of so many new pairs of outputs in the bins of the score."""
    key, binning = (DIVERGENCE_KEY, arm.number), arm.binnings[0]
    draws = [
        Draw(data, pairs, key if arm.coupled else (*key, side), arm.coupled)
        for side, data in enumerate((d1, d2))
    ]
    reader = Reader((binning,), False, arm.extract)
    parts = context.sampler.measure(draws, reader, context.deadline)
    bins1, bins2 = (np.concatenate([bins for bins, _ in part], axis=1) for part in parts)
    return joint_counts(bins1[0], bins2[0], binning.width)
