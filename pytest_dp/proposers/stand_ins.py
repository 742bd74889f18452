"""Stand-ins: each has a value, with which a run goes on."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from pytest_dp.proposers.trace import Trace

Operator = Callable[[Any, Any], Any]


def is_symbolic(value: Any) -> bool:
    """Return whether something is a stand-in for a number, a truth, a text or a day."""
    return getattr(type(value), "_is_symbolic", False)


def plain_value(value: Any) -> Any:
    """Return the value of a stand-in; anything else is itself."""
    return value.value if is_symbolic(value) else value


class StandIn:
    """A stand-in for a value. A copy is the same one, and a pickle is its value."""

    _is_symbolic = True
    trace: Trace
    value: Any

    def concrete(self, what: str) -> Any:
        """Return its value, where its formula is lost."""
        self.trace.note(what)
        return self.value

    def compared(self, other: Any, by: Operator) -> Any:
        """Return a comparison with another value; NotImplemented if that is impossible."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _itself, (self.value,)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self


for _by in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
    setattr(StandIn, f"__{_by.__name__}__", lambda self, other, by=_by: self.compared(other, by))


class Symbolic(StandIn):
    """A stand-in for what is no text, whose type it takes to be."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.value)

    def __hash__(self) -> int:
        return hash(self.concrete("hash"))

    def __float__(self) -> float:
        return float(self.concrete("float(...) in compiled code"))

    def __int__(self) -> int:
        return int(self.concrete("int(...) in compiled code"))

    def __index__(self) -> int:
        return operator.index(self.concrete("an index"))

    def __repr__(self) -> str:
        return repr(self.value)

    def __format__(self, how: str) -> str:
        return format(self.value, how)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of its value, for which there is no formula."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.concrete(f"{type(self.value).__name__}.{name}"), name)


def _itself(value: Any) -> Any:
    return value
