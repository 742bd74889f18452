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
        ),
        "place, seed of 42": counted(
            lambda east: moved(east, 42), (0.0, 100.0), lambda out: out == always, allowed, 500
        ),
        "place and radius": counted(
            lambda east: moved(east, None),
            (0.0, 100.0),
            lambda out: not off_zero(out),
            allowed,
            500,
        ),
    }
)
