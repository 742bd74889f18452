"""Whether "would catch from" means what it says: audits of mechanisms right at the loss reported.

A mechanism is audited with noise for its claim (and with five times as much), which reports a loss
that would have been caught. Its noise is then scaled so that this is its true loss. Honest: at
least 95 % of such audits catch it (two standard errors are allowed). Useful: at that loss over 1.4
(or 1.4 squared, where losses grow with the square of the distance) fewer do, or it is no violation.
A cell holds if it is both.

Run with ``python -m benchmarks.resolution [--audits 60] [--samples 20000 100000] [--only ...]``.
"""

from __future__ import annotations

import argparse
import math
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks import truth, vectorized
from benchmarks.attaining import coins, drawn
from benchmarks.attaining import response as leaky_response
from benchmarks.common import count, progress, table
from pytest_dp import RenyiDP, Sequential, audit
from pytest_dp.privacy import gaussian_sigma

CLAIM = 1.0
HONEST, USEFUL = 0.95, 1.4
BASES = 3
"""Audits by whose median the loss is reported."""


def count_of(records, scale, rng, size):
    return len(records) + rng.laplace(scale=scale, size=size)


def gaussian(records, sigma, rng, size):
    return len(records) + rng.normal(scale=sigma, size=size)


def of_rho(rho: float) -> dict[str, Any]:
    return {"sigma": math.sqrt(1 / (2 * rho))}


def sums(answers, scale, rng, size):
    return np.asarray(answers) + rng.laplace(scale=scale, size=(size, len(answers)))


def prefix_sums(answers, scale, rng, size):
    return np.cumsum(sums(answers, scale, rng, size), axis=1)


def response(value, keep, values, rng, size):
    other = (value + rng.integers(1, values, size)) % values
    return np.where(rng.random(size) < keep, value, other)


def bits(value, flip, rng, size):
    word = np.array([(value >> bit) & 1 for bit in range(4)])
    return np.where(rng.random((size, 4)) < flip, 1 - word, word)


def rounded_gaussian(records, scale, rng, size):
    """Gaussian noise cut off at two deviations, in ten steps: its loss is finite."""
    noise = np.clip(rng.normal(size=size), -2, 2)
    return np.clip(np.round(5 * (noise + len(records) / scale)) / 5, -1, 1)


@dataclass(frozen=True, slots=True)
class Scaled:
    """A mechanism whose noise can be scaled to any true loss.

    Attributes
    ----------
    mechanism : callable
    params : callable
        True loss, in the claim's parameter, to its parameters.
    inputs : dict
    claim : dict
        Keywords.
    claimed : float
        The claim's parameter.
    power : int
        How losses grow with less noise: those with 2 with the square.
    """

    mechanism: Callable[..., Any]
    params: Callable[[float], dict[str, Any]]
    inputs: dict[str, Any]
    claim: dict[str, Any] = field(default_factory=lambda: {"eps": CLAIM})
    claimed: float = CLAIM
    power: int = 1


COUNT = {"pairs": [([0], [])]}


def moved(places: int) -> dict[str, Any]:
    return {"pairs": [([1] * places, [0] * places)]}


def _noisy_max(loss: float) -> dict[str, Any]:
    def excess(eps: float) -> float:
        one, two = (truth.noisy_max_probabilities(answers, eps) for answers in NOISY_MAX)
        return float(np.abs(np.log(one / two)).max()) - loss

    return {"eps": brentq(excess, 1e-3, 40, xtol=1e-6)}


def _gaussian(loss: float) -> dict[str, Any]:
    from scipy.stats import norm

    ends = np.arange(-0.9, 1, 0.2)

    def law(shift: float) -> np.ndarray:
        return np.diff(norm.cdf(np.concatenate([[-np.inf], ends - shift, [np.inf]])))

    def excess(scale: float) -> float:
        return float(np.abs(np.log(law(1 / scale) / law(0.0))).max()) - loss

    return {"scale": brentq(excess, 0.05, 1e3, xtol=1e-6)}


