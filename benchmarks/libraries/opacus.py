"""The documentation calls `noise_multiplier` the deviation of the noise over `max_grad_norm`, and
each record's gradient is clipped to that norm. The claim for a step with all records is
mu-Gaussian differential privacy, mu = 1 / noise_multiplier, for one record more in the batch. An
accountant promises an epsilon. Each step releases the noised gradient, and the next norm to clip
to.
"""

# requirements: opacus==1.6.0 torch==2.13.0

from opacus import accountants
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import AdaClipDPOptimizer, DPPerLayerOptimizer

from benchmarks.libraries.opacus_calls import step
from pytest_dp import Claimed, claims

one, two, many = [[0.3, 0.0]], [[0.3, 0.0], [-3.0, 4.0]], [[5.0, 0.0]] * 10
clips = {"target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "min_clipbound": 0.1}
clips |= {"kind": AdaClipDPOptimizer, "max_clipbound": 10.0, "unclipped_num_std": 0.6}


def claimed(sigma=1.0, pairs=((two, one), (one, [])), marks=(), **given):
    ran = {"mu": 1 / sigma, "pairs": list(pairs), "marks": marks}
    ran |= {"max_seconds": 60.0} if marks else {}
    return Claimed(lambda data: step(data, sigma=sigma, **given), **ran)


def spent(name, sigma, rate):
    """An accountant's epsilon after a step, at a delta of 0.01."""
    accountant = accountants.create_accountant(name)
    accountant.step(noise_multiplier=sigma, sample_rate=rate)
    promised = {"eps": accountant.get_epsilon(0.01), "delta": 0.01}
    return Claimed(lambda data: step(data, sigma=sigma, rate=rate), pairs=[(two, one)], **promised)


needed = {"target_epsilon": 2.0, "target_delta": 0.01, "sample_rate": 0.5, "steps": 1}
opacus = claims(
    {
        "flat": claimed(),
        "flat, sigma 0.5": claimed(sigma=0.5),
        "flat, sum": claimed(loss_reduction="sum"),
        "secure mode": claimed(secure_mode=True),
        "by layer": claimed(kind=DPPerLayerOptimizer, norm=[0.6, 0.8]),
        "adaptive": claimed(pairs=[([*many, [0.9, 0.0]], many)], **clips),
        "adaptive 2": claimed(pairs=[(one, [])], **clips),
        "flat 2": claimed(pairs=[([[float("inf"), 0.0], *one], one)]),
        "RDP": spent("rdp", 1.0, 1.0),
        "RDP, sampled": spent("rdp", 1.0, 0.3),
        "PRV, sampled": spent("prv", 1.0, 0.3),
        "noise for eps 2": spent("prv", get_noise_multiplier(**needed), 0.5),
    }
)
