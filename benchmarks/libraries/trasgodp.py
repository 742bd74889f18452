"""The claim is local differential privacy of each value, with `epsilon` and `delta` of the
functions on arrays and data frames. Neighbours differ in one value, as in the README. The
`epsilon` of `metric_privacy` is per metre, and the places have a distance of 100 m.
"""

# requirements: trasgoDP==2.1.0

from trasgodp import categorical, numerical

from benchmarks.libraries.trasgodp_calls import column, moved, off_zero
from pytest_dp import Claimed, claims

ages, heights = [([16, 40], [90, 40]), ([15, 30], [50, 30])], [([0.0], [1.0]), ([0.5], [-1.0])]
labels = [(["a", "b", "c", "a"], ["a", "b", "c", last]) for last in "bc"]
binary, lone = [(["a", "b", "a"], ["a", "b", "b"])], [(["a", "b", "c"], ["a", "b", "b"])]


def of(mechanism, pairs, *bounds, **claim):
    return Claimed(lambda data: mechanism(data, 1.0, *bounds), eps=1.0, pairs=pairs, **claim)


def framed(mechanism, pairs, *bounds):
    return Claimed(lambda data: column(mechanism, data, 1.0, *bounds), eps=1.0, pairs=pairs)


def near(columns, seed=42, **claim):
    return Claimed(lambda east: moved(east, seed)[:columns], eps=1.0, pairs=[(0.0, 100.0)], **claim)


trasgodp = claims(
    {
        "laplace, int": of(numerical.dp_clip_laplace_array, ages, 16, 90),
        "laplace, float": of(numerical.dp_clip_laplace_array, heights, 0.0, 1.0),
        "laplace, frame": framed(numerical.dp_clip_laplace, ages, 16, 90),
        "gaussian, int": of(numerical.dp_clip_gaussian_array, ages, 16, 90, delta=1e-3),
        "gaussian, float": of(numerical.dp_clip_gaussian_array, heights, 0.0, 1.0, delta=1e-3),
        "exponential": of(categorical.dp_exponential_array, labels),
        "exponential 2": of(categorical.dp_exponential_array, lone, max_seconds=60.0),
        "response of two": of(categorical.dp_randomized_response_binary_array, binary),
        "response of two, frame": framed(categorical.dp_randomized_response_binary, binary),
        "response of three": of(categorical.dp_randomized_response_kary_array, labels),
        "place 2": near(2, max_seconds=60.0),
        "place 3": near(3, None, features=off_zero, max_seconds=60.0),
        "place": near(2, None),
    }
)