MU = 0.5
ONE_OR_ZERO = {"pairs": [(1, 0)]}
NOISY_MAX = ([1, 1, 1, 1, 1], [2, 0, 0, 0, 0])
CASES = {
    "Laplace": Scaled(count_of, lambda loss: {"scale": 1 / loss}, COUNT),
    **{
        f"{places} answers moved": Scaled(
            sums, lambda loss, n=places: {"scale": n / loss}, moved(places)
        )
        for places in (3, 10, 100)
    },
    "histogram of 10": Scaled(
        sums, lambda loss: {"scale": 1 / loss}, {"pairs": [([1] + [0] * 9, [0] * 10)]}
    ),
    "prefix sums of 10": Scaled(prefix_sums, lambda loss: {"scale": 10 / loss}, moved(10)),
    "noisy max of 5": Scaled(vectorized.noisy_max, _noisy_max, {"pairs": [NOISY_MAX]}),
    **{
        f"response of {values}": Scaled(
            response,
            lambda loss, n=values: {"keep": math.exp(loss) / (n - 1 + math.exp(loss)), "values": n},
            {"pairs": [(0, 1)]},
        )
        for values in (2, 16)
    },
    "4 bits": Scaled(
        bits, lambda loss: {"flip": 1 / (1 + math.exp(loss / 4))}, {"pairs": [(0, 15)]}
    ),
    "geometric": Scaled(
        vectorized.geometric_count, lambda loss: {"eps": loss}, {"pairs": [([], [0])]}
    ),
    "rounded Gaussian": Scaled(rounded_gaussian, _gaussian, COUNT),
    "(1, 1e-3), Gaussian": Scaled(
        gaussian,
        lambda loss: {"sigma": gaussian_sigma(loss, 1e-3)},
        COUNT,
        {"eps": CLAIM, "delta": 1e-3},
    ),
    "(1, 1e-5), Gaussian": Scaled(
        gaussian,
        lambda loss: {"sigma": gaussian_sigma(loss, 1e-5)},
        COUNT,
        {"eps": CLAIM, "delta": 1e-5},
    ),
    "(1, 0.05), response": Scaled(
        drawn,
        lambda loss: {"law": [leaky_response(loss, 0.05)]},
        ONE_OR_ZERO,
        {"eps": CLAIM, "delta": 0.05},
    ),
    "mu, Gaussian": Scaled(
        gaussian, lambda loss: {"sigma": 1 / loss}, COUNT, {"mu": MU}, claimed=MU
    ),
    "rho, Gaussian": Scaled(
        gaussian, of_rho, COUNT, {"rho": MU**2 / 2}, claimed=MU**2 / 2, power=2
    ),
    "Rényi order 2, Gaussian": Scaled(
        gaussian,
        lambda loss: of_rho(loss / 2),
        COUNT,
        {"guarantee": RenyiDP({2: MU**2})},
        MU**2,
        power=2,
    ),
    "Rényi order 2, coins": Scaled(
        drawn,
        lambda loss: {"law": [coins(2, loss)]},
        ONE_OR_ZERO,
        {"guarantee": RenyiDP({2: 0.2})},
        0.2,
        power=2,
    ),
    "Rényi order 8, Gaussian": Scaled(
        gaussian,
        lambda loss: of_rho(loss / 8),
        COUNT,
        {"guarantee": RenyiDP({8: 4 * MU**2})},
        4 * MU**2,
        power=2,
    ),
    "Rényi order 8, coins": Scaled(
        drawn,
        lambda loss: {"law": [coins(8, loss)]},
        ONE_OR_ZERO,
        {"guarantee": RenyiDP({8: 0.4})},
        0.4,
        power=2,
    ),
}


def _through_bytes(numbers: Any) -> Any:
    array = np.asarray(numbers)
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def untraced(mechanism: Callable[..., Any]) -> Callable[..., Any]:
    """The same through bytes, and beside a draw that is not used, so that its loss is not known.

    The scale of that draw depends on the data: draws of two inputs are not aligned then.
    """

    def through_bytes(data, rng, size, **params):
        drawn = mechanism(data, rng=rng, size=size, **params)
        rng.laplace(scale=1 + zlib.crc32(repr(data).encode()) / 2**32, size=size)
        if isinstance(drawn, list):  # whose rows may differ in length
            return [_through_bytes(row).tolist() for row in drawn]
        return _through_bytes(drawn)

    through_bytes.__name__ = mechanism.__name__
    return through_bytes


def audited(case: Scaled, loss: float, samples: int, coupled: bool, seed: int):
    return audit(
        untraced(case.mechanism),
        **case.claim,
        params=case.params(loss),
        vectorized="size",
        method=Sequential(coupled=coupled),
        max_samples=samples,
        max_seconds=600,
        seed=seed,
        n_jobs=1,
        **case.inputs,
    )


def caught(case: Scaled, loss: float, samples: int, coupled: bool, audits: int) -> float:
    found = [audited(case, loss, samples, coupled, 1_000 + k).violated for k in range(audits)]
    return sum(found) / audits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=60)
    parser.add_argument("--samples", nargs="+", type=int, default=[20_000, 100_000])
    parser.add_argument("--noise", nargs="+", type=float, default=[1.0, 5.0])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    options = parser.parse_args()

    allowed = HONEST - 2 * math.sqrt(HONEST * (1 - HONEST) / options.audits)
    rows, honest, useful, both = [], 0, 0, 0
    for name in options.only:
        case = CASES[name]
        for samples in options.samples:
            for coupled in (True, False):
                for noise in options.noise:
                    bases = [
                        audited(
                            case, case.claimed / noise**case.power, samples, coupled, seed
                        ).resolution
                        for seed in range(BASES)
                    ]
                    at = median(bases)
                    if math.isinf(at):
                        progress(f"{name}, {count(samples)}: nothing would be caught")
                        continue
                    less = at / USEFUL**case.power
                    shares = [caught(case, at, samples, coupled, options.audits)]
                    shares += (
                        [caught(case, less, samples, coupled, options.audits)]
                        if less > case.claimed
                        else [0.0]
                    )
                    is_honest, is_useful = shares[0] >= allowed, shares[1] < HONEST
                    honest += is_honest
                    useful += is_useful
                    both += is_honest and is_useful
                    draws = "coupled" if coupled else "independent"
                    shown = [f"{min(bases):.3g}", f"{at:.3g}", f"{max(bases):.3g}"]
                    row = [name, count(samples), draws, f"{noise:g}", *shown]
                    row += [f"{100 * share:.0f} %" for share in shares]
                    rows.append([*row, "yes" if is_honest else "NO", "yes" if is_useful else "NO"])
                    progress(f"{rows[-1]}")
    header = ["mechanism", "samples", "draws", "noise", "least", "would catch from", "most"]
    header += ["caught there", "caught at 1 / 1.4 of it", "honest", "useful"]
    print(table(header, rows))
    cells = len(rows)
    print(
        f"\n{both} of {cells} cells hold: {honest} are honest (caught at least {100 * allowed:.0f} "
        f"%), {useful} are useful. Claim eps = {CLAIM:g} if not said, alpha 1e-6, "
        f"{options.audits} audits a cell; reported: least, median and most of {BASES}."
    )
    sys.exit(both < cells)


if __name__ == "__main__":
    main()
