"""One-line faults of the package, room by room. `mutants` looks whether tests see them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Fault(NamedTuple):
    """A fault, and the test that has to see it.

    Attributes
    ----------
    name : str
    file : str
        Below ``pytest_dp``.
    right, wrong : str
        What stands there, exactly once, and what is put in its place.
    breaks : str
        What a user would suffer from it.
    test : str
        The node id of the test that kills it, below ``tests``.
    """

    name: str
    file: str
    right: str
    wrong: str
    breaks: str
    test: str

    def spoiled(self) -> str:
        """The text of the file with the fault in it."""
        text = (ROOT / "pytest_dp" / self.file).read_text(encoding="utf-8")
        if text.count(self.right) != 1:
            raise ValueError(f"{self.name}: {self.right!r} is not once in {self.file}")
        return text.replace(self.right, self.wrong)
