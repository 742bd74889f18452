"""An instrument that answers every draw by a traced number."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp.analytic.affine import Affine
from pytest_dp.analytic.arrays import TracedArray, elementwise, of_function, of_ufunc
from pytest_dp.analytic.laws import Law
from pytest_dp.analytic.trace import Trace
from pytest_dp.analytic.traced import Traced
from pytest_dp.randomness.branching import Path
from pytest_dp.randomness.requests import Request
from pytest_dp.randomness.stand_ins import Instrument

MAX_DRAWS = 20_000
"""Draws of one run. With a larger limit, fewer mechanisms are refused; traced numbers are far
slower than real ones. Chosen by hand."""
WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of draws that do not round what is drawn."""
Standard = tuple[Law, Any, Any]
"""A law of standard draws, their scale and their location."""


def _location_scale(family: str) -> Callable[[dict[str, Any]], Standard]:
    return lambda arguments: (Law(family), arguments.get("scale", 1.0), arguments.get("loc", 0.0))


def _integers(low: Any, high: Any) -> Standard:
    if not (isinstance(low, int | np.integer) and isinstance(high, int | np.integer)):
        raise TypeError
    return Law("integers", int(high) - int(low)), 1, int(low)


def _integers_of_numpy(arguments: dict[str, Any]) -> Standard:
    low, high = arguments["low"], arguments["high"]
    if high is None:
        low, high = 0, low
    return _integers(low, high + 1 if arguments.get("endpoint") else high)


def _randrange(arguments: dict[str, Any]) -> Standard:
    start, stop, step = (arguments[name] for name in ("start", "stop", "step"))
    if stop is None:
        start, stop = 0, start
    law, _, _ = _integers(0, len(range(start, stop, step)))
    return law, step, start


def _geometric(arguments: dict[str, Any]) -> Standard:
    ratio = 1.0 - float(arguments["p"])
    if not 0.0 <= ratio < 1.0:
        raise ValueError("p must be above 0, and at most 1")
    return Law("geometric", ratio), 1 if ratio else 0, 1


def _uniform(low: Any, high: Any) -> Standard:
    return Law("uniform"), np.subtract(high, low), low


_FAMILIES = ("laplace", "normal", "logistic", "gumbel", "exponential")
_NUMPY: dict[str, Callable[[dict[str, Any]], Standard]] = {
    **{family: _location_scale(family) for family in _FAMILIES},
    **{f"standard_{family}": _location_scale(family) for family in ("normal", "exponential")},
    **dict.fromkeys(
        ("random", "random_sample", "rand", "sample", "ranf"), lambda _: _uniform(0.0, 1.0)
    ),
    "randn": lambda _: (Law("normal"), 1.0, 0.0),
    "integers": _integers_of_numpy,
    "geometric": _geometric,
}
"""Methods of numpy's generators, with the law, scale and location of their arguments."""
_PYTHON: dict[str, Callable[[dict[str, Any]], Standard]] = {
    "random": lambda _: _uniform(0.0, 1.0),
    "uniform": lambda arguments: _uniform(arguments["a"], arguments["b"]),
    "gauss": lambda arguments: (Law("normal"), arguments["sigma"], arguments["mu"]),
    "normalvariate": lambda arguments: (Law("normal"), arguments["sigma"], arguments["mu"]),
    "expovariate": lambda arguments: (Law("exponential"), 1 / arguments["lambd"], 0.0),
    "randint": lambda arguments: _integers(arguments["a"], arguments["b"] + 1),
    "randrange": _randrange,
    "getrandbits": lambda arguments: _integers(0, 2 ** arguments["k"]),
}
"""The same for methods of Python's generators."""


class Tracer(Instrument):
    """Answers draws by traced numbers of their laws.

    Attributes
    ----------
    trace : Trace
        Of the run under way.
    """

    def __init__(self) -> None:
        super().__init__()
        self.start(Path())

    def start(self, path: Path) -> None:
        """Trace a new run, which takes this path."""
        self.refusal = ""
        self.trace = Trace(path, self, of_ufunc, of_function)

    def draw(self, request: Request) -> Any:
        """A traced number, or an array of them.

        Raises
        ------
        CannotInstrument
            If the law is not standard_of.
        """
        arguments = request.arguments
        python = issubclass(request.source.kind, random.Random)
        name = request.method
        if name == "randint" and not python:
            name = "integers"
        if name == "uniform" and not python:
            return self._traced(_uniform(arguments["low"], arguments["high"]), arguments["size"])
        if arguments.get("out") is not None:
            self.refuse("draws are written into an array of floats")
        if np.dtype(arguments.get("dtype", float)) not in WIDE:
            self.refuse(f"draws are converted to {np.dtype(arguments['dtype'])}")
        standard_of = (_PYTHON if python else _NUMPY).get(name)
        if standard_of is None:
            self.refuse(f"draws of {request.method} are not traced")
        try:
            standard = standard_of(arguments)
        except TypeError:
            self.refuse(f"{request} is not traced")
        if any(isinstance(value, Traced | TracedArray) for value in standard[1:2]):
            self.refuse("the scale of a draw depends on another draw")
        size = arguments.get("size")
        if name in ("rand", "randn"):
            size = request.args or None
        return self._traced(standard, size)

    def _traced(self, standard: Standard, size: Any) -> Any:
        law, scale, loc = standard
        shape = () if size is None else np.empty(size, dtype=bool).shape
        if size is None:
            shape = np.broadcast(np.empty(np.shape(scale)), np.empty(np.shape(loc))).shape
        if math.prod(shape) + len(self.trace.laws) > MAX_DRAWS:
            self.refuse(f"it takes more than {MAX_DRAWS:,} draws")
        if not shape:
            return self._number(law, scale, loc)
        room = np.empty(shape, dtype=bool)
        return elementwise(self.trace, lambda a, b, _: self._number(law, a, b), scale, loc, room)

    def _number(self, law: Law, scale: Any, loc: Any) -> Any:
        if isinstance(scale, Traced):
            self.refuse("the scale of a draw depends on another draw")
        scale = float(scale)
        if law.family != "uniform" and not scale >= 0 and not law.lattice:
            raise ValueError("scale < 0")
        if scale == 0:
            return loc
        return Affine(self.trace, {self.trace.new(law): scale}, 0.0) + loc
