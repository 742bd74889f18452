"""Runs of copies of a mechanism, in which an instrument answers every draw."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.outputs.outcome import Raised, same
from pytest_dp.running.calling import Call, Made
from pytest_dp.running.catalogue import draw_kind_of, size_of
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime, interruptible
from pytest_dp.running.modules import modules_replaced
from pytest_dp.running.requests import RNG, Request
from pytest_dp.running.shadowing import shadow
from pytest_dp.running.stand_ins import (
    CannotInstrument,
    Instrument,
    stand_in,
    was_drawn_unasked,
)

ONE_RUN_SECONDS = 1.0
"""Seconds for one run without noise. More: slow mechanisms hold up the search; fewer: they are not
run."""


def run_instrumented(call: Call, data: Any, instrument: Instrument, deadline: Deadline) -> Any:
    """The output of one run of a new copy, on a copy of the input; a `Raised` where it raises.

    Of a vectorised mechanism, one row is asked for. The instrument is asked for whatever the copy
    draws with what it is given, with generators that it keeps, and with functions of `random`,
    `secrets`, `os` and ``np.random``.

    Raises CannotInstrument if the copy asks for what the instrument has not, CannotCopy if there is
    no copy, and OutOfTime if the deadline passes first.
    """
    with apply_instrument(instrument, deadline):
        output = run_copy(call, data, instrument)
    if instrument.refusal:  # and the mechanism went on
        raise CannotInstrument(instrument.refusal)
    return output


@contextmanager
def apply_instrument(instrument: Instrument, deadline: Deadline) -> Iterator[None]:
    """Put an instrument in place for one or more runs; raises OutOfTime in the middle of a run."""
    with (
        modules_replaced(instrument),  # also while it is copied: names are looked up then
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
        interruptible(deadline, None),
    ):
        warnings.simplefilter("ignore")
        yield


def run_copy(
    call: Call,
    data: Any,
    instrument: Instrument,
    names: Mapping[str, Any] | None = None,
    params: Mapping[str, Any] | None = None,
) -> Any:
    """The output of one run of a new copy, as `run_instrumented`, with the instrument in place.

    An `Input` in place of data is copied faster. Functions of the copy find what `names` has in
    place of Python's own, and its parameters are changed to those of `params`.
    """
    item = data if isinstance(data, Input) else Input(data)
    copied, (data,) = call.copy_alone(item.fresh())
    # These are no samples, as nothing is drawn.
    copied = replace(copied, params={**copied.params, **(params or {})}, made=Made())
    if names:
        shadow(copied.mechanism, names)
    output = copied.one(data, stand_in(instrument, RNG))
    if was_drawn_unasked():
        raise CannotInstrument("compiled code draws from its generator")
    return output


def noiseless(call: Call, data: Any, privacy_param: str | None) -> Any:
    """The mechanism's answer without noise, or None if it cannot be had.

    StatDP compares outputs with the answer at ε = ∞. Each draw is answered by the centre of its
    law; where that does not do, and the claim names the parameter that carries ε, it is made
    infinite. The mechanism must have been seen to depend on its input and its random numbers alone.
    """
    attempts: list[dict[str, Any]] = [{}]
    attempts += [{privacy_param: math.inf}] if privacy_param is not None else []
    deadline, item = Deadline(ONE_RUN_SECONDS), Input(data)
    for changed in attempts:
        instrument = _NoNoise()
        try:
            with apply_instrument(instrument, deadline):
                answer, again = (run_copy(call, item, instrument, params=changed) for _ in range(2))
        except CannotCopy:
            return None
        except (CannotInstrument, ClaimError, MechanismError, OutOfTime):
            continue
        answered = answer is not None and not isinstance(answer, Raised)
        if answered and same(answer, again) and (changed or not instrument.refusal):
            return answer
    return None


class _NoNoise(Instrument):
    """Noise that is at its centre; where it has none, plain noise, the same in every audit."""

    words = bytes(32)

    def draw(self, request: Request) -> Any:
        """The centre."""
        standard_of = draw_kind_of(request).standard
        if standard_of is not None:
            law, scale, location = standard_of(request.arguments)
            if law.family.centre is not None:
                centre = location + np.multiply(scale, law.family.centre(law.parameter))
                size = size_of(request)
                return centre if size is None else np.broadcast_to(centre, size).astype(float)
        return self.refuse(f"no noiseless value of {request.method}")
