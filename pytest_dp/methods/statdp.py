"""StatDP: look for the most suspicious event on some samples, test it on held-out ones.

Algorithm 1 of the paper searches 100,000 samples of every pair, and tests on 500,000 held-out ones.
Here pairs are compared on few samples first, and only the suspicious half gets more samples. The
counts of the search also say how many held-out samples are needed. The pair, the event and that
number depend on search samples only, and the event is tested once, on other samples. So the p-value
is valid however the search chooses.

Source: Ding, Wang, Wang, Zhang, Kifer, "Detecting Violations of Differential Privacy", CCS 2018,
Algorithms 1 to 4; the p-value is that of `pytest_dp.statistics.count_tests`. For claims of more
than ε, which the paper does not have, it is that of `pytest_dp.statistics.event_test`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtri

from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.auditors.witness import Witness, sort_likelier_first
from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.counterexample import simplest_event
from pytest_dp.methods.two_stage import PairSearch, search_by_halving, search_then_test
from pytest_dp.outputs.event_search import RankedEvent, search
from pytest_dp.outputs.feature import KINDS, Feature, FeatureKind, numeric
from pytest_dp.outputs.features import MAX_FEATURES, features
from pytest_dp.outputs.leaves import ABSENT, NUMBER
from pytest_dp.outputs.paired_outputs import features_of_extract
from pytest_dp.outputs.raised import Raised, equal_outputs
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.privacy import Guarantee
from pytest_dp.running.calling import Call
from pytest_dp.running.chunks import Input
from pytest_dp.running.copies import CannotCopy
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generator_stand_ins import CannotInstrument, Instrument, Request
from pytest_dp.running.instrumented import apply_instrument, run_copy
from pytest_dp.running.laws import draw_kind_of, size_of
from pytest_dp.statistics.event_bets import rank_for
from pytest_dp.statistics.event_test import EventTest, StatDPTest

SEARCH_SHARE = 0.4
"""Share of samples and time for the search. Larger: the test sees less; smaller: worse events."""
FIRST_OUTPUTS = 500
"""Pairs of outputs before pairs are compared. More: slower; fewer: the best is lost by chance."""
MIN_EVENT_COUNT = 50
"""Outputs of an event on one side, at least. Fewer: luck is taken; more: rare ones missed."""

DECISIVE = 30.0
"""Log wealth beyond luck that ends the search. Larger: longer; smaller: luck. Measured."""
SUGGESTIVE = DECISIVE / 5
"""The same, for a pair to be preferred over a decisive one because it is simpler."""
FLOAT_ERROR = 2.0**-50
"""Relative error of two operations. Larger: small differences are missed; smaller: rounding."""

ONE_RUN_SECONDS = 1.0
"""Seconds for one run without noise. More: a slow search; fewer: slow mechanisms get none."""


def audit(session: Session) -> AuditFinding:
    """Run the mechanism to audit one claim with StatDP; return and raise as `search_then_test`."""
    return AuditFinding(search_then_test(session, find_suspicious_event, StatDPTest))


def find_suspicious_event(pairs: PairSearch) -> Witness | None:
    """Run the mechanism on pairs, and return the most suspicious event; None if there is none.

    Marks the search as decided if an event was clear before all samples of the search were used.
    """
    session = pairs.session
    budget = SEARCH_SHARE * session.budget.max_samples
    deadline = session.budget.deadline.with_reserve(SEARCH_SHARE)
    judge = partial(_rank_events, pairs)
    found = search_by_halving(pairs, budget, deadline, judge, first=FIRST_OUTPUTS)
    if not found:
        return None
    state, ranked = found[0]
    sign = -1 if ranked.c2 > ranked.c1 else 1
    counts = sort_likelier_first(sign, ranked.c1, ranked.c2)
    p1, p2 = (count / state.outputs.pairs for count in counts)
    return Witness(state, ranked.event, sign, p1, p2, largest=_largest_loss_shown(session, state))


def _rank_events(
    pairs: PairSearch, states: Sequence[PairState]
) -> list[tuple[PairState, RankedEvent]]:
    """Find the most suspicious event of each pair; return (pair, event), the most suspicious first.

    Pairs without an event are left out. The first call for a pair runs the mechanism without noise,
    and stores the distances from its answers in the state. If an event is decisive, `is_decided`
    of `pairs` is set, and one tuple returned: of pairs that are about as suspicious as the best,
    the pair that the claim lists first.
    """
    found: list[tuple[PairState, RankedEvent]] = []
    for state in states:
        table, on_d = state.outputs.table()
        rank = rank_for(pairs.session.guarantee)(state.outputs.pairs)
        about = _readable_features(pairs.session, state, table, on_d)
        events = search(table, on_d, rank, about, 1)
        found += [(state, simplest_event(event, table, on_d, rank)) for event in events]
    found.sort(key=lambda one: (-one[1].rank, one[0].number))
    if not found or found[0][1].rank <= DECISIVE:
        return found
    pairs.is_decided = True
    # Among pairs that are about equally suspicious, the first of the claim is the simplest.
    least = max(SUGGESTIVE, 0.4 * found[0][1].rank)
    near = [one for one in found if one[1].rank > least]
    return [min(near, key=lambda one: one[0].number)]


def _readable_features(
    session: Session, state: PairState, table: Table, on_d: Bools
) -> list[Feature]:
    """Return the features of a pair's outputs, and distances from the answers without noise.

    The first call for a pair runs the mechanism without noise, and keeps these distances.
    """
    if table.is_extract:
        return features_of_extract(table)
    if state.added is None:
        state.added = distance_features(session, state.pair.inputs)
    return features(table, on_d) + state.added


def _largest_loss_shown(session: Session, state: PairState) -> float:
    """Return a cautious estimate of the largest loss of an event, in the claim's parameter."""

    def cautious(c1: Ints, c2: Ints, runs: int) -> tuple[Floats, Floats]:
        high, low = np.maximum(c1, c2) + 0.5, np.minimum(c1, c2) + 0.5
        error = np.sqrt(1 / high + 1 / low)
        return high / runs * np.exp(-error), np.minimum(low / runs * np.exp(error), 1.0)

    table, on_d = state.outputs.table()
    runs, guarantee = state.outputs.pairs, session.guarantee

    def rank(c1: Ints, c2: Ints) -> Floats:
        far = _rank_by_loss(*cautious(c1, c2, runs), guarantee)
        return np.where(np.maximum(c1, c2) >= MIN_EVENT_COUNT, far, -np.inf)

    events = search(table, on_d, rank, _readable_features(session, state, table, on_d), 1)
    if not events:
        return 0.0
    counts = np.array(events[0].c1), np.array(events[0].c2)
    return float(EventTest(guarantee).parameter_shown(*cautious(*counts, runs)))


