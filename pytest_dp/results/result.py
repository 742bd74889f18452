"""Results of audits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_dp.basics.reprs import shorten_line
from pytest_dp.claiming.claim import Claim
from pytest_dp.privacy import Renyi
from pytest_dp.results.outcome import MAX_FAIR, MAX_STRONG, Evidence, Outcome, Pictures, Strength

ROUNDING = 1e-9
"""Relative error of a limit. Smaller: rounding makes a strong pass fair."""
SHOWN_FIELDS = ("d1", "d2", "difference", "params", "event", "counts", "runs")
"""Fields of a counterexample in its repr. More do not fit on a screen."""

Verdict = Literal["violated", "no violation", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Distance:
    """A lower bound on a divergence between the outputs on two inputs."""

    lower: float
    """The bound in the claim's parameter."""
    shown: Renyi
    """The order, and the bound on the divergence of that order."""
    allowed: Renyi
    """The order, and the divergence that the claim allows."""


@dataclass(frozen=True, slots=True, repr=False)
class Counterexample:
    """Two neighbouring inputs and an event that break the claim, with the evidence.

    Attributes
    ----------
    d1, d2 : object
        The neighbouring inputs; the event is too likely on `d1`, compared with `d2`.
    event : callable
        ``event(output) -> bool``; ``str(event)`` is the event as a person would write it. If it is
        a learned attack, ``event(output)`` is the probability that it includes the output.
    counts : tuple of int
        How many held-out outputs of ``M(d1)`` and of ``M(d2)`` fell in the event.
    runs : tuple of int
        How many outputs of each were drawn; both 0 if no effort was left for held-out outputs.
    intervals : tuple of (float, float)
        Clopper-Pearson intervals of both probabilities. The ends that matter, the lower one of the
        first and the upper one of the second, hold together with confidence ``1 - alpha``.
    p_value : float
        StatDP's p-value of the claim on these counts. Claims of more than ε have the
        p-value of ``pytest_dp.statistics.event_test``.
    lower : float
        What the event shows by itself, in the claim's parameter.
    eps_clopper_pearson : float
        The lower bound of the DP-Sniper paper on ε in nats, from these counts and at the claimed
        delta, with confidence ``1 - alpha``; minus infinity for claims without an ε.
    delta_lower : float or None
        What the event shows of δ at the claimed ε, with confidence ``1 - alpha``; None for claims
        without an ε.
    divergence : Distance or None
        Divergence of the outputs as a whole, for claims that bound one: ``lower`` in the claim's
        parameter, and the order and value that were ``shown`` and are ``allowed``.
    difference : str
        How `d2` differs from `d1`: ``"one record removed"``; empty if not known.
    idle : tuple
        Fields of the record in which ``d1`` and ``d2`` differ that changed nothing: other values
        gave the same outputs in a few runs with the same random numbers.
    params : dict
        Values of the parameters that were drawn with the inputs, where `params` has strategies.
    diagnosis : tuple of str
        Causes that would explain the counterexample; never a certainty.
    examples : tuple of (outputs, outputs)
        Where `event` is a learned attack: some outputs inside it, and some outside.
    bet_counts, bet_runs : tuple of int, or None
        As `counts` and `runs`, among the outputs that were bet on, from auditors that bet. For
        information only: the event was chosen when some of them were known already.
    """

    d1: Any
    d2: Any
    event: Callable[[Any], bool]
    counts: tuple[int, int]
    runs: tuple[int, int]
    intervals: tuple[tuple[float, float], tuple[float, float]]
    p_value: float
    lower: float
    eps_clopper_pearson: float
    delta_lower: float | None = None
    divergence: Distance | None = None
    difference: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    diagnosis: tuple[str, ...] = ()
    examples: tuple[tuple[Any, ...], tuple[Any, ...]] = ((), ())
    bet_counts: tuple[int, int] | None = None
    bet_runs: tuple[int, int] | None = None
    idle: tuple[Any, ...] = ()

    def __repr__(self) -> str:
        """Return the inputs, the event and its counts, a line each."""
        return _list_fields("Counterexample", {name: getattr(self, name) for name in SHOWN_FIELDS})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Result(Outcome):
    """The outcome of one audit.

    Attributes
    ----------
    verdict : {"violated", "no violation", "inconclusive"}
        ``"no violation"`` never means that the claim is proven; see `resolution`.
    claim : Claim
        What was audited.
    name : str
        The claim's id, such as ``"shop/stats.py::noisy_count[eps=1.0]"``.
    method : str
        The auditor.
    alpha : float
        Probability of a false alarm that was allowed.
    lower : float
        The mechanism's true `parameter` is at least this large, with confidence ``1 - alpha``; 0.0
        if nothing was shown.
    p_value : float or None
        Valid p-value of the claim: at most `alpha` exactly if the verdict is ``"violated"``.
    e_value : float or None
        Evidence against the claim as an e-value, from auditors that bet; 1 / `alpha` refutes it.
    bet_samples : int or None
        The samples behind it: first looks, and the samples that were bet on.
    samples : int
        Runs of the mechanism in all; without runs with replaced draws, for enumeration or to find
        leaking lines.
    seconds : float
        Wall-clock time.
    resolution : float
        The smallest true `parameter` that this run would have caught with 95 % power on the pairs
        and events that it tried (approximate); infinite if it could have caught nothing, and for
        violations. At least ``may_lose``. For an exact pass the loss itself, for an aligned pass
        its upper bound.
    may_lose : float or None
        The largest `parameter` that the mechanism may have now on the pairs that were tried, with
        room for chance (approximate); infinite if a claim with a delta may be broken beside any
        eps. None if the claim is violated, and from auditors that do not compute it.
    far_below : float or None
        The largest ``parameter`` that any attack may show, if that is less than a third of the
        claim and no loss was computed. No detection limit is extrapolated from it, and the pass is
        weak. None if attacks come closer.
    rarest : float or None
        The smallest probability of an output that comes on one of two inputs only, and would have
        been seen with 95 % power; from auditors that bet.
    misses_delta : bool
        Whether leaks ten times as likely as the claim's delta would not have been seen, while the
        effort that is allowed could see them.
    stopped_early : bool
        Whether the audit ended by itself, as it had reached its margin or knew the loss. With more
        samples or seconds it would end at the same run.
    seed : int
        Replays this audit.
    counterexample : Counterexample or None
        Set if the verdict is ``"violated"``, unless there was no time left to count it.
    strongest : str
        The strongest attack found, readable; for information. Bets count it anew only if the claim
        is violated; its counts for a pass are among the outputs that were bet on.
    loss : (float, float) or None
        Two-sided interval of the strongest attack's own loss in nats, with confidence
        ``1 - alpha`` by itself, where the attack was counted on held-out samples.
    max_samples : int or None
        The effort that was allowed: runs of the mechanism.
    max_seconds : float or None
        The effort that was allowed: time.
    margin : float or None
        Times the claim; see `dp_claim`. 1.0 is never reached.
    pairs : tuple of (int, int)
        Pairs of neighbouring inputs of the claim: tried, and available.
    proposed : int
        Further pairs that a search proposed, and that were tried.
    replayable : bool
        False if the mechanism draws on randomness that cannot be seeded.
    notes : tuple of str
        Anything about the run that its reader should know.
    earlier_runs : int
        Runs of the same audit with evidence that counts as well: ``e_value`` and ``bet_samples``
        cover all of them.
    evidence : Evidence or None
        Evidence of this run for later runs of the same audit, from auditors that bet.
    hindrances : tuple of str
        The notes that name an obstacle of the audit, and the remedy.
    pictures : Pictures
        What there is to draw of it, as in a report in HTML; plain values.
    blame : tuple of Blame
        Lines of code at which privacy leaks on the counterexample's inputs, the most important
        first; each was checked by runs in which the noise was changed. Empty if no line is certain.
    estimate : Estimate or None
        The parameter itself on the pairs of inputs that were tried, if it is known by more than
        bounds from samples.
    blind : bool
        True if no event that was tried distinguishes the two inputs of any pair. The verdict is
        then ``"inconclusive"``, as leaks may show elsewhere.
    beyond : Result or None
        Violation outside the declared inputs, if the setting reports it beside the verdict: a
        result by itself, with ``counterexample`` and ``blame``.
    outside : str
        The values of the counterexample outside the declared inputs, such as ``"age = 0 (they have
        18 to 90)"``; empty if it is inside.
    to_add : tuple
        Inputs which, as further examples, take them inside.
    pair_file : str
        The file that pytest wrote of the counterexample, which runs as a test; relative to its root
        directory, and empty if there is none.
    risks : tuple of Risk
        For a claim about membership: the games of each record.
    unreached : tuple of str
        Lines of the mechanism's own code that no input reached which was tried, such as
        ``"stats.py:31"``; a pass is then at most fair.
    not_exact : str
        Why it is not known by all outcomes and their probabilities; empty if it is, or if that was
        not tried.
    """

    verdict: Verdict
    claim: Claim
    name: str
    alpha: float
    lower: float
    resolution: float
    seed: int
    counterexample: Counterexample | None = None
    loss: tuple[float, float] | None = None
    margin: float | None = None
    pairs: tuple[int, int] = (0, 0)
    proposed: int = 0
    hindrances: tuple[str, ...] = ()
    evidence: Evidence | None = None
    earlier_runs: int = 0
    pictures: Pictures = field(default_factory=Pictures)
    not_exact: str = ""
    blind: bool = False
    beyond: Result | None = None
    to_add: tuple[Any, ...] = ()
    misses_delta: bool = False
    stopped_early: bool = False

    def __repr__(self) -> str:
        """Return the most important fields that are not empty, a line each."""
        names = (
            *("verdict", "name", "claim", "method", "alpha", "lower", "p_value", "e_value"),
            *("resolution", "strength", "samples", "seconds", "seed", "reason", "blame"),
        )
        fields = {name: getattr(self, name) for name in names}
        fields["claim"] = str(self.claim.promise.guarantee)
        fields["blame"] = ", ".join(line.place for line in self.blame)
        if self.counterexample is not None:
            fields |= {name: getattr(self.counterexample, name) for name in SHOWN_FIELDS}
        return _list_fields(type(self).__name__, fields)

    @property
    def parameter(self) -> str:
        """Parameter of `claimed`, `lower` and `resolution`: ``"eps"``, ``"rho"``, ..."""
        return self.claim.promise.guarantee.parameter

    @property
    def claimed(self) -> float:
        """The claimed value of `parameter`; in nats if that is ``"eps"``."""
        return self.claim.promise.guarantee.claimed

    @property
    def eps_lower(self) -> float | None:
        """`lower` of a claim with an ε, in nats and at the claimed delta; None for other claims."""
        return self.lower if self.parameter == "eps" else None

    @property
    def violated(self) -> bool:
        """True if the claim was shown to be broken."""
        return self.verdict == "violated"

    @property
    def one_sided(self) -> bool:
        """True if the event of a violation came on D only, and no bound exceeds the claim."""
        example = self.counterexample
        if not self.violated or example is None or self.lower > self.claimed:
            return False
        before = example.bet_counts or (0, 0)
        return example.counts[1] == before[1] == 0 < example.counts[0] + before[0]

    @property
    def strength(self) -> Strength:
        """Grade of ``"no violation"``; empty for other verdicts, unless the audit was `blind`.

        ``"exact"`` if the loss on all pairs of the claim is known by all outcomes and their
        probabilities, and real runs agree (``estimate`` has their number). ``"aligned"`` if an
        upper bound on all these losses, within the claim, is known by alignments of draws that
        replays agree with. Otherwise ``"strong"`` if noise that is 1.25 times too small would have
        been caught, and leaks ten times as likely as delta (as far as the allowed effort can);
        ``"fair"`` if noise of half the size would have been caught, else ``"weak"``. It is also
        ``"weak"`` if noise 1.25 times too small is not ruled out, or the strongest attack is
        ``far_below`` the claim. An inconclusive audit may be ``"blind"``. At most ``"fair"`` if
        code of the mechanism never ran (``unreached``).
        """
        if self.verdict != "no violation":
            return "blind" if self.blind else ""
        shown = self._shown_strength
        return "fair" if self.unreached and shown in ("exact", "aligned", "strong") else shown

    @property
    def _shown_strength(self) -> Strength:
        """The grade of a pass, whether or not all code of the mechanism ran."""
        if self.estimate is not None and self.rests_on_loss:
            return "exact" if self.estimate.mode == "exact" else "aligned"
        below = self.claim.promise.guarantee.noise_below
        if self.over_now or self.far_below is not None or below(self.resolution) > MAX_FAIR:
            return "weak"
        is_strong = below(self.resolution) <= MAX_STRONG * (1 + ROUNDING) and not self.misses_delta
        return "strong" if is_strong else "fair"

    @property
    def rests_on_loss(self) -> bool:
        """True if a pass rests on a known loss, in place of a detection limit."""
        return self.verdict == "no violation" and bool(self.estimate and self.estimate.runs)

    @property
    def over_now(self) -> bool:
        """True if the loss that is not ruled out is clearly above the claim, but not proven."""
        if self.may_lose is None or self.verdict != "no violation":
            return False
        below = self.claim.promise.guarantee.noise_below
        return below(self.may_lose) > MAX_STRONG * (1 + ROUNDING)

    @property
    def reason(self) -> str:
        """Why the audit could tell nothing, or little, and what to do; often empty for a pass."""
        if self.violated:
            return ""
        if self.hindrances or self.verdict == "no violation":
            return next(iter(self.hindrances), "")
        if self.max_seconds is not None and self.seconds > 0.5 * self.max_seconds:
            seconds = float(f"{self.seconds:.2g}")  # in plain digits: 100, not 1e+02
            return (
                f"{self.samples:,} runs in {seconds:g} s are too few: raise max_seconds, or "
                "make the mechanism faster"
            )
        return f"max_samples={self.max_samples} is too few: raise it"


def _list_fields(kind: str, fields: Mapping[str, Any]) -> str:
    """Return ``kind(name=value, ...)`` with a line of about 80 characters for each field.

    Empty texts, empty tuples and None are left out.
    """
    from pytest_dp.data import describe  # results are read where datasets need not be loaded

    lines = [f"{kind}("]
    for name, value in fields.items():
        if value is None or (isinstance(value, str | tuple | Mapping) and not value):
            continue
        text = f"{value:.6g}" if isinstance(value, float) else describe(value, 70 - len(name))
        text = shorten_line(str(value), 66) if name == "event" else text
        lines.append(f"  {name}={text},")
    return "\n".join([*lines, ")"])
