"""What numpy's generators draw, as values that branch.

Methods that turn one uniform number into one draw are taken as numpy computes them; methods that
reject (normal, exponential) by their distribution functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, lgamma, log, log1p
from typing import Any

import numpy as np
from numpy.random import RandomState

from pytest_dp.exact.choices import Choices
from pytest_dp.exact.domains import BITS, EXPONENTIAL, NORMAL, UNIFORM, UNIFORM_ABOVE_0
from pytest_dp.exact.draw_arrays import is_draw, of_draws
from pytest_dp.exact.lazy import Lazy
from pytest_dp.randomness.branching import Weight
from pytest_dp.randomness.requests import Request

MAX_DRAWS = 4_096
"""Draws of one call."""
MAX_VALUES, TAIL = 4_096, 1e-17
"""Values of a counting variable that are ways to go, and the probability of those that are not."""


def drawn_by_numpy(asked: Choices, request: Request) -> Any:
    """A value, or an array of values, for a method of `Generator` or `RandomState`.

    Raises
    ------
    CannotInstrument
        If there is none.
    """
    method = request.method
    if method in ("random", "random_sample") and not request.args and not request.keywords:
        return uniform(asked)
    given = dict(request.arguments)
    if method in ("rand", "randn"):
        given = {"size": tuple(next(iter(given.values()), ())) or None}
        method = "random" if method == "rand" else "standard_normal"
    if method in WITH_LISTS:
        return WITH_LISTS[method](asked, request, given)
    if method not in SCALAR:
        asked.refuse(f"{request.source.name}.{request.method} is not enumerated")
    size = given.pop("size", None)
    for unused in ("dtype", "out"):
        if given.pop(unused, None) not in (None, float, int, np.float64, np.int64):
            asked.refuse(f"{request} has a {unused} that is not enumerated")
    scalar = SCALAR[method]
    if method == "exponential" and request.source.kind is RandomState:
        scalar = _legacy_exponential
    return _each(asked, scalar, given, size)


def _each(asked: Choices, scalar: Callable[..., Any], given: dict[str, Any], size: Any) -> Any:
    """One draw, or an array of them with parameters that are broadcast."""
    if any(type(value) is Lazy for value in given.values()):
        asked.refuse("the parameter of a draw is a draw")
    arrays = {name: np.asarray(value) for name, value in given.items()}
    if size is None and not any(array.ndim for array in arrays.values()):
        return scalar(asked, **given)
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    shape = shape if size is None else tuple(np.atleast_1d(size).tolist())
    if math.prod(shape) > MAX_DRAWS:
        asked.refuse(f"{math.prod(shape):,} draws at once")
    wide = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
    values = np.empty(shape, object)
    for place in np.ndindex(shape):
        values[place] = scalar(asked, **{name: array[place] for name, array in wide.items()})
    return of_draws(values)


def uniform(asked: Choices) -> Any:
    """In [0, 1)."""
    return asked.one_of(UNIFORM)


def _between(asked: Choices, low: float = 0.0, high: float = 1.0) -> Any:
    return low + (high - low) * uniform(asked)


def _laplace(asked: Choices, loc: float = 0.0, scale: float = 1.0) -> Any:
    drawn = asked.one_of(UNIFORM_ABOVE_0)
    return drawn.through(lambda u: _laplace_of(u, loc, scale), None)


def _laplace_of(u: float, loc: float, scale: float) -> float:
    if u >= 0.5:
        return loc - scale * log(2.0 - u - u)
    return loc + scale * log(u + u)


def _gumbel(asked: Choices, loc: float = 0.0, scale: float = 1.0) -> Any:
    drawn = 1.0 - asked.one_of(UNIFORM_ABOVE_0)
    return drawn.through(lambda u: loc - scale * log(-log(u)), None)


def _logistic(asked: Choices, loc: float = 0.0, scale: float = 1.0) -> Any:
    drawn = asked.one_of(UNIFORM_ABOVE_0)
    return drawn.through(lambda u: loc + scale * log(u / (1.0 - u)), None)


def _normal(asked: Choices, loc: float = 0.0, scale: float = 1.0) -> Any:
    return loc + scale * asked.one_of(NORMAL)


def _exponential(asked: Choices, scale: float = 1.0) -> Any:
    return scale * asked.one_of(EXPONENTIAL)


def _legacy_exponential(asked: Choices, scale: float = 1.0) -> Any:
    return scale * asked.one_of(UNIFORM).through(lambda u: -log1p(-u), None)


def one_by_weight(asked: Choices, weights: Sequence[Weight]) -> int:
    """One of a few, by weights that need not sum to 1; what is missing is given up."""
    if len(weights) == 1 and weights[0] == 1:
        return 0
    missing = 1 - sum(weights)
    way = asked.choose([*weights, missing] if missing > 0 else weights)
    if way == len(weights):
        asked.give_up()
    return way


def counting(asked: Choices, pmf: Callable[[int], Weight], most: float = math.inf) -> int:
    """A number from 0, by its probabilities, up to where hardly any is left."""
    weights: list[Weight] = []
    left, falling = 1.0, False
    while len(weights) <= min(most, MAX_VALUES) and not (falling and weights[-1] < TAIL):
        weights.append(pmf(len(weights)))
        left -= float(weights[-1])
        falling = left < 0.5
    return one_by_weight(asked, weights)


def _geometric(asked: Choices, p: float) -> int:
    return 1 + counting(asked, lambda k: (1 - p) ** k * p) if p < 1 else 1


def _poisson(asked: Choices, lam: float = 1.0) -> int:
    return counting(asked, lambda k: exp(k * log(lam) - lam - lgamma(k + 1)) if lam else 1.0 - k)


def binomial(asked: Choices, n: int, p: float) -> int:
    """Exactly, as its probabilities are fractions."""
    q = Fraction(float(p))
    if n > MAX_EXACT:
        asked.refuse(f"a binomial draw of {n} trials")
    return counting(asked, lambda k: math.comb(n, k) * q**k * (1 - q) ** (n - k), most=n)


MAX_EXACT = 256
"""Trials of a binomial draw."""

SCALAR: dict[str, Callable[..., Any]] = {
    "random": uniform,
    "random_sample": uniform,
    "uniform": _between,
    "laplace": _laplace,
    "gumbel": _gumbel,
    "logistic": _logistic,
    "normal": _normal,
    "standard_normal": _normal,
    "exponential": _exponential,
    "standard_exponential": _exponential,
    "geometric": _geometric,
    "poisson": _poisson,
    "binomial": binomial,
}


def _integers(asked: Choices, request: Request, given: dict[str, Any]) -> Any:
    low, high = given["low"], given.get("high")
    if high is None:
        low, high = 0, low
    last = 1 if given.get("endpoint") else 0

    def one(asked: Choices, low: Any, high: Any) -> Any:
        count = int(high) + last - int(low)
        if count <= 0:
            raise ValueError("low >= high")
        return asked.below(count, int(low))

    value = _each(asked, one, {"low": low, "high": high}, given.get("size"))
    return _as_drawn(asked, request, value)


def _as_drawn(asked: Choices, request: Request, value: Any) -> Any:
    """Of the type that numpy would give."""
    real = getattr(_REAL[request.source.kind], request.method)(*request.args, **request.keywords)
    is_array = isinstance(value, np.ndarray)
    if not is_draw(value) and not (is_array and value.dtype.hasobject):
        return value.astype(real.dtype) if is_array else type(real)(value)
    kind = real.dtype.type if is_array else type(real)
    if kind not in (int, np.int64):  # which may overflow
        asked.refuse(f"whole numbers of type {kind.__name__}")
    if not is_array:
        return value.of_type(kind) if is_draw(value) else value
    for place in np.ndindex(value.shape):
        if is_draw(value[place]):
            value[place] = value[place].of_type(kind)
    return value


_REAL: dict[type, Any] = {
    np.random.Generator: np.random.default_rng(0),
    RandomState: RandomState(0),
}
"""Generators of which only the types are taken of what they draw."""


def _choice(asked: Choices, request: Request, given: dict[str, Any]) -> Any:
    a, p, size, replace = given["a"], given["p"], given["size"], given["replace"]
    pool = np.asarray(a)
    count = int(pool) if pool.ndim == 0 else pool.shape[given.get("axis", 0)]
    real = getattr(_REAL[request.source.kind], request.method)(*request.args, **request.keywords)
    if p is not None and not replace and size is not None:
        asked.refuse("a weighted choice without replacement")
    shape = () if size is None else tuple(np.atleast_1d(size).tolist())
    if math.prod(shape) > MAX_DRAWS:
        asked.refuse(f"{math.prod(shape):,} draws at once")
    if replace or size is None:
        ways = _evenly(count) if p is None else by_cdf(p)
        picks = [one_by_weight(asked, ways) for _ in range(math.prod(shape))]
    else:
        picks = shuffled(asked, list(range(count)), math.prod(shape))
    which = np.array(picks, np.int64).reshape(shape)
    if pool.ndim == 0:
        return which.astype(real.dtype) if shape else type(real)(picks[0])
    if pool.ndim == 1 and not shape:
        return pool[picks[0]]
    return np.take(pool, which, axis=given.get("axis", 0))


def _evenly(count: int) -> list[Weight]:
    return [Fraction(1, count)] * count


def by_cdf(p: Any) -> list[Weight]:
    """As numpy picks: by where a uniform number falls among sums of the weights, in floats."""
    sums = np.cumsum(np.asarray(p, float))
    sums /= sums[-1]
    steps = [math.ceil(Fraction(float(each)) * 2**BITS) for each in sums]
    starts = [0, *steps[:-1]]
    return [Fraction(b - a, 2**BITS) for a, b in zip(starts, steps, strict=True)]


def shuffled(asked: Choices, items: list[Any], count: int) -> list[Any]:
    """So many of them in any order, each as likely."""
    left = list(items)
    picked: list[Any] = []
    while left and len(picked) < count:
        picked.append(left.pop(one_by_weight(asked, _evenly(len(left)))))
    return picked


def _permutation(asked: Choices, request: Request, given: dict[str, Any]) -> Any:  # noqa: ARG001
    x = given["x"]
    pool = np.arange(x) if isinstance(x, int | np.integer) else np.asarray(x)
    axis = given.get("axis", 0)
    order = shuffled(asked, list(range(pool.shape[axis])), pool.shape[axis])
    return np.take(pool, order, axis=axis)


def _shuffle(asked: Choices, request: Request, given: dict[str, Any]) -> None:  # noqa: ARG001
    x = given["x"]
    if given.get("axis", 0):
        asked.refuse("a shuffle along another axis than the first")
    order = shuffled(asked, list(range(len(x))), len(x))
    x[:] = x[order] if isinstance(x, np.ndarray) else [x[k] for k in order]


def _multinomial(asked: Choices, request: Request, given: dict[str, Any]) -> Any:
    n, p, size = given["n"], given["pvals"], given["size"]
    if size is not None or np.ndim(n) or np.ndim(p) != 1:
        asked.refuse(f"{request.source.name}.multinomial of several draws")
    left, rest, counts = int(n), 1.0, []
    for share in np.asarray(p, float)[:-1]:
        counts.append(binomial(asked, left, min(share / rest, 1.0)) if left and share else 0)
        left, rest = left - counts[-1], rest - share
    return np.array([*counts, left], np.int64)


def _bytes(asked: Choices, request: Request, given: dict[str, Any]) -> bytes:  # noqa: ARG001
    return asked.some_bytes(int(given["length"]))


WITH_LISTS: dict[str, Callable[..., Any]] = {
    "integers": _integers,
    "randint": _integers,
    "choice": _choice,
    "permutation": _permutation,
    "shuffle": _shuffle,
    "multinomial": _multinomial,
    "bytes": _bytes,
}
