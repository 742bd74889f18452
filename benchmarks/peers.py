"""The same mechanisms, and twins that keep their claims, audited by us and by other tools.

Ours: by default, and by the published methods. StatDP and DP-Sniper come from their folders::

    git clone https://github.com/cmla-psu/statdp        # needs numpy < 1.24, tqdm, numba
    git clone https://github.com/eth-sri/dp-sniper      # needs torch
    python -m benchmarks.peers --statdp ../statdp --dpsniper ../dp-sniper --python .peers/bin/python

`--python` is an interpreter with what they need beside pytest-dp and its dependencies. Any other
tool is driven by a command that takes a case and "wrong" or "right", and prints ``{"found": true,
"bound": 1.2, "samples": 5000}``: ``--tool "Delta-Siege=python drive_delta_siege.py"``. A tool
without a folder is told as "not given". "–" stands where it cannot express a claim.

Run with ``python -m benchmarks.peers [--seeds 3] [--only Laplace] [--method default statdp]``.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import mechanisms, vectorized
from benchmarks.common import count, cpu_seconds, progress, table
from pytest_dp import audit, queries

ROOT = Path(__file__).parents[1]
NEEDED = 3.7303
"""The deviation of Gaussian noise that (1, 1e-5) needs at sensitivity 1 (analytic mechanism)."""
ERROR = {"default": "≤ 1e-6", "statdp": "≤ 1e-6", "dpsniper": "≤ 1e-6"}
ERROR |= {"StatDP": "not bounded", "DP-Sniper": "≤ 0.1"}
"""With which chance an audit of a correct mechanism is red."""
LINES = {"default": 2, "statdp": 2, "dpsniper": 2, "StatDP": 3, "DP-Sniper": 18}
"""Lines that a user writes for Laplace noise on one number, counted by hand."""
STATDP_ALPHA = 0.05
"""The p-value below which StatDP's paper takes a claim for refuted."""


def gaussian(answer, scale, rng, size):
    return answer + rng.normal(scale=scale, size=size)


def leaks_seldom(answer, chance, rng, size):
    return np.where(rng.random(size) < chance, answer * 1e9, answer + rng.laplace(size=size))


def sum_of(records, limit, rng, size):
    return np.minimum(records, limit).sum() + rng.laplace(size=size)


@dataclass(frozen=True)
class Case:
    """A mechanism that breaks its claim, and its twin that keeps it: other params, or another."""

    name: str
    wrong: Callable[..., Any]
    truth: float
    broken: Mapping[str, Any]
    kept: Mapping[str, Any]
    right: Callable[..., Any] | None = None
    inputs: Mapping[str, Any] = field(default_factory=lambda: {"pairs": [(0.0, 1.0)]})
    claim: Mapping[str, Any] = field(default_factory=lambda: {"eps": 1.0})
    outputs: int | None = 1
    """How many numbers an output has; None: that varies."""

    @property
    def answers(self) -> int:
        """How many queries the inputs answer; 0: they are records."""
        return 1 if "pairs" in self.inputs else getattr(self.inputs["inputs"], "lengths", (0,))[-1]

    def of(self, twin: str) -> tuple[Callable[..., Any], Mapping[str, Any]]:
        if twin == "wrong":
            return self.wrong, self.broken
        return self.right or self.wrong, self.kept


