"""One run on stand-ins, with noise that does not depend on the inputs but through its scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.proposers.functions import NAMES, undecided_truths
from pytest_dp.proposers.stand_in_arrays import arrays_of_stand_ins, found_in, note, values_of
from pytest_dp.proposers.stand_in_numbers import term
from pytest_dp.proposers.stand_ins import is_symbolic
from pytest_dp.proposers.trace import Trace
from pytest_dp.running.calling import Call
from pytest_dp.running.catalogue import draw_kind_of, size_of
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument, Instrument, stand_in
from pytest_dp.running.instrumented import apply_instrument
from pytest_dp.running.requests import RNG, Request
from pytest_dp.running.shadowing import shadow


class Fixed(Instrument):
    """Answers draws by the centres of their laws, or by numbers of a seed.

    The same draws have the same answers on every input, up to scale and location.
    """

    words = bytes(32)

    def __init__(self, trace: Trace, seed: int | None) -> None:
        super().__init__()
        self._trace, self._centred = trace, seed is None
        self._numbers = np.random.default_rng(seed or 0)

    def other(self, source: Any, name: str) -> Any:
        return getattr(self.plain(source.kind), name)

    def draw(self, request: Request) -> Any:
        try:
            return self._standard(request)
        except (TypeError, ValueError, AttributeError):
            return self._plainly(request)

    def _standard(self, request: Request) -> Any:
        standard_of = draw_kind_of(request).standard
        if standard_of is None or request.arguments.get("out") is not None:
            return self._plainly(request)
        law, scale, location = standard_of(request.arguments)
        if law.family.centre is None:
            return self._plainly(request)
        self._scale(scale)
        size = size_of(request)
        shape = np.broadcast_shapes(np.shape(scale), np.shape(location)) if size is None else size
        count = int(np.prod(shape))
        if self._centred:
            values = np.full(count, law.family.centre(law.parameter), float)
        else:
            values = law.draws(self._numbers, count)
        if size is None and not shape:
            return location + scale * values.tolist()[0]
        noise = values.reshape(shape)
        return np.asarray(location + np.multiply(scale, noise))

    def _scale(self, scale: Any) -> None:
        flat = np.ravel(np.asarray(scale, object)).tolist()
        self._trace.scales += [term(each) for each in flat if is_symbolic(each)]

    def _plainly(self, request: Request) -> Any:
        given = [*request.args, *request.keywords.values()]
        if found_in(given) is not None and request.method != "shuffle":  # which only moves them
            note(given, f"{request.source.name}.{request.method}")
            args = tuple(map(values_of, request.args))
            named = {name: values_of(value) for name, value in request.keywords.items()}
            request = Request(request.source, request.method, args, named)
        generator = self.plain(request.source.kind)
        return getattr(generator, request.method)(*request.args, **request.keywords)


def trace_run(
    call: Call, data_of: Callable[[Trace], Any], deadline: Deadline, seed: int | None = None
) -> Trace | None:
    """Return the trace of a run of a copy; None if it could not be run.

    `data_of` makes the stand-in of the input. A run that raises has a trace up to there.
    """
    trace = Trace()
    instrument = Fixed(trace, seed)
    try:
        copied, _ = call.copy_alone()
        data = data_of(trace)
        shadow(copied.mechanism, NAMES)
        with apply_instrument(instrument, deadline), arrays_of_stand_ins().in_place():
            output = copied.one(data, stand_in(instrument, RNG))
    except (CannotCopy, CannotInstrument, ClaimError, MechanismError, OutOfTime):
        return None
    for truth in undecided_truths(output):
        trace.release(truth.condition, truth.value)
    return trace
