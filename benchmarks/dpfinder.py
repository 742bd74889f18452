"""DP-Finder's nine algorithms: what searches by gradients and at random find, by true losses.

Inputs, noise and the random outputs are those of the published tool: four answers of -10 to 10 of
which each moves by at most 1, eps = 0.1, a threshold of 0, one answer above it; the sum of four
numbers of -1 to 1, to which one is added. The true loss of an output is by quadrature, where PSI
was used in the paper.

A random search tries one pair and one output, as in the paper; with equal effort, it has the best
of as many as take the processor as long as a restart does.

Source: Bichsel, Gehr, Drachsler-Cohen, Tsankov, Vechev, "DP-Finder", CCS 2018, Section 7.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from benchmarks import mechanisms
from pytest_dp.data.relations import AddRemoveOne, AllQueries
from pytest_dp.methods.families import PairFamily, family_of_queries, family_of_records
from pytest_dp.methods.gradient import FoundOutput, Gradients
from pytest_dp.methods.smooth import Smooth
from pytest_dp.running.calling import Call
from pytest_dp.running.deadline import Deadline

EPS, N = 0.1, 4
Interval = tuple[float, float]
Outcome = Sequence[Any]
"""Of each answer: whether it is above, or an interval of what is released; it may end early."""
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(40)


def integrated(density: Callable[[Any], Any], kinks: Sequence[float], scale: float) -> float:
    """The integral of a function that is smooth between kinks, over what noise reaches."""
    edges = sorted(
        {*kinks, *(kink + k * scale for kink in kinks for k in (-60, -20, -5, 5, 20, 60))}
    )
    total = 0.0
    for low, high in pairwise(edges):
        half = (high - low) / 2
        total += half * float(WEIGHTS @ density(low + half * (POINTS + 1)))
    return total


def of_sparse_vector(
    answers: Sequence[float], outcome: Outcome, threshold_noise: float, noise: float
) -> float:
    """The probability of an outcome of answers that are compared with one noisy threshold.

    `noise` is the scale of what is added to answers, which may be 0.
    """
    rho = scipy.stats.laplace(scale=threshold_noise)
    answers = list(answers)[: len(outcome)]
    if not noise:
        above = [x for x, is_above in zip(answers, outcome, strict=True) if is_above]
        below = [x for x, is_above in zip(answers, outcome, strict=True) if not is_above]
        return max(
            float(rho.cdf(min(above, default=math.inf)) - rho.cdf(max(below, default=-math.inf))),
            0.0,
        )
    nu = scipy.stats.laplace(scale=noise)

    def density(t: Any) -> Any:
        product = rho.pdf(t)
        for x, said in zip(answers, outcome, strict=True):
            if isinstance(said, tuple):
                low, high = (np.maximum(end, t) for end in said)
                product = product * (nu.cdf(high - x) - nu.cdf(low - x))
            else:
                product = product * (nu.sf(t - x) if said else nu.cdf(t - x))
        return product

    released = [end for said in outcome if isinstance(said, tuple) for end in said]
    kinks = [0.0, *answers, *(end for end in released if math.isfinite(end))]
    return integrated(density, kinks, threshold_noise)


def of_largest(answers: Sequence[float], index: int, law: str) -> float:
    """The probability that the answer of an index is the largest, once there is noise on each."""
    noise = getattr(scipy.stats, law)(scale=2 / EPS)

    def density(v: Any) -> Any:
        product = noise.pdf(v - answers[index])
        for at, x in enumerate(answers):
            product = product * (noise.cdf(v - x) if at != index else 1.0)
        return product

    return integrated(density, answers, 2 / EPS)


def of_sum(numbers: Sequence[float], interval: Interval) -> float:
    noise = scipy.stats.laplace(sum(numbers), 1 / EPS)
    return float(noise.cdf(interval[1]) - noise.cdf(interval[0]))


def total(numbers: Sequence[float], eps: float, rng: Any) -> float:
    return sum(numbers) + rng.laplace(scale=1 / eps)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A mechanism, and what is known of it."""

    name: str
    mechanism: Callable[..., Any]
    chance: Callable[[Any, Any], float]
    """The probability of an outcome on an input."""
    bound: float
    """The least eps that is known to hold."""
    most_above: int = 1
    released: bool = False
    params: tuple[tuple[str, Any], ...] = (("eps", EPS),)

    def family(self, rng: np.random.Generator) -> PairFamily:
        if self.name == "Sum":
            examples = [[-1.0, -0.5, 0.5, 1.0]]
            return family_of_records(examples, AddRemoveOne(), rng)
        return family_of_queries(N, AllQueries(), rng, (-math.inf, math.inf), whole=False)

    def at_random(self, rng: np.random.Generator) -> float:
        """The loss of a random output on random neighbours, as the published tool draws them."""
        if self.name == "Sum":
            numbers = rng.uniform(-1, 1, N).tolist()
            more = [*numbers, rng.uniform(-1, 1)]
            outcome: Any = (sum(numbers) - 3, sum(numbers) + 3)
            return self.loss(numbers, more, outcome)
        numbers = rng.uniform(-10, 10, N)
        return self.loss(
            numbers, numbers + rng.uniform(-1, 1, N), self.random_outcome(numbers, rng)
        )

    def random_outcome(self, numbers: Any, rng: np.random.Generator) -> Any:
        if "Max" in self.name or "Mech" in self.name:
            return int(rng.integers(N))
        above = set(rng.permutation(N)[: rng.integers(self.most_above + 1)].tolist())
        end = min(above) + 1 if above and self.most_above == 1 else N
        if self.released:
            return [(numbers[k] - 3, numbers[k] + 3) if k in above else False for k in range(end)]
        return [k in above for k in range(end)]

    def loss(self, d1: Any, d2: Any, outcome: Any) -> float:
        p, q = self.chance(d1, outcome), self.chance(d2, outcome)
        return abs(math.log(p / q)) if p > 0 < q else math.inf if p + q > 0 else 0.0

    def true_loss(self, found: FoundOutput) -> float:
        """Of what a search has found."""
        d1, d2 = (side.build_data(found.vector) for side in found.family.sides)
        return self.loss(d1, d2, self.outcome_of(found))

    def outcome_of(self, found: FoundOutput) -> Any:
        _, values = found.output.key
        ends = {
            1: lambda t: (t, math.inf),
            -1: lambda t: (-math.inf, t),
            0: lambda _: (-math.inf, math.inf),
        }
        intervals = iter(
            [ends[s](t) for s, t in zip(found.output.signs, found.thresholds.tolist(), strict=True)]
        )
        outcome = [next(intervals) if value is Smooth else value for value in values]
        return outcome if "A" in self.name else outcome[0]