ALL = {"inputs": queries(10), "neighbors": "all_queries"}
FIVE = {"inputs": queries(5), "neighbors": "all_queries"}
ONE = {"inputs": queries(5), "neighbors": "one_query"}
DELTA = {"eps": 1.0, "delta": 1e-5}
EPS = {"eps": 1.0}
AT_1 = {"eps": 1.0, "threshold": 1, "c": 1}
AT_HALF = {"eps": 1.0, "threshold": 0.5, "c": 1}
UNLIMITED = {"eps": 1.0, "threshold": 1}
v = vectorized
CASES = [
    Case("Laplace noise / 1.2", v.laplace, 1.2, {"eps": 1.2}, EPS),
    Case("Laplace noise / 2", v.laplace, 2.0, {"eps": 2.0}, EPS),
    Case("noisy max by value", v.noisy_max_value, 2.5, EPS, EPS, v.noisy_max, FIVE),
    Case(
        "histogram, scale eps",
        v.histogram_inverted,
        1 / 0.7,
        {"eps": 0.7},
        {"eps": 0.7},
        v.histogram,
        ONE,
        {"eps": 0.7},
        5,
    ),
    Case("SVT3", v.svt3, 5.0, AT_1, AT_HALF, v.svt1, ALL, outputs=None),
    Case("SVT4", v.svt4, 1.74, AT_1, AT_HALF, v.svt1, ALL, outputs=None),
    Case("SVT5", v.svt5, np.inf, UNLIMITED, AT_HALF, v.svt1, ALL, outputs=10),
    Case("SVT6", v.svt6, 4.49, UNLIMITED, AT_HALF, v.svt1, ALL, outputs=10),
    Case("prefix sum", v.prefix_sum, 10.0, EPS, {"eps": 0.1}, None, ALL, outputs=10),
    *(
        Case(name, gaussian, truth, {"scale": of * NEEDED}, {"scale": 1.001 * NEEDED}, claim=DELTA)
        for name, of, truth in (("half of the Gaussian noise", 0.5, 2.15), ("0.8 of it", 0.8, 1.28))
    ),
    Case(
        "randomised response",
        v.randomized_response,
        1.39,
        {"eps": 1.39},
        EPS,
        inputs={"pairs": [(0, 1)]},
    ),
    Case("a leak of 1 in 1,000", leaks_seldom, np.inf, {"chance": 1e-3}, {"chance": 0.0}),
    Case(
        "a sum, not clipped",
        sum_of,
        3.0,
        {"limit": np.inf},
        {"limit": 1.0},
        inputs={"inputs": [[0.2, 3.0, 0.5]], "neighbors": "add_remove_one"},
    ),
]


@dataclass(frozen=True)
class Told:
    """What a tool says of a mechanism."""

    found: bool
    bound: float
    samples: float
    seconds: float = 0.0


def ours(case: Case, twin: str, method: str, seed: int) -> Told:
    mechanism, params = case.of(twin)
    of = {} if method == "default" else {"method": method}
    claim = {**case.claim, **case.inputs, "params": params, "vectorized": "size"}
    before = cpu_seconds()
    result = audit(mechanism, **claim, **of, seed=seed, n_jobs=1, max_seconds=600)
    return Told(result.violated, result.eps_lower, result.samples, cpu_seconds() - before)


# --- other tools, each in a process of its own ---


class Calls:
    """How many outputs all processes have drawn, told in blocks."""

    block = 1_000

    def __init__(self) -> None:
        self.total, self.untold = multiprocessing.Value("q"), 0

    def add(self, drawn: int) -> None:
        self.untold += drawn
        if self.untold >= self.block:
            with self.total.get_lock():
                self.total.value += self.untold
            self.untold = 0


def drive_statdp(case: Case, twin: str) -> Told | None:
    from statdp import ALL_DIFFER, ONE_DIFFER, detect_counterexample

    mechanism, params = case.of(twin)
    if "delta" in case.claim or not case.answers:
        return None
    calls = Calls()

    def of_one_row(answers, **given):
        return mechanism(answers, **given, size=1)[0]

    scalar = getattr(mechanisms, mechanism.__name__, of_one_row)

    def algorithm(prng, answers):
        calls.add(1)
        output = scalar(answers if case.answers > 1 else answers[0], rng=prng, **params)
        return list(output) if isinstance(output, list | np.ndarray) else (output,)

    given = {"num_input": case.answers}
    if case.answers == 1:
        given["databases"] = tuple([x] for x in case.inputs["pairs"][0])
    moved = ONE_DIFFER if case.inputs.get("neighbors") == "one_query" else ALL_DIFFER
    (found,) = detect_counterexample(
        algorithm, case.claim["eps"], sensitivity=moved, quiet=True, cores=1, **given
    )
    return Told(found[1] < STATDP_ALPHA, float("nan"), calls.total.value)


