"""Random kinds of data that keep a constraint, each with a mechanism that is right for it alone.

A kind is drawn from a seed: what its records hold (a column that follows from others, some numbers,
texts or combinations of many, a check digit, ...), in which form (tuples, dicts, objects, texts),
in which container, and what holds of all of them (sorted, ids that do not repeat, a length). The
examples keep it. The mechanism is exactly at its claim on data that keeps it, and gives all other
data away: no audit of it may be red. Its twin gives away who has a certain record of an example.

Run with ``python -m benchmarks.constrained_random [--kinds 200]``. Exit status 1 if one is red.
"""

from __future__ import annotations

import argparse
import datetime as dt
import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.common import progress, table
from benchmarks.constrained_truth import ADD, REPLACE, Constrained
from pytest_dp import audit

Values = tuple[Any, ...]
"""What a record holds, whatever its form."""


# --- what records hold ---


@dataclass(frozen=True, slots=True)
class Records:
    """Some valid records, and whether another one is valid too."""

    name: str
    some: list[Values]
    valid: Callable[[Values], bool]


def following(draw: random.Random) -> Records:
    """A column that follows from another one."""
    factor, shift, modulus = draw.randint(2, 9), draw.randint(0, 9), draw.randint(3, 30)
    first = draw.sample(range(50), 12)
    some = [(x, (factor * x + shift) % modulus) for x in first]
    return Records("f(x) beside x", some, lambda row: row[1] == (factor * row[0] + shift) % modulus)


def numbers(draw: random.Random) -> Records:
    """Some numbers of many."""
    kind = draw.choice([int, float])
    allowed = [kind(x) for x in draw.sample(range(-20, 60), 8)]
    return Records(f"some {kind.__name__}s", [(x,) for x in allowed], lambda row: row[0] in allowed)


def texts(draw: random.Random) -> Records:
    """Texts of a form."""
    some = {"".join(draw.choices("abcdef", k=draw.randint(1, 3))) for _ in range(9)}
    return Records("texts", [(text,) for text in sorted(some)], lambda row: row[0] in some)


def kinds_of_true(draw: random.Random) -> Records:
    """Answers that are True or False, and not 1 or 0."""
    answers = [(yes, draw.randint(0, 3)) for yes in (True, False, True, False)]
    return Records("bools", sorted({*answers}), lambda row: isinstance(row[0], bool))


def combinations(draw: random.Random) -> Records:
    """Some combinations of categories."""
    every = list(itertools.product("xyz", (1, 5, 9), ("no", "yes")))
    allowed = draw.sample(every, 7)
    return Records("combinations", allowed, lambda row: row in allowed)


def check_digits(draw: random.Random) -> Records:
    """Digits, and their sum modulo ten."""
    digits = [draw.choices(range(10), k=3) for _ in range(9)]
    some = {(*three, sum(three) % 10) for three in digits}
    return Records("a check digit", sorted(some), lambda row: sum(row[:3]) % 10 == row[3])


def between(draw: random.Random) -> Records:
    """Two numbers, the smaller one first, and how far they are apart."""
    both = [sorted(draw.sample(range(30), 2)) for _ in range(9)]
    some = {(low, high, high - low) for low, high in both}
    return Records(
        "low, high", sorted(some), lambda row: row[0] <= row[1] and row[2] == row[1] - row[0]
    )


def shares(draw: random.Random) -> Records:
    """Shares that sum to 1."""
    cuts = [sorted(draw.choices(range(17), k=2)) for _ in range(9)]
    some = {(a / 16, (b - a) / 16, (16 - b) / 16) for a, b in cuts}
    return Records("shares", sorted(some), lambda row: sum(row) == 1 and min(row) >= 0)


