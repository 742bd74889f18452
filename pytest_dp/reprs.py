"""Objects as text, whatever their ``__repr__`` does: short, on one line, without addresses.

And how many there are of something.
"""

from __future__ import annotations

import re
from typing import Any


def repr_of(value: Any) -> str:
    """Return the repr of any object; a placeholder with its type where that fails."""
    try:
        return repr(value)
    except Exception:
        return f"<{type(value).__name__}>"


def shown(value: Any) -> str:
    """Return the repr of any object without an address; a placeholder where it has none."""
    return without_addresses(repr_of(value))


def without_addresses(text: str) -> str:
    """A repr that is the same in every process."""
    return _ADDRESS.sub("", text)


_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def on_one_line(value: Any, limit: int = 60) -> str:
    """The repr of any object, cut off at `limit` characters."""
    try:
        return shortened(repr(value), limit)
    except Exception:
        return f"<{type(value).__name__} whose repr fails>"


def shortened(text: str, limit: int) -> str:
    """A text on one line, cut off at `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."


def counted(n: int, what: str) -> str:
    """``1 record``, ``1,000 records``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"
