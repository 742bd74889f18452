"""Every path that a mechanism can take, one run for each: instead of drawing, it branches.

An instrument that has several answers asks its `Path` which to give. A new run follows the choices
of an earlier one up to a point, and makes another one there; the likeliest paths come first. Draws
with a density are deferred numbers (`Branching.value_of`), all others are branches.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from numpy.random import Generator, RandomState

from pytest_dp.oracles.deferred import elementwise, is_draw, of_draws
from pytest_dp.running.generator_stand_ins import (
    CannotInstrument,
    Instrument,
    Request,
    SystemFunctions,
    answer_request,
)
from pytest_dp.running.laws import NORMAL, UNIFORM, Law, Standard, draw_kind_of, size_of

NEGLIGIBLE = 1e-15
"""Probability of a path that is left out. Larger: what is rare is not known; smaller: enumeration
takes longer."""
MAX_BITS = 16
"""Random bits that are enumerated at once. More: enumeration never ends; fewer: losses are not
known."""
MAX_TRIALS = 256
"""Trials of a binomial draw whose outcomes are enumerated. More take longer; fewer: losses are not
known."""
MAX_OUTCOMES = 4_096
"""Draws in one call, or outcomes of one draw, that are enumerated. More take longer; fewer: losses
are not known."""
NEGLIGIBLE_WEIGHT = 1e-17
"""Probability from which a falling tail is left out. Larger: it is missing; smaller: enumeration
takes longer."""
WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of draws that do not round what is drawn."""

Weight = Fraction | float


class Path:
    """The choices in one run: a prefix, and after it the heaviest ones.

    `taken` has the choices so far, and `weight` the product of their weights. `left_out` has the
    prefixes of the paths that were not taken, each with its weight.
    """

    def __init__(self, prefix: tuple[int, ...] = ()) -> None:
        self._prefix = prefix
        self.taken: list[int] = []
        self.weight: Weight = Fraction(1)
        self.left_out: list[tuple[Weight, tuple[int, ...]]] = []

    def choose(self, weights: Sequence[Weight]) -> int:
        """Return the number of the branch to take, never one of weight 0.

        Each weight is the share of a branch in the weight of the path so far.
        """
        at = len(self.taken)
        if at < len(self._prefix):
            choice = self._prefix[at]
        else:
            choice = max(range(len(weights)), key=weights.__getitem__)
            before = tuple(self.taken)
            self.left_out += [
                (self.weight * weight, (*before, other))
                for other, weight in enumerate(weights)
                if other != choice and weight > 0
            ]
        self.taken.append(choice)
        self.weight *= weights[choice]
        return choice


def explore_paths(
    run: Callable[[Path], Any], path_of: Callable[[tuple[int, ...]], Path] = Path
) -> Iterator[tuple[Path, Any, Weight]]:
    """Run along all paths, the likeliest of those that are known next, each by its prefix.

    Each is yielded with what ``run(path)`` returned, and the weight of the paths that were not run
    yet; after the last one, that is 0.
    """
    ahead: list[tuple[float, int, Weight, tuple[int, ...]]] = [(-1, 0, Fraction(1), ())]
    left: Weight = Fraction(1)
    number = 0
    while ahead:
        _, _, weight, prefix = heapq.heappop(ahead)
        path = path_of(prefix)
        result = run(path)
        left -= weight
        for weight_left_out, prefix_left_out in path.left_out:
            number += 1
            entry = -float(weight_left_out), number, weight_left_out, prefix_left_out
            heapq.heappush(ahead, entry)
            left += weight_left_out
        yield path, result, left if ahead else Fraction(0)


