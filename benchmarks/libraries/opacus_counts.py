"""Opacus: the events by which claims of the pack are broken, counted by hand."""

import math

from opacus.optimizers import AdaClipDPOptimizer
from scipy.stats import norm

from benchmarks.libraries.counting import counted, show
from benchmarks.libraries.opacus_calls import step

many, one = [[5.0, 0.0]] * 10, [[0.3, 0.0]]
clips = {"target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "min_clipbound": 0.1}
clips |= {"kind": AdaClipDPOptimizer, "max_clipbound": 10.0, "unclipped_num_std": 0.6}


def raised(gradients):
    try:
        step(gradients, **clips)
    except RuntimeError:
        return True
    return False


def allowed(q):
    """By mu = 1: the power of the best test at level q."""
    return float(norm.sf(norm.isf(q) - 1.0))


show(
    {
        "adaptive": counted(
            lambda data: step(data, **clips),
            ([*many, [0.9, 0.0]], many),
            lambda out: out[2] < math.exp(0.2 * 0.455),  # 4.5 in 100 and more were not clipped
            allowed,
            why="The noised number of unclipped gradients has a sensitivity of 1, and is divided "
            "by the true size of the batch; the gradients' noise is adjusted for one of 1/2.",
        ),
        "adaptive, an empty batch": counted(
            raised,
            ([], one),
            bool,
            allowed,
            2_000,
            why="A batch without records, as Poisson samples may be, raises RuntimeError.",
        ),
        "flat, infinite": counted(
            step,
            ([[math.inf, 0.0], *one], one),
            lambda out: math.isnan(out[0]),
            allowed,
            2_000,
            why="Infinity times a clipping factor of 0 is no number.",
        ),
    }
)
