"""PipelineDP: the event by which a claim of the pack is broken, counted by hand."""

import math

from pipeline_dp import Metrics

from benchmarks.libraries.counting import counted, show
from benchmarks.libraries.pipeline_dp_calls import aggregated

few = [(0, "a", 1), (1, "a", 2)]
show(
    {
        "count, in its order": counted(
            lambda rows: aggregated(rows, [Metrics.COUNT]),
            ([(2, "b", 0), *few], few),
            lambda result: result[0][0] == "b",
            lambda q: math.e * q,
            2_000,
            why="Partitions of which there are rows come first.",
        )
    }
)
