"""A bound on how well membership is told: the area under the ROC curve of every attack."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar

from pytest_dp.basics.errors import ClaimError
from pytest_dp.privacy.approximate import ApproximateDP
from pytest_dp.privacy.guarantees import HockeyStick, Number, Renyi, WithoutEps

if TYPE_CHECKING:
    from pytest_dp.basics.arrays import Floats
    from pytest_dp.privacy.regions import Region

_NORMAL = NormalDist()


@dataclass(frozen=True)
class AttackAUC(WithoutEps):
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
    def _implication(self) -> ApproximateDP:
        return ApproximateDP(0.0, 2 * self.auc - 1)

    @property
    def region(self) -> Region:
        return self._implication.region

    @property
    def hockey_sticks(self) -> tuple[HockeyStick, ...]:
        return self._implication.hockey_sticks

    @property
    def divergences(self) -> tuple[Renyi, ...]:
        return ()

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

    def delta_at(self, eps: float) -> float:
        return self._implication.delta_at(eps)

    def renyi_at(self, order: float) -> float:
        return self._implication.renyi_at(order)

    def largest_probability(self, q: Number) -> Number:
        return self._implication.largest_probability(q)

    def _loss_shown(self, p: Floats, q: Floats) -> Floats:
        shown: Floats = (1 + p - q) / 2 * (1 - 1e-15)
        return shown

    def shown_by_divergence(self, order: float, value: float) -> float:  # noqa: ARG002
        return 0.0

    def group(self, k: int) -> AttackAUC:
        if k > 1:
            raise ClaimError(
                f"{self} is a claim about single records, and group={k} asks for more. Allowed: "
                "group=1. Claim eps= for groups."
            )
        return self

    def true(self, number: str) -> str:
        return f"an attack of auc {number}"
