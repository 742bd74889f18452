"""Whether ``np.random`` was used, without reading all of its state each time.

NumPy takes about 0.1 ms to hand that state out: as long as a hundred runs of a quick mechanism. The
memory in which it is kept is read in a microsecond.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

_BYTES = 624 * 4 + 4
"""Given by the Mersenne Twister: of its words, and of the position among them."""


class Twister:
    """What is known of the state of a generator that is asked for it again and again.

    Its words change with every draw, but for a second normal variate, which was kept from an
    earlier draw. So states are only remembered where none is kept; one can only be kept again after
    a draw, or by somebody who seeds the generator and comes to the same words.
    """

    def __init__(self, source: np.random.RandomState) -> None:
        self.source = source
        self._state: dict[str, Any] = {}
        self._words = b""

    def restore(self, state: dict[str, Any]) -> None:
        self.source.set_state(state)
        self._state, self._words = state, b"" if state["has_gauss"] else self.words()

    def forget(self) -> None:
        """Somebody may have seeded it."""
        self._words = b""

    def words(self) -> bytes:
        """The memory that changes with every draw; empty if this is no Mersenne Twister."""
        bits: Any = self.source._bit_generator  # noqa: SLF001
        if type(bits) is not np.random.MT19937:
            return b""
        return ctypes.string_at(bits.ctypes.state_address, _BYTES)

    def state(self) -> dict[str, Any]:
        """As ``get_state(legacy=False)``; not to be changed."""
        words = self.words()
        if not words or words != self._words:
            self._state = self.source.get_state(legacy=False)
            self._words = b"" if self._state["has_gauss"] else words
        return self._state


GLOBAL = Twister(np.random.mtrand._rand)  # noqa: SLF001
"""That of ``np.random``."""
