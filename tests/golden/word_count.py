"""A program in another language, as it were: it reads JSON and prints a number a line."""

import sys

import pytest

from pytest_dp import dp_command

PROGRAM = """
import json, random, sys
texts = json.load(sys.stdin)
words = sum(len(text.split()) for text in texts)
for _ in range(int(sys.argv[1])):
    print(words + random.choice([-1, 1]) * random.expovariate(1.0))
"""


@pytest.mark.dp_claim(
    eps=1.0,
    neighbors="add_remove_one",
    inputs=[["good shop", "slow"], []],
    vectorized="size",
    max_samples=20_000,
)
def test_word_count(dp_check):
    dp_check(dp_command([sys.executable, "-c", PROGRAM, "{size}"]))