def _at(
    name: str, mechanism: Any, scales: tuple[float, float], bound: float, **more: Any
) -> Algorithm:
    chance = partial(of_sparse_vector, threshold_noise=scales[0] / EPS, noise=scales[1] / EPS)
    params = (("eps", EPS), ("threshold", 0.0))
    return Algorithm(name, mechanism, chance, bound, params=params, **more)


ALGORITHMS = [
    _at("AT", mechanisms.svt6, (2, 2), math.inf, most_above=N),
    _at("AT1", mechanisms.svt1, (2, 4), 0.1),
    _at("AT2", mechanisms.svt2, (2, 4), 0.1),
    _at("AT3", mechanisms.svt3, (2, 2), math.inf, released=True),
    _at("AT4", mechanisms.svt4, (4, 4 / 3), 0.175),
    _at("AT5", mechanisms.svt5, (2, 0), math.inf, most_above=N),
    Algorithm(
        "ExpMech",
        mechanisms.noisy_max_exponential,
        partial(of_largest, law="expon"),
        0.1,
    ),
    Algorithm(
        "NoisyMax",
        mechanisms.noisy_max,
        partial(of_largest, law="laplace"),
        0.1,
    ),
    Algorithm("Sum", total, of_sum, 0.1),
]


def median(losses: Sequence[float]) -> float:
    return statistics.median_low(losses)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    columns = ("algorithm", "known to hold", "random", "with equal effort", "gradient", "largest")
    columns = (*columns, "times random", "CPU seconds a restart", "random tries in that time")
    print("| " + " | ".join(columns) + " |")
    print("|" + " --- |" * len(columns))
    missed = []
    for algorithm in ALGORITHMS:
        if args.only and algorithm.name not in args.only:
            continue
        rng = np.random.default_rng(args.seed)
        call = Call(algorithm.mechanism, dict(algorithm.params), "rng")
        search = Gradients(call, algorithm.family, [], args.seed, Deadline(3_600))
        started = time.process_time()
        found = [search.run_restart(number) for number in range(args.runs)]
        seconds = (time.process_time() - started) / args.runs
        losses = [0.0 if one is None else algorithm.true_loss(one) for one in found]
        starts = [search.start(number) for number in range(args.runs)]
        started = time.process_time()
        for one in filter(None, starts):
            search.estimate(one)
        tries = max(round(seconds / ((time.process_time() - started) / args.runs)), 1)
        random = [algorithm.at_random(rng) for _ in range(args.runs * tries)]
        equal = [max(random[at : at + tries]) for at in range(0, len(random), tries)]
        times = median(losses) / median(random) if median(random) else math.inf
        if times < 2:
            missed.append(algorithm.name)
        row = (
            algorithm.bound,
            median(random),
            median(equal),
            median(losses),
            max(losses),
            times,
            seconds,
        )
        shown = " | ".join(f"{value:.3g}" for value in (*row, tries))
        print(f"| {algorithm.name} | {shown} |", flush=True)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
