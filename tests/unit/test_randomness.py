"""The instrumented generator: every source is seen, and what is not is named."""

# ruff: noqa: NPY002

from __future__ import annotations

import copy
import math
import os
import pickle
import random
import secrets
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from random import gauss

import numpy as np
import pytest
from numpy.random import default_rng

from pytest_dp.oracles.enumerating import enumerate_outputs
from pytest_dp.outputs.raised import Raised
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.generator_stand_ins import CannotInstrument
from pytest_dp.running.instrumented import Tape, run_instrumented
from pytest_dp.running.modules import modules_replaced

numpy_rng = np.random.default_rng(5)
python_rng, system_rng = random.Random(3), random.SystemRandom()


class Held:
    """Keeps a generator, as estimators do."""

    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __call__(self, data):
        return self.rng.random()


def shuffled(data):
    values = list(range(50))
    random.shuffle(values)
    return values


EVERY_SOURCE = {
    "rng": lambda data, rng: rng.laplace(1, 2),
    "a numpy generator of a module": lambda data: numpy_rng.normal(),
    "one of Python's": lambda data: python_rng.random(),
    "SystemRandom": lambda data: system_rng.random(),
    "random": lambda data: random.random(),
    "from random import": lambda data: gauss(0, 1),
    "from numpy.random import default_rng": lambda data: default_rng().normal(),
    "np.random.Generator": lambda data: np.random.Generator(np.random.PCG64(2)).normal(),
    "os.urandom": lambda data: os.urandom(4),
    "secrets.randbelow": lambda data: secrets.randbelow(1 << 40),
    "on an object": Held(),
    "in place": shuffled,
}


def run(mechanism, instrument, data=(1,)):
    takes_rng = "rng" in getattr(getattr(mechanism, "__code__", None), "co_varnames", ())
    pristine = Pristine((mechanism, {}))
    call = Call(mechanism, {}, "rng" if takes_rng else None, pristine=pristine)
    return run_instrumented(call, list(data), instrument, Deadline(5.0))


@pytest.mark.parametrize("mechanism", EVERY_SOURCE.values(), ids=EVERY_SOURCE)
def test_every_source_is_seen_and_repeats_and_can_be_replaced(mechanism):
    tape = Tape(1)
    output = run(mechanism, tape)
    (draw,) = tape.draws
    assert output == draw.value
    assert run(mechanism, Tape(1)) == output
    assert run(mechanism, Tape(2)) != output
    assert draw.stack[0].file == __file__
    again = run(
        mechanism, Tape(1, lambda _: lambda draw, other: other.of(draw.request, draw.stack))
    )
    assert mechanism is shuffled or output != again  # in place, it would be shuffled twice
    assert run(mechanism, Tape(1, lambda draw: None)) == output


def two_lines(data, rng):
    first = sum(rng.normal() for _ in range(data[0]))
    second = rng.normal()
    return first, second


def test_each_line_has_a_stream_of_its_own():
    three, five = (run(two_lines, Tape(1), [n]) for n in (3, 5))
    assert three[1] == five[1]
    assert three[0] != five[0]


def swallows(data, rng):
    try:
        return rng.bit_generator
    except BaseException:
        return 0


def test_what_cannot_be_instrumented_is_named():
    for mechanism, reason in [
        (lambda data, rng: rng.spawn(2), "it uses rng.spawn"),
        (lambda data, rng: copy.deepcopy(rng), "it copies rng"),
        (lambda data, rng: pickle.dumps(rng), "it copies rng"),
        (lambda data: np.random.get_state(), "it uses np.random.get_state"),
        (swallows, "it uses rng.bit_generator"),
        (lambda data, rng: np.random.Generator.normal(rng), "compiled code draws"),
    ]:
        with pytest.raises(CannotInstrument, match=reason):
            run(mechanism, Tape(1))


def test_exceptions_of_the_mechanism_are_outputs():
    assert isinstance(run(lambda data, rng: 1 / 0, Tape(1)), Raised)


def public():
    return [
        (module, name, value)
        for module in (np.random, random, secrets, random.SystemRandom, os)
        for name, value in vars(module).items()
    ]


def test_other_threads_keep_their_random_numbers():
    drawn = []

    def elsewhere():
        drawn.append((np.random.default_rng(1).random(), random.Random(1).random(), os.urandom(3)))
        drawn.append((np.random.laplace(), random.random(), secrets.randbelow(5)))

    tape = Tape(1)
    with modules_replaced(tape):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert drawn[0][:2] == (np.random.default_rng(1).random(), random.Random(1).random())
    assert not tape.draws


def in_thread(data, rng):
    drawn = rng.laplace()
    made = []
    thread = threading.Thread(target=lambda: made.append(round(drawn, 1) + drawn**2 + rng.normal()))
    thread.start()
    thread.join()
    return made[0]


def in_child(data, rng):
    drawn, (reads, writes) = rng.laplace(), os.pipe()
    child = os.fork()
    if not child:
        os.write(writes, f"{drawn:.3f}".encode())
        float(drawn) + rng.normal() + np.random.normal() + random.random()
        os._exit(0)
    os.close(writes)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(reads) as stream:
        return float(stream.read()), status


def until_it_fits(data, rng):
    while True:
        try:
            drawn = rng.laplace()
            if math.exp(-abs(drawn)) < 0.5 and rng.bit_generator is not None:
                return drawn
        except BaseException:
            continue


def everything_else(data, rng):
    drawn = rng.laplace(size=3)
    copies = copy.deepcopy(drawn[0]), pickle.loads(pickle.dumps(drawn[0]))
    whole = int(rng.integers(1000)) // 7
    drawn += drawn**2
    return np.sort(drawn.astype(np.float32)).tolist(), copies, 1 / drawn[0] % 2 // 1, ~whole


ELSEWHERE = [in_thread, in_child, until_it_fits, everything_else]


def is_answered(mechanism, how):
    call = Call(mechanism, {}, "rng" if "rng" in mechanism.__code__.co_varnames else None)
    call = replace(call, pristine=Pristine((mechanism, {})))
    if how == "recorded":
        tape = Tape(1)
        with suppress(CannotInstrument):
            run_instrumented(call, [1], tape, Deadline(30))
        return tape.refusal
    try:
        enumerate_outputs(call, [1], Deadline(30))
    except CannotInstrument as refused:
        return str(refused)
    return ""


@pytest.mark.filterwarnings("error", "ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("how", ["recorded", "enumerated"])
@pytest.mark.parametrize("mechanism", ELSEWHERE)
def test_nothing_of_ours_is_raised_in_a_mechanism(mechanism, how, monkeypatch):
    dropped, process = [], os.getpid()
    for hook in ("unraisablehook", "excepthook"):
        monkeypatch.setattr(sys, hook, dropped.append)
    monkeypatch.setattr(threading, "excepthook", dropped.append)
    before, handler = public(), signal.getsignal(signal.SIGINT)
    refused = is_answered(mechanism, how)
    assert os.getpid() == process
    assert not dropped
    assert "with draws that are" not in refused  # it has not raised either
    assert signal.getsignal(signal.SIGINT) is handler
    assert [value for *_, value in public()] == [value for *_, value in before]
    if "thread" in mechanism.__name__ or "child" in mechanism.__name__:
        assert "thread" in refused or "process" in refused  # or outputs would have no noise
    if (mechanism, how) == (until_it_fits, "recorded"):
        assert "bit_generator" in refused
