"""Simpler values of a strategy: of fewer choices, and of smaller ones.

A pair of inputs has the choices of both; what both have in common is left out, or simplified, in
both at once, so that they stay neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from pytest_dp.basics import clocks
from pytest_dp.pairs.edits import Choices, DrawnValue
from pytest_dp.pairs.pair_strategies import Parts

Remake = Callable[[Sequence[Parts]], Sequence[DrawnValue | None]]
"""Makes a value of each of some choices; None where the strategy rejects them."""

MAX_WIDTH = 12
"""Choices that are left out at once, beside halves, quarters and so on. With fewer, wide records
stay."""
BATCH = 12
"""Candidates that are made at a time. More make some in vain, once a smaller one is found."""


def simplify(
    remake: Remake, drawn: DrawnValue, still_fails: Callable[[Any], bool], seconds: float
) -> DrawnValue:
    """Return the simplest value found that still fails; the one that is given if there is none.

    `still_fails` says the same of equal values. After so many seconds, nothing more is tried.
    """
    until, best, seen = clocks.seconds() + seconds, drawn, set[str]()
    while True:
        parts = (one for one in _simpler(best.choices) if _order(one) < _order(best.choices))
        found = None
        while found is None and clocks.seconds() < until and (batch := list(islice(parts, BATCH))):
            for made in remake(batch):
                if made is None or repr(made.choices) in seen or clocks.seconds() >= until:
                    continue
                seen.add(repr(made.choices))
                if still_fails(made.value):
                    found = made
                    break
        if found is None:
            return best
        best = found


def _order(parts: Parts) -> tuple[int, list[tuple[int, float, bool]]]:
    """Return smaller for simpler choices."""
    sizes = [_size(choice) for part in parts for choice in part]
    return sum(map(len, parts)), sizes


def _size(choice: Any) -> tuple[int, float, bool]:
    if isinstance(choice, str | bytes):
        return 0, len(choice) + sum(1 for letter in choice if letter not in ("0", 48)) / 1e6, False
    if not math.isfinite(choice):
        return 2, 0.0, choice < 0
    return int(choice != int(choice)), abs(choice), choice < 0


def _simpler(parts: Parts) -> Iterator[Parts]:
    """Yield candidates: without some choices, then with simpler ones."""
    matches = [_matches(part, other) for part in parts for other in parts]
    count = len(parts)
    for which, part in enumerate(parts):
        twins = matches[which * count : (which + 1) * count]
        for width in _widths(len(part)):
            for start in range(len(part) - width, -1, -1):
                yield _edit_parts(parts, twins, range(start, start + width), ())
    for part in parts[: 2 * (count > 1)]:  # one input, beside itself without some choices
        for less in _without_some(part):
            yield (part, less, *parts[2:])
            yield (less, part, *parts[2:])
    for which, part in enumerate(parts):
        twins = matches[which * count : (which + 1) * count]
        for at, choice in enumerate(part):
            for new in _simpler_choices(choice):
                yield _edit_parts(parts, twins, range(at, at + 1), (new,))


def _without_some(part: Choices) -> Iterator[Choices]:
    """Yield choices without some in a row, the fewest left first."""
    for width in _widths(len(part)):
        for start in range(len(part) - width + 1):
            yield (*part[:start], *part[start + width :])


def _widths(length: int) -> list[int]:
    widths = {length >> power for power in range(1, length.bit_length())}
    return sorted(widths | set(range(1, min(MAX_WIDTH, length) + 1)), reverse=True)


def _matches(part: Choices, other: Choices) -> dict[int, int]:
    """Return where choices of one part stand in another one."""
    if part is other:
        return {at: at for at in range(len(part))}
    keys = [[f"{type(choice).__name__} {choice!r}" for choice in one] for one in (part, other)]
    blocks = SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_matching_blocks()
    return {a + at: b + at for a, b, size in blocks for at in range(size)}


def _edit_parts(
    parts: Parts, twins: Sequence[dict[int, int]], places: range, new: Sequence[Any]
) -> Parts:
    """Return the parts with other choices in some places of one, and in the twins of these."""
    edited = []
    for part, twin in zip(parts, twins, strict=True):
        own = [twin[at] for at in places if at in twin]
        if len(own) < len(places) or own[-1] - own[0] != len(own) - 1:
            edited.append(part)
        else:
            edited.append((*part[: own[0]], *new, *part[own[-1] + 1 :]))
    return tuple(edited)


def _simpler_choices(choice: Any) -> list[Any]:
    """Return a few simpler choices, the simplest first."""
    if isinstance(choice, bool):
        return [False] if choice else []
    if isinstance(choice, str | bytes):
        shorter = [choice[: len(choice) >> power] for power in range(1, len(choice).bit_length())]
        zero: Any = "0" if isinstance(choice, str) else b"0"
        plain = [choice[:at] + zero + choice[at + 1 :] for at in range(min(len(choice), MAX_WIDTH))]
        return [choice[:0], *shorter, choice[:-1], *plain]
    if not math.isfinite(choice):
        return [0.0, 1.0, abs(choice)]
    whole = int(choice)
    sign = 1 if whole > 0 else -1
    nearer = [whole - sign * (abs(whole) >> power) for power in range(64) if abs(whole) >> power]
    kind = type(choice)
    return [kind(0), kind(abs(whole)), *map(kind, nearer), *([float(whole)] * (kind is float))]
