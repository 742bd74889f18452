"""Hamming distances of outputs from the answer without noise, one of StatDP's families of events.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
section 4.4: the answer at ε = ∞.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind, numeric
from pytest_dp.outputs.features import MAX_FEATURES
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.quantities import FLOAT_ERROR
from pytest_dp.outputs.raised import Raised, same
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.running.calling import Call
from pytest_dp.running.catalogue import draw_kind_of, size_of
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument, Instrument
from pytest_dp.running.instrumented import apply_instrument, run_copy
from pytest_dp.running.requests import Request

ONE_RUN_SECONDS = 1.0
"""Seconds for one run without noise. More: slow mechanisms hold up the search; fewer: they are not
run."""


def distance_features(session: Session, inputs: tuple[Any, Any]) -> list[Feature]:
    """Return the distances from the answers without noise on both inputs, where these are vectors.

    The mechanism must have been seen to depend on its input and its random numbers alone.
    """
    sampler = session.sampler
    if not sampler.replayable or not sampler.draws:
        return []
    name = session.claim.arguments.privacy_param
    answers = [answer_without_noise(sampler.call, data, name) for data in inputs]
    return list(dict.fromkeys(map(distance_from, filter(_is_short_vector, answers))))


def answer_without_noise(call: Call, data: Any, privacy_param: str | None) -> Any:
    """Return the mechanism's answer without noise, or None if there is none.

    Each draw is answered by the centre of its law; where that does not do, and the claim names the
    parameter that carries ε, it is made infinite.
    """
    deadline, item = Deadline(ONE_RUN_SECONDS), Input(data)
    for changed in ({}, {privacy_param: math.inf}) if privacy_param else ({},):
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
        """Return the centre."""
        standard_of = draw_kind_of(request).standard
        if standard_of is not None:
            law, scale, location = standard_of(request.arguments)
            if law.family.centre is not None:
                centre = location + np.multiply(scale, law.family.centre(law.parameter))
                size = size_of(request)
                return centre if size is None else np.broadcast_to(centre, size).astype(float)
        return self.refuse(f"no noiseless value of {request.method}")


def _is_short_vector(answer: Any) -> bool:
    """Return whether an answer is a vector short enough to be compared with outputs."""
    try:
        return bool(np.ndim(answer) == 1) and len(answer) <= MAX_FEATURES
    except ValueError:  # lists of several lengths
        return False


def distance_from(answer: Any) -> Feature:
    """Return the feature: in how many positions an output differs from an answer."""
    listed = answer.tolist() if isinstance(answer, np.ndarray) else list(answer)
    alone = tabulate([listed])
    names = {code: level for level, code in alone.levels.items()}
    keys = tuple(
        ("number", number) if code == NUMBER else names[code]
        for number, code in zip(alone.numbers.tolist(), alone.codes.tolist(), strict=True)
    )
    return Feature(f"hamming(output, {listed!r})", "hamming", keys)


def hamming_distance(keys: tuple[tuple[str, Any], ...], table: Table) -> Floats:
    """Count in how many positions each output differs from the answer; NaN for bare leaves."""
    values = np.array([key[1] if key[0] == "number" else np.nan for key in keys], dtype=np.float64)
    codes = np.array(
        [NUMBER if key[0] == "number" else table.levels.get(key, ABSENT) for key in keys],
        dtype=np.int64,
    )
    distance = np.full(len(table), np.nan)
    for number, structure in enumerate(table.structures):
        if structure.length is None:
            continue
        rows = np.flatnonzero(table.structure == number)
        shared = min(len(structure.places), len(keys))
        at = table.offsets[rows][:, None] + np.arange(shared)
        close = np.isclose(table.numbers[at], values[:shared], rtol=FLOAT_ERROR, atol=0.0)
        equal = (table.codes[at] == codes[:shared]) & ((codes[:shared] != NUMBER) | close)
        extra = max(len(structure.places), len(keys)) - shared
        distance[rows] = shared - equal.sum(axis=1) + extra
    return distance


KINDS["hamming"] = FeatureKind(
    numeric(hamming_distance), parts=lambda *_: None, whole=True, of_all=True
)
