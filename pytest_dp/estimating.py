"""Estimates of the loss of a mechanism, without a claim: `estimate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import default_rng

from pytest_dp import clocks
from pytest_dp.auditors import audit
from pytest_dp.auditors.known import REFUTED
from pytest_dp.claim import expand
from pytest_dp.clocks import QUIET_SECONDS
from pytest_dp.errors import ClaimError, MechanismError
from pytest_dp.inputs import resolved, source_of
from pytest_dp.keywords import PRIVACY
from pytest_dp.known import KnownPair
from pytest_dp.known.enumerated import EnumeratedPair
from pytest_dp.known.enumerating import TOO_MANY, enumerated
from pytest_dp.known.in_closed_form import PairInClosedForm, compare, outcomes_of
from pytest_dp.known.replay import replayed
from pytest_dp.oracles.aligned_pair import REPLAYS_OF_LARGEST
from pytest_dp.oracles.alignment import align
from pytest_dp.oracles.checking import NotAligned
from pytest_dp.oracles.shift_loss import LossBound
from pytest_dp.outputs.outcome import all_raised
from pytest_dp.randomness.stand_ins import CannotInstrument
from pytest_dp.report import numbers
from pytest_dp.reprs import on_one_line
from pytest_dp.results.outcome import Estimate, Mode
from pytest_dp.results.result import Counterexample
from pytest_dp.sampling.calling import Call, prepare
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.copies import CannotCopy, Pristine
from pytest_dp.sampling.deadline import Deadline, OutOfTime, ended_if_hung, interruptible
from pytest_dp.settings import seed_of
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA, delta_lower

CLAIMED = 1e-3
"""Claim in nats that samples are held against: any loss breaks it."""
DERIVING_TIME = 0.5
"""Share of the time in which a loss is derived. Larger: sampling gets less; smaller: losses of
slow mechanisms are not derived."""
FIRST_RUNS = 3
"""Runs that show how slow the mechanism is, and replays. More take longer; fewer say less."""
CHECKED_RUNS = 200
"""Runs on either input that a derived loss is held against. More take longer; fewer miss what is
rare."""

REFUSALS = (
    *(CannotInstrument, CannotCopy, OutOfTime, MechanismError),
    *(ArithmeticError, np.linalg.LinAlgError),  # numbers beyond what floats can hold
)
"""Why a loss is estimated by samples: neither enumeration nor a closed form is possible."""
_BY_KNOWLEDGE: tuple[Mode, ...] = ("exact", "analytic", "numerical", "sampled")
_HOW: dict[Mode, str] = {
    "exact": "by all outcomes and their probabilities",
    "analytic": "by densities of the noise",
    "numerical": "the largest ratio of densities that a search found",
    "sampled": "of the strongest attack that was found; others may show more",
}
DeltaBounds = Callable[[float], tuple[float, float]]
"""Bounds on δ by ε."""


@dataclass(frozen=True, slots=True)
class LossEstimate(Estimate):
    """An estimate of the loss of a mechanism on some pairs of neighbouring inputs.

    Attributes
    ----------
    value : float
        The largest loss in nats, over all outputs, pairs and both directions: the smallest ε of
        pure differential privacy on these pairs. Infinite if there is none.
    error : float
        By how much it may be off in nats: rounding, of what is exact or analytic; infinite, where
        the value was searched for. Of a value by samples, half of a confidence interval.
    mode : {"exact", "analytic", "numerical", "sampled"}
        By all outcomes and their probabilities; by densities of the noise; by densities whose
        largest ratio was searched for on a grid, so that a larger one may have been missed; by
        samples. A sampled value is the loss of the strongest attack that was found: others may show
        more. Of several pairs, the one of these that knows least.
    pair : (D, D')
        Where it is largest.
    reason : str
        Why it is by samples, if it is; else empty.
    at_most : float
        Of a sampled value: what the loss is at most on these pairs, by alignments of draws that
        replays agree with; infinite where there is none.
    """

    pair: tuple[Any, Any] = (None, None)
    reason: str = ""
    at_most: float = math.inf
    _deltas: tuple[DeltaBounds, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        """The value, how it is known, and where it is largest, a line each."""
        lines = [f"{self._value()} ({self.mode}: {_HOW[self.mode]})"]
        if self.pair != (None, None):
            lines.append(f"  on D = {on_one_line(self.pair[0])}, D' = {on_one_line(self.pair[1])}")
        return "\n".join([*lines, *([f"  sampled, as {self.reason}"] if self.reason else [])])

    def _value(self) -> str:
        if math.isinf(self.value):
            return "eps = infinity"
        if self.mode == "numerical":
            return f"eps >= {self.value:.3g}"
        if self.mode == "sampled":
            low, high = self.value - self.error, self.value + self.error
            if math.isfinite(self.at_most):
                return f"eps at most {self.at_most:.3g} by alignment, at least {low:.3g} by runs"
            return f"eps = {self.value:.3g}, from {low:.3g} to {high:.3g}"
        return f"eps = {numbers.known_number(self.value, self.error)}"

    def profile(self, eps: float) -> tuple[float, float]:
        """Bounds on the smallest δ with which the mechanism is (ε, δ)-private on these pairs.

        Parameters
        ----------
        eps : float
            In nats, at least 0.

        Returns
        -------
        lower, upper : float
            Sure but for rounding of floats; of an estimate by samples, the lower one holds with the
            confidence of the estimate. Of one by samples or by a search, the upper one is 1, unless
            an alignment of draws bounds the loss.

        Raises
        ------
        ValueError
            If `eps` is negative or not finite.
        """
        if not 0 <= eps < math.inf:
            raise ValueError(f"eps must be a finite number of nats, at least 0, not {eps!r}.")
        bounds = [delta(float(eps)) for delta in self._deltas]
        return max(lower for lower, _ in bounds), max(upper for _, upper in bounds)


@ended_if_hung
def estimate(
    mechanism: Callable[..., Any],
    *,
    seed: int | str | None = None,
    n_jobs: int | None = None,
    check: bool = True,
    **keywords: Any,
) -> LossEstimate:
    """The loss of a mechanism on pairs of neighbouring inputs, without a claim.

    Where all outcomes can be enumerated, or outputs are sums of draws of known laws, the loss is
    known without a sample. Otherwise it is estimated: an attack is learned on some samples, and
    counted on others. That value is approximate, and a bound from below only; where a shift of the
    draws makes up for the difference of the inputs, `at_most` is a bound from above.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, ...)``, one output a call unless `vectorized`.
    seed : int or str, optional
        As of `audit`: of samples, and of inputs that a strategy draws.
    n_jobs : int, optional
        Processes at most.
    check : bool
        Hold what is known without samples against outputs of real runs on each input, up to a few
        hundred. Without, code that does other things with numbers that are traced than with real
        ones may get a wrong value.
    **keywords
        Those of `dp_claim` that say which inputs are neighbours (`pairs`, or `inputs` with
        `neighbors`), how the mechanism is called (`params`, `vectorized`, `rng`), and
        the effort (`max_seconds`, `max_samples`). `alpha` is the error of bounds by samples, .05 by
        default. A list in `params` must hold one value.

    Returns
    -------
    LossEstimate
        Its `value` in nats, `error`, `mode`, and ``profile(eps)``.

    Raises
    ------
    ClaimError
        If a keyword makes no sense, or says what is promised.
    MechanismError
        If the mechanism always raises, hangs, or takes its process down.

    Examples
    --------
    >>> from pytest_dp import estimate
    >>> def noisy_count(records, rng):
    ...     return len(records) + rng.laplace(scale=0.5)
    >>> loss = estimate(noisy_count, pairs=[([0], [])])
    >>> print(round(loss.value, 6), loss.mode)
    2.0 analytic
    >>> lower, upper = loss.profile(1.0)
    >>> print(round(lower, 4), round(upper, 4))
    0.3934 0.3935
    """
    promised = [name for name in PRIVACY if name in keywords]
    if promised:
        raise ClaimError(
            f"estimate() takes no {promised[0]}=: it says what is lost, whatever is promised. "
            "Leave it out, or use audit() to test the promise."
        )
    number = seed_of(seed)
    keywords.setdefault("alpha", SHOWN_ALPHA)
    claims = expand({**keywords, "eps": CLAIMED})
    if len(claims) > 1:
        raise ClaimError(
            f"params gives {len(claims)} mechanisms; estimate() takes one. Call it in a loop."
        )
    (claim,) = claims
    call = prepare(mechanism, claim.arguments)
    call = replace(call, pristine=Pristine((call.mechanism, call.params)))
    resolved_claim = replace(claim, promise=resolved(claim.promise))
    where = "pairs" if claim.promise.inputs is None else "inputs"
    written = f"{where}={on_one_line(getattr(claim.promise, where))}"
    pairs = source_of(resolved_claim, number or 0, written).given
    seconds = DERIVING_TIME * float(claim.effort.get("max_seconds", 60.0))
    try:
        return _known_loss(call, [pair.inputs for pair in pairs], Deadline(seconds), check=check)
    except REFUSALS as reason:
        found = _sample_loss(mechanism, str(reason) or "it takes too long", seed, n_jobs, keywords)
    bounds = _bounds_by_alignment(call, [pair.inputs for pair in pairs], Deadline(seconds))
    at_most = max((bound.eps_at(0.0) for bound in bounds), default=math.inf)
    if not bounds or found.value - found.error > at_most:
        return found
    (counted,), aligned = found._deltas, [bound.delta_at for bound in bounds]  # noqa: SLF001
    deltas: DeltaBounds = lambda eps: (counted(eps)[0], max(at(eps) for at in aligned))  # noqa: E731
    return replace(found, at_most=at_most, _deltas=(deltas,))


def _bounds_by_alignment(
    call: Call, pairs: Sequence[tuple[Any, Any]], deadline: Deadline
) -> list[LossBound]:
    """Return bounds on the losses on all pairs; none if there is no alignment on one of them.

    The best alignment is looked for, whatever it loses.
    """
    if call.size is not None:
        return []
    bounds = []
    try:
        for pair in pairs:
            found = align(call, pair, lambda _: False, REPLAYS_OF_LARGEST, deadline)
            bounds.append(found.bound)
    except (NotAligned, *REFUSALS):
        return []
    return bounds


def _known_loss(
    call: Call, pairs: Sequence[tuple[Any, Any]], deadline: Deadline, *, check: bool
) -> LossEstimate:
    """Return the loss on pairs, by enumeration or in closed form.

    Raises
    ------
    CannotInstrument, CannotCopy, OutOfTime
        If neither is possible, or outputs of real runs refute it.
    """
    known = [(pair, _of_pair(call, *pair, deadline)) for pair in pairs]
    losses = [of_pair.eps_at(0.0) for _, of_pair in known]
    order = sorted(range(len(known)), key=lambda at: -losses[at][0])
    if check:
        _held_against_real_runs(call, [known[at] for at in order], deadline)
    return LossEstimate(
        losses[order[0]][0],
        max(error for _, error in losses),
        max((of_pair.mode for _, of_pair in known), key=_BY_KNOWLEDGE.index),
        known[order[0]][0],
        _deltas=tuple(of_pair.delta_at for _, of_pair in known),
        pairs=len(pairs),
    )


def _held_against_real_runs(
    call: Call, known: Sequence[tuple[tuple[Any, Any], KnownPair]], deadline: Deadline
) -> None:
    """Hold what is known of each input of each pair against real runs, those that lose most first.

    The level is split between the inputs. They share half of the time that is left.

    Raises
    ------
    CannotInstrument
        If an input refutes it, all runs raise, or there is no time for enough runs on each.
    """
    checks: dict[Any, tuple[Any, list[tuple[KnownPair, int]]]] = {}
    for pair, of_pair in known:
        for side, data in enumerate(pair):
            frozen = Input(data).frozen
            key = id(data) if frozen is None else frozen
            checks.setdefault(key, (data, []))[1].append((of_pair, side))
    refuted = REFUTED + math.log(sum(len(of_input) for _, of_input in checks.values()))
    left, raised = len(checks), True
    for data, of_input in checks.values():
        share, started = deadline.remaining() / (left + 1), clocks.Stopwatch()
        outputs = [*_real_outputs(call, data, FIRST_RUNS, 0, deadline)]
        slow = started.spent() * CHECKED_RUNS > 2 * FIRST_RUNS * QUIET_SECONDS
        if slow:  # few runs: so what each of them does has to follow from its draws
            _replay(call, data, *of_input[0], deadline)
        while not slow and (
            len(outputs) < CHECKED_RUNS // 2
            or (len(outputs) < 2 * CHECKED_RUNS and started.spent() < share)
        ):
            outputs += _real_outputs(call, data, CHECKED_RUNS // 2, len(outputs), deadline)
        if any(of_pair.evidence_against(side, outputs) >= refuted for of_pair, side in of_input):
            shown = on_one_line(data)
            reason = f"real runs give other outputs than those that are traced, on {shown}"
            raise CannotInstrument(reason)
        raised, left = raised and all_raised(outputs), left - 1
    if raised:
        raise CannotInstrument("it always raises")  # the audit of samples says so


def _replay(call: Call, data: Any, known: KnownPair, side: int, deadline: Deadline) -> None:
    """Run a slow mechanism with given numbers in place of draws.

    Raises CannotInstrument if it gives something else than the trace, or was not traced.
    """
    if not isinstance(known, PairInClosedForm):
        raise CannotInstrument("its runs take too long to check it")
    replayed(call, data, known.outcomes[side], FIRST_RUNS, deadline)


def _real_outputs(
    call: Call, data: Any, count: int, number: int, deadline: Deadline
) -> Sequence[Any]:
    """Outputs of further real runs of a copy, after so many."""
    copied, (data,) = call.copied(data)
    with interruptible(deadline, None):
        return list(copied.draw(data, count, default_rng((2 * CHECKED_RUNS, number))))


def _of_pair(call: Call, d1: Any, d2: Any, deadline: Deadline) -> KnownPair:
    """The loss on a pair in closed form, or by all outcomes where these are few."""
    try:
        known = compare(outcomes_of(call, d1, deadline), outcomes_of(call, d2, deadline))
    except CannotInstrument:
        with suppress(CannotInstrument):
            return _enumerate_pair(call, d1, d2, deadline)
        raise
    if known.has_few_outputs():
        with suppress(CannotInstrument):  # floats as they are drawn, in place of real numbers
            return _enumerate_pair(call, d1, d2, deadline)
    return known


def _enumerate_pair(call: Call, d1: Any, d2: Any, deadline: Deadline) -> KnownPair:
    """Enumerate all outcomes and their probabilities; CannotInstrument if some are not known."""
    known = EnumeratedPair((enumerated(call, d1, deadline), enumerated(call, d2, deadline)))
    if known.residual:
        raise CannotInstrument(TOO_MANY)
    return known


def _sample_loss(
    mechanism: Callable[..., Any],
    reason: str,
    seed: int | str | None,
    n_jobs: int | None,
    keywords: dict[str, Any],
) -> LossEstimate:
    """Return the loss of an attack that is learned on some samples, and counted on others."""
    keywords = {**keywords, "eps": CLAIMED, "method": "dpsniper"}
    result = audit(mechanism, seed=seed, n_jobs=n_jobs, **keywords)
    low, high = result.loss or (0.0, math.inf)
    low = max(low, 0.0) if math.isfinite(low) else 0.0  # no bound from below is infinite
    example = result.counterexample
    pair = (None, None) if example is None else (example.d1, example.d2)
    deltas = (partial(_counted_delta, example, keywords["alpha"]),)
    high = max(high, low)
    middle = (low + high) / 2 if math.isfinite(high) else low
    return LossEstimate(middle, high - middle, "sampled", pair, reason, _deltas=deltas)


def _counted_delta(example: Counterexample | None, alpha: float, eps: float) -> tuple[float, float]:
    if example is None or not all(example.runs):
        return 0.0, 1.0
    (c1, c2), (n1, n2) = example.counts, example.runs
    return delta_lower(c1, n1, c2, n2, eps, alpha), 1.0
