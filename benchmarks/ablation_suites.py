"""Mechanisms that break their claim, by which rooms they show: what `ablation` runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks import beyond_pure, long_outputs
from benchmarks.cases import CORPUS, STATDP, Case
from benchmarks.common import Twins
from benchmarks.gated import GATED
from benchmarks.gated_unseen import UNSEEN
from benchmarks.odd_outputs import ODD, each_of_twenty
from benchmarks.planted import PLANTED
from benchmarks.resolution import sums
from benchmarks.sequential_single import SINGLES
from pytest_dp import DPSniper, Sequential, audit
from pytest_dp.auditors import sequential
from pytest_dp.auditors.game import Game
from pytest_dp.method_settings import Method

ALPHA = 1e-6
FIXED: dict[str, Any] = {"alpha": ALPHA, "max_seconds": 60, "n_jobs": 1}
STEP = math.sqrt(2)
"""By which the samples grow of methods that spend all that they are allowed."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An audit that should detect a violation.

    Attributes
    ----------
    run : callable
        Seed to samples until the claim was refuted, infinite if it was not.
    most : int
        Samples that it may take.
    """

    run: Callable[[int], float]
    most: int


class Played(BaseException):
    """The bets of an audit are over."""


def betting(mechanism: Callable[..., Any], most: int, **claim: Any) -> Trial:
    """The bets of an audit by the default method, without what is done to show what they found."""

    def run(seed: int) -> float:
        games: list[Game] = []

        def end(game: Game, *_: Any) -> None:
            games.append(game)
            raise Played

        keywords = {**FIXED, "margin": None, **claim, "max_samples": most, "seed": seed}
        with patch.object(sequential, "conclude", end), suppress(Played):
            audit(mechanism, **keywords)
        return 2 * games[-1].drawn if games[-1].refuted else math.inf

    return Trial(run, most)


def spending(mechanism: Callable[..., Any], least: int, most: int, **claim: Any) -> Trial:
    """Audits by a method that spends all its samples: with the least that detect."""

    def run(seed: int) -> float:
        allowed = float(least)
        while allowed <= most:
            result = audit(mechanism, **{**FIXED, **claim}, max_samples=int(allowed), seed=seed)
            if result.violated:
                return allowed
            allowed *= STEP
        return math.inf

    return Trial(run, most)


def _known() -> dict[str, Trial]:
    return {
        f"{name}, {'coupled' if coupled else 'independent'}": betting(
            single.mechanism,
            400_000,
            eps=1.0,
            params={"eps": 2.0 if name.startswith("noisy max") else ratio},
            pairs=[single.pair],
            method=Sequential(coupled=coupled),
            vectorized="size",
        )
        for name, single in SINGLES.items()
        for coupled, ratio in ((True, 1.2), (False, 1.5))
    }


def _beyond() -> dict[str, Trial]:
    chosen = {"delta": 0.5, "mu": 0.7, "rho": 0.7, "rdp2": 0.7, "rdp8": 0.7}
    chosen |= {"envelope .5": 0.5, "exponential .5": 2.0}
    return {
        f"{name}, {'coupled' if coupled else 'independent'}": betting(
            beyond_pure.CASES[name].mechanism,
            200_000,
            **beyond_pure.CASES[name].claim,
            params={beyond_pure.CASES[name].parameter: share},
            pairs=[(1.0, 0.0)],
            method=Sequential(coupled=coupled),
            vectorized="size",
        )
        for name, share in chosen.items()
        for coupled in (True, False)
    }


def _corpus(
    cases: Sequence[Case],
    make: Callable[..., Trial],
    *limits: int,
    method: type[Method] = Sequential,
) -> dict[str, Trial]:
    return {
        f"{case.name}{kind}": make(
            case.vectorized, *limits, **case.keywords(1.0, many=True), method=method(**more)
        )
        for case in cases
        if case.violates(1.0)
        for kind, more in (("", {}), (", independent", {"coupled": False}))
    }


def _twins(twins: Sequence[Twins]) -> dict[str, Trial]:
    return {each.name: betting(each.make(True), 200_000, **each.claim()) for each in twins}


def _long() -> dict[str, Trial]:
    moved = {
        f"100 answers moved{kind}": betting(
            sums,
            200_000,
            eps=1.0,
            pairs=[([1] * 100, [0] * 100)],
            params={"scale": 8.0},
            vectorized="size",
            **more,
        )
        for kind, more in (("", {}), (", independent", {"method": Sequential(coupled=False)}))
    }
    return moved | {
        f"{name}{kind}": betting(
            mechanism,
            200_000,
            eps=1.0,
            pairs=[pair],
            params={parameter: broken},
            vectorized="size",
            **more,
        )
        for name, (mechanism, pair, parameter, broken, _, many) in long_outputs.CASES.items()
        if many
        for kind, more in (("", {}), (", independent", {"method": Sequential(coupled=False)}))
    }


def _odd() -> dict[str, Trial]:
    return {
        f"{mechanism.__name__.replace('_', ' ')}{kind}": betting(
            mechanism, 200_000, eps=1.0, pairs=[(1, 0)], vectorized="size", **more
        )
        for mechanism in ODD
        for kind, more in (("", {}), (", independent", {"method": Sequential(coupled=False)}))
    }


def _sniped() -> dict[str, Trial]:
    known = {
        f"{name}, {'coupled' if coupled else 'independent'}": spending(
            single.mechanism,
            1_000,
            500_000,
            eps=1.0,
            params={"eps": 2.0 if name.startswith("noisy max") else 1.5},
            pairs=[single.pair],
            method=DPSniper(coupled=coupled),
            vectorized="size",
        )
        for name, single in SINGLES.items()
        for coupled in (True, False)
    }
    many = {
        f"each of twenty{kind}": spending(
            each_of_twenty,
            1_000,
            500_000,
            method=method,
            eps=1.0,
            pairs=[(1, 0)],
            vectorized="size",
        )
        for kind, method in (("", DPSniper()), (", independent", DPSniper(coupled=False)))
    }
    searched = [case for case in QUICK if case.name in ("NoisyMax3", "SVT6")]
    return known | many | _corpus(searched, spending, 1_000, 500_000, method=DPSniper)


def _statdp() -> dict[str, Trial]:
    return {
        case.name: spending(
            case.vectorized, 1_000, 500_000, method="statdp", **case.keywords(1.5, many=True)
        )
        for case in STATDP.values()
        if case.violates(1.5)
    }


QUICK = tuple(case for case in CORPUS if case.name not in ("SVT3", "SVT34Parallel"))
SUITES: dict[str, Callable[[], dict[str, Trial]]] = {
    "known": _known,
    "beyond": _beyond,
    "corpus": partial(_corpus, QUICK, betting, 1_000_000),
    "odd": _odd,
    "long": _long,
    "gates": partial(_twins, [*GATED, *UNSEEN]),
    "planted": partial(_twins, PLANTED),
    "statdp": _statdp,
    "dpsniper": _sniped,
}
"""Known pairs of inputs, claims beyond pure eps, and pairs that are searched; odd and long outputs;
leaks behind gates, and bugs on datasets; and what methods need that spend all their samples."""
