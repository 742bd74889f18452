"""Approximate differential privacy, pure as its case delta = 0, and bounds on attacks by AUC."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar

from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy.guarantees import (
    LARGEST_EPS,
    Curve,
    Guarantee,
    HockeyStick,
    Number,
    as_given,
)

if TYPE_CHECKING:
    from pytest_dp.basics.arrays import Floats
    from pytest_dp.privacy.regions import Region

_NORMAL = NormalDist()


@dataclass(frozen=True)
class ApproximateDP(Guarantee):
    """(eps, delta)-differential privacy: ``P(S) <= exp(eps) Q(S) + delta`` for every event S.

    Pure differential privacy is its case delta = 0.
    """

    eps: float
    delta: float = 0.0
    _parameter: ClassVar[str] = "eps"

    @cached_property
    def region(self) -> Region:
        import numpy as np

        from pytest_dp.privacy.regions import Region

        return Region.of_sticks(np.array([self.eps]), np.array([self.delta]))

    @property
    def hockey_sticks(self) -> tuple[HockeyStick, ...]:
        return (HockeyStick(self.eps, self.delta),)

    def at(self, value: float) -> ApproximateDP:
        return ApproximateDP(value, self.delta)

    def times(self, factor: float) -> ApproximateDP:
        """Return the guarantee with eps times `factor`; if eps is 0, exp(eps) is scaled."""
        return self.at(self.eps * factor if self.eps else max(math.log(factor), 0.0))

    def with_noise_over(self, times: float) -> float:
        return super().with_noise_over(times) if self.eps else self.times(times).eps

    def noise_below(self, value: float) -> float:
        return super().noise_below(value) if self.eps else math.exp(min(value, 2 * LARGEST_EPS))

    def delta_at(self, eps: float) -> float:
        """Return the delta at `eps` of randomised response with a leak: the worst case.

        Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", 2015.
        """
        if eps >= self.eps:
            return self.delta
        more = (math.exp(self.eps) - math.exp(eps)) / (1 + math.exp(self.eps))
        return min((self.delta + (1 - self.delta) * more) * (1 + 1e-15), 1.0)

    def renyi_at(self, order: float) -> float:
        return math.inf if self.delta else pure_to_renyi(self.eps, order)

    def largest_probability(self, q: Number) -> Number:
        import numpy as np

        straight = (math.exp(self.eps) * np.asarray(q) + self.delta) * (1 + 1e-15)
        complement = 1 - math.exp(-self.eps) * (1 - self.delta - np.asarray(q)) * (1 - 1e-15)
        return as_given(q, np.minimum(np.minimum(straight, complement), 1.0))

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        import numpy as np

        with np.errstate(all="ignore"):
            straight = np.log((p - self.delta) / q)
            complement = np.log((1 - q - self.delta) / (1 - p))
        shown: Floats = np.fmax(np.fmax(straight, complement), 0.0)
        return np.maximum(shown * (1 - 5e-16) - 5e-16, 0.0)

    def group(self, k: int) -> ApproximateDP:
        eps, delta = self.eps * k, self.delta
        if k > 1 and eps <= LARGEST_EPS:
            steps = math.expm1(eps) / math.expm1(self.eps) if eps else float(k)
            delta *= steps * (1 + 1e-13)
        if delta < 1 and eps <= LARGEST_EPS:
            return ApproximateDP(eps, delta)
        raise ClaimError(
            f"group={k} of {self} promises nothing: eps={eps:g}, delta={delta:.3g}. "
            f"Allowed: eps at most {LARGEST_EPS:g} and delta below 1, by then. Write a smaller "
            "group, or a claim for groups of that size."
        )

    @property
    def largest_ratio(self) -> float | None:
        return None if self.delta else self.eps


def pure_to_renyi(eps: float, order: float) -> float:
    """Return the divergence of order `order` of randomised response, the largest under pure eps.

    Of order 1 it is eps tanh(eps / 2). Rounded up.
    """
    if order == 1 or eps == 0:
        return eps * math.tanh(eps / 2) * (1 + 1e-15)
    k = order - 1
    if k * eps > 1:
        log = k * eps + math.log1p(math.exp(-(2 * order - 1) * eps)) - math.log1p(math.exp(-eps))
        return log / k * (1 + 1e-14)
    # A sum of two moments, as a product, in which nothing cancels out.
    inner = -math.expm1(-k * eps) * math.expm1(order * eps) / (1 + math.exp(eps))
    return math.log1p(inner) / k * (1 + 1e-14)


@dataclass(frozen=True)
class AttackAUC(Curve):
    """No attack scores an output with the record above one without it more often than `auc`.

    Ties count one half. An event with probabilities p and q makes an attack of area
    ``(1 + p - q) / 2``, so that p - q is at most ``2 auc - 1``: the guarantee implies
    (0, 2 auc - 1)-differential privacy for these records, and no less follows from it.

    Hanley, McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic (ROC)
    Curve", Radiology 1982.
    """

    auc: float
    _parameter: ClassVar[str] = "auc"

    @cached_property
    def region(self) -> Region:
        return ApproximateDP(0.0, 2 * self.auc - 1).region

    def at(self, value: float) -> AttackAUC:
        return AttackAUC(value)

    def times(self, factor: float) -> AttackAUC:
        """Return this guarantee with the advantage over a coin times `factor`."""
        return self.at(min(0.5 + factor * (self.auc - 0.5), 1.0))

    def with_noise_over(self, times: float) -> float:
        """Return the area with less noise, as Phi(mu / sqrt(2)) changes for Gaussian noise."""
        return _NORMAL.cdf(times * _NORMAL.inv_cdf(self.auc))

    def noise_below(self, value: float) -> float:
        certain = 1 - 1e-15
        below = _NORMAL.inv_cdf(min(max(value, 0.5), certain)) / _NORMAL.inv_cdf(self.auc)
        return below if value < certain else float("inf")

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        shown: Floats = (1 + p - q) / 2 * (1 - 1e-15)
        return shown

    def group(self, k: int) -> AttackAUC:
        if k > 1:
            raise ClaimError(
                f"{self} is a claim about single records, and group={k} asks for more. Allowed: "
                "group=1. Claim eps= for groups."
            )
        return self

    def true(self, number: str) -> str:
        return f"an attack of auc {number}"
