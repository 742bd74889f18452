"""Objects as short texts on one line, without addresses, whatever their ``__repr__`` does."""

from __future__ import annotations

import re
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