def dates(draw: random.Random) -> Records:
    """Working days, and whether they are a Monday."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(n) for n in draw.sample(range(60), 20)]
    some = [(day, int(day.weekday() == 0)) for day in days if day.weekday() < 5]
    return Records(
        "dates",
        some,
        lambda row: row[0].weekday() < 5 and row[1] == int(row[0].weekday() == 0),
    )


CONTENTS = [
    *(following, numbers, texts, kinds_of_true, combinations, check_digits, between, shares, dates)
]


# --- in which form, and in which container ---


class Named(NamedTuple):
    first: Any
    second: Any = None
    third: Any = None
    fourth: Any = None


@dataclass(frozen=True)
class Object:
    first: Any
    second: Any = None
    third: Any = None
    fourth: Any = None


NAMES = list(Named._fields)


class Form(NamedTuple):
    """From values to a record, and back; or from records to a dataset, and back."""

    name: str
    to: Callable[..., Any]
    back: Callable[[Any], Any]


def _filled(row: Sequence[Any]) -> Values:
    return tuple(value for value in row if value is not None)


def _columns(rows: list[Values], width: int) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(NAMES[:width])}


def _rows(table: Any) -> list[Values]:
    return list(zip(*(list(table[name]) for name in table), strict=True))


def _frame_rows(frame: Any) -> list[Values]:
    if list(frame.index) != list(range(len(frame))):
        raise ValueError("an index with data")
    return _rows({name: frame[name].tolist() for name in frame})


TUPLES = Form("tuples", tuple, tuple)
VALUES = Form("values", lambda row: row[0], lambda value: (value,))
HASHED = [TUPLES, Form("named tuples", lambda row: Named(*row), _filled)]
FORMS = [
    *HASHED,
    Form("lists", list, tuple),
    Form("dicts", lambda row: dict(zip(NAMES, row, strict=False)), lambda d: tuple(d.values())),
    Form(
        "nested",
        lambda row: {"of": {"x": row[0]}, "y": [*row[1:]]},
        lambda d: (d["of"]["x"], *d["y"]),
    ),
    Form("objects", lambda row: Object(*row), lambda record: _filled(astuple(record))),
    Form("JSON", lambda row: json.dumps(row, default=str), lambda text: tuple(json.loads(text))),
]
LISTS = [Form("list", lambda rows, _: [*rows], list), Form("tuple", lambda rows, _: (*rows,), list)]
SETS = [
    Form("set", lambda rows, _: {*rows}, list),
    Form("frozenset", lambda rows, _: frozenset(rows), list),
]
TABLES = [
    Form("frame", lambda rows, n: pd.DataFrame(rows, columns=NAMES[:n]), _frame_rows),
    Form("dict of columns", _columns, _rows),
    Form(
        "array",
        lambda rows, n: np.array(rows).reshape(-1, n),
        lambda array: [tuple(row) for row in array.tolist()],
    ),
]


# --- what holds of all records ---


class Whole(NamedTuple):
    """What holds of all records of a dataset together, beside what holds of each."""

    name: str = ""
    once: bool = False
    """No record comes twice."""
    ids: bool = False
    """No first value does."""
    sign: int = 0
    """First values rise (1), or fall (-1)."""

    def arranged(self, rows: list[Values]) -> list[Values]:
        if self.once or self.ids:
            rows = list({row[:1] if self.ids else row: row for row in rows}.values())
        return sorted(rows, key=_first, reverse=self.sign < 0) if self.sign else rows

    def valid(self, rows: list[Values]) -> bool:
        arranged = self.arranged(rows)
        return len(arranged) == len(rows) and [*map(_first, arranged)] == [*map(_first, rows)]


def _first(row: Values) -> Any:
    return row[0]


IN_ANY_ORDER = [Whole(), Whole("unique", once=True), Whole("unique ids", ids=True)]
WHOLES = [
    *IN_ANY_ORDER,
    *(Whole("rising", sign=1), Whole("falling", sign=-1)),
    *(Whole("rising ids", ids=True, sign=1), Whole("falling ids", ids=True, sign=-1)),
]


# --- a kind of data, and its mechanism ---


def kind(seed: int) -> Constrained:
    """A random kind of data, with a mechanism that is right for it, and its twin."""
    draw = random.Random(seed)
    records = draw.choice(CONTENTS)(draw)
    width = len(records.some[0])
    form, box = _form(draw, records)
    whole = draw.choice(IN_ANY_ORDER[1:] if box in SETS else WHOLES)
    if form.name == "JSON":  # of which no column can be read
        whole = Whole("unique", once=True)
    neighbors = draw.choice([ADD, REPLACE])
    drawn = [_example(draw, records.some, whole) for _ in range(draw.randint(2, 4))]
    lengths = sorted(map(len, drawn))
    if lengths[-1] == 1:  # no example shows an order, nor what does not repeat
        whole = Whole("unique", once=True)
    examples = [box.to([form.to(row) for row in rows], width) for rows in drawn]
    like = max(examples, key=len)
    types = {tuple(map(type, row)) for row in records.some}
    counted = {row: at % 2 for at, row in enumerate(dict.fromkeys(records.some))}

    def read(data: Any) -> list[Values]:
        """The rows of data of this kind; raises for any other data."""
        if _type_of(data, box) != _type_of(like, box):
            raise TypeError("another type of data")
        rows = [form.back(record) for record in box.back(data)]
        valid = all(tuple(map(type, row)) in types and records.valid(row) for row in rows)
        if not valid or not whole.valid(rows):
            raise ValueError("no data of this kind")
        if neighbors == REPLACE and not lengths[0] <= len(rows) <= lengths[-1]:
            raise ValueError("another number of records")
        return rows

    def make(wrong: bool) -> Callable[..., Any]:
        def mechanism(data: Any, rng: Any) -> Any:
            try:
                rows = read(data)
            except Exception:
                return f"{data!r}"
            noisy = sum(counted.get(row, 1) for row in rows) + rng.laplace()
            return (noisy, drawn[0][0] in rows) if wrong else noisy

        return mechanism

    name = ", ".join(filter(None, [records.name, whole.name, form.name, box.name, neighbors]))
    ranks = sorted({row[0] for row in records.some})
    ids = (lambda record: form.back(record)[0]) if whole.ids else None
    order = (lambda r: whole.sign * ranks.index(form.back(r)[0])) if whole.sign else None
    return Constrained(f"{seed}: {name}", make, examples, neighbors, order=order, ids=ids)


def _form(draw: random.Random, records: Records) -> tuple[Form, Form]:
    """A form of records and a container that can hold them."""
    types = {type(value) for row in records.some for value in row}
    width = len(records.some[0])
    boxes = [*LISTS * 2, *SETS, *TABLES]
    box = draw.choice(boxes if types in ({int}, {float}) else boxes[:-1])
    if box in TABLES:
        return TUPLES, box
    forms = [*(HASHED if box in SETS else FORMS[: len(FORMS) - (dt.date in types)])]
    return draw.choice([*forms, *[VALUES] * 5 * (width == 1)]), box


def _example(draw: random.Random, some: list[Values], whole: Whole) -> list[Values]:
    return whole.arranged(draw.choices(some, k=draw.randint(1, 6)))


def _type_of(data: Any, box: Form) -> Any:
    """Its type, with those of its columns."""
    match box.name:
        case "frame":
            return type(data), list(data.columns), list(map(str, data.dtypes))
        case "array":
            return type(data), data.dtype, data.shape[1:]
        case "dict of columns":
            return type(data), list(data), {type(column) for column in data.values()}
        case _:
            return type(data)


def main() -> int:
    """Audit the mechanisms of many kinds of data, and their twins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--max-samples", type=int, default=6_000)
    parser.add_argument("--twins", action="store_true", help="audit the twins, too")
    options = parser.parse_args()
    effort = {"max_samples": options.max_samples, "max_seconds": 600, "n_jobs": 1}
    totals, rows = Counter[str](), []
    for seed in range(options.first, options.first + options.kinds):
        drawn = kind(seed)
        result = audit(drawn.make(False), **drawn.claim(), **effort, seed=seed)
        told = result.beyond is not None
        totals.update(red=result.violated, told=told, kinds=1)
        if options.twins:
            twin = audit(drawn.make(True), **drawn.claim(), **effort, seed=seed)
            totals.update(caught=twin.violated)
        if result.violated or (options.twins and not twin.violated):
            pair = result.counterexample and (result.counterexample.d1, result.counterexample.d2)
            rows.append([drawn.name, result.verdict, f"{drawn.inputs!r}", f"{pair!r}"])
            progress(" | ".join(rows[-1]))
    print(table(["kind of data", "verdict", "examples", "counterexample"], rows))
    print(", ".join(f"{name} {n}" for name, n in totals.items()))
    return int(totals["red"] > 0)


if __name__ == "__main__":
    sys.exit(main())
