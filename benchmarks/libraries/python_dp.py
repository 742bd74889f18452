"""The promise is `epsilon` and `delta` of an object. For an algorithm it covers `quick_result`, on
datasets that differ by one entry, as `linf_sensitivity` is 1. For a mechanism it covers
`add_noise`, on values at a distance of the sensitivity; for a partition strategy, one user more.
"""

# requirements: python-dp==1.1.5

from pydp.algorithms import laplacian as algorithms
from pydp.algorithms import numerical_mechanisms as mechanisms
from pydp.algorithms.partition_selection import create_partition_strategy

from pytest_dp import Claimed, add_remove_one, claims

ends = {"epsilon": 1.0, "lower_bound": 0, "upper_bound": 5}
ints, floats = [[1, 2, 2], [5, 0], [0, 0, 0, 5]], [[1.5, 2.0, 2.0], [5.0, 0.0]]


def entry(mechanism, method, **claim):
    if getattr(mechanism, "delta", 0):
        claim["delta"] = mechanism.delta
    return Claimed(getattr(mechanism, method), eps=mechanism.epsilon, beyond="off", **claim)


def result(algorithm, inputs=ints, **claim):
    return entry(algorithm, "quick_result", inputs=inputs, neighbors=add_remove_one(), **claim)


def kept(name, **more):
    strategy = create_partition_strategy(name, 1.0, 0.01, 1, **more)
    return entry(strategy, "should_keep", pairs=[(n, n + 1) for n in range(9)])


laplace = mechanisms.LaplaceMechanism(1.0, 1.0)
gauss, wide = mechanisms.GaussianMechanism(1.0, 0.01, 1.0), {"pairs": [(0.0, 1.0)]}
python_dp = claims(
    {
        "Laplace": entry(laplace, "add_noise", **wide),
        "Laplace, int": entry(laplace, "add_noise", pairs=[(0, 1)]),
        "Gaussian": entry(gauss, "add_noise", **wide),
        "Gaussian, int": entry(gauss, "add_noise", pairs=[(0, 1)]),
        "Count": result(algorithms.Count(1.0)),
        "BoundedSum": result(algorithms.BoundedSum(**ends)),
        "BoundedSum, float": result(algorithms.BoundedSum(**ends, dtype="float"), floats),
        "BoundedMean": result(algorithms.BoundedMean(**ends), max_seconds=60.0),
        "BoundedMean, float": result(algorithms.BoundedMean(**ends, dtype="float"), floats),
        "BoundedVariance": result(algorithms.BoundedVariance(**ends)),
        "BoundedStandardDeviation": result(algorithms.BoundedStandardDeviation(**ends)),
        "Max": result(algorithms.Max(**ends)),
        "Min": result(algorithms.Min(**ends)),
        "Median": result(algorithms.Median(**ends)),
        "Percentile": result(algorithms.Percentile(percentile=0.5, **ends, dtype="float"), floats),
        "keep, Laplace": kept("laplace"),
        "keep, Gaussian": kept("gaussian"),
        "keep, geometric": kept("truncated_geometric"),
        "keep, of 3 or more": kept("truncated_geometric", pre_threshold=3),
    }
)
