"""Draws as lazy values or as branches: those of numpy's generators, and the instrument for all.

Methods that turn one uniform number into one draw are computed as numpy computes them; those that
reject (normal, exponential) by their distribution functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import exp, lgamma, log
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState

from pytest_dp.known.choices import Choices, PythonDraws
from pytest_dp.known.monotone import elementwise, is_draw, of_draws
from pytest_dp.known.open_draw import BITS
from pytest_dp.known.paths import Weight
from pytest_dp.limits import HUNDREDS, MAX_WORK, NEGLIGIBLE
from pytest_dp.randomness.catalogue import Standard, kind_of, size_of
from pytest_dp.randomness.laws import Law
from pytest_dp.randomness.requests import Request


def drawn_by_numpy(choices: Choices, request: Request) -> Any:
    """A value, or an array of values, for a method of `Generator` or `RandomState`.

    Raises CannotInstrument if it cannot be enumerated.
    """
    method, arguments = request.method, dict(request.arguments)
    if method in WITH_LISTS:
        return WITH_LISTS[method](choices, request, arguments)
    if method not in SCALAR:
        choices.refuse(f"{request.source.name}.{request.method} is not enumerated")
    size = arguments.pop("size", None)
    return _broadcast(choices, SCALAR[method], arguments, size)


def _broadcast(
    choices: Choices, scalar: Callable[..., Any], arguments: dict[str, Any], size: Any
) -> Any:
    """A draw, or an array of draws with parameters that are broadcast."""
    if any(map(is_draw, arguments.values())):
        choices.refuse("the parameter of a draw is a draw")
    arrays = {name: np.asarray(value) for name, value in arguments.items()}
    if size is None and not any(array.ndim for array in arrays.values()):
        return scalar(choices, **arguments)
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    shape = shape if size is None else tuple(np.atleast_1d(size).tolist())
    if math.prod(shape) > MAX_WORK // 2:
        choices.refuse(f"{math.prod(shape):,} draws at once")
    wide = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
    values = np.empty(shape, object)
    for place in np.ndindex(shape):
        values[place] = scalar(choices, **{name: array[place] for name, array in wide.items()})
    return of_draws(values)


def weighted_choice(choices: Choices, weights: Sequence[Weight]) -> int:
    """One of a few, by weights; if these sum to less than 1, the rest is abandoned."""
    if len(weights) == 1 and weights[0] == 1:
        return 0
    missing = 1 - sum(weights)
    branch = choices.choose([*weights, missing] if missing > 0 else weights)
    if branch == len(weights):
        choices.give_up()
    return branch


def counting(choices: Choices, pmf: Callable[[int], Weight], largest: float = math.inf) -> int:
    """A number from 0 on, by its probabilities, up to where they are negligible."""
    weights: list[Weight] = []
    left, is_falling, most = 1.0, False, min(largest, MAX_WORK // 2)
    while len(weights) <= most and not (is_falling and weights[-1] < NEGLIGIBLE / 100):
        weights.append(pmf(len(weights)))
        left -= float(weights[-1])
        is_falling = left < 0.5
    return weighted_choice(choices, weights)


def _geometric(choices: Choices, p: float) -> int:
    return 1 + counting(choices, lambda k: (1 - p) ** k * p) if p < 1 else 1


def _poisson(choices: Choices, lam: float = 1.0) -> int:
    return counting(choices, lambda k: exp(k * log(lam) - lam - lgamma(k + 1)) if lam else 1.0 - k)


def binomial(choices: Choices, n: int, p: float) -> int:
    """Exactly, as its probabilities are fractions."""
    q = Fraction(float(p))
    if n > HUNDREDS:
        choices.refuse(f"a binomial draw of {n} trials")
    return counting(choices, lambda k: math.comb(n, k) * q**k * (1 - q) ** (n - k), largest=n)


SCALAR: dict[str, Callable[..., Any]] = {
    "geometric": _geometric,
    "poisson": _poisson,
    "binomial": binomial,
}
"""Methods whose draws are made one by one, of parameters that are broadcast."""


def _integers(choices: Choices, request: Request, arguments: dict[str, Any]) -> Any:
    low, high = arguments["low"], arguments.get("high")
    if high is None:
        low, high = 0, low
    endpoint = 1 if arguments.get("endpoint") else 0

    def integer(choices: Choices, low: Any, high: Any) -> Any:
        count = int(high) + endpoint - int(low)
        if count <= 0:
            raise ValueError("low >= high")
        return choices.integer(count, int(low))

    value = _broadcast(choices, integer, {"low": low, "high": high}, arguments.get("size"))
    return _as_drawn(choices, request, value)


def _as_drawn(choices: Choices, request: Request, value: Any) -> Any:
    """A value in the type that numpy would return."""
    real = getattr(_REAL[request.source.kind], request.method)(*request.args, **request.keywords)
    is_array = isinstance(value, np.ndarray)
    if not is_draw(value) and not (is_array and value.dtype.hasobject):
        return value.astype(real.dtype) if is_array else type(real)(value)
    kind = real.dtype.type if is_array else type(real)
    if kind not in (int, np.int64):  # which may overflow
        choices.refuse(f"whole numbers of type {kind.__name__}")
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
"""Generators that show of which type a draw is."""


def _choice(choices: Choices, request: Request, arguments: dict[str, Any]) -> Any:
    a, p, size, replace = arguments["a"], arguments["p"], arguments["size"], arguments["replace"]
    pool = np.asarray(a)
    count = int(pool) if pool.ndim == 0 else pool.shape[arguments.get("axis", 0)]
    real = getattr(_REAL[request.source.kind], request.method)(*request.args, **request.keywords)
    if p is not None and not replace and size is not None:
        choices.refuse("a weighted choice without replacement")
    shape = () if size is None else tuple(np.atleast_1d(size).tolist())
    if math.prod(shape) > MAX_WORK // 2:
        choices.refuse(f"{math.prod(shape):,} draws at once")
    if replace or size is None:
        weights = _equal_weights(count) if p is None else weights_by_cdf(p)
        picks = [weighted_choice(choices, weights) for _ in range(math.prod(shape))]
    else:
        picks = shuffled(choices, list(range(count)), math.prod(shape))
    which = np.array(picks, np.int64).reshape(shape)
    if pool.ndim == 0:
        return which.astype(real.dtype) if shape else type(real)(picks[0])
    if pool.ndim == 1 and not shape:
        return pool[picks[0]]
    return np.take(pool, which, axis=arguments.get("axis", 0))


def _equal_weights(count: int) -> list[Weight]:
    return [Fraction(1, count)] * count


def weights_by_cdf(p: Any) -> list[Weight]:
    """The probabilities with which numpy picks: it looks a uniform float up in sums of floats."""
    sums = np.cumsum(np.asarray(p, float))
    sums /= sums[-1]
    steps = [math.ceil(Fraction(float(total)) * 2**BITS) for total in sums]
    return [Fraction(after - before, 2**BITS) for before, after in pairwise([0, *steps])]


def shuffled(choices: Choices, items: list[Any], count: int) -> list[Any]:
    """So many of the items in random order."""
    left = list(items)
    count = min(count, len(left))
    return [left.pop(weighted_choice(choices, _equal_weights(len(left)))) for _ in range(count)]


def _permutation(choices: Choices, request: Request, arguments: dict[str, Any]) -> Any:  # noqa: ARG001
    x = arguments["x"]
    pool = np.arange(x) if isinstance(x, int | np.integer) else np.asarray(x)
    axis = arguments.get("axis", 0)
    order = shuffled(choices, list(range(pool.shape[axis])), pool.shape[axis])
    return np.take(pool, order, axis=axis)


def _shuffle(choices: Choices, request: Request, arguments: dict[str, Any]) -> None:  # noqa: ARG001
    x = arguments["x"]
    if arguments.get("axis", 0):
        choices.refuse("a shuffle along another axis than the first")
    order = shuffled(choices, list(range(len(x))), len(x))
    x[:] = x[order] if isinstance(x, np.ndarray) else [x[k] for k in order]


def _multinomial(choices: Choices, request: Request, arguments: dict[str, Any]) -> Any:
    n, p, size = arguments["n"], arguments["pvals"], arguments["size"]
    if size is not None or np.ndim(n) or np.ndim(p) != 1:
        choices.refuse(f"{request.source.name}.multinomial of several draws")
    left, rest, counts = int(n), 1.0, []
    for share in np.asarray(p, float)[:-1]:
        counts.append(binomial(choices, left, min(share / rest, 1.0)) if left and share else 0)
        left, rest = left - counts[-1], rest - share
    return np.array([*counts, left], np.int64)


def _bytes(choices: Choices, request: Request, arguments: dict[str, Any]) -> bytes:  # noqa: ARG001
    return choices.random_bytes(int(arguments["length"]))


WITH_LISTS: dict[str, Callable[..., Any]] = {
    "integers": _integers,
    "randint": _integers,
    "choice": _choice,
    "permutation": _permutation,
    "shuffle": _shuffle,
    "multinomial": _multinomial,
    "bytes": _bytes,
}
"""Methods that take, or return, something else than numbers of one distribution."""


def _plain(value: Any) -> Any:
    """A parameter as a number of Python, as draws of it are."""
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of draws that do not round what is drawn."""