def drive_dpsniper(case: Case, twin: str) -> Told | None:
    from dpsniper.attack.dpsniper import DPSniper
    from dpsniper.classifiers.classifier_factory import LogisticRegressionFactory
    from dpsniper.classifiers.torch_optimizer_factory import SGDOptimizerFactory
    from dpsniper.input.input_domain import InputBaseType, InputDomain
    from dpsniper.input.pattern_generator import PatternGenerator
    from dpsniper.mechanisms.abstract import Mechanism
    from dpsniper.search.ddconfig import DDConfig
    from dpsniper.search.ddsearch import DDSearch
    from dpsniper.utils.initialization import initialize_dpsniper

    mechanism, params = case.of(twin)
    if "delta" in case.claim or not case.answers or case.outputs is None:
        return None
    calls, rng = Calls(), np.random.default_rng()

    class Wrapped(Mechanism):
        def m(self, a, n_samples=1):
            calls.add(n_samples)
            given = a if case.answers > 1 else a[0]
            return np.asarray(mechanism(given, rng=rng, size=n_samples, **params), float)

    factory = LogisticRegressionFactory(case.outputs, SGDOptimizerFactory())
    domain = InputDomain(case.answers, InputBaseType.FLOAT, [0, 1])
    inputs = PatternGenerator(domain, case.inputs.get("neighbors") == "one_query")
    few, many = 200_000, 2_000_000
    config = DDConfig(n_train=few, n=few, n_check=few, n_final=many, n_processes=1)
    with initialize_dpsniper(config, out_dir="peers-outputs"):
        wrapped = Wrapped()
        attack = DPSniper(wrapped, factory, config)
        witness = DDSearch(wrapped, attack, inputs, config).run()
        witness.compute_eps_high_precision(wrapped, config)
    bound = float(witness.lower_bound)
    return Told(bound > case.claim["eps"], bound, calls.total.value)


DRIVERS = {"StatDP": drive_statdp, "DP-Sniper": drive_dpsniper}


def theirs(command: list[str], folder: Path | None, case: Case, twin: str) -> Told | str:
    """What a tool says in a process of its own; or why it says nothing."""
    before = cpu_seconds()
    path = os.pathsep.join(str(part) for part in (folder, ROOT) if part)
    ran = subprocess.run(
        [*command, case.name, twin],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        progress(ran.stderr)
        return "failed"
    said = json.loads(ran.stdout.splitlines()[-1])
    return Told(**said, seconds=cpu_seconds() - before) if said else "–"


def row(case: Case, tool: str, wrong: list[Told | str], right: list[Told | str]) -> list[str]:
    claim = ", ".join(f"{name} = {value:g}" for name, value in case.claim.items())
    row = [f"{case.name} ({claim})", f"{case.truth:.3g}", tool]
    told = [one for one in wrong if isinstance(one, Told)]
    if not told:
        return [*row, str(wrong[0]), *[""] * 6]
    bound = median(one.bound for one in told)
    alarms = [one.found for one in right if isinstance(one, Told)]
    return [
        *row,
        f"{sum(one.found for one in told)}/{len(wrong)}",
        f"{bound:.3g}" if math.isfinite(bound) else "–",
        count(median(one.samples for one in told)),
        f"{median(one.seconds for one in told):.1f}",
        f"{sum(alarms)}/{len(alarms)}",
        ERROR.get(tool, ""),
        str(LINES.get(tool, "")),
    ]


HEADER = ["mechanism (claim)", "true ε", "tool", "found", "bound", "samples", "CPU s", "twin red"]
HEADER += ["error", "lines"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the names of mechanisms")
    parser.add_argument("--method", nargs="*", default=["default", "statdp", "dpsniper"])
    parser.add_argument("--statdp", type=Path, help="folder of StatDP")
    parser.add_argument("--dpsniper", type=Path, help="folder of DP-Sniper")
    parser.add_argument("--python", default=sys.executable, help="interpreter for both")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        tool, name, twin = options.drive
        (case,) = (case for case in CASES if case.name == name)
        told = DRIVERS[tool](case, twin)
        print(json.dumps(told and {n: getattr(told, n) for n in ("found", "bound", "samples")}))
        return

    folders = {"StatDP": options.statdp, "DP-Sniper": options.dpsniper}
    command = [options.python, "-m", "benchmarks.peers", "--drive"]
    given = {name: ([*command, name], folder) for name, folder in folders.items() if folder}
    for named in options.tool:
        name, _, line = named.partition("=")
        given[name] = (shlex.split(line), None)
    rows, seeds = [], range(options.seeds)
    for case in CASES:
        if options.only not in case.name:
            continue
        for method in options.method:
            told = [[ours(case, t, method, seed) for seed in seeds] for t in ("wrong", "right")]
            rows.append(row(case, method, *told))
            progress(str(rows[-1]))
        for tool in (*folders, *(given.keys() - folders)):
            told = [["not given"], []]
            if tool in given:
                told = [[theirs(*given[tool], case, t) for _ in seeds] for t in ("wrong", "right")]
            rows.append(row(case, tool, *told))
            progress(str(rows[-1]))
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()
