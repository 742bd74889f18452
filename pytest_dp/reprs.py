"""Objects as text, whatever their ``__repr__`` does: short, on one line, without addresses."""

from __future__ import annotations

import re
from typing import Any


def shown(value: Any) -> str:
    """The repr of any object, without an address; a placeholder where it has none."""
    try:
        return without_addresses(repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def without_addresses(text: str) -> str:
    """A repr that is the same in every process."""
    return _ADDRESS.sub("", text)


_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def on_one_line(value: Any, limit: int = 60) -> str:
    """The repr of any object, cut off at `limit` characters."""
    return " ".join(shortened(value, limit).split())


def shortened(value: Any, limit: int = 60) -> str:
    """The repr of any object, cut off at `limit` characters; it may have several lines."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} whose repr fails>"
    return text if len(text) <= limit else text[: limit - 3] + "..."
