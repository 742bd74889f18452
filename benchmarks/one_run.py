"""Training that is run once: bounds on DP-SGD whose eps is known, and bugs in it.

The DP-SGD is one of numpy whose loss is linear: each canary has a gradient of its own direction,
which is as exposed as any can be, and the model is the sum of all noisy gradients. Of full batches
its eps is that of a Gaussian; of sampled ones dp-accounting says it.

Run with ``python -m benchmarks.one_run [--audits 1000] [--canaries 1000] [--only sound bugs]``.
Exit status 1 if more bounds than alpha allows exceed the truth (by two standard errors), a correct
training is red, or a bug is not found.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from pytest_dp import OneRun, audit
from pytest_dp.privacy import read_guarantee

EPS, DELTA, ALPHA = 4.0, 1e-5, 0.05
STEPS = 20


def shift_at(eps: float, delta: float = DELTA) -> float:
    """The mu of the Gaussian mechanism that is exactly (eps, delta)-DP."""
    low, high = 1e-3, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        loses = read_guarantee({"mu": middle}).eps_at(delta)
        low, high = (middle, high) if loses <= eps else (low, middle)
    return low


def dp_sgd(
    noise: float,
    *,
    clip: float | None = 1.0,
    rate: float = 1.0,
    noisy_steps: int = STEPS,
    laplace: bool = False,
) -> Callable[..., Any]:
    """DP-SGD of `STEPS` steps on records that are (direction, norm) of their gradients."""

    def train(records: list[tuple[int, float]], rng: np.random.Generator) -> Any:
        directions = np.array([direction for direction, _ in records], int)
        norms = np.array([norm for _, norm in records])
        clipped = norms if clip is None else np.minimum(norms, clip)
        model = np.zeros(1 + max(DIRECTIONS, int(directions.max(initial=0))))
        draw = rng.laplace if laplace else rng.normal
        for step in range(STEPS):
            batch = rng.random(len(clipped)) < rate if rate < 1 else slice(None)
            np.add.at(model, directions[batch], clipped[batch])
            if step < noisy_steps:
                model += draw(scale=noise, size=len(model))
        return model

    return train


DIRECTIONS = 1_000


def exposed(model: Any, canary: tuple[int, float]) -> float:
    """The model's coordinate in the direction of the canary's gradient."""
    return float(model[canary[0]])


def audited(train: Callable[..., Any], canaries: int, seed: int, **more: Any) -> Any:
    """One audit of a training at the claim, with canaries of large gradients."""
    records = [(direction, 10.0) for direction in range(canaries)]
    keywords = {"eps": EPS, "delta": DELTA, "alpha": ALPHA, "seed": seed} | more
    keywords.setdefault("method", OneRun(records, exposed))
    return audit(train, neighbors="add_remove_one", inputs=[[(DIRECTIONS, 0.0)]], **keywords)


def sampled_noise(rate: float) -> float:
    """The noise with which batches sampled at this rate have EPS at DELTA, by dp-accounting."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, pld

    low, high = 0.3, 40.0
    while high / low > 1.001:
        noise = math.sqrt(low * high)
        accountant = pld.PLDAccountant(value_discretization_interval=1e-3)
        accountant.compose(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), STEPS)
        spends = accountant.get_epsilon(DELTA)
        low, high = (low, noise) if spends <= EPS else (noise, high)
    return high


def as_eps(result: Any) -> float:
    """The bound on eps, or the eps beside DELTA that follows from one on mu."""
    if result.parameter == "eps" or not result.lower:
        return float(result.lower)
    return result.claim.promise.guarantee.at(result.lower).eps_at(DELTA)


def sound(audits: int, canaries: int) -> bool:
    """How often bounds of correct trainings exceed the truth, and how near they come to it."""
    gaussian = math.sqrt(STEPS) / shift_at(EPS)
    mu = {"eps": None, "delta": None, "mu": shift_at(EPS)}
    kinds: dict[str, tuple[Any, dict[str, Any]]] = {
        "Gaussian noise": (dp_sgd(gaussian), {}),
        "Gaussian noise, claimed by mu": (dp_sgd(gaussian), mu),
        "Gaussian noise, batches of a tenth": (dp_sgd(sampled_noise(0.1), rate=0.1), {}),
        "Laplace noise": (dp_sgd(STEPS / EPS, noisy_steps=1, laplace=True), {"delta": 0.0}),
    }
    print("| noise | audits | above the truth | red | mean bound / eps | of the claim |")
    print("| --- | --- | --- | --- | --- | --- |")
    is_sound = True
    for name, (train, more) in kinds.items():
        results = [audited(train, canaries, seed, **more) for seed in range(audits)]
        lowers = np.array([as_eps(result) for result in results])
        above, red = int(np.sum(lowers > EPS)), sum(result.violated for result in results)
        allowed = audits * ALPHA + 2 * math.sqrt(audits * ALPHA * (1 - ALPHA))
        is_sound &= max(above, red) <= allowed
        mean = float(np.mean(lowers))
        print(
            f"| {name} | {audits:,} | {above} | {red} | {mean:.2f} / {EPS:g} | {mean / EPS:.2f} |"
        )
    return is_sound


def bugs(seeds: int, canaries: int) -> bool:
    """Whether each bug is found, at alpha = 0.05 by one run and at 1e-6 by as many as it takes."""
    noise, sampled = math.sqrt(STEPS) / shift_at(EPS), sampled_noise(0.1)
    kinds = {
        "no clipping": dp_sgd(noise, clip=None),
        "noise once per epoch": dp_sgd(noise, noisy_steps=1),
        "full batches, claimed as a tenth": dp_sgd(sampled),
        "correct": dp_sgd(noise),
    }
    print("\n| training | found by one run, alpha = 0.05 | by up to 20, alpha = 1e-6 | runs |")
    print("| --- | --- | --- | --- |")
    all_found = True
    for name, train in kinds.items():
        records = [(direction, 10.0) for direction in range(canaries)]
        once = [audited(train, canaries, seed) for seed in range(seeds)]
        often = [
            audited(train, canaries, seed, alpha=1e-6, method=OneRun(records, exposed, runs=20))
            for seed in range(seeds)
        ]
        found = [sum(result.violated for result in results) for results in (once, often)]
        all_found &= found[1] == (0 if name == "correct" else seeds)
        runs = sorted(result.samples for result in often)[seeds // 2]
        print(f"| {name} | {found[0]} of {seeds} | {found[1]} of {seeds} | {runs} |")
    return all_found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=1_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--canaries", type=int, default=DIRECTIONS)
    parser.add_argument("--only", nargs="+", choices=("sound", "bugs"), default=("sound", "bugs"))
    given = parser.parse_args()
    holds = True
    if "sound" in given.only:
        holds &= sound(given.audits, given.canaries)
    if "bugs" in given.only:
        holds &= bugs(given.seeds, given.canaries)
    sys.exit(not holds)


if __name__ == "__main__":
    main()
