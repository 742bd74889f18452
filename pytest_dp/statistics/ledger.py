"""Betting against a claim: wealth that stays small, however one bets, as long as the claim holds.

A batch of outputs x_i on D and y_i on D' multiplies what is staked on a bet with the fraction ``f``
by the product of ``1 + f * pay(x_i, y_i)``. Under the claim each pay has mean at most 0, whatever
was chosen before the batch was drawn, so wealth reaches 1 / alpha with probability at most alpha,
at any time; x_i and y_i may share their random numbers. There are bets on events (`event_bets`), on
soft attacks and on divergences (both in `soft_bets`), in both directions, each and
together. docs/proofs/betting-under-coupling.md and betting-on-divergences.md prove all of them.

Nothing here is approximate. What is bet on is chosen by past batches (the *record*), as a Bayesian
portfolio: every bet and fraction weighted by what it would have earned.

Sources: Shafer, Vovk, "Game-Theoretic Foundations for Probability and Finance", 2019;
Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from pytest_dp.basics.arrays import Floats, Ints
from pytest_dp.privacy import Guarantee
from pytest_dp.statistics.event_bets import (
    FRACTIONS,
    EventBets,
    flatten_bets,
    independent_table,
)
from pytest_dp.statistics.soft_bets import (
    LINE_OPTIMISM,
    SHARPNESS,
    Attacks,
    against_divergences,
    against_sticks,
    log_ratio_of,
)

SHARE_UNDER_DELTA, SHARE_UNDER_DIVERGENCES = 0.5, 0.7
"""Share of the prior that attacks have under claims with a delta, and with divergences; events have
the rest. A larger share adds its logarithm to the wins of attacks, and takes from events. By hand.
Under claims of eps alone attacks gained nothing (1.00 times the samples: benchmarks/README.md) and
have none."""
PREFERENCE = 1 / np.arange(1.0, len(FRACTIONS) + 1)
"""Prior of fractions of attacks, falling from the largest: rare events and shared random numbers
need large ones. Equal shares take 1.07 times the samples of coupled Gaussian noise. Measured."""
APART_MARGIN = 1.0
"""Log wealth by which independent draws must look better than coupled ones before an audit changes
to them. Larger: later; smaller: by chance. Never changing costs up to 1.31 times the samples
(benchmarks/README.md); the margin is by hand."""
RUNGS = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
"""Shares of the claim's parameter that are bet against: the lower bound is one of these. More take
time in proportion; fewer make the bound coarser. By hand."""


@dataclass(frozen=True, slots=True)
class BetRecord:
    """A record of past pairs of outputs: counts of pairs of bins, for several binnings."""

    joint: Sequence[Floats]
    """The number of pairs of outputs in each pair of bins, D first: shape (b, b), one table for
    each binning. Soft attacks use the first."""
    scores: Floats | None = None
    """The average score in each bin of the first binning; None if only the order of bins is
    known."""

    @property
    def pairs(self) -> float:
        """The number of pairs of outputs; 0.0 without a binning."""
        return float(self.joint[0].sum()) if len(self.joint) else 0.0

    def with_batch(self, batch: Sequence[Ints]) -> BetRecord:
        """Return the record with the counts of one more batch added."""
        return replace(self, joint=[old + new for old, new in zip(self.joint, batch, strict=True)])

    def as_independent(self) -> BetRecord:
        """Return the record to expect if outputs on D and on D' were independent."""
        return replace(self, joint=[independent_table(joint) for joint in self.joint])

    @property
    def increasing_scores(self) -> Floats:
        """The average score of each bin of the first binning, or else its index, shape (b,)."""
        return np.arange(float(len(self.joint[0]))) if self.scores is None else self.scores


