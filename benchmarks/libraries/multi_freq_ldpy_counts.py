"""multi-freq-ldpy: the events by which claims of the pack are broken, counted by hand."""

import math

from multi_freq_ldpy.mdim_freq_est.RSpFD_solution import RSpFD_GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

from benchmarks.libraries.counting import counted, show


def allowed(q: float) -> float:
    return math.e * q


show(
    {
        "SS": counted(
            lambda x: SS_Client(x, 8, 1.0),
            (0, 1),
            lambda chosen: chosen[0] == 0,
            allowed,
            why="The true value, where it is in the subset, is the first in it.",
        ),
        "RS+FD, GRR": counted(
            lambda x: RSpFD_GRR_Client(x, [3, 3], 2, 1.0),
            ((0, 0), (1, 1)),
            lambda report: report == [0, 0],
            allowed,
            200_000,
            why="One attribute is reported at ln(2 (e - 1) + 1) = 1.49. The fake one makes that 1 "
            "for neighbours that differ in one attribute, but not for any two tuples.",
        ),
    }
)
