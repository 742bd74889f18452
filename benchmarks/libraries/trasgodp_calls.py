"""Functions of trasgoDP on data frames, with lists and numbers in and out."""

import math

import pandas as pd
from trasgodp import geoindis

METRES = 6_371_000 * math.pi / 180
"""Of a degree, as the package has it."""


def column(mechanism, data, *args):
    return mechanism(pd.DataFrame({"x": data}), "x", *args)["x"].tolist()


def moved(east, seed):
    """Latitude, longitude and radius of a place some metres east, at 0.01 per metre."""
    place = pd.DataFrame({"lat": [0.0], "lon": [east / METRES]})
    return geoindis.metric_privacy(place, "lat", "lon", 0.01, seed=seed).to_numpy()[0].tolist()


def off_zero(out):
    """Whether the first place is as far from where it is said to be as the radius says, roughly."""
    return abs(math.hypot(*out[:2]) * METRES - out[2]) > 1e-3