@dataclass(frozen=True, slots=True)
class Portfolio:
    """A portfolio of bets on the next batch: shares of the wealth staked against each guarantee.

    The guarantees are the rungs of a `Ledger`: `Ledger.stake` makes a portfolio from past batches,
    and `Ledger.settle` pays it out by a new one.
    """

    open: Ints
    """Rungs that are not refuted yet, by index; nothing is bet against the others."""
    hard: Floats
    """Log weights of bets on events, shape (rungs, bets)."""
    soft: Floats
    """Log weights of attacks, shape (rungs, attacks, fractions); empty under claims of eps
    alone."""
    cash: Floats
    """Log weight of the wealth that is not bet, shape (rungs,)."""
    attacks: Attacks
    """The attacks, in bins of the first binning."""


class Ledger:
    """A ledger of the wealth of bets against a ladder of guarantees, the *rungs*.

    Rungs are the claim with `shares` of its parameter; the claim is the highest. A rung is refuted,
    and no longer bet against, once its wealth reaches ``1 / alpha``; with an alpha of 0, never.
    `before` is the log wealth of each rung to begin with, earned by earlier bets on other outputs.
    """

    def __init__(
        self,
        guarantee: Guarantee,
        alpha: float = 0.0,
        before: Sequence[float] = (),
        shares: Floats = RUNGS,
    ) -> None:
        self.guarantee = guarantee
        self.enough = -math.log(alpha) if alpha else math.inf
        bounded = guarantee.divergences
        ladder = [guarantee.times(float(share)) for share in shares]
        self.rungs = guarantee.claimed * shares
        self.before = np.array(before) if len(before) else np.zeros(len(ladder))
        self.log_wealth, self.highest = self.before.copy(), self.before.copy()
        width = max(len(rung.hockey_sticks) for rung in ladder)
        # As many for each rung: where there are fewer, the last one is repeated.
        sticks = [
            (*rung.hockey_sticks, *rung.hockey_sticks[-1:] * (width - len(rung.hockey_sticks)))
            for rung in ladder
        ]
        self.events = EventBets(sticks)
        constraints = np.array(sticks).reshape(len(ladder), width, 2)
        self.prices, self.delta = np.exp(constraints[..., 0]), constraints[..., 1]
        self.orders = [divergence.order for divergence in bounded]
        bounds = [dict(rung.divergences) for rung in ladder]
        self.bounds = np.array([[by.get(o, math.inf) for o in self.orders] for by in bounds])
        self.sharpness = SHARPNESS[:1] if width > 1 else SHARPNESS
        self.is_pure = guarantee.largest_ratio is not None
        beyond = SHARE_UNDER_DIVERGENCES if self.orders else SHARE_UNDER_DELTA
        self.soft_share = 0.0 if self.is_pure else beyond

    def stake(self, record: BetRecord, cash: float) -> Portfolio:
        """Return a portfolio of bets on the next batch, weighted by their growth on the record.

        `cash` is the prior weight of wealth that is not bet, where all bets together weigh 1.
        """
        rungs = np.flatnonzero(self.log_wealth < self.enough)
        attacks, growth = self._fit_attacks(record, rungs)
        soft = growth
        if growth.size:
            prior = self.soft_share / math.prod(growth.shape[1:]) * PREFERENCE / PREFERENCE.mean()
            soft = growth + np.log(prior)
        hard = self.events.growth(record.joint, rungs)
        hard += math.log((1 - self.soft_share) / max(hard.shape[1], 1))
        unstaked = np.full(len(rungs), math.log(cash))
        total = _log_total(hard, soft, unstaked)
        share = total[:, None]
        hard -= share
        return Portfolio(rungs, hard, soft - share[..., None], unstaked - total, attacks)

    def settle(self, portfolio: Portfolio, batch: Sequence[Ints]) -> None:
        """Add to the wealth the earnings of a portfolio by a batch that was drawn after its bets.

        The batch has counts as in `BetRecord.joint`.
        """
        rungs = portfolio.open
        hard = self.events.growth(batch, rungs)
        hard += portfolio.hard
        soft = portfolio.attacks.growth(batch[0])
        earned = _log_total(hard, portfolio.soft + soft, portfolio.cash)
        self.log_wealth = self.log_wealth.copy()
        self.log_wealth[rungs] += earned
        self.highest = np.maximum(self.highest, self.log_wealth)

    def _fit_attacks(self, record: BetRecord, rungs: Ints) -> tuple[Attacks, Floats]:
        """Fit attacks to the record; return them and their log growth on the record.

        The growth has shape (rungs, attacks, fractions), `LINE_OPTIMISM` taken off. No attacks
        under claims of eps alone.
        """
        joint, scores, bounds = record.joint[0], record.increasing_scores, self.bounds[rungs]
        if self.orders or self.is_pure:  # there are no attacks without orders
            attacks = against_divergences(joint, scores, self.orders, bounds)
        else:
            sticks = self.prices[rungs], self.delta[rungs]
            attacks = against_sticks(log_ratio_of(joint, scores), *sticks, self.sharpness)
        return attacks, attacks.growth(joint) - LINE_OPTIMISM

    @property
    def lower(self) -> float:
        """The highest parameter of a rung up to which all rungs are refuted; else 0.0."""
        refuted = self.highest >= self.enough
        return float(self.rungs[refuted.cumprod().astype(bool)].max(initial=0.0))

    @property
    def is_refuted(self) -> bool:
        """True once the claim, and all rungs below it, have reached ``1 / alpha``."""
        return bool((self.highest >= self.enough).all())

    @property
    def p_value(self) -> float:
        """The p-value of the claim and all rungs below it, valid at any time; at most 1."""
        return math.exp(-max(float(self.highest.min()), 0.0))

    def prefers_independent_draws(self, record: BetRecord) -> bool:
        """Return whether bets would have grown clearly more on independent outputs.

        The record counts coupled outputs; the margin is `APART_MARGIN`.
        """
        apart = max(self.growth(record.as_independent()))
        return apart > max(self.growth(record)) + APART_MARGIN

    def growth(self, record: BetRecord) -> tuple[float, float]:
        """Return the log growth on the record of the best event, and of the best attack.

        In nats, against the claim; 0.0 if none gains.
        """
        hard, soft = self.growth_by_rung(record, np.array([len(self.rungs) - 1]))
        return float(hard[0]), float(soft[0])

    def growth_by_rung(self, record: BetRecord, rungs: Ints | None = None) -> tuple[Floats, Floats]:
        """Return `growth` against each of some rungs, all by default; shape (rungs,) each."""
        rungs = np.arange(len(self.rungs)) if rungs is None else rungs
        hard = self.events.growth(record.joint, rungs).max(axis=1, initial=0.0)
        return hard, flatten_bets(self._fit_attacks(record, rungs)[1]).max(axis=1, initial=0.0)

    @property
    def log_e_value(self) -> float:
        """The log wealth against the claim, in nats."""
        return float(self.log_wealth[-1])


def _log_total(*parts: Floats) -> Floats:
    """Return the log of the sum of exponentials over all parts, for each rung."""
    flat = [flatten_bets(part) for part in parts]
    largest = np.max([part.max(axis=1, initial=-np.inf) for part in flat], axis=0)
    sums = sum(np.exp(part - largest[:, None]).sum(axis=1) for part in flat)
    total: Floats = largest + np.log(sums)
    return total


@lru_cache(maxsize=16)
def ledger_of(guarantee: Guarantee) -> Ledger:
    """Return a ledger of a claim from a cache, to ask questions; nothing may be settled in it."""
    return Ledger(guarantee)


def standard_errors_against(record: BetRecord, guarantee: Guarantee) -> float:
    """Return the standard errors by which a record contradicts a claim; 0.0 if not at all.

    Half of the square is the log growth of the best bet.
    """
    if not record.joint:
        return 0.0
    return math.sqrt(2 * max(ledger_of(guarantee).growth(record)))
