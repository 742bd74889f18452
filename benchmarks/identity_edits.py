"""Edits of a small project: which make its mechanism another one, and which do not.

Each edit is applied to a copy of the project, whose mechanism is imported anew. All of `EDITS` have
to change the identity of its code, by which evidence is kept, and none of `HARMLESS`. Exit status 1
if one does not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common import table

STATS = '''
"""Counts."""
import importlib
import threading
import pkg.noise
from functools import partial, singledispatch
import numpy as np
from . import shapes
from .constants import *
from .config import SETTINGS

lock = threading.Lock()
rng_of_module = np.random.default_rng()
cache = {}
local_scale = 1.0
NAMED = "pkg.by_variable"

def count(records, rng):
    """A count."""
    from pkg.late import late_scale
    late = importlib.import_module("pkg.by_name")
    size = 0
    for record in records:  # each
        size += 1
    kept = [row for row in range(size) if row >= 0]
    named = importlib.import_module(NAMED).FACTOR
    late_factor = late.FACTOR * named
    return len(kept) + pkg.noise.lap(rng) * late_scale() * late_factor * shapes.Shape(1.0).area

class Counter:
    step = 2
    def __init__(self, scale):
        self.scale = scale
    def __call__(self, records, rng):
        return self.step * len(records) + rng.laplace(scale=self.scale)

counter = Counter(3.0)
bound = counter.__call__
part = partial(count, rng=None)
'''
NOISE = """
import math
from fractions import Fraction
from decimal import Decimal
def lap(rng, scale=1.0, *, shift=0.0):
    return rng.laplace(scale=scale * helper(2) / math.sqrt(4)) + shift
def helper(x):
    if x > 1:
        return x - 0.5
    return x
@property
def unused(self): return 1
"""
CONSTANTS = """
import datetime
from collections import deque, OrderedDict, Counter as Tally, ChainMap, defaultdict, namedtuple
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
FLAG = True
EXACT = Decimal("1.0")
HALF = Fraction(1, 2)
KEY = b"abc"
BOUND = float("inf")
ZERO = 0.0
DAY = datetime.timedelta(days=1)
QUERY = "select " + "x" * 300 + " from t"
MANY = list(range(100))
LOW, HIGH = 1, 2
SPACE = SimpleNamespace(scale=1.0)
FIXED = MappingProxyType({"scale": 1.0})
LAST = deque([1, 2, 3])
ORDERED = OrderedDict(a=1, b=2)
CHAIN = ChainMap({"a": 1}, {"b": 2})
Point = namedtuple("Point", "x y", defaults=(1,))
NAMES = frozenset({"a", "b"})
COMPLEX = 1 + 2j
BIG = 10 ** 400
class Color(Enum):
    RED = 1
    BLUE = 2
"""
SHAPES = """
from abc import ABC
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, singledispatch
@dataclass
class Shape:
    side: float
    margin: float = 0.0
    tags: list = field(default_factory=list)
    @property
    def area(self):
        return self.side ** 2 * weight(1) * self.cached * Third().value()
    @cached_property
    def cached(self):
        return remembered(1.0)
    @staticmethod
    def unit():
        return 1.0
    @classmethod
    def of(cls, side=2.0):
        return cls(side)
@singledispatch
def weight(value):
    return 1.0
@weight.register
def _(value: int):
    return 1.0
@lru_cache
def remembered(value):
    return value
class First(ABC):
    def value(self): return 1.0
class Second:
    def value(self): return 2.0
class Third(First, Second):
    __slots__ = ("x",)
"""
CONFIG = """
import json, os
from pathlib import Path
HERE = Path(__file__).parent
SETTINGS = json.loads((HERE / "settings.json").read_text())
ORDER = list(SETTINGS)
class Config:
    scale = SETTINGS["scale"]
    def __init__(self, table):
        self.table = table
frozen = Config(SETTINGS["table"])
def scaled(x, by=SETTINGS["by"]):
    return x * by
def made(inner):
    return lambda x: x * inner
