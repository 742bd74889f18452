"""Every path that a mechanism can take, one run for each: instead of drawing, it branches.

An instrument that has several answers asks its `Path` which to give: a *choice* of a *branch*. A
new run follows the choices of an earlier one up to a point, and makes another one there; the
likeliest paths come first. Draws with a density are deferred numbers, of which a run knows the law
and no value (`oracles.deferred`); all others are branches.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from numpy.random import Generator, RandomState

from pytest_dp.oracles.deferred import as_draw_array, elementwise, is_draw
from pytest_dp.running.generator_stand_ins import (
    CannotInstrument,
    Instrument,
    Request,
    SystemFunctions,
    answer_request,
)
from pytest_dp.running.laws import NORMAL, UNIFORM, Law, Standard, draw_kind_of, size_of

NEGLIGIBLE = 1e-15
"""Probability of a path that is left out. Smaller: enumeration takes longer."""
MAX_OUTCOMES = 4_096
"""Draws in one call, or outcomes of one draw. More take longer; fewer: losses are not known."""
WIDE = {np.dtype(float), np.dtype(np.int64), np.dtype(bool)}
"""Types of draws that do not round what is drawn."""

Weight = Fraction | float


class Path:
    """The choices of branches in one run: a prefix, and after it the likeliest ones.

    `taken` has the choices so far, and `weight` the product of their weights. `left_out` has the
    prefixes of the paths that were not taken, each with its weight.
    """

    def __init__(self, prefix: tuple[int, ...] = ()) -> None:
        self._prefix = prefix
        self.taken: list[int] = []
        self.weight: Weight = Fraction(1)
        self.left_out: list[tuple[Weight, tuple[int, ...]]] = []

    def choose(self, weights: Sequence[Weight]) -> int:
        """Return the number of the branch to take, never one of weight 0, and add it to `taken`.

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
    """Call ``run`` along every path, always by the likeliest prefix that is known so far.

    Yields each path, the value that ``run(path)`` returned, and the weight of the paths not run
    yet: exactly 0 after the last.
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
    """An instrument that answers each draw by a value that takes every possible value on some path.

    `inexact` counts the choices in this run whose weights are rounded; `abandoned` says whether the
    run was given up as too rare.
    """

    def __init__(self) -> None:
        super().__init__()
        self._python = PythonDraws(self)
        self.start(Path())

    def start(self, path: Path) -> None:
        """Forget the last run, and follow a path in the next one."""
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
        """End the run as too rare, by raising CannotInstrument; its output stays unknown."""
        self.abandoned = True
        raise CannotInstrument("too rare")

    def value_of(self, law: Law) -> Any:
        """Return a draw of a law that has a density, as a deferred number."""
        raise NotImplementedError

    def integer(self, count: int, low: int = 0) -> Any:
        """Return one of `count` whole numbers from `low` on: each is a branch of its own."""
        return low + (self.choose([Fraction(1, count)] * count) if count > 1 else 0)

    def draw(self, request: Request) -> Any:
        """Return a deferred number, an array of them, or one of several branches.

        Raises CannotInstrument if the method or its arguments are not enumerated.
        """
        standard = self._deferred_law(request)
        if standard is not None:
            return self._deferred_draws(standard, size_of(request))
        if request.source.kind in (Generator, RandomState):
            return self._draw_of_numpy(request)
        method = getattr(self._python, request.method, None)
        if method is None:
            self.refuse(f"{request} is not enumerated")
        return method(*request.args, **request.keywords)

    # Draws that are deferred numbers

    def takes(self, law: Law) -> bool:
        """Return whether draws of a law are deferred numbers; whole ones are branches."""
        return not law.lattice

    def _deferred_law(self, request: Request) -> Standard | None:
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

    def _deferred_draws(self, standard: Standard, size: Any) -> Any:
        """Return draws of a law, scale and location, alone or in an array of a size.

        Raises CannotInstrument if the scale is a draw, or there are too many draws.
        """
        law, scale, loc = standard
        if is_draw(scale) or (isinstance(scale, np.ndarray) and scale.dtype == object):
            self.refuse("the scale of a draw depends on another draw")

        def draw(scale: Any, loc: Any, _: Any = None) -> Any:
            value = self.value_of(law)
            is_standard = type(scale) is type(loc) is float and (scale, loc) == (1.0, 0.0)
            return value if is_standard else loc + scale * value

        if size is None:
            size = np.broadcast_shapes(np.shape(scale), np.shape(loc))
        shape = self._shape_of(size)
        if not shape:
            return draw(_as_python(scale), _as_python(loc))
        return as_draw_array(elementwise(draw, scale, loc, np.empty(shape, bool)))

    # Draws of numpy that are branches

    def _draw_of_numpy(self, request: Request) -> Any:
        """Return whole numbers, or choices, in the type that numpy would return.

        Raises CannotInstrument for other methods, and choices of rows or without replacement.
        """
        arguments = request.arguments
        if request.method in ("integers", "randint"):
            low, high = arguments["low"], arguments["high"]
            low, high = (0, low) if high is None else (low, high)
            return self._whole_numbers(request, low, high + bool(arguments.get("endpoint")))
        if request.method != "choice":
            self.refuse(f"{request.source.name}.{request.method} is not enumerated")
        pool, p, size = np.asarray(arguments["a"]), arguments["p"], arguments["size"]
        if pool.ndim > 1 or not (arguments["replace"] or size is None):
            self.refuse("a choice of rows, or without replacement")
        count = int(pool) if pool.ndim == 0 else len(pool)
        weights = [Fraction(1, count)] * count if p is None else shares(p)
        shape = self._shape_of(size)
        picks = [self.choose(weights) if count > 1 else 0 for _ in range(math.prod(shape))]
        which = np.array(picks, np.int64).reshape(shape) if shape else picks[0]
        return pool[which] if pool.ndim else self._in_type_of_answer(request, which)

    def _whole_numbers(self, request: Request, low: Any, high: Any) -> Any:
        """Return whole numbers from `low` to below `high`, which may be arrays, in a shape.

        Raises ValueError, as numpy does, for an empty range, and CannotInstrument for a range of
        draws.
        """

        def integer(_: Any, low: Any, high: Any) -> Any:
            if high <= low:
                raise ValueError("low >= high")
            return self.integer(int(high) - int(low), int(low))

        if is_draw(low) or is_draw(high):
            self.refuse("the parameter of a draw is a draw")
        size = request.arguments["size"]
        shape = np.broadcast_shapes(np.shape(low), np.shape(high)) if size is None else size
        shape = self._shape_of(shape)
        if size is None and not shape:
            return self._in_type_of_answer(request, integer(0, low, high))
        drawn = as_draw_array(elementwise(integer, np.empty(shape, bool), low, high))
        return self._in_type_of_answer(request, drawn)

    def _shape_of(self, size: Any) -> tuple[int, ...]:
        """Return a size as a shape; raise CannotInstrument if it has too many elements."""
        shape = () if size is None else tuple(np.atleast_1d(size).tolist())
        if math.prod(shape) > MAX_OUTCOMES:
            self.refuse(f"{math.prod(shape):,} draws at once")
        return shape

    def _in_type_of_answer(self, request: Request, value: Any) -> Any:
        """Return a value in the type that numpy would return.

        Raises CannotInstrument for deferred numbers of small types.
        """
        real = answer_request(_REAL[request.source.kind], request)
        is_array = isinstance(value, np.ndarray)
        if not is_draw(value) and not (is_array and value.dtype.hasobject):
            return value.astype(real.dtype) if is_array else type(real)(value)
        kind = real.dtype.type if is_array else type(real)
        if kind not in (int, np.int64):  # which may overflow
            self.refuse(f"whole numbers of type {kind.__name__}")
        return value


class PythonDraws(SystemFunctions):
    """The methods of Python's generators, on deferred numbers.

    Methods that Python writes in terms of uniform and whole numbers are inherited.
    """

    def __new__(cls, instrument: Branching) -> Self:  # noqa: ARG004
        return super().__new__(cls)

    def __init__(self, instrument: Branching) -> None:
        super().__init__(0)
        self._instrument = instrument

    def random(self) -> Any:
        return self._instrument.value_of(Law(UNIFORM))

    def getrandbits(self, k: int, /) -> Any:
        return self._instrument.integer(1 << k) if k else 0

    def _randbelow(self, n: int) -> Any:
        return self._instrument.integer(n)

    def randbytes(self, n: int) -> bytes:
        """Return `n` random bytes, each value a branch; raise CannotInstrument if `n` > 1."""
        if n > 1:
            self._instrument.refuse(f"{8 * n} random bits as bytes")
        return bytes(self._instrument.integer(256) for _ in range(n))

    def normalvariate(self, mu: float = 0.0, sigma: float = 1.0) -> Any:
        return mu + sigma * self._instrument.value_of(Law(NORMAL))


_REAL: dict[type, Any] = {Generator: np.random.default_rng(0), RandomState: RandomState(0)}
"""Generators that show of which type a draw is."""


def shares(p: Any) -> list[Weight]:
    """Return probabilities as exact fractions, divided by their sum so that they add up to 1."""
    exactly = [Fraction(float(each)) for each in np.asarray(p, float)]
    return [each / sum(exactly) for each in exactly]


def _as_python(value: Any) -> Any:
    """Return a number of numpy as one of Python."""
    return value.item() if isinstance(value, np.generic | np.ndarray) else value
