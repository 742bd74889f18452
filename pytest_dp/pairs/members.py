"""Which choices of a value belong to one record, by how their types repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Span = tuple[int, int]
"""The first of some choices, and the one after the last."""
Member = tuple[Span, ...]
"""The choices of one record: those in a row, or those of each column."""

MAX_WIDTH = 16
"""Choices of one record, or of one entry of a column. With fewer, wide records are not found."""
MAX_WAYS = 8
"""Ways to see a value as records. More are tried in vain."""


def cuts(choices: Sequence[Any], size: int | None = None) -> list[list[Member]]:
    """Return ways to see choices as records that are made alike.

    These are choices in a row whose types repeat. Where several rows have as many, such as columns,
    the first of each row make up one record, and so on. Ways with `size` records come first; of
    rows that are longer, the ends are ways too.
    """
    ways: list[list[Member]] = []
    rows = list(_rows([type(choice) for choice in choices]))
    if size:
        rows += [row[part] for row in rows if len(row) > size for part in _ends(size)]
    if size and size > 1 and all(len(row) != size for row in rows):
        rows += _split(choices, size)
    for length in dict.fromkeys(map(len, rows)):
        alike = _apart([row for row in rows if len(row) == length])
        if len(alike) > 1:
            ways.append(list(zip(*alike, strict=True)))
    ways += [[(span,) for span in row] for row in rows]
    if size is not None:
        ways.sort(key=lambda way: len(way) != size)
    return ways[:MAX_WAYS]


def _split(choices: Sequence[Any], size: int) -> list[list[Span]]:
    """Return the entries of a list whose types differ: each begins with a truth."""
    starts = [at for at, choice in enumerate(choices) if choice is True]
    if len(starts) != size:
        return []
    last = len(choices) - (choices[-1] is False)
    return [list(zip(starts, [*starts[1:], last], strict=True))]


def _ends(size: int) -> tuple[slice, slice]:
    return slice(-size, None), slice(None, size)


def _rows(kinds: Sequence[type]) -> Iterator[list[Span]]:
    """Yield rows of spans whose types repeat: one for each width and place, the longest first."""
    for width in range(1, min(MAX_WIDTH, len(kinds) // 2) + 1):
        start = 0
        while start + 2 * width <= len(kinds):
            end = start + width
            while end < len(kinds) and kinds[end] is kinds[end - width]:
                end += 1
            count = (end - start) // width
            is_whole = len(set(kinds[start : start + width])) > 1 or width == 1
            if count > 1 and is_whole:
                yield [(at, at + width) for at in range(start, start + count * width, width)]
            start = max(end - width, start) + 1


def _apart(rows: Sequence[list[Span]]) -> list[list[Span]]:
    """Return rows that have no choice in common, the first ones first."""
    chosen: list[list[Span]] = []
    for row in sorted(rows):
        if not chosen or row[0][0] >= chosen[-1][-1][1]:
            chosen.append(row)
    return chosen


def without_end(choices: Sequence[Any], members: list[Member]) -> list[Member]:
    """Return the members without a last one that says that a list ends."""
    (start, end), *more = members[-1]
    is_end = not more and len(members) > 1 and choices[start] is False and end - start == 1
    return members[:-1] if is_end and choices[members[0][0][0]] is True else members


def matching(choices: Sequence[Any], kinds: Sequence[type]) -> list[Member]:
    """Return spans in a row whose choices have these types, from the first one on."""
    found: list[Member] = []
    at, width = 0, len(kinds)
    while at + width <= len(choices):
        if [type(choice) for choice in choices[at : at + width]] == list(kinds):
            found.append(((at, at + width),))
            at += width
        elif found:
            break
        else:
            at += 1
    return found


def single(choices: Sequence[Any]) -> list[Member]:
    """Return the one record of a list, if choices look like those of such a list."""
    is_list = len(choices) > 2 and choices[0] is True and choices[-1] is False
    return [((0, len(choices) - 1),)] if is_list else []
