"""A mechanism's answer without its noise, where it can be had: of a copy that is thrown away.

A mechanism that kept what it is given here would go on without noise.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.limits import MOMENT
from pytest_dp.outputs.outcome import Raised, same
from pytest_dp.randomness.catalogue import kind_of, size_of
from pytest_dp.randomness.requests import RNG, Request
from pytest_dp.randomness.stand_ins import Instrument, stand_in
from pytest_dp.sampling.calling import Call
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy
from pytest_dp.sampling.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.sampling.generators import seeded
from pytest_dp.sampling.streams import stream


def noiseless(call: Call, data: Any, privacy_param: str | None) -> Any:
    """The mechanism's answer without noise, or None if it cannot be had.

    StatDP compares outputs with the answer at ε = ∞. The mechanism is given a generator without
    noise, or, where the claim names the parameter that carries ε, an infinite one. It must have
    been seen to depend on its input and its random numbers alone; the input is not changed.
    """
    attempts: list[dict[str, Any]] = [{}] if call.rng is not None else []
    attempts += [{privacy_param: math.inf}] if privacy_param is not None else []
    deadline = Deadline(10 * MOMENT)
    for changed in attempts:
        try:
            copied, (data_of_copy,) = call.copied(data)
        except CannotCopy:
            return None
        params = {**copied.params, **changed}
        alone = replace(copied, params=params, input=Input(data_of_copy).fresh)
        instrument = _NoNoise()
        without = stand_in(instrument, RNG)
        with seeded(stream(0), copied.captured) as generator, np.errstate(all="ignore"):
            try:
                with interruptible(deadline, None):
                    answer, again = alone.draw(None, 2, without if not changed else generator)
            except (ClaimError, MechanismError, OutOfTime):  # no noiseless answer this way
                continue
        if instrument.refusal:
            continue
        if answer is not None and not isinstance(answer, Raised) and same(answer, again):
            return answer
    return None


class _NoNoise(Instrument):
    """Noise that is at its centre."""

    def draw(self, request: Request) -> Any:
        """The centre; asking for what has none is an error of the mechanism's, as it was."""
        standard_of = kind_of(request).standard
        if standard_of is not None:
            law, scale, location = standard_of(request.arguments)
            if law.family.centre is not None:
                centre = location + np.multiply(scale, law.family.centre(law.parameter))
                size = size_of(request)
                return centre if size is None else np.broadcast_to(centre, size).astype(float)
        return self.refuse(f"no noiseless value of {request.method}")
