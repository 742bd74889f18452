"""The trace of a run on stand-ins: its decisions, with the conditions that they depend on."""

from __future__ import annotations

import linecache
import sys
import types
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import z3

from pytest_dp.basics.reprs import SHORT_LENGTH
from pytest_dp.basics.whose_code import is_project_file

MAX_BRANCHES = 1_000
"""Branches of a run that are noted. More take memory; fewer miss late ones."""
MAX_HASHED = 24
"""Formulas that are hashed and compared. More take longer; fewer count as different."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of the project's code."""

    file: str = ""
    line: int = 0
    offset: int = -1
    """In the code of its function; -1 of a comparison that is released, not decided."""

    def __str__(self) -> str:
        """Return its line, as in ``line 12 `if total > 50```."""
        text = linecache.getline(self.file, self.line).strip()
        text = text if len(text) <= SHORT_LENGTH else f"{text[: SHORT_LENGTH - 6]} (...)"
        where = f"{Path(self.file).name}:{self.line}" if self.file else "the output"
        return f"{where} `{text}`" if text else where


@dataclass(frozen=True, slots=True)
class Branch:
    """A decision: where, how many were made there before, its condition, and whether it held."""

    place: Instruction
    number: int
    condition: Any
    held: bool

    @property
    def key(self) -> tuple[Instruction, int]:
        return self.place, self.number

    @property
    def taken(self) -> Any:
        """The condition of going the same way."""
        return self.condition if self.held else z3.Not(self.condition)

    @property
    def other(self) -> Any:
        """The condition of going the other way."""
        return z3.Not(self.condition) if self.held else self.condition


class Trace:
    """A run on stand-ins.

    `branches` are its decisions in order. `facts` are conditions without which formulas would not
    be what they are, each behind so many branches. `scales` are those of its noise, as far as they
    depend on the inputs. `concrete` counts what turned stand-ins into plain values.
    """

    def __init__(self) -> None:
        self.branches: list[Branch] = []
        self.facts: list[tuple[int, Any]] = []
        self.scales: list[Any] = []
        self.concrete: Counter[str] = Counter()
        self._numbers: Counter[Instruction] = Counter()
        self._hashed: list[tuple[Any, Any]] = []

    def note_decision(self, condition: Any, held: bool) -> bool:
        """Note a condition with its outcome, as long as there is room; return the outcome."""
        if len(self.branches) < MAX_BRANCHES:
            self._note(_place(sys._getframe(1)), condition, held)  # noqa: SLF001
        return held

    def note_lookup(self, formula: Any, value: Any) -> None:
        """Note that a value was looked up, which is to say compared with those before it."""
        for other, known in self._hashed:
            if other.sort() == formula.sort() and not other.eq(formula):
                self.note_decision(other == formula, known == value)
        if len(self._hashed) < MAX_HASHED and not any(
            other.eq(formula) for other, _ in self._hashed
        ):
            self._hashed.append((formula, value))

    def release(self, condition: Any, held: bool) -> None:
        """Note a comparison that is part of the output."""
        self._note(Instruction(), condition, held)

    def _note(self, place: Instruction, condition: Any, held: bool) -> None:
        self.branches.append(Branch(place, self._numbers[place], condition, held))
        self._numbers[place] += 1

    def assume(self, fact: Any) -> None:
        """Note a condition that formulas rest on from here on."""
        self.facts.append((len(self.branches), fact))

    def note(self, what: str) -> None:
        """Note that something became concrete."""
        self.concrete[what] += 1


def _place(frame: types.FrameType | None) -> Instruction:
    """Return the innermost instruction of the project's code."""
    while frame is not None and not is_project_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return Instruction()
    return Instruction(frame.f_code.co_filename, frame.f_lineno, frame.f_lasti)
