"""A mechanism's answer without its noise, where it can be had."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.sampling import hidden
from pytest_dp.sampling.calling import Call, Raised, same
from pytest_dp.sampling.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.sampling.pieces import Input, OnCopies
from pytest_dp.sampling.streams import seeded, stream

MOST_SECONDS = 1.0
"""Without noise, a loop that waits for some value may never end."""


def noiseless(call: Call, data: Any, eps_param: str | None) -> Any:
    """What `Call.noiseless` returns; neither `data` nor any generator is changed."""
    attempts: list[tuple[Call, bool]] = []
    alone = replace(call, mechanism=OnCopies(call.mechanism, Input(data)))
    if call.rng is not None:
        attempts.append((alone, True))
    if eps_param is not None:
        attempts.append((replace(alone, params={**call.params, eps_param: math.inf}), False))
    generators = hidden.find(call.mechanism, call.params)
    deadline = Deadline(MOST_SECONDS)
    for attempt, silent in attempts:
        with seeded(stream(0), generators) as generator, np.errstate(all="ignore"):
            try:
                with interruptible(deadline, None):
                    answer, again = attempt.draw(
                        None, 2, _NoNoise(np.random.PCG64(0)) if silent else generator
                    )
            except (ClaimError, MechanismError, OutOfTime):  # no noiseless answer this way
                continue
        if answer is not None and not isinstance(answer, Raised) and same(answer, again):
            return answer
    return None


class _NoNoise(np.random.Generator):
    """A generator whose noise is at its centre; asking it for anything else is an error."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        if name in ("laplace", "normal", "gumbel", "logistic"):
            return lambda loc=0.0, scale=1.0, size=None: _centre(loc, size)  # noqa: ARG005
        if name == "exponential":
            return lambda scale=1.0, size=None: _centre(0.0, size)  # noqa: ARG005
        if name in ("standard_normal", "standard_exponential"):
            return lambda size=None, **given: _centre(0.0, size)  # noqa: ARG005
        raise NotImplementedError(f"no noiseless value of {name}")


def _centre(loc: Any, size: Any) -> Any:
    return loc if size is None else np.broadcast_to(loc, size).astype(float)
