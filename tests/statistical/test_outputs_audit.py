"""Outputs of every kind: what tells the inputs apart is found, and correct mechanisms pass.

Every leak here has an infinite loss that the numbers of an output do not show.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import functools
import itertools
import types
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse

from pytest_dp import audit

D, NEIGHBOUR = [3.27, 1.5, 2.41], [3.27, 1.5]


def token(rng):
    """What differs every time, and says nothing."""
    return rng.bytes(8).hex()


LEAKS = {}
CORRECT = {}


def leak(mechanism):
    LEAKS[mechanism.__name__] = mechanism
    return mechanism


def correct(mechanism):
    CORRECT[mechanism.__name__] = mechanism
    return mechanism


def noisy(data, rng):
    """An ε of 1."""
    return len(data) + rng.laplace()


# --- texts and exceptions ---


@leak
def length_of_a_string(data, rng):
    return token(rng) + "." * len(data)


@leak
def beginning_of_a_string(data, rng):
    return f"{len(data)}/{token(rng)}"


@leak
def word_in_a_string(data, rng):
    return f"{token(rng)} {'many' if len(data) > 2 else 'few'} {token(rng)}"


@leak
def number_in_a_string(data, rng):
    return f"{sum(data) + rng.laplace(scale=0.01):.6f} patients"


@leak
def length_of_bytes(data, rng):
    return rng.bytes(4 + len(data))


@leak
def beginning_of_bytes(data, rng):
    return bytes([len(data)]) + rng.bytes(8)


@leak
def message_of_an_exception(data, rng):
    if rng.random() < 0.5:
        raise ValueError(f"{token(rng)}: {len(data)} records")
    return noisy(data, rng)


@leak
def number_in_a_message(data, rng):
    draw = sum(data) + rng.laplace(scale=0.01)
    if rng.random() < 0.1:
        raise ValueError(f"{draw:.4f} too large")
    return noisy(data, rng)


@correct
def noise_in_a_string(data, rng):
    return f"{noisy(data, rng):.4f} patients"


@correct
def random_strings(data, rng):
    return token(rng) * int(1 + rng.integers(3))


@correct
def noise_in_a_message(data, rng):
    draw = noisy(data, rng)
    if draw > len("abc"):
        raise ValueError(f"{draw:.4f} too large")
    return draw


# --- moments, arrays, tables ---


@leak
def moment(data, rng):
    return dt.datetime(2020, 1, 1) + dt.timedelta(seconds=sum(data) + rng.laplace(scale=0.01))


@leak
def zone(data, rng):
    moment = dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=len(data))))
    return moment + dt.timedelta(seconds=rng.laplace(scale=1e6))


@leak
def day(data, rng):
    return dt.date(2020, 1, 1) + dt.timedelta(days=3_000 * len(data) + int(rng.integers(1000)))


@leak
def time_of_day(data, rng):
    return dt.time(len(data), *rng.integers(60, size=2).tolist(), int(rng.integers(10**6)))


@leak
def span_of_time(data, rng):
    return dt.timedelta(seconds=sum(data) + rng.laplace(scale=0.01))


@leak
def numpy_moment(data, rng):
    return np.datetime64("2020-01-01", "ns") + int(1e6 * (sum(data) + rng.laplace(scale=0.01)))


@leak
def numpy_span(data, rng):
    return np.timedelta64(int(1e6 * (sum(data) + rng.laplace(scale=0.01))), "us")


@leak
def structured_array(data, rng):
    row = (rng.random(), sum(data) + rng.laplace(scale=0.01))
    return np.array([row], dtype=[("a", "f8"), ("b", "f8")])


@leak
def structured_scalar(data, rng):
    return structured_array(data, rng)[0]


@leak
def sparse_matrix(data, rng):
    values = [rng.laplace(), sum(data) + rng.laplace(scale=0.01)]
    return scipy.sparse.coo_matrix((values, ([0, 2], [1, 1])), shape=(3, 3))


@leak
def large_sparse_array(data, rng):
    values = [rng.laplace(), rng.laplace()]
    return scipy.sparse.csr_array((values, ([0, len(data)], [1, 1])), shape=(1000, 1000))


@correct
def noisy_moment(data, rng):
    return dt.datetime(2020, 1, 1) + dt.timedelta(seconds=noisy(data, rng))


@correct
def noisy_structured_array(data, rng):
    return np.array([(rng.random(), noisy(data, rng))], dtype="f8,f8")


# --- types and orders ---


@leak
def type_of_a_container(data, rng):
    return {"a": (list if len(data) == 3 else tuple)([rng.laplace()])}


@leak
def type_of_a_number(data, rng):
    draw = int(rng.integers(100))
    return draw if len(data) == 3 else float(draw)


@leak
def float32_or_float64(data, rng):
    draw = np.float32(rng.random())
    return draw if len(data) == 3 else np.float64(draw)


@leak
def dtype_of_an_array(data, rng):
    return np.round(rng.laplace(size=2) * 8).astype(np.float32 if len(data) == 3 else np.float64)


@leak
def type_in_a_dict(data, rng):
    return {"a": rng.random(), "b": (len(data) == 3 and 1) or 1.0}


@leak
def order_of_keys(data, rng):
    keys = ["a", "b"] if len(data) == 3 else ["b", "a"]
    return {key: rng.laplace() for key in keys}


@leak
def first_of_many_keys(data, rng):
    keys = rng.permutation(8).tolist()
    keys.remove(len(data))
    return dict.fromkeys([len(data), *keys], 0)


@leak
def number_as_a_key(data, rng):
    return {sum(data) + rng.laplace(scale=0.01): 1}


@leak
def beginning_of_a_key(data, rng):
    return {f"{len(data)} {token(rng)}": 1, "b": 2}


@leak
def inner_order(data, rng):
    keys = ["a", "b"] if len(data) == 3 else ["b", "a"]
    return [{key: rng.laplace() for key in keys}]


@correct
def random_types_and_orders(data, rng):
    keys = ["a", "b"] if rng.random() < 0.5 else ["b", "a"]
    draw = int(noisy(data, rng))
    return {key: draw if rng.random() < 0.5 else float(draw) for key in keys}


# --- whole numbers beyond floats ---


@leak
def huge_number(data, rng):
    return 10**30 + len(data)


@leak
def noise_on_a_huge_number(data, rng):
    return 10**30 + 50 * len(data) + int(rng.integers(-20, 20))


@leak
def last_digit_of_a_huge_number(data, rng):
    return 10 * int.from_bytes(rng.bytes(20)) + len(data)


@leak
def middle_of_a_huge_number(data, rng):
    return (int.from_bytes(rng.bytes(10)) << 70) + (len(data) << 60) + int.from_bytes(rng.bytes(7))


@leak
def beyond_64_bits_in_a_list(data, rng):
    return [rng.random(), 2**64 + 50 * len(data) + int(rng.integers(-20, 20))]


@leak
def an_int64_of_18_digits(data, rng):
    return np.int64(10**18 + 50 * len(data) + rng.integers(-20, 20))


@correct
def noisy_huge_number(data, rng):
    return 10**30 + round(noisy(data, rng))


# --- iterators ---


def giving(wrap):
    def mechanism(data, rng):
        return wrap([rng.random(), sum(data) + rng.laplace(scale=0.01)])

    return mechanism


for name, wrap in {
    "generator": lambda values: (value for value in values),
    "iterator": iter,
    "map": lambda values: map(float, values),
    "zip": lambda values: zip(values, values, strict=True),
    "endless": lambda values: itertools.cycle(values),
    "values": lambda values: dict(enumerate(values)).values(),
    "items": lambda values: dict(enumerate(values)).items(),
    "in a tuple": lambda values: (1, iter(values)),
    "in a dict": lambda values: {"a": map(float, values)},
    "deque": collections.deque,
}.items():
    LEAKS[f"given by {name}"] = giving(wrap)


@leak
def length_of_a_range(data, rng):
    return range(len(data) + int(rng.integers(2)) * 10)


@leak
def drawn_while_read(data, rng):
    yield rng.random()
    yield sum(data) + rng.laplace(scale=0.01)


@correct
def noise_while_read(data, rng):
    yield rng.random()
    yield noisy(data, rng)


# --- objects ---


class Public:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("_other", "value")

    def __init__(self, value):
        self.value = value


class Private:
    __slots__ = ("__value",)

    def __init__(self, value):
        self.__value = value


class Comparable(Public):
    __hash__ = None

    def __eq__(self, other):
        return self.value == other.value

    def __repr__(self):
        return "<an answer>"


class Named(NamedTuple):
    value: float


@dataclasses.dataclass
class Simple:
    value: float


@dataclasses.dataclass(slots=True)
class Nested:
    inner: Simple


class Child(Public):
    def __init__(self, value):
        super().__init__(1.0)
        self.parent = self
        self.children = [Public(value)]


MAKE = [Public, Slotted, Private, Comparable, Named, Simple, Child, types.SimpleNamespace]
for kind in MAKE:

    def one_leak(data, rng, kind=kind):
        value = sum(data) + rng.laplace(scale=0.01)
        return kind(value=value) if kind is types.SimpleNamespace else kind(value)

    LEAKS[kind.__name__] = one_leak


@leak
def nested_dataclass(data, rng):
    return Nested(Simple(sum(data) + rng.laplace(scale=0.01)))


@leak
def member_of_an_enumeration(data, rng):
    return enum.Enum("Member", "FEW MANY").MANY if len(data) == 3 else None


@correct
def noisy_object(data, rng):
    return Child(noisy(data, rng))


REUSED = Public(0.0)


@correct
def object_that_is_used_again(data, rng):
    REUSED.value = noisy(data, rng)
    return REUSED


# --- pandas ---


def with_pandas(mechanism):
    """A mechanism that is given pandas, which may not be there."""

    def mechanism_or_skip(data, rng):
        return mechanism(pytest.importorskip("pandas"), data, rng)

    mechanism_or_skip.__name__ = mechanism.__name__
    return mechanism_or_skip


@leak
@with_pandas
def index(pandas, data, rng):
    return pandas.Series([rng.random()], index=[sum(data) + rng.laplace(scale=0.01)])


@leak
@with_pandas
def kind_of_index(pandas, data, rng):
    values = rng.random(2)
    return pandas.DataFrame({"a": values}, index=[0, 1] if len(data) == 3 else None)


@leak
@with_pandas
def names_of_columns(pandas, data, rng):
    return pandas.DataFrame([[rng.random()]], columns=[f"{len(data)} {token(rng)}"])


@leak
@with_pandas
def order_of_columns(pandas, data, rng):
    columns = ["a", "b"] if len(data) == 3 else ["b", "a"]
    return pandas.DataFrame([[rng.random()] * 2], columns=columns)


@leak
@with_pandas
def dtype_of_a_column(pandas, data, rng):
    values = np.array([int(rng.integers(100))], dtype=float)
    return pandas.DataFrame({"a": values.astype(np.float32 if len(data) == 3 else np.float64)})


@leak
@with_pandas
def name_of_a_series(pandas, data, rng):
    return pandas.Series([rng.random()], name=f"{len(data)} {token(rng)}")


@leak
@with_pandas
def timestamp(pandas, data, rng):
    return pandas.Timestamp("2020") + pandas.Timedelta(seconds=sum(data) + rng.laplace(scale=0.01))


@correct
@with_pandas
def noisy_frame(pandas, data, rng):
    return pandas.DataFrame({"a": [noisy(data, rng), rng.random()]}, index=["x", "y"])


# --- the audits ---

run = functools.partial(audit, eps=1.0, pairs=[(D, NEIGHBOUR)], n_jobs=1)


@pytest.mark.parametrize("name", LEAKS)
def test_every_leak_is_found(name):
    result = run(LEAKS[name], seed=1, max_samples=1_000)
    assert result.verdict == "violated", str(result)


@pytest.mark.parametrize("name", CORRECT)
def test_correct_mechanisms_pass(name):
    result = run(CORRECT[name], seed=1, max_samples=2_000)
    assert result.verdict != "violated", str(result)
    assert not any("cannot be read" in note for note in result.notes)


# --- what cannot be read ---


class Queryable:
    """Can be asked, but does not show what it holds."""

    def __init__(self, data, rng):
        answer = noisy(data, rng)
        self.ask = lambda: answer

    def __call__(self):
        return self.ask()


@pytest.mark.parametrize("method", ["sequential", "statdp", "dpsniper"])
def test_outputs_that_cannot_be_read_are_named(method):
    result = run(Queryable, seed=1, max_samples=2_000, method=method)
    assert result.verdict == "inconclusive"
    said = "outputs of type Queryable cannot be read: return plain values, or use features="
    assert said in result.notes
    assert not any("same" in note for note in result.notes)


def test_with_features_they_can_be():
    passed = run(Queryable, seed=1, max_samples=2_000, features=lambda output: output())
    assert passed.verdict == "no violation"
    assert not any("cannot be read" in note for note in passed.notes)
