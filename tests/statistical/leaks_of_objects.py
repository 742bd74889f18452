"""Mechanisms that return iterators, objects and data frames; importing this enters their leaks."""

from __future__ import annotations

import collections
import dataclasses
import enum
import itertools
import types
from typing import NamedTuple

import numpy as np
import pytest
from leaks import LEAKS, correct, leak, noisy, token
from zoo import Child, Comparable, Private, Public, Slotted

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


@dataclasses.dataclass
class Simple:
    value: float


@dataclasses.dataclass(slots=True)
class Nested:
    inner: Simple


class Named(NamedTuple):
    value: float


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
