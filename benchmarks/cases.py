"""Mechanisms with their claims and their true losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from benchmarks import mechanisms, truth, vectorized
from pytest_dp import queries, values

INFINITE = math.inf


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism that claims to be eps0-DP on some inputs, and what it really loses.

    Attributes
    ----------
    name : str
        As in the paper it comes from.
    mechanism : callable
        The scalar form.
    claim_keywords : mapping
        Keywords of the claim, except `eps` and `params`.
    truth : callable
        eps0 to the largest loss in nats over the claim's inputs and all events, attained or
        approached; with `at_least`, a proven upper bound of it.
    params : mapping
        Arguments of the mechanism other than eps.
    fixed_eps : float or None
        The claim of a mechanism without the parameter `eps`, whatever eps0.
    at_least : callable or None
        eps0 to a proven lower bound of the largest loss, where `truth` is not exact.
    """

    name: str
    mechanism: Callable[..., Any]
    claim_keywords: Mapping[str, Any]
    truth: Callable[[float], float]
    params: Mapping[str, Any] = field(default_factory=dict)
    fixed_eps: float | None = None
    at_least: Callable[[float], float] | None = None

    @property
    def vectorized(self) -> Callable[..., Any]:
        """The form that takes `size`."""
        return getattr(vectorized, self.mechanism.__name__)

    def keywords(self, eps0: float, *, many: bool = False) -> dict[str, Any]:
        """Keywords for ``pytest_dp.audit``; `many` for the vectorised form."""
        if self.fixed_eps is None:
            claim: dict[str, Any] = {"eps": "eps", "params": {"eps": eps0, **self.params}}
        else:
            claim = {"eps": self.fixed_eps, "params": dict(self.params)}
        return {**claim, **self.claim_keywords, **({"vectorized": "size"} if many else {})}

    def claimed(self, eps0: float) -> float:
        """What is promised at eps0."""
        return eps0 if self.fixed_eps is None else self.fixed_eps

    def violates(self, eps0: float) -> bool:
        """Whether the claim is wrong on these inputs."""
        limit = self.claimed(eps0) + 1e-9
        if self.truth(eps0) <= limit:
            return False
        if self.at_least is not None and self.at_least(eps0) <= limit:
            raise ValueError(f"{self.name}: not known to violate eps = {eps0}, nor to keep it.")
        return True


def _one(n: int) -> dict[str, Any]:
    return {"inputs": queries(n), "neighbors": "one_query"}


def _all(n: int) -> dict[str, Any]:
    return {"inputs": queries(n), "neighbors": "all_queries"}


def _svt(algorithm: int, threshold: float) -> Callable[[float], float]:
    return lambda eps0: truth.svt_loss(algorithm, eps0, threshold)


def _claimed(eps0: float) -> float:
    return eps0


# The limit of low released values: each of n answers then favours the lower input by eps0/2, and
# given the threshold's noise none can do more.
def _max_value_of_5(eps0: float) -> float:
    return 5 * eps0 / 2


def _svt3_of_10(eps0: float) -> float:
    return 10 * eps0 / 2


NOISY_MAX = Case("NoisyMax1", mechanisms.noisy_max, _all(5), truth.noisy_max_loss)
HISTOGRAM = Case("NoisyHist1", mechanisms.histogram, _one(5), _claimed)
MAX_VALUE = Case("NoisyMax3", mechanisms.noisy_max_value, _all(5), _max_value_of_5)
INVERTED = Case("NoisyHist2", mechanisms.histogram_inverted, _one(5), lambda eps0: 1 / eps0)
SVT1 = Case("SVT1", mechanisms.svt1, _all(10), _svt(1, 0.5), {"threshold": 0.5, "c": 1})
SVT3 = Case("SVT3", mechanisms.svt3, _all(10), _svt3_of_10, {"threshold": 1, "c": 1})
SVT4 = Case("SVT4", mechanisms.svt4, _all(10), _svt(4, 1), {"threshold": 1, "c": 1})
SVT5 = Case("SVT5", mechanisms.svt5, _all(10), lambda eps0: INFINITE, {"threshold": 1})
SVT6 = Case("SVT6", mechanisms.svt6, _all(10), _svt(6, 1), {"threshold": 1})

