"""Every path that a mechanism can take, one run for each: instead of drawing, it branches.

An instrument that has several answers asks its `Path` which to give. A new run follows the choices
of an earlier one up to a point, and makes another one there; the likeliest paths come first.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

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
