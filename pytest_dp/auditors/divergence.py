"""How far apart outputs on both inputs are, on held-out samples: what no single event can show.

The bet on a divergence is fixed by what is known of a pair of inputs; the samples that it is
settled on are drawn afterwards (`pytest_dp.evidence.divergence_bets`).
"""

from __future__ import annotations

import numpy as np

from pytest_dp.attacks.binning import Reader
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pair_state import PairState, joints_of
from pytest_dp.auditors.pool import Pool
from pytest_dp.evidence.divergence_bets import best_bet
from pytest_dp.limits import THOUSAND
from pytest_dp.privacy import Renyi
from pytest_dp.results.result import Distance
from pytest_dp.sampling.streams import Purpose


def count(context: Context, pool: Pool, state: PairState, alpha: float) -> Distance | None:
    """A lower bound on a divergence that the claim bounds; None if nothing can be shown.

    `alpha` is the probability that the bound is too high. Raises CannotCouple if outputs were to
    share their random numbers, and turn out not to.
    """
    guarantee, record = context.guarantee, state.record
    if not guarantee.divergences or len(record.joint[0]) < 2:
        return None
    pairs = int(np.clip(4 * state.drawn, 4 * THOUSAND, 50 * THOUSAND))
    pairs = int(min(pairs, context.to_test / 4, context.affordable() / 4))
    if pairs < 2:
        return None
    bet = best_bet(record.joint[0], record.increasing_scores, guarantee, pairs, alpha)
    draws, score = state.draws(pool, pairs, Purpose.DIVERGENCE), state.binnings[:1]
    reader = Reader(score, False, state.outputs.extract)
    parts = context.sampler.measure(draws, reader, context.deadline)
    (joint,) = joints_of(parts, score)
    value = bet.lower(joint, alpha)
    bounds = dict(guarantee.divergences)
    return Distance(
        guarantee.shown_by_divergence(bet.order, value),
        Renyi(bet.order, value),
        Renyi(bet.order, bounds[bet.order]),
    )