class Branching(Instrument):
    """Answers each draw by a value that takes every possible value on a path or another.

    `inexact` counts the choices in this run whose weights are rounded; `abandoned` says whether the
    run was given up as too rare.
    """

    most = MAX_OUTCOMES
    """Draws at once."""

    def __init__(self) -> None:
        super().__init__()
        self._python, self._numpy = PythonDraws(self), NumpyDraws(self)
        self.start(Path())

    def start(self, path: Path) -> None:
        self.path, self.inexact, self.abandoned, self.refusal = path, 0, False, ""

    def is_over(self) -> bool:
        """Return whether the run was refused, or given up."""
        return self.abandoned or super().is_over()

    def choose(self, weights: Sequence[Weight]) -> int:
        """Return the branch that the run takes; raise CannotInstrument if the path is too rare."""
        if self.abandoned or self.path.weight < NEGLIGIBLE:
            self.give_up()
        self.inexact += any(isinstance(weight, float) for weight in weights)
        return self.path.choose(weights)

    def give_up(self) -> NoReturn:
        """End the run, whose output stays unknown."""
        self.abandoned = True
        raise CannotInstrument("too rare")

    def value_of(self, law: Law) -> Any:
        """Return a draw of a law that has a density."""
        raise NotImplementedError

    def integer(self, count: int, low: int = 0) -> Any:
        """Return the number, of `count` from `low` on, that this path takes: a branch for each."""
        return low + (self.choose([Fraction(1, count)] * count) if count > 1 else 0)

    def random_bytes(self, count: int) -> bytes:
        """Return random bytes, if they are few."""
        if 8 * count > MAX_BITS:
            self.refuse(f"{8 * count} random bits as bytes")
        return bytes(self.choose([Fraction(1, 256)] * 256) for _ in range(count))

    def draw(self, request: Request) -> Any:
        """Return a deferred number, an array of them, or one of several branches.

        Raises CannotInstrument if there is no way to follow what is asked for.
        """
        standard = self._standard(request)
        if standard is not None:
            return self._drawn(standard, size_of(request))
        if request.source.kind in (Generator, RandomState):
            return self._numpy.draw(request)
        method = getattr(self._python, request.method, None)
        if method is None:
            self.refuse(f"{request} is not enumerated")
        return method(*request.args, **request.keywords)

    def takes(self, law: Law) -> bool:
        """Return whether draws of a law are deferred numbers; whole ones are branches."""
        return not law.lattice

    def _standard(self, request: Request) -> Standard | None:
        """Return the law, scale and location of draws that are deferred; None if they are branches.

        Raises CannotInstrument for `out=`, small dtypes, and arguments that are not traced.
        """
        standard_of = draw_kind_of(request).standard
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
        """Return a draw."""
        value = self.value_of(law)
        is_standard = type(scale) is type(loc) is float and (scale, loc) == (1.0, 0.0)
        return value if is_standard else loc + scale * value

    def array(self, law: Law, scale: Any, loc: Any, room: Any) -> Any:
        """Return as many draws as there is room for."""
        return of_draws(elementwise(lambda by, loc, _: self.number(law, by, loc), scale, loc, room))


class PythonDraws(SystemFunctions):
    """The methods of Python's generators, on deferred numbers.

    Methods that Python writes in terms of uniform and whole numbers are inherited.
    """

    def __new__(cls, instrument: Branching) -> Self:  # noqa: ARG004
        return super().__new__(cls)

    def __init__(self, instrument: Branching) -> None:
        super().__init__(0)
        self._choices = instrument

    def random(self) -> Any:
        return self._choices.value_of(Law(UNIFORM))

    def getrandbits(self, k: int, /) -> Any:
        return self._choices.integer(1 << k) if k else 0

    def _randbelow(self, n: int) -> Any:
        return self._choices.integer(n)

    def randbytes(self, n: int) -> bytes:
        return self._choices.random_bytes(n)

    def normalvariate(self, mu: float = 0.0, sigma: float = 1.0) -> Any:
        return mu + sigma * self._choices.value_of(Law(NORMAL))


