"""An instrument that answers every draw by a traced number."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_dp.analytic.affine import Affine
from pytest_dp.analytic.arrays import TracedArray, elementwise, of_function, of_ufunc
from pytest_dp.analytic.trace import Trace
from pytest_dp.analytic.traced import Traced
from pytest_dp.limits import STEPS
from pytest_dp.randomness.branching import Path
from pytest_dp.randomness.catalogue import Standard, kind_of, size_of
from pytest_dp.randomness.laws import UNIFORM, Law
from pytest_dp.randomness.requests import Request
from pytest_dp.randomness.stand_ins import Instrument

WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of draws that do not round what is drawn."""


class Tracer(Instrument):
    """Answers draws by traced numbers of their laws; `trace` is that of the run under way."""

    def __init__(self) -> None:
        super().__init__()
        self.start(Path())

    def start(self, path: Path) -> None:
        """Trace a new run, which takes this path."""
        self.refusal = ""
        self.trace = Trace(path, self, of_ufunc, of_function)

    def draw(self, request: Request) -> Any:
        """A traced number, or an array of them.

        Raises CannotInstrument if the law of the draw is not known.
        """
        arguments = request.arguments
        if arguments.get("out") is not None:
            self.refuse("draws are written into an array of floats")
        if np.dtype(arguments.get("dtype", float)) not in WIDE:
            self.refuse(f"draws are converted to {np.dtype(arguments['dtype'])}")
        standard_of = kind_of(request).standard
        if standard_of is None:
            self.refuse(f"draws of {request.method} are not traced")
        try:
            standard = standard_of(arguments)
        except TypeError:
            self.refuse(f"{request} is not traced")
        if any(isinstance(value, Traced | TracedArray) for value in standard[1:2]):
            self.refuse("the scale of a draw depends on another draw")
        return self._traced(standard, size_of(request))

    def _traced(self, standard: Standard, size: Any) -> Any:
        law, scale, loc = standard
        shape = () if size is None else np.empty(size, dtype=bool).shape
        if size is None:
            shape = np.broadcast(np.empty(np.shape(scale)), np.empty(np.shape(loc))).shape
        if math.prod(shape) + len(self.trace.laws) > STEPS:
            self.refuse(f"it takes more than {STEPS:,} draws")
        if not shape:
            return self._number(law, scale, loc)
        room = np.empty(shape, dtype=bool)
        return elementwise(self.trace, lambda a, b, _: self._number(law, a, b), scale, loc, room)

    def _number(self, law: Law, scale: Any, loc: Any) -> Any:
        if isinstance(scale, Traced):
            self.refuse("the scale of a draw depends on another draw")
        scale = float(scale)
        if law.family is not UNIFORM and not scale >= 0 and not law.lattice:
            raise ValueError("scale < 0")
        if scale == 0:
            return loc
        return Affine(self.trace, {self.trace.new(law): scale}, 0.0) + loc
