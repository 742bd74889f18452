"""Estimates of the loss of a mechanism, without a claim: `estimate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.random import default_rng

from pytest_dp.auditors import audit
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.keywords import PRIVACY
from pytest_dp.claiming.settings import seed_of
from pytest_dp.known_losses import REFUTED, Enumerator, KnownPair, estimate_of, unseen_share
from pytest_dp.oracles.alignment import REPLAYS_OF_LARGEST, align, check_rows
from pytest_dp.oracles.checking import NotAligned
from pytest_dp.oracles.enumerated import TOO_MANY, EnumeratedPair
from pytest_dp.outputs.raised import all_raised
from pytest_dp.pairs import make_pair_source, resolve_promise
from pytest_dp.report import numbers
from pytest_dp.results.outcome import Estimate, Mode
from pytest_dp.results.result import Counterexample
from pytest_dp.running.calling import Call, prepare
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.deadline import Deadline, OutOfTime, ended_if_hung, interruptible
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA, delta_lower

CLAIMED = 1e-3
"""Claim in nats that samples are held against: any loss breaks it."""
DERIVING_TIME = 0.5
"""Share of the time to derive a loss. Larger: sampling gets less."""
CHECKED_RUNS = 200
"""Runs on either input that are compared with a derived law. Fewer miss rare differences."""

REFUSALS = (
    *(CannotInstrument, CannotCopy, OutOfTime, MechanismError),
    *(ArithmeticError, np.linalg.LinAlgError),  # numbers beyond what floats can hold
)
"""Why a loss is not known by enumeration."""
_HOW: dict[Mode, str] = {
    "exact": "by all outcomes and their probabilities",
    "aligned": "a shift of the draws cancels the difference of the inputs",
    "sampled": "of the strongest attack that was found; others may show more",
}
ROWS = 1_000
"""Rows of a vectorised call that are compared with calls of one row. Fewer miss late rows."""
UNKNOWN = 1e-15
"""Probability not enumerated with which a loss is exact. Larger: tails count as known."""
RUNS_BESIDE_BOUND = 20_000
"""Samples for a bound from below beside one from above, unless the effort is given."""
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
        Bound on the error in nats: rounding (exact), the distance to a lower bound by runs
        (aligned), or half of a confidence interval (sampled).
    mode : {"exact", "aligned", "sampled"}
        By all outcomes and their probabilities; an upper bound, by a shift of draws that replays
        agree with; by samples. A sampled value is the loss of the strongest attack that was found:
        others may show more. For several pairs, the least certain of their modes.
    pair : (D, D')
        Where it is largest.
    reason : str
        Why it is by samples, if it is; else empty.
    """

    pair: tuple[Any, Any] = (None, None)
    reason: str = ""
    _deltas: tuple[DeltaBounds, ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        """Return the value, how it is known, and where it is largest, a line each."""
        lines = [f"{self._value()} ({self.mode}: {_HOW[self.mode]})"]
        if self.pair != (None, None):
            lines.append(f"  on D = {on_one_line(self.pair[0])}, D' = {on_one_line(self.pair[1])}")
        if self.unseen:
            lines.append(f"  {numbers.unseen_text(self.unseen)}")
        return "\n".join([*lines, *([f"  sampled, as {self.reason}"] if self.reason else [])])

    def _value(self) -> str:
        """Return the value in words, with its error or its bounds."""
        low, high = max(self.value - self.error, 0.0), self.value + self.error
        if self.mode == "aligned" and math.isfinite(self.value):
            return f"eps at most {self.value:.3g} by alignment, at least {low:.3g} by runs"
        if math.isinf(self.value):
            return "eps = infinity" if self.mode == "exact" else "eps has no bound"
        if self.mode == "sampled":
            return f"eps = {self.value:.3g}, from {low:.3g} to {high:.3g}"
        return f"eps = {numbers.format_known(self.value, self.error)}"

    def profile(self, eps: float) -> tuple[float, float]:
        """Return bounds on the smallest δ at which the mechanism is (ε, δ)-private on these pairs.

        Parameters
        ----------
        eps : float
            In nats, at least 0.

        Returns
        -------
        lower, upper : float
            If all outcomes are known, certain up to rounding of floats and to what may go
            unseen. Otherwise the lower bound is by samples, with the confidence of the estimate;
            the upper bound is by alignment, or 1.

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
    """Return the loss of a mechanism on pairs of neighbouring inputs, without a claim.

    If all outcomes can be enumerated, the loss is known without a sample. If a shift of the draws
    cancels the difference of the inputs, it is bounded from above. Otherwise it is estimated: an
    attack is learned on some samples, and counted on others. That value is approximate, and a bound
    from below only.

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
        hundred, and look for a bound from below beside one from above. Without, code that does
        other things with deferred numbers than with real ones may get a wrong value.
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
    2.0 aligned
    >>> def randomized_response(bit, rng):
    ...     return bit if rng.random() < 0.75 else 1 - bit
    >>> loss = estimate(randomized_response, pairs=[(0, 1)])
    >>> print(round(loss.value, 6), loss.mode)
    1.098612 exact
    >>> lower, upper = loss.profile(0.5)
    >>> print(round(lower, 4), round(upper, 4))
    0.3378 0.3378
    """
    promised = [name for name in PRIVACY if name in keywords]
    if promised:
        raise ClaimError(
            f"estimate() takes no {promised[0]}=: it computes the loss for any promise. Leave it "
            "out, or use audit() to test the promise."
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
    resolved_claim = replace(claim, promise=resolve_promise(claim.promise))
    where = "pairs" if claim.promise.inputs is None else "inputs"
    written = f"{where}={on_one_line(getattr(claim.promise, where))}"
    pairs = make_pair_source(resolved_claim, number or 0, written).given
    seconds = DERIVING_TIME * float(claim.effort.get("max_seconds", 60.0))
    both = [pair.inputs for pair in pairs]
    try:
        losses = _derive_losses(call, both, Deadline(seconds), check=check)
    except REFUSALS as reason:
        return _sample_loss(mechanism, str(reason) or "it takes too long", seed, n_jobs, keywords)
    found = _largest_loss(losses, CHECKED_RUNS * check)
    if found.mode == "exact" or not check:
        return found
    keywords.setdefault("max_samples", RUNS_BESIDE_BOUND)
    sampled = _sample_loss(mechanism, "", seed, n_jobs, keywords)
    low = max(sampled.value - sampled.error, found.value - found.error, 0.0)
    if low > found.value:
        return replace(sampled, reason="runs show more than the bound by alignment")
    (counted,) = sampled._deltas  # noqa: SLF001
    beside: DeltaBounds = lambda eps: (counted(eps)[0], 0.0)  # noqa: E731
    error = found.value - low if math.isfinite(found.value) else math.inf
    return replace(found, error=error, _deltas=(*found._deltas, beside))  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class _PairLoss:
    """The loss on one pair of inputs, by enumeration or by an alignment."""

    inputs: tuple[Any, Any]
    value: float
    """In nats."""
    error: float | None
    """Bound on the rounding error of `value`; None if `value` is an upper bound, by alignment."""
    delta: DeltaBounds
    known: KnownPair
    """Outcomes, or the alignment."""


def _derive_losses(
    call: Call, pairs: Sequence[tuple[Any, Any]], deadline: Deadline, *, check: bool
) -> list[_PairLoss]:
    """Run the mechanism on stand-ins, and return the loss on each pair of inputs.

    If `check`, real runs are compared with enumerated outputs.

    Raises
    ------
    CannotInstrument, CannotCopy, OutOfTime
        If outcomes can be neither enumerated nor aligned, or real runs give other outputs.
    """
    enumerator = Enumerator(call)
    losses = [_derive_loss(enumerator, call, pair, deadline) for pair in pairs]
    if check:
        _compare_with_real_runs(call, losses, deadline)
    return losses


def _derive_loss(
    enumerator: Enumerator, call: Call, pair: tuple[Any, Any], deadline: Deadline
) -> _PairLoss:
    """Return the loss on a pair of inputs, by enumeration or else by the best alignment.

    Rows of vectorised calls are compared with single rows. Raises as `_derive_losses`.
    """
    try:
        exact = enumerator.enumerate_pair(pair, deadline)
        if exact.residual > UNKNOWN:
            raise CannotInstrument(TOO_MANY)  # noqa: TRY301
        return _PairLoss(pair, *exact.eps_at(0.0), exact.delta_at, exact)
    except CannotInstrument as refusal:
        reason = str(refusal)
    try:
        aligned = align(call, pair, lambda _: False, REPLAYS_OF_LARGEST, deadline)
    except NotAligned as none:
        raise CannotInstrument(f"{reason}; {none}") from None
    if call.size is not None:
        for data in pair:
            check_rows(call, data, [ROWS], deadline)
    bound = aligned.bound
    return _PairLoss(pair, bound.eps_at(0.0), None, lambda eps: (0.0, bound.delta_at(eps)), aligned)


def _largest_loss(losses: Sequence[_PairLoss], runs: int) -> LossEstimate:
    """Return the largest of the losses on pairs of inputs, with an error that holds for all.

    Beside aligned pairs, the error reaches down to the largest enumerated loss, or 0. `runs` are
    the real runs on each input that enumerated outcomes were compared with.
    """
    largest = max(losses, key=lambda loss: (loss.value, loss.error is None))
    exact = [(loss.value, loss.error) for loss in losses if loss.error is not None]
    error = max((error for _, error in exact), default=0.0)
    if len(exact) < len(losses):
        low = max((value for value, _ in exact), default=0.0)
        error = max(error, largest.value - low) if low < math.inf else error
    known = estimate_of(
        [loss.known for loss in losses], largest.value, error, unseen=unseen_share(runs)
    )
    return LossEstimate(
        known.value,
        known.error,
        known.mode,
        largest.inputs,
        _deltas=tuple(loss.delta for loss in losses),
        pairs=known.pairs,
        unseen=known.unseen,
    )


def _compare_with_real_runs(call: Call, losses: Sequence[_PairLoss], deadline: Deadline) -> None:
    """Run copies of the mechanism; raise CannotInstrument if outputs refute the enumerated laws.

    Also if all runs raise. The level of the test is divided by the number of inputs. Raises
    CannotCopy, and OutOfTime at the deadline.
    """
    known = [(loss.inputs, loss.known) for loss in losses if isinstance(loss.known, EnumeratedPair)]
    refuted = REFUTED + math.log(max(2 * len(known), 1))
    has_returned = False
    for pair, enumerated in known:
        for side, data in enumerate(pair):
            copied, (copy,) = call.copy(data)
            with interruptible(deadline, None):
                outputs = list(copied.draw(copy, CHECKED_RUNS, default_rng(CHECKED_RUNS)))
            has_returned |= not all_raised(outputs)
            if enumerated.evidence_against(side, outputs) >= refuted:
                shown = on_one_line(data)
                reason = f"real runs give other outputs than enumerated, on {shown}"
                raise CannotInstrument(reason)
    if known and not has_returned:
        raise CannotInstrument("it always raises")  # the audit of samples says so


def _sample_loss(
    mechanism: Callable[..., Any],
    reason: str,
    seed: int | str | None,
    n_jobs: int | None,
    keywords: dict[str, Any],
) -> LossEstimate:
    """Audit the mechanism by DP-Sniper; return the loss of its attack, counted on held-out samples.

    Its value is the middle of an interval, the lower end if the upper is infinite, and 0 if nothing
    was counted. `reason` says why the loss is by samples. Raises ClaimError and MechanismError.
    """
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
    """Return bounds on delta at `eps` by the counts of a counterexample; 0 and 1 without any.

    The upper bound is always 1.
    """
    if example is None or not all(example.runs):
        return 0.0, 1.0
    (c1, c2), (n1, n2) = example.counts, example.runs
    return delta_lower(c1, n1, c2, n2, eps, alpha), 1.0
