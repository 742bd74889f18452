"""Objects as short texts on one line, without addresses, whatever their ``__repr__`` does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

LINE_WIDTH = 76
"""Characters of a line of text. Longer ones break at a terminal of 80 columns."""
LABEL_LENGTH = 40
"""Characters of a label, beside a bar or in a sentence. Longer ones hide the rest."""
SHORT_LENGTH = 60
"""Characters of a value in a text. Longer ones hide the rest, shorter ones what the value is."""


def repr_of(value: Any) -> str:
    """Return the repr of an object; ``<Type>`` if its repr raises."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def safe_repr(value: Any) -> str:
    """Return the repr of an object without memory addresses; ``<Type>`` if its repr raises."""
    return without_addresses(repr_of(value))


def without_addresses(text: str) -> str:
    """Return a text without memory addresses, so that it is equal in every process."""
    return _ADDRESS.sub("", text)


_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def on_one_line(value: Any, limit: int = 60) -> str:
    """Return the repr of an object, cut off at `limit` characters; the type's name if it raises."""
    try:
        return shorten_line(repr(value), limit)
    except Exception:
        return f"<{type(value).__name__} whose repr fails>"


def shorten_line(text: str, limit: int) -> str:
    """Return a text on one line, cut off with ``...`` at `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."


def plural(n: int, what: str) -> str:
    """Return a number with its noun, which gets an s unless the number is 1: ``1,000 records``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def list_names(names: Sequence[str], limit: int) -> str:
    """Return the first names and the last, ``"a, b, ... z"``: as many as `limit` characters hold.

    The first and the last name are always there.
    """
    for shown in range(len(names), 1, -1):
        text = ", ".join([*names[: shown - 1], *["..."] * (shown < len(names))])
        if len(text) + len(", ") + len(names[-1]) <= limit:
            return f"{text}{' ' if text.endswith('...') else ', '}{names[-1]}"
    return names[0] if len(names) == 1 else f"{names[0]}, ... {names[-1]}"


def list_ranges(names: Sequence[Any], order: Sequence[Any]) -> str:
    """Return names in an order that holds them; three in a row or more as ``"a to c"``."""
    rows: list[list[str]] = []
    last = None
    for at, name in enumerate(order):
        if name in names:
            if last != at - 1:
                rows.append([])
            rows[-1].append(f"[{name}]" if isinstance(name, int) else str(name))
            last = at
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) >= 3 else ", ".join(row) for row in rows)
