"""python-dp: the event by which a claim of the pack is broken, counted by hand."""

import math

from pydp.algorithms.laplacian import BoundedMean

from benchmarks.libraries.counting import counted, show

mean = BoundedMean(epsilon=1.0, lower_bound=0, upper_bound=5)
show(
    {
        "BoundedMean": counted(
            mean.quick_result,
            ([5, 0], [5]),
            lambda out: out in {0.5, 1.5, 2.5, 3.5, 4.5},
            lambda q: math.e * q,
            why="Integer noise is added to a sum of distances from the middle, 2.5: it shows "
            "whether the number of entries is even.",
        )
    }
)