class NumpyDraws:
    """Methods of numpy's generators that are branches, by the names of their arguments.

    Each takes the type of numbers that numpy would return, where it is asked for.
    """

    def __init__(self, instrument: Branching) -> None:
        self._choices = instrument

    def draw(self, request: Request) -> Any:
        """Return a value or array of values; raise CannotInstrument if it is not enumerable."""
        method, arguments = getattr(self, request.method, None), dict(request.arguments)
        if method is None:
            self._choices.refuse(f"{request.source.name}.{request.method} is not enumerated")
        if request.method not in ("geometric", "binomial"):
            return method(request, **arguments)
        return self._broadcast(method, arguments, arguments.pop("size"))

    # Numbers of one distribution, by parameters that are broadcast

    def geometric(self, p: float) -> int:
        return 1 + self._counting(lambda k: (1 - p) ** k * p) if p < 1 else 1

    def binomial(self, n: int, p: float) -> int:
        """Return a binomial draw, exactly by fractions; refuse too many trials."""
        q = Fraction(float(p))
        if n > MAX_TRIALS:
            self._choices.refuse(f"a binomial draw of {n} trials")
        return self._counting(lambda k: math.comb(n, k) * q**k * (1 - q) ** (n - k), n)

    def _broadcast(self, scalar: Callable[..., Any], arguments: dict[str, Any], size: Any) -> Any:
        if any(map(is_draw, arguments.values())):
            self._choices.refuse("the parameter of a draw is a draw")
        arrays = [np.asarray(value) for value in arguments.values()]
        if size is None and not any(array.ndim for array in arrays):
            return scalar(*arguments.values())
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        room = np.empty(self._shape(shape if size is None else size), bool)
        return of_draws(elementwise(lambda _, *each: scalar(*each), room, *arrays))

    def _shape(self, size: Any) -> tuple[int, ...]:
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        if math.prod(shape) > MAX_OUTCOMES:
            self._choices.refuse(f"{math.prod(shape):,} draws at once")
        return shape

    def _choose_weighted(self, weights: Sequence[Weight]) -> int:
        """Return one of a few, by weights; if these sum to less than 1, the rest is abandoned."""
        if len(weights) == 1 and weights[0] == 1:
            return 0
        missing = 1 - sum(weights)
        branch = self._choices.choose([*weights, missing] if missing > 0 else weights)
        if branch == len(weights):
            self._choices.give_up()
        return branch

    def _counting(self, pmf: Callable[[int], Weight], largest: float = math.inf) -> int:
        """Return a number from 0 on, by its probabilities, up to where they are negligible."""
        weights: list[Weight] = []
        left, is_falling, most = 1.0, False, min(largest, MAX_OUTCOMES)
        while len(weights) <= most and not (is_falling and weights[-1] < NEGLIGIBLE_WEIGHT):
            weights.append(pmf(len(weights)))
            left -= float(weights[-1])
            is_falling = left < 0.5
        return self._choose_weighted(weights)

    # Methods that take, or return, something else

    def integers(self, request: Request, low: Any, high: Any, size: Any, **how: Any) -> Any:
        if high is None:
            low, high = 0, low

        def integer(low: Any, high: Any) -> Any:
            count = int(high) + bool(how.get("endpoint")) - int(low)
            if count <= 0:
                raise ValueError("low >= high")
            return self._choices.integer(count, int(low))

        return self._as_drawn(request, self._broadcast(integer, {"low": low, "high": high}, size))

    randint = integers

    def _as_drawn(self, request: Request, value: Any) -> Any:
        """Return a value in the type that numpy would return."""
        real = _real(request)
        is_array = isinstance(value, np.ndarray)
        if not is_draw(value) and not (is_array and value.dtype.hasobject):
            return value.astype(real.dtype) if is_array else type(real)(value)
        kind = real.dtype.type if is_array else type(real)
        if kind not in (int, np.int64):  # which may overflow
            self._choices.refuse(f"whole numbers of type {kind.__name__}")
        return value

    def choice(self, request: Request, a: Any, size: Any, replace: bool, p: Any, **_: Any) -> Any:
        pool = np.asarray(a)
        if pool.ndim > 1 or not (replace or size is None):
            self._choices.refuse("a choice of rows, or without replacement")
        count = int(pool) if pool.ndim == 0 else len(pool)
        weights = [Fraction(1, count)] * count if p is None else shares(p)
        shape = self._shape(size)
        picks = [self._choose_weighted(weights) for _ in range(math.prod(shape))]
        which = np.array(picks, np.int64).reshape(shape) if shape else picks[0]
        return pool[which] if pool.ndim else self._as_drawn(request, which)

    def bytes(self, request: Request, length: int) -> bytes:  # noqa: ARG002
        return self._choices.random_bytes(int(length))


_REAL: dict[type, Any] = {Generator: np.random.default_rng(0), RandomState: RandomState(0)}
"""Generators that show of which type a draw is."""


def _real(request: Request) -> Any:
    return answer_request(_REAL[request.source.kind], request)


def shares(p: Any) -> list[Weight]:
    """Return probabilities, of which rounding is not missing."""
    exactly = [Fraction(float(each)) for each in np.asarray(p, float)]
    return [each / sum(exactly) for each in exactly]


def _plain(value: Any) -> Any:
    """Return a parameter as a number of Python, as draws of it are."""
    return value.item() if isinstance(value, np.generic | np.ndarray) else value
