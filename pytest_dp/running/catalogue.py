"""Catalogue of methods that draw: their laws by their arguments, and numpy's use of the stream."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pytest_dp.running.laws import (
    EXPONENTIAL,
    GEOMETRIC,
    GUMBEL,
    INTEGERS,
    LAPLACE,
    LOGISTIC,
    NORMAL,
    UNIFORM,
    Family,
    Law,
)
from pytest_dp.running.requests import Request

Arguments = dict[str, Any]
Standard = tuple[Law, Any, Any]
"""A law of standard draws, their scale and their location; the two may be arrays, or traced."""
Rows = Literal["free", "bound"]
"""Of numpy's draws in one call, each takes its numbers from the stream in turn. Free ones take the
same numbers whatever location and scale they are given, as each transforms uniform, standard normal
or standard exponential variates (numpy's distributions.c and legacy-distributions.c); of bound ones
the arguments have to agree."""


@dataclass(frozen=True, slots=True)
class DrawMethod:
    """Draws by one method."""

    standard: Callable[[Arguments], Standard] | None = None
    """By the arguments. Raises TypeError where they are not numbers."""
    rows: Rows | None = None
    """Of numpy's methods; None where rows are not independent, or nobody knows."""


def _location_scale(
    family: Family, rows: Rows = "free", scale: str = "scale", loc: str = "loc"
) -> DrawMethod:
    return DrawMethod(lambda given: (Law(family), given.get(scale, 1.0), given.get(loc, 0.0)), rows)


def _between(low: str, high: str) -> DrawMethod:
    return DrawMethod(
        lambda given: (Law(UNIFORM), np.subtract(given[high], given[low]), given[low]), "free"
    )


def _integers(low: Any, high: Any) -> Standard:
    if not (isinstance(low, int | np.integer) and isinstance(high, int | np.integer)):
        raise TypeError
    return Law(INTEGERS, int(high) - int(low)), 1, int(low)


def _integers_of_numpy(given: Arguments) -> Standard:
    low, high = given["low"], given["high"]
    if high is None:
        low, high = 0, low
    return _integers(low, high + 1 if given.get("endpoint") else high)


def _randrange(given: Arguments) -> Standard:
    start, stop, step = (given[name] for name in ("start", "stop", "step"))
    if stop is None:
        start, stop = 0, start
    law, _, _ = _integers(0, len(range(start, stop, step)))
    return law, step, start


def _geometric(given: Arguments) -> Standard:
    ratio = 1.0 - float(given["p"])
    if not 0.0 <= ratio < 1.0:
        raise ValueError("p must be above 0, and at most 1")
    return Law(GEOMETRIC, ratio), 1 if ratio else 0, 1


def _of(names: str, rows: Rows) -> dict[str, DrawMethod]:
    return dict.fromkeys(names.split(), DrawMethod(rows=rows))


_UNIFORM = DrawMethod(lambda _: (Law(UNIFORM), 1.0, 0.0), "bound")
NUMPY: dict[str, DrawMethod] = {
    # Laws that are not known come first: an entry below takes their place.
    **_of("lognormal rayleigh multivariate_normal", "free"),
    **_of("standard_cauchy standard_t standard_gamma gamma chisquare beta weibull", "bound"),
    **_of("dirichlet multinomial choice binomial negative_binomial poisson", "bound"),
    "laplace": _location_scale(LAPLACE),
    "normal": _location_scale(NORMAL),
    "logistic": _location_scale(LOGISTIC),
    "gumbel": _location_scale(GUMBEL),
    "exponential": _location_scale(EXPONENTIAL),
    "uniform": _between("low", "high"),
    "standard_normal": _location_scale(NORMAL, "bound"),
    "standard_exponential": _location_scale(EXPONENTIAL, "bound"),
    "randn": _location_scale(NORMAL, "bound"),
    **dict.fromkeys(("random", "random_sample", "rand"), _UNIFORM),
    **dict.fromkeys(("sample", "ranf"), DrawMethod(_UNIFORM.standard)),
    **dict.fromkeys(("integers", "randint"), DrawMethod(_integers_of_numpy, "bound")),
    "geometric": DrawMethod(_geometric, "bound"),
}
"""Methods of numpy's generators."""
PYTHON: dict[str, DrawMethod] = {
    "random": _UNIFORM,
    "uniform": _between("a", "b"),
    **dict.fromkeys(("gauss", "normalvariate"), _location_scale(NORMAL, scale="sigma", loc="mu")),
    "expovariate": DrawMethod(lambda given: (Law(EXPONENTIAL), 1 / given["lambd"], 0.0)),
    "randint": DrawMethod(lambda given: _integers(given["a"], given["b"] + 1)),
    "randrange": DrawMethod(_randrange),
    "getrandbits": DrawMethod(lambda given: _integers(0, 2 ** given["k"])),
}
"""Methods of Python's generators."""
_UNKNOWN = DrawMethod()


def draw_kind_of(request: Request) -> DrawMethod:
    """Return the entry of the method that is called."""
    table = PYTHON if issubclass(request.source.kind, random.Random) else NUMPY
    return table.get(request.method, _UNKNOWN)


def size_of(request: Request, arguments: Arguments | None = None) -> Any:
    """Return the shape that a call of numpy asks for; None for that of its arguments.

    `arguments` are those of the request, where they are known already.
    """
    if request.method in ("rand", "randn"):
        return request.args or None
    return (request.arguments if arguments is None else arguments).get("size")
