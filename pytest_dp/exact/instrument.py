"""Answers draws by all that they may be: on each run, along one path."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator, RandomState

from pytest_dp.exact.choices import Choices
from pytest_dp.exact.lazy import HELD, Lazy
from pytest_dp.exact.numpys import drawn_by_numpy
from pytest_dp.exact.pythons import PythonDraws
from pytest_dp.outputs.contents import attributes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.randomness.requests import Request

DEEP = 6
"""Levels of an output at which draws are looked for."""


class Branching(Choices):
    """Every draw is each of its values, on one path or another."""

    def __init__(self) -> None:
        super().__init__()
        self._python = PythonDraws(self)

    def draw(self, request: Request) -> Any:
        """A value that branches.

        Raises
        ------
        CannotInstrument
            If there is no way to enumerate what is asked for.
        """
        kind = request.source.kind
        if kind is Generator or kind is RandomState:
            return drawn_by_numpy(self, request)
        method = getattr(self._python, request.method, None)
        if method is None:
            self.refuse(f"{request} is not enumerated")
        return method(*request.args, **request.keywords)

    def settled(self, output: Any, deep: int = DEEP) -> Any:
        """An output with a number in place of each draw that it holds.

        Raises
        ------
        CannotInstrument
            If it holds a draw that has too many values.
        """
        if type(output) is Lazy:
            return output.value(HELD)
        if isinstance(output, np.ndarray):
            return self._settled_array(output, deep) if output.dtype.hasobject else output
        if not deep or isinstance(output, str | bytes | int | float | Raised | None):
            return output
        if isinstance(output, list):
            output[:] = [self.settled(each, deep - 1) for each in output]
            return output
        if isinstance(output, tuple | set | frozenset):
            known = [self.settled(each, deep - 1) for each in output]
            return type(output)(*known) if hasattr(output, "_fields") else type(output)(known)
        if isinstance(output, dict):
            for key, value in output.items():
                output[key] = self.settled(value, deep - 1)
            return output
        for name, value in (attributes(output) or {}).items():
            settled = self.settled(value, deep - 1)
            if settled is not value:
                object.__setattr__(output, name, settled)
        return output

    def _settled_array(self, output: Any, deep: int) -> Any:
        """Of numbers again, where it would be without draws in it."""
        holds = any(type(each) is Lazy for each in output.flat)
        values = [self.settled(each, deep - 1) for each in output.flat]
        if holds:
            return np.array(values).reshape(output.shape)
        for place, value in enumerate(values):
            output.flat[place] = value
        return output
