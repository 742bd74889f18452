"""Mechanisms as they were before the first audit in this process that ran them.

What an audit leaves in a mechanism, such as answers in a cache, is there when the next one begins.
A verdict must not depend on that.
"""

from __future__ import annotations

import types
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pytest_dp.clocks import since_1970
from pytest_dp.limits import MILLION, SEVERAL
from pytest_dp.sampling.copies import Pristine
from pytest_dp.sampling.forked import Origin


@dataclass(slots=True, eq=False)
class FirstState:
    """What copies are made of, or processes forked of, as before the first run."""

    pristine: Pristine
    origin: Origin | None = None
    since: float = field(default_factory=since_1970)

    def wait(self) -> None:
        """Let its process wait for the next audits of the mechanism, in place of an older one."""
        if self not in _WAITING:
            _WAITING.append(self)
        while len(_WAITING) > SEVERAL // 2:
            _WAITING.popleft().end()

    def end(self) -> None:
        """End its process, if it has one."""
        origin, self.origin = self.origin, None
        if origin is not None:
            origin.close()


_WAITING: deque[FirstState] = deque()
_KNOWN: dict[int, tuple[weakref.ref[Any], FirstState]] = {}
"""By the identity of a function, or of the object that it is a method of, while that lives."""


def first_state(mechanism: Any, pristine: Pristine) -> FirstState:
    """The first state of a mechanism, which is this one unless it was seen before."""
    owner = mechanism.__self__ if isinstance(mechanism, types.MethodType) else mechanism
    known = _KNOWN.get(id(owner))
    if known is not None and known[0]() is owner:
        return known[1]
    state = FirstState(pristine)
    if pristine.size > MILLION:
        return state

    def forget(_: Any, number: int = id(owner)) -> None:
        _KNOWN.pop(number, None)
        state.end()

    with suppress(TypeError):  # else the next audit takes what it finds for the first state
        _KNOWN[id(owner)] = weakref.ref(owner, forget), state
    return state
