"""An instrument that answers draws by lazy values, which branch: each run follows one path."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator, RandomState

from pytest_dp.exact.choices import Choices
from pytest_dp.exact.lazy import HELD, Lazy
from pytest_dp.exact.numpy_draws import drawn_by_numpy
from pytest_dp.exact.python_draws import PythonDraws
from pytest_dp.limits import NESTED
from pytest_dp.outputs.attributes import attributes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.randomness.requests import Request


class Branching(Choices):
    """Answers each draw by a value that takes every possible value on a path or another."""

    def __init__(self) -> None:
        super().__init__()
        self._python = PythonDraws(self)

    def draw(self, request: Request) -> Any:
        """A value that branches.

        Raises CannotInstrument if there is no way to enumerate what is asked for.
        """
        kind = request.source.kind
        if kind is Generator or kind is RandomState:
            return drawn_by_numpy(self, request)
        method = getattr(self._python, request.method, None)
        if method is None:
            self.refuse(f"{request} is not enumerated")
        return method(*request.args, **request.keywords)

    def settled(self, output: Any, depth: int = NESTED) -> Any:
        """An output with a number in place of each draw that it holds.

        Raises CannotInstrument if it holds a draw that has too many values.
        """
        if type(output) is Lazy:
            return output.value(HELD)
        if isinstance(output, np.ndarray):
            return self._settled_array(output, depth) if output.dtype.hasobject else output
        if not depth or isinstance(output, str | bytes | int | float | Raised | None):
            return output
        if isinstance(output, list):
            output[:] = [self.settled(member, depth - 1) for member in output]
            return output
        if isinstance(output, tuple | set | frozenset):
            members = [self.settled(member, depth - 1) for member in output]
            return type(output)(*members) if hasattr(output, "_fields") else type(output)(members)
        if isinstance(output, dict):
            for key, value in output.items():
                output[key] = self.settled(value, depth - 1)
            return output
        for name, value in (attributes(output) or {}).items():
            settled = self.settled(value, depth - 1)
            if settled is not value:
                object.__setattr__(output, name, settled)
        return output

    def _settled_array(self, output: Any, depth: int) -> Any:
        """An array of objects; one of numbers, if draws were why it was none."""
        has_draws = any(type(element) is Lazy for element in output.flat)
        values = [self.settled(element, depth - 1) for element in output.flat]
        if has_draws:
            return np.array(values).reshape(output.shape)
        for place, value in enumerate(values):
            output.flat[place] = value
        return output
