"""Outputs that are read through a hash: calls made again, their text, and which answers fit."""

from __future__ import annotations

import hashlib
import sys
import zlib

import numpy as np
import pytest

from pytest_dp.claim import Arguments
from pytest_dp.outputs.hashed import Fits, HashCall, Slot, Template, fitting, leaves, templates
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.sampling.calling import prepare
from pytest_dp.sampling.chunks import Input
from pytest_dp.sampling.deadline import Deadline
from pytest_dp.sampling.hash_calls import hash_template
from pytest_dp.sampling.sampler import Sampler


def updated(seed, value):
    made = hashlib.blake2b(digest_size=8, salt=seed)
    made.update(value.encode())
    return made.digest()


HASHERS = {
    "text": (lambda seed, v: zlib.crc32(f"{seed}:{v}".encode()), int),
    "argument": (lambda seed, v: zlib.adler32(v.encode(), seed), int),
    "of numpy": (lambda seed, v: zlib.crc32(v.encode(), np.int64(seed)), int),
    "hexdigest": (lambda seed, v: int(hashlib.md5(f"{v}|{seed}".encode()).hexdigest(), 16), int),
    "digest": (lambda seed, v: hashlib.sha1(f"{v}{seed}".encode()).digest()[0], int),
    "part": (
        lambda seed, v: int.from_bytes(
            hashlib.sha256(f"{v}{seed}".encode()).digest()[:4], "little"
        ),
        int,
    ),
    "updates": (lambda seed, v: int.from_bytes(updated(seed, v), "big"), bytes),
}


def local_hashing(hashed, kind, g=4, keep=0.7):
    def report(value, rng):
        seed = rng.bytes(8) if kind is bytes else int(rng.integers(100, 2**31))
        right = hashed(seed, value) % g
        return {"seed": seed, "answer": [right if rng.random() < keep else int(rng.integers(g))]}

    return report


@pytest.mark.parametrize("name", HASHERS)
def test_a_hash_that_is_called_tells_which_answers_fit(name):
    report = local_hashing(*HASHERS[name])
    sampler = Sampler(prepare(report, Arguments()), seed=1)
    wanted = [hash_template(sampler.call, Input(v), 1, Deadline(10)) for v in ("rome", "oslo")]
    assert all(wanted), "it was seen"
    assert zlib.crc32.__module__ == "zlib", "the functions are back"
    rng = np.random.default_rng(2)
    outputs = [report(v, rng) for v in ("rome", "oslo") for _ in range(400)]
    table, on_d = tabulate(outputs), np.arange(800) < 400
    fits = fitting(wanted, table, on_d)
    shares = [[float(one.values(table)[side].mean()) for side in (on_d, ~on_d)] for one in fits]
    for at, (here, there) in enumerate(shares):
        own, other = (here, there) if at == 0 else (there, here)
        assert own == pytest.approx(0.775, abs=0.08)
        assert other < 0.33, "a checksum of another value is never the same"
    for one in fits:
        names = {"output": outputs[0], **{m: sys.modules[m] for m in ("zlib", "hashlib")}}
        assert float(eval(str(one), names)) == one.values(table)[0], str(one)


def test_what_is_no_seed_of_a_hash():
    def without(value, rng):
        return zlib.crc32(value.encode()), int(rng.integers(1_000, 10_000))

    def own(value, rng):
        seed = int(rng.integers(1_000, 10_000))
        return seed, (seed * len(value) + 7) % 13 % 2

    for mechanism in (without, own):
        sampler = Sampler(prepare(mechanism, Arguments()), seed=1)
        assert hash_template(sampler.call, Input("rome"), 1, Deadline(10)) is None


def test_other_outputs_have_no_hash():
    template = Template(HashCall("zlib", "crc32", (b"x",)), ("seed",))
    fits = Fits(template, "{}", ("answer",), (0, 1))
    outputs = [Raised("ValueError"), {"seed": "text"}, 5, {"answer": 1}, {"seed": 7, "answer": 1}]
    holds = fits.values(tabulate(outputs))
    assert np.isnan(holds[:4]).all()
    assert holds[4] in (0.0, 1.0)
    assert fitting([template, template], tabulate([(1, 2)] * 8), np.arange(8) < 4) == []


def test_places_of_seeds():
    assert list(leaves([5, ("a", np.int64(3)), {"k": b"b"}, 0.5])) == [
        ((0,), 5),
        ((1, 0), "a"),
        ((1, 1), 3),
        ((2, "k"), b"b"),
    ]
    call = HashCall("zlib", "crc32", (b"12345", 678), (("k", 678),))
    assert [made.call.values for made in templates([call], (678, 12))] == [
        (b"12345", Slot(), Slot())
    ]
    assert [made.call.values[0] for made in templates([call], [234])] == [Slot(b"1", b"5")]
    assert list(templates([call], (12, 34))) == [], "any constant may be as short"
