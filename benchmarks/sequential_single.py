"""Samples that betting takes on one known pair of inputs, over the least that any test could take.

No test with false alarm rate alpha and power one can do with fewer than n* pairs of *independent*
outputs on average; coupled draws can. Noise is `ratio` times smaller than the claim needs.

Run with ``python -m benchmarks.sequential_single [--seeds 20] [--only Laplace ...] [--claims 1]``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import geom, norm
from scipy.stats import laplace as laplace_law

from benchmarks import truth, vectorized
from benchmarks.common import count, pairs_taken, progress, table
from pytest_dp import Sequential

ALPHA = 1e-6
CLAIMS = (0.1, 1.0, 3.0)
RATIOS = (1.05, 1.1, 1.2, 1.5, 2.0)
MOST_INDEPENDENT, MOST_COUPLED = 2.0, {0.1: 0.3, 1.0: 1.3}
"""Medians asked for with Laplace noise; coupled ones by claim."""


def information_limit(p: np.ndarray, q: np.ndarray, eps: float, alpha: float = ALPHA) -> float:
    """n* for outputs with these probabilities on D and D'; infinite if they keep the claim.

    For the claim in the better one of its two directions. The closest laws that keep
    it are P / a and P' / b, but for outputs on which their ratio would exceed exp(eps): there it is
    exp(eps), with a mixture of both. As a + b = 2, one root is left.
    """
    price = math.exp(eps)

    def closest(p: np.ndarray, q: np.ndarray, a: float) -> tuple[np.ndarray, np.ndarray]:
        one, two = p / a, q / (2 - a)
        high = one > price * two
        mixed = (p + q) / (a * price + 2 - a)
        return np.where(high, price * mixed, one), np.where(high, mixed, two)

    def distance(p: np.ndarray, q: np.ndarray) -> float:
        a = brentq(lambda a: closest(p, q, a)[0].sum() - 1, 0.05, 1.95, xtol=1e-13)
        one, two = closest(p, q, a)
        with np.errstate(all="ignore"):
            parts = [np.where(x > 0, x * np.log(x / y), 0.0) for x, y in ((p, one), (q, two))]
        return float(sum(part.sum() for part in parts))

    largest = max(distance(p, q), distance(q, p))
    return -math.log(alpha) / largest if largest > 1e-15 else math.inf


def gaussian(answer, eps, rng, size):
    return answer + rng.normal(scale=1 / eps, size=size)


def _of(law: Any, eps: float) -> tuple[np.ndarray, np.ndarray]:
    cuts = np.concatenate([[-np.inf], np.linspace(-40, 41, 200_001) / eps, [np.inf]])
    near = np.concatenate([cuts, np.linspace(0, 1, 4_001)])
    cuts = np.unique(near)
    return np.diff(law.cdf(cuts, 0, 1 / eps)), np.diff(law.cdf(cuts, 1, 1 / eps))


def _geometric(eps: float) -> tuple[np.ndarray, np.ndarray]:
    one = geom.pmf(np.arange(1, int(60 / eps)), -math.expm1(-eps))
    both = np.convolve(one, one[::-1])
    return np.append(both, 0.0), np.append(0.0, both)


def _response(eps: float) -> tuple[np.ndarray, np.ndarray]:
    honest = 1 / (1 + math.exp(-eps))
    return np.array([honest, 1 - honest]), np.array([1 - honest, honest])


def _noisy_max(eps: float) -> tuple[np.ndarray, np.ndarray]:
    one, two = (truth.noisy_max_probabilities(answers, eps) for answers in NOISY_MAX)
    return one / one.sum(), two / two.sum()


NOISY_MAX = ([1, 1, 1, 1, 1], [2, 0, 0, 0, 0])
COUNTS = ([0] * 10, [1] + [0] * 9)


@dataclass(frozen=True, slots=True)
class Single:
    """A mechanism with noise for a loss of `eps`, two inputs, and the laws of its outputs.

    Attributes
    ----------
    mechanism : callable
    pair : tuple
    laws : callable
        eps to the probabilities of outputs on both inputs, cell by cell.
    """

    mechanism: Callable[..., Any]
    pair: tuple[Any, Any]
    laws: Callable[[float], tuple[np.ndarray, np.ndarray]]


SINGLES = {
    "Laplace": Single(vectorized.laplace, (0.0, 1.0), lambda eps: _of(laplace_law, eps)),
    "Gaussian": Single(gaussian, (0.0, 1.0), lambda eps: _of(norm, eps)),
    "randomised response": Single(vectorized.randomized_response, (0, 1), _response),
    "geometric": Single(vectorized.geometric_count, ([], [0]), _geometric),
    "histogram of 10": Single(vectorized.histogram, COUNTS, lambda eps: _of(laplace_law, eps)),
    "noisy max of 5": Single(vectorized.noisy_max, NOISY_MAX, _noisy_max),
}


def trial(single: Single, claim: float, ratio: float, coupled: bool, seed: int, most: int):
    """Pairs of outputs until the claim was refuted (infinite if it was not), and CPU seconds."""
    return pairs_taken(
        single.mechanism,
        eps=claim,
        params={"eps": claim * ratio},
        pairs=[single.pair],
        alpha=ALPHA,
        max_samples=most,
        method=Sequential(coupled=coupled),
        seed=seed,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=SINGLES, default=list(SINGLES))
    parser.add_argument("--claims", nargs="+", type=float, default=list(CLAIMS))
    parser.add_argument("--largest", type=float, default=3e6, help="n* above which to skip")
    options = parser.parse_args()

    rows, kept = [], True
    for name in options.only:
        single = SINGLES[name]
        for claim in options.claims:
            for ratio in RATIOS:
                limit = information_limit(*single.laws(claim * ratio), claim)
                if limit > options.largest:
                    continue
                row = [name, claim, ratio, f"{limit:,.0f}"]
                for coupled in (False, True):
                    trials = [
                        trial(single, claim, ratio, coupled, seed, int(20 * limit) + 50_000)
                        for seed in range(options.seeds)
                    ]
                    over = sorted(taken / limit for taken, _ in trials)
                    asked = MOST_COUPLED.get(claim, math.inf) if coupled else MOST_INDEPENDENT
                    if name == "Laplace":
                        kept &= median(over) <= asked
                    late = over[math.ceil(0.95 * len(over)) - 1]
                    seconds = median(used for _, used in trials)
                    row += [f"{median(over):.2f}", f"{late:.2f}", f"{seconds:.1f}"]
                rows.append(row)
                progress(f"{row}")
    header = ["mechanism", "claim", "true / claim", "n*", "independent", "95 %", "CPU s"]
    print(table([*header, "coupled", "95 %", "CPU s"], rows))
    print(
        f"\nPairs of outputs over n*, median and 95 % quantile of {options.seeds} seeds, alpha = "
        f"{ALPHA:g}. For Gaussian noise, whose loss is unbounded, the noise is that of Laplace "
        f"noise in standard form: scale 1 / (claim x ratio). Cells up to n* = "
        f"{count(options.largest)}."
    )
    sys.exit(not kept)


if __name__ == "__main__":
    main()
