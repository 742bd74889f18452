"""What can be replayed, and which random numbers each chunk of a draw gets."""

# ruff: noqa: NPY002
from __future__ import annotations

import functools
import os
import random
import secrets
import subprocess
import sys

import numpy as np
import pytest
from drawing import InClass, Keeper, both_globals, by_name, sampler

from pytest_dp.running import generators
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generators import claim_seed, seed_randomness, stream
from pytest_dp.running.sampler import SampleRequest


class Connection:
    """Something that cannot be copied, as compiled objects and connections."""

    def plain(self):
        return 0

    def __reduce__(self):
        raise TypeError("is not copied")


CANNOT_BE_COPIED = Connection()


def test_replayable():
    for mechanism, replayable in [
        (lambda data: secrets.randbelow(1000), False),
        (lambda data: random.SystemRandom().random() < 0.5, False),
        (lambda data, rng: rng.random() + secrets.randbelow(2), False),
        (lambda data: CANNOT_BE_COPIED.plain() + secrets.randbelow(1 << 30), False),
        (lambda data, rng: CANNOT_BE_COPIED.plain() + rng.random(), True),
        (lambda data: random.random(), True),
        (lambda data, rng: [np.array([rng.random(), np.nan])], True),
        (lambda data: 3, True),
    ]:
        some = sampler(mechanism)
        some.warm_up(Input([1]), Deadline(30))
        assert some.replayable is replayable
        assert some.runs <= 130


def seldom(data):
    return secrets.randbelow(40) == 0


def seldom_of_a_connection(data):
    return CANNOT_BE_COPIED.plain() + seldom(data)


def seldom_seeded(data, rng):
    return CANNOT_BE_COPIED.plain() + (data[0] > 0 and rng.random() < 1 / 40)


@pytest.mark.parametrize(
    ("mechanism", "replayable"),
    [(seldom, False), (seldom_of_a_connection, False), (seldom_seeded, True)],
)
def test_noise_that_seldom_shows_is_seen_once_it_does(mechanism, replayable):
    some, quiet, given = sampler(mechanism), Input([0]), Input([1])
    some.warm_up(quiet, Deadline(30))
    some.replayable = True  # where no trial showed it
    some.draw([SampleRequest(given, 2_000, (1, 0))], Deadline(30))
    assert some.replayable is replayable


def test_seeds_come_from_name_and_source():
    namespace: dict = {}
    exec("def f(data): return data + 1", namespace)
    exec("def g(data): return data - 1", namespace)
    assert claim_seed("a", by_name) == claim_seed("a", by_name)
    assert claim_seed("a", by_name) != claim_seed("b", by_name)
    assert claim_seed("a", by_name) != claim_seed("a", both_globals)
    assert claim_seed("a", namespace["f"]) != claim_seed("a", namespace["g"])
    assert claim_seed("a", Keeper(1)) == claim_seed("a", Keeper(2))
    assert claim_seed("a", Keeper()) != claim_seed("a", InClass())
    partials = [functools.partial(f, x=1) for f in (by_name, both_globals)]
    assert claim_seed("a", partials[0]) != claim_seed("a", partials[1])
    assert claim_seed("a", partials[0]) == claim_seed("a", functools.partial(by_name, x=2))


SCRIPT = """
import numpy as np
from pytest_dp.running.generators import find_generators
from pytest_dp.running.generators import claim_seed
a, b, c, d, e, f = (np.random.default_rng(0) for _ in range(6))
def mechanism(data): return sum({source.random() for source in (a, b, c, d, e, f)})
places = find_generators(mechanism).places
assert len(places) == 6
print(places, claim_seed("n", mechanism), claim_seed("n", eval("lambda data: {'a', 'b'}")))
"""


def test_seeds_and_the_order_of_generators_do_not_depend_on_the_process(tmp_path):
    (script := tmp_path / "script.py").write_text(SCRIPT)
    seen = {
        subprocess.check_output(
            [sys.executable, script], env={**os.environ, "PYTHONHASHSEED": seed}
        )
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_no_two_chunks_share_random_numbers():
    """Every key, of every length, gives its own streams: of generators, global or captured."""
    keeper = Keeper()
    kept = generators.find_generators(keeper)
    lengths = [(k,) for k in range(6)]
    lengths += [(*key, k) for key in lengths for k in range(6)]
    lengths += [(*key, k) for key in lengths if len(key) == 2 for k in range(5)]
    firsts = []
    for key in lengths:
        with seed_randomness(stream(11, *key), kept) as generator:
            firsts += [generator.random(), np.random.random(), random.random()]
            firsts.append(keeper.rng.random())
    assert len(set(firsts)) == 4 * len(lengths)
