"""Lines of code, and what was found to hold of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Blame:
    """A line where privacy leaks, and how; checked by runs in which the noise was changed.

    Attributes
    ----------
    file : str
        Relative to the root directory of the tests where it lies inside, with forward slashes.
    line : int
        Its number.
    function : str
        The function that the line is in.
    kind : str
        What is wrong: ``"too little noise"``, ``"no noise"``, ``"shared noise"``,
        ``"coarse noise"``, ``"noise depends on data"``, ``"seeded"``, ``"too far apart"`` (of
        probabilities), ``"parting"`` (of ways through the code), ``"passing"`` (it is run wherever
        the outputs differ); or what belongs to the line before: ``"scale"``, ``"answer"``,
        ``"called"``.
    message : str
        What holds, for people.
    remedy : str
        What may mend it, for people; empty for a line that only belongs to the one before.
    """

    file: str
    line: int
    function: str
    kind: str
    message: str
    remedy: str = ""

    @property
    def place(self) -> str:
        """``clinic/stats.py:14``."""
        return f"{self.file}:{self.line}"