class Branching(Choices):
    """Answers each draw by a value that takes every possible value on a path or another."""

    most = MAX_WORK // 2
    """Draws at once."""

    def __init__(self) -> None:
        super().__init__()
        self._python = PythonDraws(self)

    def draw(self, request: Request) -> Any:
        """A deferred number, an array of them, or one of several branches.

        Raises CannotInstrument if there is no way to follow what is asked for.
        """
        standard = self._standard(request)
        if standard is not None:
            return self._drawn(standard, size_of(request))
        if request.source.kind in (Generator, RandomState):
            return drawn_by_numpy(self, request)
        method = getattr(self._python, request.method, None)
        if method is None:
            self.refuse(f"{request} is not enumerated")
        return method(*request.args, **request.keywords)

    def takes(self, law: Law) -> bool:
        """Whether draws of a law are deferred numbers; whole ones are branches."""
        return not law.lattice

    def _standard(self, request: Request) -> Standard | None:
        """The law, scale and location of draws that are deferred numbers."""
        standard_of = kind_of(request).standard
        if standard_of is None:
            return None
        arguments = request.arguments
        try:
            standard = standard_of(arguments)
        except TypeError:
            self.refuse(f"{request} is not traced")
        if not self.takes(standard[0]):
            return None
        if arguments.get("out") is not None:
            self.refuse("draws are written into an array of floats")
        if np.dtype(arguments.get("dtype", float)) not in WIDE:
            self.refuse(f"draws are converted to {np.dtype(arguments['dtype'])}")
        return standard

    def _drawn(self, standard: Standard, size: Any) -> Any:
        law, scale, loc = standard
        if is_draw(scale) or (isinstance(scale, np.ndarray) and scale.dtype == object):
            self.refuse("the scale of a draw depends on another draw")
        if size is None and isinstance(scale, int | float) and isinstance(loc, int | float):
            return self.number(law, _plain(scale), _plain(loc))
        shape = () if size is None else np.empty(size, dtype=bool).shape
        if size is None:
            shape = np.broadcast(np.empty(np.shape(scale)), np.empty(np.shape(loc))).shape
        if math.prod(shape) > self.most:
            self.refuse(f"{math.prod(shape):,} draws at once")
        if not shape:
            return self.number(law, _plain(scale), _plain(loc))
        return self.array(law, scale, loc, np.empty(shape, bool))

    def number(self, law: Law, scale: Any, loc: Any) -> Any:
        """A draw."""
        value = self.value_of(law)
        is_standard = type(scale) is type(loc) is float and (scale, loc) == (1.0, 0.0)
        return value if is_standard else loc + scale * value

    def array(self, law: Law, scale: Any, loc: Any, room: Any) -> Any:
        """Draws, as many as there is room for."""
        return of_draws(elementwise(lambda by, loc, _: self.number(law, by, loc), scale, loc, room))
