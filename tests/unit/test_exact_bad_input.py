"""Mechanisms that do odd things with their generators: named, never a wrong distribution."""

from __future__ import annotations

import copy
import os
import random
import secrets
import socket
import struct

import numpy as np
import pytest
from exact import distribution

from pytest_dp.oracles.enumerating import enumerated
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.stand_ins import CannotInstrument


def swallows(x, rng):
    try:
        return hash(rng.random())
    except BaseException:
        return 0


def exact_bernoulli(n, d):
    """Bernoulli(exp(-n / d)), by Canonne, Kamath, Steinke, 2020."""
    k = 1
    while secrets.randbelow(d * k) < n:
        k += 1
    return k % 2


def discrete_laplace(x):
    while True:
        u = secrets.randbelow(3)
        if not exact_bernoulli(u, 3):
            continue
        v = 0
        while exact_bernoulli(1, 1):
            v += 1
        negative = secrets.randbelow(2)
        if not (negative and u + 3 * v == 0):
            return x + (1 - 2 * negative) * (u + 3 * v)


class Opaque:
    __slots__ = ()

    def __repr__(self):
        return object.__repr__(self)


def asks_a_service(x, rng):
    with socket.socket() as connection:
        return bool(connection.connect_ex(("127.0.0.1", 1)))


REFUSED = {
    "starts a process that may draw": lambda x, rng: os.system("true"),
    "asks a service that may draw": asks_a_service,
    "it uses rng.bit_generator": lambda x, rng: (
        np.random.Generator(rng.bit_generator).random() < 0.5
    ),
    "it copies rng": lambda x, rng: copy.deepcopy(rng).random() < 0.5,
    "it uses random.getstate": lambda x, rng: random.getstate()[0],
    "rng.standard_gamma is not enumerated": lambda x, rng: rng.standard_gamma(2.0) > 1,
    "np.isnan of a draw": lambda x, rng: np.isnan(rng.random()),
    "and of a draw": lambda x: random.getrandbits(50) & 3,
    "one of 2e\\+19 whole numbers": lambda x: random.getrandbits(64) >> 62,
    "rounded to one of very many values": lambda x, rng: min(5, np.floor(1e4 * rng.laplace())),
    "not a sum of draws": lambda x, rng: 1 / rng.random() < 5,
    "np.exp of a draw": lambda x, rng: np.exp(rng.random()) < 2,
    "np.sin of a draw": lambda x, rng: np.sin(rng.random()) < 0.5,
    "10,000 draws at once": lambda x, rng: bool((rng.random((100, 100)) < 0.5).all()),
    "hash of a draw": swallows,
    "the scale of a draw depends": lambda x, rng: rng.laplace(scale=1 + rng.random()) > 0,
    "too many paths": lambda x, rng: tuple(rng.integers(2, size=40).tolist()),
    "output holds a continuous draw": lambda x, rng: {"sum": [x + rng.laplace(), 1]},
    "draws are compared with each other in more than one way": lambda x, rng: np.argmax(
        [rng.gumbel(), x + rng.gumbel(), x + rng.gumbel()]
    ),
    "output without value equality": lambda x, rng: Opaque() if rng.random() < 0.5 else x,
    "a continuous draw as a plain float": lambda x, rng: struct.pack("d", rng.random())[0] < 3,
    "whole numbers of type uint8": lambda x, rng: rng.integers(256, dtype=np.uint8) + np.uint8(1),
}


def test_rejection_without_end_takes_too_many_paths():
    with pytest.raises(CannotInstrument, match="too many paths"):
        distribution(discrete_laplace)


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_with_a_reason(reason):
    with pytest.raises(CannotInstrument, match=reason):
        distribution(REFUSED[reason])


def test_exceptions_are_outputs_where_they_are_the_mechanisms():
    def raises(x, rng):
        if rng.random() < 0.25:
            raise ValueError("no budget")
        return 1

    known = distribution(raises)
    assert [repr(outcome) for outcome in known.outcomes] == ["1", "raises ValueError: no budget"]
    assert [float(weight) for weight in known.weights] == [0.75, 0.25]


def test_a_run_that_never_ends_is_given_up():
    def endless(x, rng):
        while True:
            x = 1 - x

    call = Call(endless, {}, "rng", pristine=Pristine((endless, {})))
    with pytest.raises(CannotInstrument, match="runs take too long"):
        enumerated(call, 0, Deadline(0.2))


def test_what_no_stand_in_sees_looks_as_if_it_had_no_noise():
    def unseen(x):
        source = os.open("/dev/urandom", os.O_RDONLY)
        byte = os.read(source, 1)[0]
        os.close(source)
        return x if byte < 192 else 1 - x

    assert len(distribution(unseen).outcomes) == 1
