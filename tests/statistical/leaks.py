"""Mechanisms with outputs of every kind: with leaks that the numbers of an output do not show.

Every leak has an infinite loss. The types are those of `zoo`; objects and iterators are in
`leaks_of_objects`.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import scipy.sparse


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
