"""`total_epsilon` and `total_delta` of a budget accountant bound the loss of all computations of
an engine, for datasets that differ by all rows of one privacy id. The backend is the local one.
Its results are read as a mapping.
"""

# requirements: pipeline-dp==0.3.1 dp-accounting==0.6.0

import pipeline_dp as dp

from benchmarks.libraries.pipeline_dp_calls import aggregated, selected
from pytest_dp import Claimed, claims

metrics, gauss = dp.Metrics, {"noise_kind": dp.NoiseKind.GAUSSIAN, "delta": 0.01}
few = [(0, "a", 1), (1, "a", 2)]
often = [*few, (2, "a", 5), (2, "a", 5), (2, "a", 4), (2, "b", 5)]
apart = {"pairs": [([*few, (2, "a", 5)], few), (often, few), ([(2, "b", 0), *few], few)]}


def queried(*wanted, delta=0.0, read=sorted, marks=(), **given):
    promised = {"eps": 1.0, "delta": delta} if delta else {"eps": 1.0}
    return Claimed(
        lambda rows: read(aggregated(rows, wanted, delta, **given)),
        **promised,
        **apart,
        **({"max_seconds": 60.0} if marks else {}),
        marks=marks,
    )


def selection(strategy):
    return Claimed(lambda rows: selected(rows, strategy), eps=1.0, delta=0.01, **apart)


pipeline_dp = claims(
    {
        "count": queried(metrics.COUNT),
        "count 2": queried(metrics.COUNT, read=list),
        "count, PLD": queried(metrics.COUNT, delta=0.01, accountant=dp.PLDBudgetAccountant),
        "count, Gaussian": queried(metrics.COUNT, **gauss),
        "count, two partitions": queried(metrics.COUNT, max_partitions_contributed=2),
        "count, three contributions": queried(metrics.COUNT, max_contributions_per_partition=3),
        "privacy ids": queried(metrics.PRIVACY_ID_COUNT),
        "sum": queried(metrics.SUM),
        "sum, Gaussian": queried(metrics.SUM, **gauss),
        "mean": queried(metrics.MEAN),
        "variance": queried(metrics.VARIANCE),
        "percentile": queried(metrics.PERCENTILE(50)),
        "count and sum": queried(metrics.COUNT, metrics.SUM),
        "count, private partitions": queried(metrics.COUNT, delta=0.01, public=None),
        "select, geometric": selection("TRUNCATED_GEOMETRIC"),
        "select, Laplace": selection("LAPLACE_THRESHOLDING"),
        "select, Gaussian": selection("GAUSSIAN_THRESHOLDING"),
    }
)
