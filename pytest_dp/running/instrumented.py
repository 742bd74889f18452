"""Runs of copies of a mechanism, in which an instrument answers every draw."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from pytest_dp.running.calling import Call, Made
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, interruptible
from pytest_dp.running.generator_stand_ins import (
    CannotInstrument,
    Instrument,
    stand_in,
    was_drawn_unasked,
)
from pytest_dp.running.modules import modules_replaced
from pytest_dp.running.requests import RNG
from pytest_dp.running.shadowing import shadow


def run_instrumented(call: Call, data: Any, instrument: Instrument, deadline: Deadline) -> Any:
    """Return the output of a run of a new copy on a copy of the input; `Raised` if it raises.

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
    """Return the output of a run of a new copy, with the instrument already in place.

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