def _rank_by_loss(p1: Floats, p2: Floats, guarantee: Guarantee) -> Floats:
    """Return a quick rank of events by their probabilities on D and D'; NaN or infinite for 0 or 1.

    For claims of an ε, the rank is the loss in nats; else the loss µ of Gaussian privacy, as other
    notions order events about as µ does.
    """
    with np.errstate(all="ignore"):
        if guarantee.eps is None:
            return np.asarray(ndtri(p1) - ndtri(p2), dtype=np.float64)
        return np.asarray(np.log((p1 - guarantee.delta) / p2), dtype=np.float64)


def distance_features(session: Session, inputs: tuple[Any, Any]) -> list[Feature]:
    """Run the mechanism without noise on D and D', and return the distances from both answers.

    Only short vectors give a feature (Section 4.4 of the paper). Empty if the mechanism made no
    draws, or if its outputs depend on more than the input and the draws.
    """
    sampler = session.sampler
    if not sampler.replayable or not sampler.draws:
        return []
    name = session.claim.arguments.privacy_param
    answers = [answer_without_noise(sampler.call, data, name) for data in inputs]
    return list(dict.fromkeys(map(distance_from, filter(_is_short_vector, answers))))


def answer_without_noise(call: Call, data: Any, privacy_param: str | None) -> Any:
    """Run copies of the mechanism without noise, and return the answer.

    Each draw returns the centre of its distribution. If such a run fails and the claim names the
    parameter that carries ε, a second attempt has ε = ∞. None if the mechanism cannot be copied,
    raises, takes longer than `ONE_RUN_SECONDS`, or gives two different answers.
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
        if answered and equal_outputs(answer, again) and (changed or not instrument.refusal):
            return answer
    return None


class _NoNoise(Instrument):
    """A stand-in for generators that returns the centre of each distribution.

    A draw without a centre, such as of a uniform number, gets a fixed pseudo-random value.
    """

    words = bytes(32)

    def draw(self, request: Request) -> Any:
        """Return the centre of the distribution, or note a refusal and return a fixed value."""
        standard_of = draw_kind_of(request).standard
        if standard_of is not None:
            law, scale, location = standard_of(request.arguments)
            if law.family.centre is not None:
                centre = location + np.multiply(scale, law.family.centre(law.parameter))
                size = size_of(request)
                return centre if size is None else np.broadcast_to(centre, size).astype(float)
        return self.refuse(f"no noiseless value of {request.method}")


def _is_short_vector(answer: Any) -> bool:
    """Return whether an answer has one axis, and at most `MAX_FEATURES` elements."""
    try:
        return bool(np.ndim(answer) == 1) and len(answer) <= MAX_FEATURES
    except ValueError:  # lists of several lengths
        return False


def distance_from(answer: Any) -> Feature:
    """Return the feature that counts the positions in which an output differs from an answer."""
    listed = answer.tolist() if isinstance(answer, np.ndarray) else list(answer)
    alone = tabulate([listed])
    names = {code: level for level, code in alone.levels.items()}
    keys = tuple(
        ("number", number) if code == NUMBER else names[code]
        for number, code in zip(alone.numbers.tolist(), alone.codes.tolist(), strict=True)
    )
    return Feature(f"hamming(output, {listed!r})", "hamming", keys)


def hamming_distance(keys: tuple[tuple[str, Any], ...], table: Table) -> Floats:
    """Return in how many positions each output differs from an answer, shape (outputs,).

    `keys` has the answer's entry for each position: ("number", value), or a category's name.
    Positions that only one of both has count as different. NaN for outputs that are no vectors.
    """
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
    numeric(hamming_distance), operands=lambda *_: None, whole=True, of_all=True
)
