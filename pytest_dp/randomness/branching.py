"""Every way that a mechanism can go, one run for each: instead of drawing, it branches.

An instrument that has several answers asks its `Path` which to give. A new run follows the choices
of an earlier one up to some point, and takes another there; the likeliest of what is left is next.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

Weight = Fraction | float


class Path:
    """The choices in one run: those that are given, and after them the heaviest ones.

    Parameters
    ----------
    given : tuple of int
        Choices to be made first.

    Attributes
    ----------
    taken : list of int
        The choices so far.
    weight : Fraction or float
        The product of their weights.
    left_out : list of (weight, tuple of int)
        The beginnings of paths that were open, and not taken.
    """

    def __init__(self, given: tuple[int, ...] = ()) -> None:
        self._given = given
        self.taken: list[int] = []
        self.weight: Weight = Fraction(1)
        self.left_out: list[tuple[Weight, tuple[int, ...]]] = []

    def choose(self, weights: Sequence[Weight]) -> int:
        """Which of several ways to go; those of weight 0 are never gone.

        Parameters
        ----------
        weights : sequence of Fraction or float
            What each takes of the weight of the path so far.
        """
        at = len(self.taken)
        if at < len(self._given):
            choice = self._given[at]
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


def explored(run: Callable[[Path], Any]) -> Iterator[tuple[Path, Any, Weight]]:
    """Runs of ever less weight.

    Parameters
    ----------
    run : callable
        ``run(path)`` runs the mechanism along a path; what it returns is passed on.

    Yields
    ------
    path : Path
    result : object
    left : Fraction or float
        The weight of what was not run yet; after the last path, 0.
    """
    ahead: list[tuple[float, int, Weight, tuple[int, ...]]] = [(-1, 0, Fraction(1), ())]
    left: Weight = Fraction(1)
    number = 0
    while ahead:
        _, _, weight, given = heapq.heappop(ahead)
        path = Path(given)
        result = run(path)
        left -= weight
        for other, choices in path.left_out:
            number += 1
            heapq.heappush(ahead, (-float(other), number, other, choices))
            left += other
        yield path, result, left if ahead else Fraction(0)
