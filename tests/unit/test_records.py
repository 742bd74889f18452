"""Claims on record: texts that stay the same, comparisons, and a file that is always whole."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import strategies as st

from pytest_dp import PrivacyProfile, RenyiDP, Sequential, TradeOff, add_remove_one
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.declaration import queries, replace_special, values
from pytest_dp.records.entries import load_entries, make_entry, write_entries
from pytest_dp.records.identity import brief, text_of
from pytest_dp.records.judging import (
    OTHER,
    STRONGER,
    WEAKENED,
    WEAKER,
    Collected,
    claim_changes,
    counterparts,
    judge,
)


def mechanism(d, rng):
    return d + rng.laplace()


@dataclass
class Row:
    age: int
    name: str = "x"


class Plain:
    def __init__(self, size):
        self.size = size


class Broken:
    def __repr__(self):
        raise RuntimeError


TEXTS = [
    (None, "None"),
    ([1, 2.5, "a", (True,)], "[1, 2.5, 'a', (True,)]"),
    ({"b": {3, 1, 2}, "a": None}, "{'b': {1, 2, 3}, 'a': None}"),
    (np.float64(0.5), "0.5"),
    (np.array([[1, 2]], dtype="int32"), "array([[1, 2]], int32)"),
    (pd.DataFrame({"a": [1], "b": [None]}), "DataFrame(['a', 'b'], [(1, None)])"),
    (Row(3), "Row(age=3, name='x')"),
    (Plain([1]), "Plain(size=[1])"),
    (Broken(), "<Broken>"),
    (queries(5, 10), "queries(5, 10)"),
    (queries(5), "queries(5)"),
    (values(["y", "n"]), "values(['y', 'n'])"),
    (replace_special({"a": 0}), "replace_special(record={'a': 0})"),
    (st.lists(st.integers(0, 3)), "lists(integers(min_value=0, max_value=3))"),
]


def test_values_have_texts_of_their_content():
    for value, text in TEXTS:
        assert text_of(value) == text


def test_other_content_has_another_text():
    for one, other in [
        (pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]})),
        (np.arange(1000), np.arange(1000) + 1),
        (list(range(5000)), [*range(4999), 0]),
        (partial(mechanism, 1), partial(mechanism, 2)),
        (mechanism, test_values_have_texts_of_their_content),
        (Plain([1]), Plain([2])),
    ]:
        assert brief(text_of(one)) != brief(text_of(other))
        assert len(brief(text_of(one))) < 80
        assert " at 0x" not in text_of(one)


@pytest.mark.slow
def test_texts_are_the_same_in_every_process():
    code = "from test_records import *; print([text_of(v) for v, _ in TEXTS], text_of(mechanism))"
    command = [sys.executable, "-c", code]
    done = [
        subprocess.check_output(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, cwd=Path(__file__).parent
        )
        for seed in ("1", "2")
    ]
    assert done[0] == done[1]


def test_functions_are_told_apart_by_their_source_but_not_by_comments(tmp_path):
    def text(source):
        file = tmp_path / f"m{len(list(tmp_path.iterdir()))}.py"
        file.write_text(source)
        space = {}
        exec(compile(source, str(file), "exec"), space)
        return text_of(space["f"])

    told = text("def f(x):\n    return x + 1\n")
    assert text("def f( x ):  # a comment\n\n    return (x + 1)\n") == told
    assert text("def f(x):\n    return x + 2\n") != told
    assert text_of(np.mean) == "mean"


def of(**keywords):
    """The entry of a claim."""
    about = {} if {"inputs", "data"} & keywords.keys() else {"pairs": [(0, 1)]}
    [claim] = expand({**about, **keywords})
    return json.loads(json.dumps(make_entry(claim, Settings().over(claim.effort))))


def falls(eps):
    return max(0.0, 0.2 - 0.1 * (math.exp(eps) - 1))


def falls_later(eps):
    return max(0.0, 0.3 - 0.1 * (math.exp(eps) - 1))


NEIGHBOURS = {"neighbors": "add_remove_one", "inputs": [[1]]}


def group(size, *records):
    return {"neighbors": add_remove_one(group=size), "inputs": [list(records)]}


COMPARED = [
    ({"eps": 1.0}, {"eps": 1}, []),
    ({"eps": 1.0}, {"eps": 0.5}, [STRONGER]),
    ({"eps": 0.3}, {"eps": 0.1 + 0.2}, []),
    ({"eps": 1.0, "inputs": values([0.3, 1])}, {"eps": 1.0, "inputs": values([0.1 + 0.2, 1])}, []),
    ({"eps": 1.0}, {"eps": 0.5, "delta": 1e-6}, [OTHER]),
    ({"guarantee": PrivacyProfile(falls)}, {"guarantee": PrivacyProfile(falls_later)}, [WEAKER]),
    ({"guarantee": PrivacyProfile(falls)}, {"eps": 0.01}, [STRONGER]),
    ({"guarantee": TradeOff(lambda x: max(0.0, 0.9 - x))}, {"eps": 9.0}, [OTHER]),
    ({"guarantee": RenyiDP({2: 0.1})}, {"guarantee": RenyiDP({2: 0.1, 3: 0.2})}, [STRONGER]),
    ({"eps": 1.0, **NEIGHBOURS}, {"eps": 1.5, **group(2, 1)}, [WEAKER, STRONGER]),
    ({"eps": 1.0, **group(2, 1, 2, 3)}, {"eps": 1.0, **group(3, 1, 2, 3)}, [STRONGER]),
    ({"eps": 1.0, **group(3, 1, 2, 3)}, {"eps": 1.0, **group(2, 1, 2, 3)}, [WEAKER]),
    (
        {"guarantee": PrivacyProfile(falls), **group(1, 1, 2, 3)},
        {"guarantee": PrivacyProfile(falls), **group(3, 1, 2, 3)},
        [STRONGER],
    ),
    ({"eps": 1.0}, {"eps": 1.0, "alpha": 1e-3}, [STRONGER]),
    ({"eps": 1.0, "margin": 1.5}, {"eps": 1.0, "margin": None}, [STRONGER]),
    ({"eps": 1.0}, {"eps": 1.0, "method": Sequential(coupled=False)}, [OTHER]),
    ({"eps": 1.0, "floating_point": True}, {"eps": 1.0}, [WEAKER]),
    ({"eps": 1.0, "search": ()}, {"eps": 1.0, "search": "symbolic"}, [OTHER]),
    ({"eps": 1.0, "features": abs}, {"eps": 1.0, "features": len}, [OTHER]),
    ({"eps": 1.0, "params": {"k": 1}}, {"eps": 1.0, "params": {"k": 2}}, [OTHER]),
    ({"eps": 1.0, "at_least": "fair"}, {"eps": 1.0, "at_least": "weak"}, [WEAKER]),
    ({"eps": 1.0}, {"eps": 1.0, "neighbors": "any_two"}, [STRONGER]),
    ({"eps": 1.0, "inputs": values([0, 1])}, {"eps": 1.0, "inputs": values([1, 0, 2])}, [STRONGER]),
]


@pytest.mark.parametrize(("old", "new", "verdicts"), COMPARED)
def test_what_has_changed(old, new, verdicts):
    found = claim_changes(of(**old), of(**new))
    assert [
        change.verdict for change in found if change.what != "promise" or "group=" not in str(old)
    ] == verdicts


@pytest.mark.parametrize("value", [None, "many", [1, [2]], {"a": 1}, True, -1], ids=repr)
def test_edited_values_are_compared_without_an_error(value):
    new = of(eps=1.0, inputs=[[1]], neighbors="add_remove_one", max_samples=1000)
    for field in ("relation", "effort"):
        for name, usual in new[field].items():
            edited = new | {field: new[field] | {name: value}}
            found = [str(change) for change in claim_changes(edited, new)]
            assert bool(found) == (value != usual), (name, found)


def kinds(recorded, now, known=()):
    """What becomes of claims on record, given what a run has found."""
    on_record = counterparts(recorded, now, {*known})
    claims = [
        Collected(name, entry, on_record=on_record.get(name, "")) for name, entry in now.items()
    ]
    return {told.id: told.kind for told in judge(recorded, claims, lambda name: True)}


def test_other_parameters_are_not_exchanged_between_claims():
    """Ids that sort otherwise than before; each claim keeps its own parameters."""

    def claims(*cases):
        return {f"a.py::f[eps={e}-n={n}]": of(eps=e, params={"n": n}) for e, n in cases}

    before = claims((2.0, 1), (10.0, 2))
    assert set(kinds(before, claims((1.5, 1), (9.0, 2))).values()) == {"stronger"}
    assert WEAKENED in kinds(before, claims((1.5, 2), (9.0, 1))).values()


def test_an_entry_that_is_written_is_read_again(tmp_path):
    file = tmp_path / "claims.json"
    given = {
        "a.py::f[λ]": of(eps=0.1, delta=1e-300),
        "a.py::g": of(guarantee=RenyiDP({2: 0.1, 1.5: 1 / 3}), params={"long": "x" * 300}),
        "a.py::h": of(
            guarantee=PrivacyProfile(falls),
            inputs=[[at] * 9 for at in range(30)],
            neighbors="replace_one",
        ),
    }
    assert write_entries(file, given)
    assert not write_entries(file, dict(reversed(given.items())))
    assert load_entries(file) == given
    assert max(map(len, file.read_text().splitlines())) < 110


WRITER = """
import sys
from pathlib import Path
from pytest_dp.records.entries import load_entries, write_entries
file, name = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    entry = {"promise": {"eps": 1.0 + number}}
    write_entries(file, load_entries(file) | {f"{name}.py::f{number}": entry})
"""


def writer(file, name, times):
    command = [sys.executable, "-c", WRITER, str(file), name, str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_whoever_is_killed_leaves_a_whole_file(tmp_path):
    file = tmp_path / "claims.json"
    write_entries(file, {"first.py::f": {"promise": {"eps": 1.0}}})
    for _ in range(5):
        process = writer(file, "a", 10_000)
        process.stdout.readline()
        time.sleep(0.02)
        process.kill()
        process.wait(60)
        assert "first.py::f" in load_entries(file)