STATDP: Mapping[str, Case] = {
    "noisy max": NOISY_MAX,
    "histogram": HISTOGRAM,
    "sparse vector": SVT1,
    "noisy max by value": MAX_VALUE,
    "histogram, scale eps": INVERTED,
    "iSVT1": SVT5,
    "iSVT2": SVT6,
    "iSVT3": SVT4,
    "iSVT4": SVT3,
}
"""The nine cases of Ding et al. under their names there; one answer differs for the histograms."""

CORPUS: tuple[Case, ...] = (
    Case("Laplace", mechanisms.laplace, {"pairs": [(0.0, 1.0)]}, _claimed),
    Case(
        "TruncatedGeometric",
        mechanisms.truncated_geometric,
        {"pairs": [(count, count + 1) for count in range(5)]},
        lambda eps0: math.log1p(2.0 ** -math.ceil(math.log(2 / eps0))),
    ),
    HISTOGRAM,
    INVERTED,
    NOISY_MAX,
    Case(
        "NoisyMax2",
        mechanisms.noisy_max_exponential,
        _all(5),
        lambda eps0: truth.noisy_max_loss(eps0, exponential=True),
    ),
    MAX_VALUE,
    Case("NoisyMax4", mechanisms.noisy_max_value_exponential, _all(5), lambda eps0: INFINITE),
    SVT1,
    Case("SVT2", mechanisms.svt2, _all(10), _svt(2, 1), {"threshold": 1, "c": 1}),
    SVT3,
    SVT4,
    SVT5,
    SVT6,
    Case(
        "RAPPOR",
        mechanisms.rappor,
        {"inputs": values([0, 1])},
        lambda eps0: truth.rappor_loss(0.75, 0.45, 0.55),
        {"f": 0.75, "p": 0.45, "q": 0.55},
        fixed_eps=8 * math.log(0.5125 / 0.4875),
    ),
    Case(
        "OneTimeRAPPOR",
        mechanisms.one_time_rappor,
        {"inputs": values([0, 1])},
        lambda eps0: truth.rappor_loss(0.95),
        {"f": 0.95},
        fixed_eps=8 * math.log(0.525 / 0.475),
    ),
    Case(
        "LaplaceParallel",
        mechanisms.laplace_parallel,
        {"pairs": [(0.0, 1.0)]},
        _claimed,
        {"copies": 20},
    ),
    Case(
        "SVT34Parallel",
        mechanisms.svt34,
        _all(10),
        lambda eps0: _svt3_of_10(eps0) + SVT4.truth(eps0),
        {"threshold": 1, "c": 1},
        at_least=_svt3_of_10,
    ),
    Case("PrefixSum", mechanisms.prefix_sum, _all(10), lambda eps0: 10 * eps0),
    Case(
        "NumericalSVT",
        mechanisms.numerical_svt,
        _all(10),
        _claimed,
        {"threshold": 1, "c": 2},
        at_least=lambda eps0: 0.0,
    ),
)
"""The mechanisms on which DP-Sniper was evaluated, in its order."""

MORE_VALUES: tuple[Case, ...] = tuple(
    replace(
        case,
        name=f"{case.name}, values 0 to 4",
        claim_keywords={"inputs": values(range(5))},
        truth=lambda eps0, params=case.params: max(
            truth.rappor_loss(**params, values=two) for two in combinations(range(5), 2)
        ),
    )
    for case in CORPUS
    if case.fixed_eps is not None
)
"""RAPPOR with more values to choose from: Bloom filters of 1 and 4 differ in all 8 bits."""
