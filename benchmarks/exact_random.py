"""Random finite mechanisms: what is enumerated, against samples.

Each program is a few lines of draws, comparisons, arithmetic and loops. Its outputs are sampled and
compared with the enumerated distribution by a chi-squared test (outcomes of which fewer than five
are expected are taken together). Over many programs the p-values should be uniform, and nothing may
come that was not enumerated. What looks improbable is sampled again.

    python -m benchmarks.exact_random --programs 1000 --samples 10000
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from pytest_dp.oracles.enumerated import Distribution
from pytest_dp.oracles.enumerating import enumerate_outputs
from pytest_dp.outputs.table import hashes, tabulate
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument

SUSPICIOUS = 1e-4
"""p-value from which a program is looked at again."""
CONTINUOUS = (
    "rng.random()",
    "rng.uniform(-1, 2)",
    "rng.laplace(scale=2.0)",
    "rng.normal(0.5, 2.0)",
    "rng.exponential(1.5)",
    "rng.gumbel()",
    "rng.logistic(scale=0.7)",
    "random.random()",
    "random.uniform(3, -2)",
    "random.expovariate(0.8)",
    "random.gauss(0, 1.5)",
    "np.random.random_sample()",
    "np.random.laplace(0.3, 1.2)",
    "np.random.exponential(0.9)",
    "np.random.rand()",
    "random.SystemRandom().random()",
)
DISCRETE = (
    "int(rng.integers(1, 6))",
    "rng.integers(-2, 3)",
    "int(rng.integers(1000) < 300)",
    "rng.choice([0, 2, 5], p=[0.2, 0.5, 0.3])",
    "rng.choice(4)",
    "int((rng.random(3) < 0.4).sum())",
    "int(np.argmax(np.array([0.2, 0.7, 1.0]) > rng.random()))",
    "np.random.randint(0, 3)",
    "int(np.random.choice(3, p=[0.5, 0.25, 0.25]))",
    "random.randrange(3)",
    "random.randint(-1, 1)",
    "random.choice([1, 4, 4])",
    "random.choices([0, 1, 7], weights=[3, 2, 1])[0]",
    "random.sample([0, 1, 2, 3], 2)[1]",
    "random.getrandbits(2)",
    "secrets.randbelow(5)",
    "secrets.randbits(5) % 3",
    "ord(os.urandom(1)) % 4",
)
MONOTONE = (
    "2 * {x} - 1",
    "3 - {x} / 2",
    "-{x}",
    "abs({x})",
    "np.exp({x} / 3)",
    "np.float64(1.5) * {x}",
    "np.log(abs({x}) + 1)",
    "math.log(abs({x}) + 0.5)",
    "np.sqrt(abs({x}))",
    "max({x}, 0.25)",
    "min({x}, 1.5)",
    "np.clip({x}, -0.5, 2.0)",
    "{x} ** 2",
    "1 / ({x} + 10)",
    "{x} % 2.0",
    "x + {x}",
)
TO_DISCRETE = (
    "int(np.clip({x}, -3, 3))",
    "int(np.floor(max(min({x}, 4), -4)))",
    "round(float(0.5) * max(min({x}, 6), -6))",
    "int({x} > 0.3)",
    "int(0 <= {x} < 1)",
    "(1 if {x} <= 0.7 else 2)",
    "int(np.sign({x}))",
    "math.floor(max(min(2 * {x}, 3), -3))",
)
ARITHMETIC = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "({a} + {b}) % 3", "max({a}, {b})", "{a} + x")
CONDITIONS = ("{a} > {b}", "{a} == {b}", "({a} + {b}) % 2 == 0", "{a} <= 1", "{a} != x")


def program(seed: int) -> str:
    """The source of a mechanism ``program(x, rng)``."""
    choose = random.Random(seed)
    lines: list[str] = []
    known: list[str] = []

    def add(value: str, indent: str = "") -> str:
        known.append(f"v{len(known)}")
        lines.append(f"{indent}{known[-1]} = {value}")
        return known[-1]

    def discrete() -> str:
        if choose.random() < 0.5:
            return choose.choice(DISCRETE)
        value = choose.choice(CONTINUOUS)
        for _ in range(choose.randrange(3)):
            name = f"c{len(lines)}"
            lines.append(f"{name} = {value}")
            value = choose.choice(MONOTONE).format(x=name)
        name = f"c{len(lines)}"
        lines.append(f"{name} = {value}")
        return choose.choice(TO_DISCRETE).format(x=name)

    add(discrete())
    for _ in range(choose.randrange(1, 4)):
        a, b = choose.choice(known), choose.choice(known)
        kind = choose.randrange(4)
        if kind == 0:
            add(discrete())
        elif kind == 1:
            add(choose.choice(ARITHMETIC).format(a=a, b=b))
        elif kind == 2:
            condition = choose.choice(CONDITIONS).format(a=a, b=b)
            add(f"({choose.choice(DISCRETE)}) if {condition} else {a}")
        else:
            count = add("0")
            lines.append(f"for step in range({choose.randrange(2, 4)}):")
            lines.append(f"    if {choose.choice(CONTINUOUS)} > 0.4 + 0.1 * step:")
            lines.append("        break" if choose.random() < 0.5 else f"        {count} += step")
            lines.append(f"    {count} += 1")
    returned = [f"int({name})" for name in known[-choose.randrange(1, 3) :]]
    lines.append(f"return {', '.join(returned)}")
    return "def program(x, rng):\n" + "".join(f"    {line}\n" for line in lines)


def compiled(source: str) -> Callable[..., Any]:
    """The mechanism of a source."""
    names: dict[str, Any] = {}
    imports = "import math, os, random, secrets\nimport numpy as np\n"
    exec(compile(imports + source, "<program>", "exec"), names)
    mechanism: Callable[..., Any] = names["program"]
    return mechanism


def known(mechanism: Callable[..., Any], data: Any) -> Distribution:
    """Its distribution, by enumeration."""
    call = Call(mechanism, {}, "rng", pristine=Pristine((mechanism, {})))
    return enumerate_outputs(call, data, Deadline(10.0))


def compare(distribution: Distribution, outputs: list[Any]) -> tuple[float, int]:
    """The p-value of outputs under a distribution, and how many of them cannot be (approximate)."""
    counted = Counter(hashes(tabulate(outputs)).tolist())
    counts = np.array([counted.pop(mark, 0) for mark in distribution.marks.tolist()], float)
    expected = distribution.probabilities * len(outputs)
    rare = expected < 5
    cells = [*counts[~rare], counts[rare].sum()], [*expected[~rare], expected[rare].sum()]
    seen, wanted = np.array(cells)
    keep = wanted > 1e-6
    seen, wanted = seen[keep], wanted[keep]
    outside = sum(counted.values())
    if len(seen) < 2:
        return 1.0, outside
    chi2 = float(((seen - wanted) ** 2 / wanted).sum())
    return float(scipy.stats.chi2.sf(chi2, len(seen) - 1)), outside


def main() -> None:
    """Print how many programs were enumerated, and how their samples agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    refused: Counter[str] = Counter()
    values, suspect = [], []
    spent = 0.0
    for seed in range(given.first, given.first + given.programs):
        mechanism = compiled(program(seed))
        started = time.perf_counter()
        try:
            distribution = known(mechanism, 1)
        except CannotInstrument as reason:
            refused[str(reason)] += 1
            continue
        finally:
            spent += time.perf_counter() - started
        p, outside = compare(distribution, sampled(mechanism, seed, given.samples))
        values.append(p)
        if outside or p < SUSPICIOUS:
            again = compare(distribution, sampled(mechanism, seed + 1, 20 * given.samples))
            suspect.append((seed, p, outside, *again))
    done = len(values)
    print(f"{done} of {given.programs} enumerated, {1e3 * spent / given.programs:.1f} ms each")
    for reason, times in refused.most_common():
        print(f"  refused {times}: {reason}")
    fit = scipy.stats.kstest([p for p in values if p < 1], "uniform").pvalue
    print(f"smallest p-value {min(values):.2g} of {done}; their uniformity: p = {fit:.2g}")
    for seed, p, outside, p_again, outside_again in suspect:
        print(f"program {seed}: p = {p:.2g}, then {p_again:.2g}; {outside + outside_again} outside")
    sys.exit(any(out or out2 or p < SUSPICIOUS for _, _, out, p, out2 in suspect))


def sampled(mechanism: Callable[..., Any], seed: int, count: int) -> list[Any]:
    """So many outputs, of seeded generators where they can be."""
    random.seed(seed)
    np.random.seed(seed)
    rng = np.random.default_rng(seed)
    return [mechanism(1, rng) for _ in range(count)]


if __name__ == "__main__":
    main()
