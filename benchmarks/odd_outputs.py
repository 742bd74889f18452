"""Outputs that are more than a number with noise, of mechanisms that lose about twice their claim.

Each takes a bit, many outputs a call, and claims eps = 1: what tells the bit is one feature of the
output among others that say nothing.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import count, pairs_taken, progress, table

LOSS = 2.0
"""About what each loses, in nats."""
FAVOURED = 1 / (1 + np.exp(-LOSS))
WORDS = np.array(["few", "many"])
NAMES = np.array(["ann", "bob", "cy", "dee"])


def told(bit: int, rng: np.random.Generator, size: int) -> np.ndarray:
    """The bit by randomised response."""
    return np.where(rng.random(size) < FAVOURED, bit, 1 - bit)


def laplace(bit: float, rng: np.random.Generator, size: int) -> np.ndarray:
    return bit + rng.laplace(scale=1 / LOSS, size=size)


def word_in_a_text(bit, rng, size):
    names = NAMES[rng.integers(4, size=size)]
    words = WORDS[told(bit, rng, size)]
    return [f"{name} {word} {n}" for name, word, n in zip(names, words, range(size), strict=True)]


def key_of_a_dict(bit, rng, size):
    noise, shown = rng.normal(size=size), told(bit, rng, size)
    return [{"a": x, **({"b": 1} if yes else {})} for x, yes in zip(noise, shown, strict=True)]


def length_of_a_list(bit, rng, size):
    return [rng.random(3 + n).tolist() for n in told(bit, rng, size)]


def order_of_keys(bit, rng, size):
    orders = (("a", "b"), ("b", "a"))
    return [{key: rng.random() for key in orders[n]} for n in told(bit, rng, size)]


def spread_of_a_number(bit, rng, size):
    """What leaks is how far from 0 it lies."""
    return rng.normal(scale=4.0 if bit else 1.0, size=size)


def difference_of_two(bit, rng, size):
    shared = rng.normal(scale=20, size=size)
    return np.column_stack([shared, shared + laplace(bit, rng, size)])


def sum_of_three(bit, rng, size):
    parts = rng.normal(scale=20, size=(size, 2))
    return np.column_stack([parts, laplace(bit, rng, size) - parts.sum(axis=1)])


def largest_of_twenty(bit, rng, size):
    outputs = rng.normal(size=(size, 20))
    place = rng.integers(20, size=size)
    outputs[np.arange(size), place] = 5 + laplace(bit, rng, size)
    return outputs


def each_of_twenty(bit, rng, size):
    return bit + rng.laplace(scale=10 / LOSS, size=(size, 20))


def one_of_forty(bit, rng, size):
    outputs = rng.laplace(size=(size, 40))
    outputs[:, 17] = laplace(bit, rng, size)
    return outputs


def number_where_a_label_says(bit, rng, size):
    """Noise that is too small for one label of four."""
    places = rng.integers(4, size=size)
    scale = np.where(places == 2, 1 / 4, 2.0)
    numbers = bit + rng.laplace(size=size) * scale
    return list(zip(NAMES[places].tolist(), numbers.tolist(), strict=True))


def value_now_and_then(bit, rng, size):
    """A number that is always the same, with a probability of 0.05 or less."""
    rare = rng.random(size) < (0.05 if bit else 0.05 * np.exp(-2 * LOSS))
    return np.where(rare, 0.0, rng.laplace(size=size))


def ends_of_a_range(bit, rng, size):
    return np.clip(laplace(bit, rng, size), -0.2, 1.2)


def whole_number(bit, rng, size):
    share = -np.expm1(-LOSS)
    return bit + rng.geometric(share, size) - rng.geometric(share, size)


def last_digit(bit, rng, size):
    return 10 * rng.integers(10**6, size=size) + 3 * told(bit, rng, size)


def two_categories(bit, rng, size):
    """Only whether two labels agree tells the bit."""
    left = rng.integers(4, size=size)
    right = np.where(told(bit, rng, size), left, (left + rng.integers(1, 4, size)) % 4)
    return list(zip(NAMES[left].tolist(), NAMES[right].tolist(), strict=True))


ODD: tuple[Callable[..., Any], ...] = (
    word_in_a_text,
    key_of_a_dict,
    length_of_a_list,
    order_of_keys,
    spread_of_a_number,
    difference_of_two,
    sum_of_three,
    largest_of_twenty,
    each_of_twenty,
    one_of_forty,
    number_where_a_label_says,
    value_now_and_then,
    ends_of_a_range,
    whole_number,
    last_digit,
    two_categories,
)


def main() -> None:
    """Print the outputs that refute each claim: the median over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="those with this in their names")
    options = parser.parse_args()
    rows = []
    for mechanism in ODD:
        if options.only not in mechanism.__name__:
            continue
        claim = {"eps": 1.0, "pairs": [(0, 1)], "max_samples": 400_000}
        taken = [pairs_taken(mechanism, **claim, seed=seed) for seed in range(options.seeds)]
        median = float(np.median([outputs for outputs, _ in taken]))
        found = sum(outputs < math.inf for outputs, _ in taken)
        seconds = float(np.median([spent for _, spent in taken]))
        name = mechanism.__name__.replace("_", " ")
        shown = count(2 * median) if median < math.inf else "-"
        rows.append((name, f"{found} of {len(taken)}", shown, f"{seconds:.2f}"))
        progress(" ".join(rows[-1]))
    print(table(("output", "red", "outputs, median", "CPU s"), rows))


if __name__ == "__main__":
    main()
