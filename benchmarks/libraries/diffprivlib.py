"""The documentation calls `epsilon` and `delta` the privacy parameters of a mechanism, and
`sensitivity` its sensitivity. The claim is for any two inputs at that distance, within the bounds
if there are some, and for any two labels.
"""

# requirements: diffprivlib==0.6.6 scikit-learn==1.8.0

from diffprivlib import mechanisms as m

from pytest_dp import Claimed, claims
from pytest_dp.libraries.diffprivlib import claimed

one = {"epsilon": 1.0, "sensitivity": 1}
both = {**one, "delta": 0.01}
ends = {"lower": 0, "upper": 4}


def chosen(kind, utility):
    return kind(**one, utility=utility).randomise()


utilities = [([1, 2, 3], [2, 1, 2]), ([1, 1, 1], [2, 1, 1])]
near = [("a", "b", 1.0), ("a", "c", 2.0), ("b", "c", 1.0)]
diffprivlib = claims(
    {
        "Binary": claimed(m.Binary(epsilon=1.0, value0="no", value1="yes")),
        "Exponential": Claimed(
            lambda utility: chosen(m.Exponential, utility), eps=1.0, pairs=utilities
        ),
        "PermuteAndFlip": Claimed(
            lambda utility: chosen(m.PermuteAndFlip, utility), eps=1.0, pairs=utilities
        ),
        "ExponentialCategorical": claimed(m.ExponentialCategorical(epsilon=1.0, utility_list=near)),
        "Gaussian": claimed(m.Gaussian(**both)),
        "GaussianAnalytic": claimed(m.GaussianAnalytic(**both)),
        "GaussianDiscrete": claimed(m.GaussianDiscrete(**both)),
        "Geometric": claimed(m.Geometric(**one)),
        "GeometricTruncated": claimed(m.GeometricTruncated(**one, **ends)),
        "GeometricFolded": claimed(m.GeometricFolded(**one, **ends)),
        "Laplace": claimed(m.Laplace(**one)),
        "Laplace, delta": claimed(m.Laplace(**both)),
        "LaplaceTruncated": claimed(m.LaplaceTruncated(**one, **ends)),
        "LaplaceFolded": claimed(m.LaplaceFolded(**one, **ends)),
        "LaplaceBoundedDomain": claimed(m.LaplaceBoundedDomain(**one, **ends)),
        "LaplaceBoundedNoise": claimed(m.LaplaceBoundedNoise(**both)),
        "Snapping": claimed(m.Snapping(**one, **ends)),
        "Staircase": claimed(m.Staircase(**one)),
        "Uniform": claimed(m.Uniform(delta=0.1, sensitivity=1)),
    }
)
