"""D and D' as a failure shows them: short ones in full, long ones by what differs."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from results import FOUND

from pytest_dp.data.fields import ABSENT, value_differences
from pytest_dp.report.pair import input_lines

FRAME = pd.DataFrame({f"c{i}": [f"v{i}", "x"][i % 2] * 2 for i in range(20)}, index=range(5_000))
FRAME["c16"] = 0.5
CHANGED = FRAME.copy()
CHANGED.loc[3217, ["c0", "c16"]] = ["other", 55.0]
FEWER = FRAME.drop(index=4999)
USERS = [
    {"who": f"user {i}", "day": dt.date(2026, 1, 1 + i % 28), "spent": i * 1.5} for i in range(300)
]
LESS = [*USERS[:17], {**USERS[17], "spent": 0.0}, *USERS[18:]]
ROWS = "\n".join(f"{i},user {i},{i * 3}" for i in range(400))
TEXT = "lorem ipsum " * 40


def shown(d1: Any, d2: Any, difference: str = "", **more: Any) -> list[str]:
    example = replace(FOUND, d1=d1, d2=d2, difference=difference, **more)
    lines = input_lines(example, 74)
    assert max(map(len, lines)) <= 74
    return lines


def test_fields_that_change_nothing_are_told_as_such() -> None:
    lines = shown(FRAME, CHANGED, idle=("c0",))
    assert lines[2:] == [
        "     D.iloc[3217]['c16']: 0.5 -> 55.0",
        "     (c0 seems not to matter: with an equal value, 8 runs on the same",
        "     random numbers gave the same outputs)",
    ]
    lines = shown(FRAME, FEWER, idle=tuple(f"c{i}" for i in range(18)))
    assert lines[2:] == [
        "     only in D: D.iloc[4999] = {'c18': 'v18v18', 'c19': 'xx', ...}",
        "     (c0 to c17 seem not to matter: with other values, 8 runs on the same",
        "     random numbers gave the same outputs)",
    ]


def test_what_differs_in_long_inputs() -> None:
    for d1, d2, said in [
        (USERS, LESS, ["D[17]['spent']: 25.5 -> 0.0"]),
        (set(range(500)), set(range(499)), ["only in D: 499"]),
        (
            {"age": [1] * 500, "of": [0.5] * 500},
            {"age": [1] * 499, "of": [0.5] * 499},
            ["only in D: D, row 499 = {'age': 1, 'of': 0.5}"],
        ),
        (np.zeros((500, 2)), np.zeros((499, 2)), ["only in D: D[499] = [0.0, 0.0]"]),
        (list(range(500)), list(range(500))[::-1], ["the same records, in another order"]),
        (
            list(range(500)),
            list(range(250)),
            [
                *(f"only in D: D[{at}] = {at}" for at in (250, 251, 252)),
                "... and in 247 more places",
            ],
        ),
        (
            TEXT,
            f"{TEXT[:200]}X{TEXT[201:]}",
            [
                "D[190:]: 'm lorem ipsum lorem ipsu...orem ipsum ' -> 'm lorem ipXum",
                "lorem ipsu...orem ipsum '",
            ],
        ),
        (
            ROWS,
            ROWS.replace("77,user 77,231", "77,user 77,931"),
            ["D.splitlines()[77]: '77,user 77,231' -> '77,user 77,931'"],
        ),
    ]:
        lines = shown(d1, d2)
        assert lines[0].startswith("D  = ")
        assert lines[1:] == ["D' = D, except for this:", *(f"     {line}" for line in said)]


def test_short_inputs_are_shown_in_full() -> None:
    assert shown(np.zeros((1, 3)), np.empty((0, 3)), "one record removed") == [
        "D  = array([[0.0, 0.0, 0.0]])",
        "D' = array([], shape=(0, 3), dtype=float64)   (one record removed)",
    ]
    twins = shown([0.125 + i for i in range(20)], [0.125 + i for i in range(19)])
    assert twins[-1] == "     only in D: D[19] = 19.125"


def test_parts_that_differ() -> None:
    for before, after, found in [
        ([1, 2, 3], [1, 3], [("[1]", 2, ABSENT)]),
        ((1, 2), (2, 1), [("[0]", 1, 2), ("[1]", 2, 1)]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, [("", {"a": 1, "b": 2}, {"b": 2, "a": 1})]),
        ([0.0], [-0.0], [("[0]", 0.0, -0.0)]),
        ({"u": [(1, [5, 6])]}, {"u": [(1, [5, 7])]}, [("['u'][0][1][1]", 6, 7)]),
    ]:
        assert repr(list(value_differences(before, after))) == repr(found)
