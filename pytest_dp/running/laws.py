"""Laws of single draws in their standard form, and the catalogue of methods that draw.

Densities and distribution functions are natural logarithms. A law is of a location-scale family at
location 0 and scale 1, or of integers. The catalogue (`NUMPY`, `PYTHON`) has the law of each method
by its arguments, and how numpy's methods use the stream of random numbers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from pytest_dp.basics.arrays import Floats
from pytest_dp.running.generator_stand_ins import Request

Logarithm = Callable[[Floats, float], Floats]
"""The logarithm of a density or a probability, by values of the draw and the parameter."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Laws that differ in location, scale and a parameter, with concave log densities."""

    name: str
    log_below: Logarithm
    """Log probability of at most x; of integers, x is whole."""
    log_above: Logarithm
    """Log probability of more than x."""
    log_density: Logarithm | None = None
    """Log density at x; None of integers."""
    draws: Callable[[Generator, float, int], Any] | None = None
    """Draws so many standard numbers; None if the generator's method of this name draws them."""
    support: Callable[[float], tuple[float, float]] = lambda _: (-math.inf, math.inf)
    """Smallest and largest value, by the parameter."""
    bulk: Callable[[float], tuple[float, float]] = lambda _: (-40.0, 40.0)
    """Range outside of which draws have a probability below 1e-16, by the parameter."""
    edges: Callable[[float], tuple[float, ...]] = lambda _: (-12.0, -4.0, -1.5, 0.0, 1.5, 4.0, 12.0)
    """Points where the density is not smooth; of smooth ones, edges of panels of a quadrature."""
    centre: Callable[[float], float] | None = None
    """The standard draw that adds no noise, such as 0; None of draws that are no noise alone."""


