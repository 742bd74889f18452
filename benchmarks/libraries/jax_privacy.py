"""A clipped function promises its `sensitivity` for one record more, or one in place of another,
and `gaussian_privatizer` its `stddev`. The claim for a sum with a noise of sigma sensitivities is
mu-Gaussian differential privacy, mu = 1 / sigma. With correlated noise, it is for all steps, and a
record is in one of them. An accountant promises an epsilon for Poisson samples.
"""

# requirements: jax-privacy==2.0.0 jax==0.10.2

import jax.numpy as jnp
import numpy as np
from dp_accounting import NeighboringRelation as Relation
from jax_privacy import accounting, clipping

from benchmarks.libraries.jax_privacy_calls import Noised, far, of_sample
from pytest_dp import Claimed, claims

more = [([[0.3, 0.0], [-3.0, 4.0]], [[0.3, 0.0]]), ([[0.3, 0.0], [0.5, 0.5]], [[0.3, 0.0]])]
other = [([[0.3, 0.0], [-3.0, 4.0]], [[0.3, 0.0], [3.0, -4.0]])]
broken = [([[0.3, 0.0], [bad, 1.0]], [[0.3, 0.0]]) for bad in (np.inf, np.nan)]
steps = [(np.eye(3)[step].tolist(), [0.0] * 3) for step in range(3)]


def noised(pairs, mu, *given):
    mechanism = Noised(*given)
    mechanism(pairs[0][0], np.random.default_rng(), 1)  # which compiles it
    return Claimed(mechanism, mu=mu, pairs=pairs, vectorized="size")


def clipped(pairs=more, sigma=1.0, relation=Relation.ADD_OR_REMOVE_ONE, **given):
    total = clipping.clipped_fun(lambda rows: rows[0], **given)
    stddev = sigma * total.sensitivity(relation)
    return noised(pairs, 1 / sigma, lambda rows: total(rows)[None], stddev)


def sampled(config, sigma):
    params = {"noise_multipliers": sigma, "num_samples": 3, "batch_size": 1, "delta": 0.01}
    accountant = accounting.DpsgdTrainingAccountant(config)
    promised = {"eps": float(accountant.compute_epsilon(1, accounting.DpParams(**params)))}
    pairs = [([0.0, 0.0, 1.0], [0.0, 0.0, 0.0])]
    return Claimed(of_sample, delta=0.01, pairs=pairs, params={"sigma": sigma}, **promised)


jax_privacy = claims(
    {
        "clipped": clipped(),
        "clipped, sigma 0.5": clipped(sigma=0.5),
        "clipped to 0.2": clipped(l2_clip_norm=0.2),
        "clipped to unit norm": clipped(l2_clip_norm=2.0, rescale_to_unit_norm=True),
        "mean": clipped(normalize_by=4.0),
        "replaced": clipped(other, relation=Relation.REPLACE_ONE),
        "infinite, or no number": clipped(broken),
        "dense matrix": noised(steps, 1.0, jnp.asarray, far, "dense"),
        "streamed matrix": noised(steps, 1.0, jnp.asarray, far, "streamed"),
        "PLD, sampled": sampled(accounting.PldAccountantConfig(), 1.0),
        "RDP, sampled": sampled(accounting.RdpAccountantConfig(), 1.0),
    }
)
