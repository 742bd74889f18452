"""Long outputs: verdict, samples, time and memory, each in a process of its own.

The mechanisms marked "wrong" leak more than the claim of 1.0; their twins keep it.

Run with ``python -m benchmarks.long_outputs [--seconds 60] [--independent] [--only bits ...]``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import count, cpu_seconds, progress, table
from pytest_dp import Sequential, audit

CELLS = 10_000
ZEROS = [0.0] * 100
FIRST, THERE = ([float(i == at) for i in range(100)] for at in (0, 37))
BLANK = np.zeros((28, 28))
SPOT = BLANK.copy()
SPOT[10, 13] = 1
RECORDS, FEWER = [5, 7, 1_200, 77], [5, 7, 77]


def vector(answers, size, rng, scale=1.0):
    """Laplace noise; that of the first coordinate has a scale of its own."""
    noise = rng.laplace(size=(size, len(answers)))
    noise[:, 0] *= scale
    return np.asarray(answers) + noise


def atom(answers, size, rng, leak):
    """The true value at one place, now and then."""
    outputs = vector(answers, size, rng)
    outputs[rng.random(size) < leak, 37] = answers[37]
    return outputs


def encoding(value, size, rng, eps):
    """1,024 bits, of which all are flipped with the same probability."""
    bits = np.zeros((size, 1_024), dtype=bool)
    bits[:, value] = True
    return bits ^ (rng.random(bits.shape) < 1 / (1 + np.exp(eps / 2)))


def image(pixels, rng, scale):
    return pixels + rng.laplace(scale=scale, size=pixels.shape)


def histogram(records, rng, scale):
    return np.bincount(records, minlength=CELLS) + rng.laplace(scale=scale, size=CELLS)


def histogram_list(records, rng, scale):
    return histogram(records, rng, scale).tolist()


def histogram_dict(records, rng, scale):
    noisy = np.bincount(records, minlength=2_000) + rng.laplace(scale=scale, size=2_000)
    return {f"cell {i}": number for i, number in enumerate(noisy.tolist())}


Case = tuple[Callable[..., Any], tuple[Any, Any], str, float, float, bool]
"""Mechanism, pair, the parameter that makes it wrong or right, both values, whether vectorised."""
CASES: dict[str, Case] = {
    "vector of 100": (vector, (FIRST, ZEROS), "scale", 1 / 3, 1.0, True),
    "atom in one of 100": (atom, (THERE, ZEROS), "leak", 0.05, 0.0, True),
    "1,024 bits": (encoding, (3, 700), "eps", 1.3, 1.0, True),
    "image of 28 x 28": (image, (SPOT, BLANK), "scale", 0.5, 1.0, False),
    "histogram of 10,000": (histogram, (RECORDS, FEWER), "scale", 0.5, 1.0, False),
    "the same, a list": (histogram_list, (RECORDS, FEWER), "scale", 0.5, 1.0, False),
    "dict of 2,000": (histogram_dict, (RECORDS, FEWER), "scale", 0.5, 1.0, False),
}


def run(name: str, wrong: bool, seconds: float, coupled: bool) -> None:
    """Audit one mechanism in this process, and print what it took as JSON."""
    import resource

    mechanism, pair, parameter, broken, right, vectorized = CASES[name]
    before = cpu_seconds()
    result = audit(
        mechanism,
        eps=1.0,
        pairs=[pair],
        params={parameter: broken if wrong else right},
        vectorized="size" if vectorized else None,
        max_seconds=seconds,
        method=Sequential(coupled=coupled),
        seed=1,
        n_jobs=1,
    )
    used = cpu_seconds() - before
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    megabytes = size / (2**20 if sys.platform == "darwin" else 2**10)
    print(json.dumps([result.verdict, result.samples, used, megabytes]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--independent", action="store_true", help="no coupled draws")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, wrong = options.one
        run(name, wrong == "wrong", options.seconds, not options.independent)
        return

    rows, kept = [], True
    for name in options.only:
        for which in ("wrong", "right"):
            command = [sys.executable, "-m", "benchmarks.long_outputs", "--one", name, which]
            command += ["--seconds", str(options.seconds)]
            command += ["--independent"] if options.independent else []
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            verdict, samples, used, megabytes = json.loads(ran.stdout)
            kept &= (verdict == "violated") == (which == "wrong")
            rows.append([name, which, verdict, count(samples), f"{used:.1f}", f"{megabytes:.0f}"])
            progress(f"{rows[-1]}")
    print(table(["output", "noise", "verdict", "samples", "CPU s", "peak MB"], rows))
    sys.exit(not kept)


if __name__ == "__main__":
    main()