@dataclass(frozen=True, slots=True)
class Law:
    """The law of a standard draw.

    The parameter of geometric laws is the ratio of neighbouring probabilities, below 1; of
    integers that are equally likely, how many there are. It is 0 for families without one.
    """

    family: Family
    parameter: float | int = 0

    @property
    def lattice(self) -> bool:
        """True if the draws are integers."""
        return self.family.log_density is None

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest value."""
        return self.family.support(self.parameter)

    @property
    def reach(self) -> tuple[float, float]:
        """Range outside of which draws have a probability below 1e-30."""
        (low, high), (first, last) = self.family.bulk(self.parameter), self.support
        return max(2 * low, first), min(2 * high, last)

    @property
    def edges(self) -> tuple[float, ...]:
        """Points where the density is not smooth, or edges of panels of a quadrature."""
        return self.family.edges(self.parameter)

    def draws(self, generator: Generator, count: int) -> Floats:
        """Draw `count` independent standard numbers from a generator."""
        if self.family.draws is not None:
            return np.asarray(self.family.draws(generator, self.parameter, count), float)
        draws: Floats = getattr(generator, self.family.name)(size=count)
        return draws

    def log_density(self, x: Floats) -> Floats:
        """Return the log density at each `x`, -inf outside of the support; not for integers."""
        assert self.family.log_density is not None
        with np.errstate(all="ignore"):
            return self.family.log_density(np.asarray(x, float), self.parameter)

    def log_below(self, x: Floats) -> Floats:
        """Return the log probability of a draw of at most x, for each `x`; it may be -inf."""
        with np.errstate(all="ignore"):
            return self.family.log_below(self._as_values(x), self.parameter)

    def log_above(self, x: Floats) -> Floats:
        """Return the log probability of a draw of more than x, for each `x`; it may be -inf."""
        with np.errstate(all="ignore"):
            return self.family.log_above(self._as_values(x), self.parameter)

    def _as_values(self, x: Floats) -> Floats:
        return np.floor(x) if self.lattice else np.asarray(x, float)

    def log_between(self, low: Floats, high: Floats) -> Floats:
        """Return the log probability of a draw above `low` and at most `high`; may be -inf."""
        low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
        with np.errstate(all="ignore"):
            upper = (low + high > 0) | (np.isfinite(low) & ~np.isfinite(high))
            larger = np.where(upper, self.log_above(low), self.log_below(high))
            smaller = np.where(upper, self.log_above(high), self.log_below(low))
            difference = larger + np.log(-np.expm1(np.minimum(smaller - larger, 0.0)))
            return np.where((high > low) & (larger > -np.inf), difference, -np.inf)


def _log_one_minus_exp(x: Floats) -> Floats:
    """Return log(1 - exp(x)) for x of at most 0."""
    return np.where(x > -0.7, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def _log_normal(x: Floats) -> Floats:
    from scipy.special import log_ndtr  # loaded where it is of use: workers do without

    below: Floats = log_ndtr(x)
    return below


def _log_logistic(x: Floats) -> Floats:
    return -np.logaddexp(0.0, -x)


def _laplace_below(x: Floats) -> Floats:
    return np.where(x < 0, x - math.log(2), np.log1p(-np.exp(-np.abs(x)) / 2))


def _tail_of(ratio: float) -> float:
    return math.ceil(40 / -math.log(ratio))


LAPLACE = Family(
    "laplace",
    log_below=lambda x, _: _laplace_below(x),
    log_above=lambda x, _: _laplace_below(-x),
    log_density=lambda x, _: -np.abs(x) - math.log(2),
    edges=lambda _: (0.0,),
    centre=lambda _: 0.0,
)
NORMAL = Family(
    "normal",
    log_below=lambda x, _: _log_normal(x),
    log_above=lambda x, _: _log_normal(-x),
    log_density=lambda x, _: -x * x / 2 - math.log(2 * math.pi) / 2,
    bulk=lambda _: (-9.5, 9.5),
    centre=lambda _: 0.0,
)
LOGISTIC = Family(
    "logistic",
    log_below=lambda x, _: _log_logistic(x),
    log_above=lambda x, _: _log_logistic(-x),
    log_density=lambda x, _: -np.abs(x) - 2 * np.log1p(np.exp(-np.abs(x))),
    centre=lambda _: 0.0,
)
GUMBEL = Family(
    "gumbel",
    log_below=lambda x, _: -np.exp(-x),
    log_above=lambda x, _: _log_one_minus_exp(-np.exp(-x)),
    log_density=lambda x, _: -x - np.exp(-x),
    bulk=lambda _: (-4.0, 40.0),
    centre=lambda _: 0.0,
)
EXPONENTIAL = Family(
    "exponential",
    log_below=lambda x, _: np.where(x > 0, _log_one_minus_exp(-np.maximum(x, 0.0)), -np.inf),
    log_above=lambda x, _: -np.maximum(x, 0.0),
    log_density=lambda x, _: np.where(x >= 0, -x, -np.inf),
    support=lambda _: (0.0, math.inf),
    bulk=lambda _: (0.0, 40.0),
    edges=lambda _: (0.0,),
    centre=lambda _: 0.0,
)
UNIFORM = Family(
    "uniform",
    log_below=lambda x, _: np.log(np.clip(x, 0.0, 1.0)),
    log_above=lambda x, _: np.log(np.clip(1 - x, 0.0, 1.0)),
    log_density=lambda x, _: np.where((x >= 0) & (x <= 1), 0.0, -np.inf),
    support=lambda _: (0.0, 1.0),
    bulk=lambda _: (0.0, 1.0),
    edges=lambda _: (0.0, 1.0),
)
GEOMETRIC = Family(
    "geometric",  # from 0 on
    log_below=lambda k, ratio: np.where(
        k >= 0, np.log1p(-(ratio ** np.where(k >= 0, k + 1, 1.0))), -np.inf
    ),
    log_above=lambda k, ratio: np.maximum(k + 1, 0.0) * math.log(ratio),
    draws=lambda generator, ratio, count: generator.geometric(1 - ratio, size=count) - 1,
    support=lambda _: (0.0, math.inf),
    bulk=lambda ratio: (0.0, _tail_of(ratio)),
)
INTEGERS = Family(
    "integers",  # from 0 on, equally likely
    log_below=lambda k, count: np.log(np.clip((k + 1) / count, 0.0, 1.0)),
    log_above=lambda k, count: np.log(np.clip(1 - (k + 1) / count, 0.0, 1.0)),
    draws=lambda generator, count, size: generator.integers(int(count), size=size),
    support=lambda count: (0.0, float(count - 1)),
    bulk=lambda count: (0.0, float(count - 1)),
)

Arguments = dict[str, Any]
Standard = tuple[Law, Any, Any]
"""A law of standard draws, their scale and their location; the two may be arrays, or traced."""
Rows = Literal["free", "bound"]
"""How the draws of one call of numpy take numbers from the stream. Those of a "free" method
take the same numbers for any location and scale, as each transforms uniform, standard normal or
standard exponential variates (numpy's distributions.c and legacy-distributions.c). Those of a
"bound" method do if its arguments are equal."""


@dataclass(frozen=True, slots=True)
class DrawMethod:
    """A method of generators that draws."""

    standard: Callable[[Arguments], Standard] | None = None
    """Returns the law by the arguments, or raises TypeError for no numbers; None if unknown."""
    rows: Rows | None = None
    """How rows take numbers from the stream; None if unknown, or if rows depend on each other."""


def _location_scale(
    family: Family, rows: Rows = "free", scale: str = "scale", loc: str = "loc"
) -> DrawMethod:
    """Return a method with a family's law; `scale` and `loc` are names of its arguments."""
    return DrawMethod(lambda given: (Law(family), given.get(scale, 1.0), given.get(loc, 0.0)), rows)


def _uniform_between(low: str, high: str) -> DrawMethod:
    """Return a method with a uniform law between two arguments of these names."""
    return DrawMethod(
        lambda given: (Law(UNIFORM), np.subtract(given[high], given[low]), given[low]), "free"
    )


def _integers(low: Any, high: Any) -> Standard:
    """Return the law of integers from `low` to below `high`; raise TypeError for other numbers."""
    if not (isinstance(low, int | np.integer) and isinstance(high, int | np.integer)):
        raise TypeError
    return Law(INTEGERS, int(high) - int(low)), 1, int(low)


def _integers_of_numpy(given: Arguments) -> Standard:
    low, high = given["low"], given["high"]
    if high is None:
        low, high = 0, low
    return _integers(low, high + 1 if given.get("endpoint") else high)


def _randrange(given: Arguments) -> Standard:
    start, stop, step = (given[name] for name in ("start", "stop", "step"))
    if stop is None:
        start, stop = 0, start
    law, _, _ = _integers(0, len(range(start, stop, step)))
    return law, step, start


def _geometric(given: Arguments) -> Standard:
    """Return the law of numpy's ``geometric``, from 1 on; raise ValueError for an invalid p."""
    ratio = 1.0 - float(given["p"])
    if not 0.0 <= ratio < 1.0:
        raise ValueError("p must be above 0, and at most 1")
    return Law(GEOMETRIC, ratio), 1 if ratio else 0, 1


def _without_law(names: str, rows: Rows) -> dict[str, DrawMethod]:
    """Return an entry without a law for each of the names, which stand in one text."""
    return dict.fromkeys(names.split(), DrawMethod(rows=rows))


_UNIFORM = DrawMethod(lambda _: (Law(UNIFORM), 1.0, 0.0), "bound")
NUMPY: dict[str, DrawMethod] = {
    # Laws that are not known come first: an entry below takes their place.
    **_without_law("lognormal rayleigh multivariate_normal", "free"),
    **_without_law(
        "standard_cauchy standard_t standard_gamma gamma chisquare beta weibull", "bound"
    ),
    **_without_law("dirichlet multinomial choice binomial negative_binomial poisson", "bound"),
    "laplace": _location_scale(LAPLACE),
    "normal": _location_scale(NORMAL),
    "logistic": _location_scale(LOGISTIC),
    "gumbel": _location_scale(GUMBEL),
    "exponential": _location_scale(EXPONENTIAL),
    "uniform": _uniform_between("low", "high"),
    "standard_normal": _location_scale(NORMAL, "bound"),
    "standard_exponential": _location_scale(EXPONENTIAL, "bound"),
    "randn": _location_scale(NORMAL, "bound"),
    **dict.fromkeys(("random", "random_sample", "rand"), _UNIFORM),
    **dict.fromkeys(("sample", "ranf"), DrawMethod(_UNIFORM.standard)),
    **dict.fromkeys(("integers", "randint"), DrawMethod(_integers_of_numpy, "bound")),
    "geometric": DrawMethod(_geometric, "bound"),
}
"""Methods of numpy's generators."""
PYTHON: dict[str, DrawMethod] = {
    "random": _UNIFORM,
    "uniform": _uniform_between("a", "b"),
    **dict.fromkeys(("gauss", "normalvariate"), _location_scale(NORMAL, scale="sigma", loc="mu")),
    "expovariate": DrawMethod(lambda given: (Law(EXPONENTIAL), 1 / given["lambd"], 0.0)),
    "randint": DrawMethod(lambda given: _integers(given["a"], given["b"] + 1)),
    "randrange": DrawMethod(_randrange),
    "getrandbits": DrawMethod(lambda given: _integers(0, 2 ** given["k"])),
}
"""Methods of Python's generators."""
_UNKNOWN = DrawMethod()


def draw_kind_of(request: Request) -> DrawMethod:
    """Return the entry of the method that a request calls; one without a law if unknown."""
    table = PYTHON if issubclass(request.source.kind, random.Random) else NUMPY
    return table.get(request.method, _UNKNOWN)


def size_of(request: Request, arguments: Arguments | None = None) -> Any:
    """Return the `size` that a request asks numpy for; None for the shape of its arguments.

    `arguments` are those of the request by name, if they are known already. Raises TypeError if the
    method does not take the arguments.
    """
    if request.method in ("rand", "randn"):
        return request.args or None
    return (request.arguments if arguments is None else arguments).get("size")
