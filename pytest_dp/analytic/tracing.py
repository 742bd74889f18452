"""Runs in which every draw is traced."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp.analytic.arrays import TracedArray, elementwise, of_function, of_ufunc
from pytest_dp.analytic.laws import Law
from pytest_dp.analytic.trace import Trace
from pytest_dp.analytic.traced import Traced
from pytest_dp.analytic.values import Affine
from pytest_dp.randomness.branching import Path
from pytest_dp.randomness.requests import Request
from pytest_dp.randomness.stand_ins import Instrument

MAX_DRAWS = 20_000
"""Draws of one run that are traced."""
WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of draws that arithmetic takes for what they are."""
Standard = tuple[Law, Any, Any]
"""A law, and by what its draws are multiplied, and moved."""


def _location_scale(family: str) -> Callable[[dict[str, Any]], Standard]:
    return lambda given: (Law(family), given.get("scale", 1.0), given.get("loc", 0.0))


def _integers(low: Any, high: Any) -> Standard:
    if not (isinstance(low, int | np.integer) and isinstance(high, int | np.integer)):
        raise TypeError
    return Law("integers", int(high) - int(low)), 1, int(low)


def _integers_of_numpy(given: dict[str, Any]) -> Standard:
    low, high = given["low"], given["high"]
    if high is None:
        low, high = 0, low
    return _integers(low, high + 1 if given.get("endpoint") else high)


def _randrange(given: dict[str, Any]) -> Standard:
    start, stop, step = (given[name] for name in ("start", "stop", "step"))
    if stop is None:
        start, stop = 0, start
    law, _, _ = _integers(0, len(range(start, stop, step)))
    return law, step, start


def _geometric(given: dict[str, Any]) -> Standard:
    ratio = 1.0 - float(given["p"])
    if not 0.0 <= ratio < 1.0:
        raise ValueError("p must be above 0, and at most 1")
    return Law("geometric", ratio), 1 if ratio else 0, 1


def _uniform(low: Any, high: Any) -> Standard:
    return Law("uniform"), np.subtract(high, low), low


_FAMILIES = ("laplace", "normal", "logistic", "gumbel", "exponential")
_KNOWN: dict[str, Callable[[dict[str, Any]], Standard]] = {
    **{family: _location_scale(family) for family in _FAMILIES},
    **{f"standard_{family}": _location_scale(family) for family in ("normal", "exponential")},
    **dict.fromkeys(
        ("random", "random_sample", "rand", "sample", "ranf"), lambda _: _uniform(0.0, 1.0)
    ),
    "randn": lambda _: (Law("normal"), 1.0, 0.0),
    "integers": _integers_of_numpy,
    "geometric": _geometric,
}
_PYTHON: dict[str, Callable[[dict[str, Any]], Standard]] = {
    "random": lambda _: _uniform(0.0, 1.0),
    "uniform": lambda given: _uniform(given["a"], given["b"]),
    "gauss": lambda given: (Law("normal"), given["sigma"], given["mu"]),
    "normalvariate": lambda given: (Law("normal"), given["sigma"], given["mu"]),
    "expovariate": lambda given: (Law("exponential"), 1 / given["lambd"], 0.0),
    "randint": lambda given: _integers(given["a"], given["b"] + 1),
    "randrange": _randrange,
    "getrandbits": lambda given: _integers(0, 2 ** given["k"]),
}


class Tracer(Instrument):
    """Answers draws by what is known of them.

    Attributes
    ----------
    trace : Trace
        Of the run under way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.start(Path())

    def start(self, path: Path) -> None:
        """Trace a new run, which goes a given way wherever it may go several."""
        self.refusal = ""
        self.trace = Trace(path, self.refuse, of_ufunc, of_function)

    def draw(self, request: Request) -> Any:
        """A sum of one draw, or an array of them.

        Raises
        ------
        CannotInstrument
            If the law is not known.
        """
        given = request.arguments
        python = issubclass(request.source.kind, random.Random)
        name = request.method
        if name == "randint" and not python:
            name = "integers"
        if name == "uniform" and not python:
            return self._drawn(_uniform(given["low"], given["high"]), given["size"])
        if given.get("out") is not None:
            self.refuse("draws are written into an array of floats")
        if np.dtype(given.get("dtype", float)) not in WIDE:
            self.refuse(f"draws are converted to {np.dtype(given['dtype'])}")
        known = (_PYTHON if python else _KNOWN).get(name)
        if known is None:
            self.refuse(f"draws of {request.method} are not traced")
        try:
            standard = known(given)
        except TypeError:
            self.refuse(f"{request} is not traced")
        if any(isinstance(value, Traced | TracedArray) for value in standard[1:2]):
            self.refuse("the scale of a draw depends on another draw")
        size = given.get("size")
        if name in ("rand", "randn"):
            size = request.args or None
        return self._drawn(standard, size)

    def _drawn(self, standard: Standard, size: Any) -> Any:
        law, scale, loc = standard
        shape = () if size is None else np.empty(size, dtype=bool).shape
        if size is None:
            shape = np.broadcast(np.empty(np.shape(scale)), np.empty(np.shape(loc))).shape
        if math.prod(shape) + len(self.trace.laws) > MAX_DRAWS:
            self.refuse(f"it takes more than {MAX_DRAWS:,} draws")
        if not shape:
            return self._one(law, scale, loc)
        room = np.empty(shape, dtype=bool)
        return elementwise(self.trace, lambda a, b, _: self._one(law, a, b), scale, loc, room)

    def _one(self, law: Law, scale: Any, loc: Any) -> Any:
        if isinstance(scale, Traced):
            self.refuse("the scale of a draw depends on another draw")
        scale = float(scale)
        if law.family != "uniform" and not scale >= 0 and not law.lattice:
            raise ValueError("scale < 0")
        if scale == 0:
            return loc
        return Affine(self.trace, {self.trace.new(law): scale}, 0.0) + loc
