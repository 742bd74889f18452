"""trasgoDP: the events by which claims of the pack are broken, counted by hand."""

import math

from trasgodp.categorical import dp_exponential_array

from benchmarks.libraries.counting import counted, show
from benchmarks.libraries.trasgodp_calls import moved, off_zero


def allowed(q):
    return math.e * q


always = moved(0.0, 42)
show(
    {
        "exponential, of its own kind": counted(
            lambda data: dp_exponential_array(data, 1.0),
            (["a", "b", "c"], ["a", "b", "b"]),
            lambda out: "c" in out,
            allowed,
            why="Categories are those in the data: what no other value has shows that it is there.",
        ),
        "place, seed of 42": counted(
            lambda east: moved(east, 42),
            (0.0, 100.0),
            lambda out: out == always,
            allowed,
            500,
            why="The seed is the same in all calls, so the noise is too.",
        ),
        "place and radius": counted(
            lambda east: moved(east, None),
            (0.0, 100.0),
            lambda out: not off_zero(out),
            allowed,
            500,
            why="The distance from the true place is in the output.",
        ),
    }
)
