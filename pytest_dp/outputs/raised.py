"""Outcomes of single runs of a mechanism: an output, or the exception that it raised."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from pytest_dp.basics.arrays import Outputs
from pytest_dp.basics.reprs import safe_repr, without_addresses
from pytest_dp.outputs.attributes import attributes


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a run that raised: it can leak like any other output, and so can its message.

    The trace is for the reader; outcomes that only differ in it are equal.
    """

    kind: str
    trace: str = field(default="", compare=False)
    message: str = ""

    @classmethod
    def of(cls, error: BaseException, trace: str = "") -> Self:
        """Return an exception as an outcome, with its message, notes and attributes."""
        try:
            said = str(error)
        except Exception:  # raised by its own __str__
            said = safe_repr(error)
        extra = "".join(f"; {name}={value!s}" for name, value in vars(error).items())
        return cls(type(error).__name__, trace, without_addresses(said + extra))

    @property
    def is_stated(self) -> bool:
        """True if the trace ends in a ``raise`` statement, not in an operation that failed."""
        lines = re.findall(r"^ +File .*\n +(.*)$", self.trace, re.MULTILINE)
        return bool(lines) and re.search(r"\braise\b", lines[-1]) is not None

    def __repr__(self) -> str:
        return f"raises {self.kind}" + (f": {self.message}" if self.message else "")


def all_raised(outputs: Iterable[Any]) -> bool:
    """Return whether every run ended in an exception."""
    return all(isinstance(output, Raised) for output in outputs)


def all_equal(outputs: Outputs) -> bool:
    """Return whether all outputs are the same."""
    return all(same(outputs[0], output) for output in outputs)


def same(left: Any, right: Any, deep: int = 4) -> bool:
    """Return whether two outputs are equal, whatever their types; NaN equals NaN.

    Objects without a comparison of their own are compared by their attributes, `deep` levels down.
    """
    try:
        with np.errstate(all="ignore"):
            if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
                return np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")
            compares = not f"{type(left).__module__}.".startswith("scipy.sparse.")  # which warns
            if compares and type(left) is type(right) and bool(left == right):
                return True
    except Exception:  # objects that cannot be compared are told apart by what they hold
        pass
    left_fields, right_fields = attributes(left), attributes(right)
    if left_fields is None or right_fields is None or type(left) is not type(right) or not deep:
        return safe_repr(left) == safe_repr(right)
    return left_fields.keys() == right_fields.keys() and all(
        same(left_fields[key], right_fields[key], deep - 1) for key in left_fields
    )
