"""Types of outputs and records that are easily mistaken for others, or that do not want to be read.

Mechanisms that return them, each with a leak, are in `unit/test_outputs_leaks.py`.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, NamedTuple

# --- well-behaved ---


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: Any
    y: Any


class Empty(NamedTuple):
    pass


@dataclasses.dataclass
class Answer:
    value: Any
    parts: Any


@dataclasses.dataclass
class Nothing:
    pass


class Row(list):
    pass


class Plain:
    pass


class Public:
    """Keeps what it is given where everybody can see it."""

    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("_other", "value")

    def __init__(self, value):
        self.value = value


class Private:
    __slots__ = ("__value", "_never_set")

    def __init__(self, value):
        self.__value = value


class Readable:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Readable({self.value})"


# --- not what they seem ---


class Backwards(NamedTuple):
    """Iterates in another order than that of its fields."""

    x: Any
    y: Any

    def __iter__(self):
        return iter([self[1], self[0]])


@dataclasses.dataclass(repr=False)
class Unset:
    """A dataclass whose only field has no value."""

    value: float = dataclasses.field(init=False)


@dataclasses.dataclass
class Sized:
    """Has a length that says nothing about its fields."""

    value: Any

    def __len__(self):
        return 3


class Faker:
    """Says that it is something else."""

    @property
    def __class__(self):
        return list

    def __iter__(self):
        return iter([1.0])


class Child(Public):
    """Holds itself, and its value only in another object."""

    def __init__(self, value):
        super().__init__(1.0)
        self.parent = self
        self.children = [Public(value)]


itself: list = []
itself.append(itself)

# --- hostile ---


class Broken:
    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError


class BrokenMapping(dict):
    def __getitem__(self, key):
        raise RuntimeError