times = made(SETTINGS["inner"])
"""
PROJECT = {
    "pkg/__init__.py": "VERSION = 1\n",
    "pkg/stats.py": STATS,
    "pkg/noise.py": NOISE,
    "pkg/constants.py": CONSTANTS,
    "pkg/shapes.py": SHAPES,
    "pkg/config.py": CONFIG,
    "pkg/settings.json": (
        '{"scale": 1.0, "table": {"a": [1, 2]}, "by": 2, "inner": 3, "far": [1, {"deep": 0.5}]}'
    ),
    "pkg/late.py": "import pkg.later\ndef late_scale(): return pkg.later.SCALE\n",
    "pkg/later.py": (
        "import json, pathlib\n"
        "SCALE = json.loads(pathlib.Path(__file__).with_name('late.json').read_text())\n"
    ),
    "pkg/late.json": "1.0",
    "pkg/by_name.py": "FACTOR = 1.0\n",
    "pkg/by_variable.py": "FACTOR = 1.0\n",
}
"""Path: text."""
_C, _N, _S, _H, _J = (
    f"pkg/{name}" for name in ("constants.py", "noise.py", "stats.py", "shapes.py", "settings.json")
)
EDITS: tuple[tuple[str, str, str], ...] = (
    (_C, "FLAG = True", "FLAG = False"),
    (_C, "FLAG = True", "FLAG = 1"),
    (_C, 'Decimal("1.0")', 'Decimal("1.00")'),
    (_C, "Fraction(1, 2)", "Fraction(1, 3)"),
    (_C, 'b"abc"', 'b"abd"'),
    (_C, 'b"abc"', 'bytearray(b"abc")'),
    (_C, 'float("inf")', 'float("-inf")'),
    (_C, 'float("inf")', 'float("nan")'),
    (_C, "ZERO = 0.0", "ZERO = -0.0"),
    (_C, "days=1", "days=2"),
    (_C, '" from t"', '" from u"'),
    (_C, "range(100)", "range(101)"),
    (_C, "LOW, HIGH = 1, 2", "LOW, HIGH = 2, 1"),
    (_C, "SimpleNamespace(scale=1.0)", "SimpleNamespace(scale=2.0)"),
    (_C, 'MappingProxyType({"scale": 1.0})', 'MappingProxyType({"scale": 2.0})'),
    (_C, "deque([1, 2, 3])", "deque([1, 2, 4])"),
    (_C, "deque([1, 2, 3])", "deque([1, 2, 3], 3)"),
    (_C, "a=1, b=2", "b=2, a=1"),
    (_C, '{"b": 2}', '{"b": 3}'),
    (_C, "defaults=(1,)", "defaults=(2,)"),
    (_C, '{"a", "b"}', '{"a", "c"}'),
    (_C, "1 + 2j", "1 - 2j"),
    (_C, "10 ** 400", "10 ** 401"),
    (_C, "BLUE = 2", "BLUE = 3"),
    (_N, "scale=1.0", "scale=0.9"),
    (_N, "shift=0.0", "shift=0.1"),
    (_N, "helper(2)", "helper(3)"),
    (_N, "x > 1", "x >= 1"),
    (_N, "return x - 0.5", "return 0.5 - x"),
    (_N, "math.sqrt(4)", "math.cbrt(4)"),
    (_N, "rng.laplace", "rng.normal"),
    (_N, "import math", "import cmath as math"),
    (_N, "def helper(x):", "def helper(x, more=1):"),
    (_H, "margin: float = 0.0", "margin: float = 1.0"),
    (_H, "default_factory=list", "default_factory=set"),
    (_H, "@dataclass\n", "@dataclass(eq=False)\n"),
    (_H, "self.side ** 2", "self.side ** 3"),
    (_H, "remembered(1.0)", "remembered(2.0)"),
    (_H, "def unit():\n        return 1.0", "def unit():\n        return 2.0"),
    (_H, "side=2.0", "side=3.0"),
    (_H, "(value: int):\n    return 1.0", "(value: int):\n    return 2.0"),
    (_H, "(value: int)", "(value: float)"),
    (_H, "Third(First, Second)", "Third(Second, First)"),
    (_H, '("x",)', '("y",)'),
    (_H, "    return value\n", "    return -value\n"),
    (_H, "@lru_cache\n", ""),
    (_J, '"scale": 1.0', '"scale": 1.5'),
    (_J, "[1, 2]", "[2, 1]"),
    (_J, '"by": 2', '"by": 3'),
    (_J, '"inner": 3', '"inner": 4'),
    (_J, '"deep": 0.5', '"deep": 0.25'),
    ("pkg/late.json", "1.0", "2.0"),
    ("pkg/late.py", "pkg.later.SCALE", "-pkg.later.SCALE"),
    ("pkg/by_name.py", "1.0", "2.0"),
    ("pkg/by_variable.py", "1.0", "2.0"),
    ("pkg/__init__.py", "1", "2"),
    (_S, "size += 1", "size += 2"),
    (_S, "row >= 0", "row > 0"),
    (_S, "late_scale() *", "late_scale() +"),
    (_S, "step = 2", "step = 3"),
    (_S, "Counter(3.0)", "Counter(4.0)"),
    (_S, "local_scale = 1.0", "local_scale = 1"),
    (_S, "rng=None", "rng=0"),
    (_S, "from .constants import *", "from .noise import helper"),
    (_S, "import importlib\n", "import importlib\nfrom statistics import mean as len\n"),
    (_S, "default_rng()", "default_rng(5)"),
)
"""File, text, and what takes its place."""
HARMLESS: tuple[tuple[str, str, str], ...] = (
    (_S, "", ""),
    (_S, "  # each", ""),
    (_S, "size += 1", "size   +=   1  # one more"),
    (_S, '    """A count."""\n', ""),
    (_S, '"""Counts."""', '"""Counts of records."""'),
    (_S, "size", "how_many"),
    (_N, "def helper(x):\n", "def helper(x):\n    # a comment\n"),
    (
        _S,
        "kept = [row for row in range(size) if row >= 0]",
        "kept = [\n\n  x for x in range(size)\n if (x >= 0)]",
    ),
    (_S, "kept", "those"),
    (_S, "record in", "person in"),
    (_N, "def helper", "# a comment\n\n\n\n\ndef helper"),
    (_N, "return x - 0.5", "return (x - .50)"),
    (_C, 'KEY = b"abc"', "KEY = (b'abc')"),
    (_C, '{"a", "b"}', "{'a', 'b'}"),
    (_H, "    @staticmethod\n", "\n    @staticmethod\n"),
    ("pkg/unused.py", "", "SCALE = 2\n"),
    ("README.md", "", "Text\n"),
)
"""The same; an empty text is the end of the file."""


@contextmanager
def project(folder: Path, *edits: tuple[str, str, str]) -> Iterator[Any]:
    """The module of the mechanism, imported anew, after some edits."""
    for path, text in PROJECT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    for path, old, new in edits:
        file = folder / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if old not in text:
            raise ValueError(f"{path} has no {old!r}")
        file.write_text(text.replace(old, new) if old else text + new, encoding="utf-8")
    before, written = sys.path[:], sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        import pkg.stats

        yield pkg.stats
    finally:
        sys.path[:], sys.dont_write_bytecode = before, written
        for name in [name for name in sys.modules if name.partition(".")[0] == "pkg"]:
            del sys.modules[name]


def identity_after(*edits: tuple[str, str, str], name: str = "count") -> str:
    """The identity of a mechanism in a new copy of the project."""
    from pytest_dp.records.code import of_modules

    with tempfile.TemporaryDirectory() as folder, project(Path(folder).resolve(), *edits) as stats:
        return of_modules(getattr(stats, name))


def main() -> int:
    """Print what each kind of edit does."""
    usual = identity_after()
    rows, wrong = [], 0
    for word, edits, changes in (("change it", EDITS, True), ("leave it", HARMLESS, False)):
        right = [(identity_after(edit) != usual) is changes for edit in edits]
        wrong += right.count(False)
        rows.append([word, len(edits), sum(right)])
        for edit, fine in zip(edits, right, strict=True):
            if not fine:
                print(f"should {word}: {edit}", file=sys.stderr)
    print(table(["edits that should", "edits", "do"], rows))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
