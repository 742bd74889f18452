"""What is read out of texts, exceptions and huge whole numbers."""

from __future__ import annotations

import numpy as np
import pytest
from searching import planted

from pytest_dp.outputs.features import features
from pytest_dp.outputs.hashing import hashes
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import tabulate
from pytest_dp.outputs.text_features import Reading, readings


def tokens(seed, n=400):
    return [np.random.default_rng([seed, i]).bytes(8).hex() for i in range(n)]


ONE, TWO = tokens(1), tokens(2)
LEAKS = {
    "length": (lambda token, side: token + "-" * side, "len(output)"),
    "beginning": (lambda token, side: ("abcd", "abxy")[side] + token, "output.startswith("),
    "end": (lambda token, side: token + ":;"[side], "output"),
    "word": (lambda token, side: f"{token} is {('good', 'poor')[side]} {token}", " in output"),
    "number": (lambda token, side: f"{len(token) + side + int(token, 16) / 2**65} %", "numbers"),
    "count of numbers": (lambda token, side: " ".join(token[: 10 + 6 * side]), "output"),
    "float": (lambda token, side: str(3 * side + int(token, 16) / 2**64), "float(output)"),
    "character": (lambda token, side: token[:5] + "xy"[side] + token[6:], "output"),
    "bytes length": (lambda token, side: bytes.fromhex(token)[side:], "len(output)"),
    "bytes beginning": (lambda token, side: b"%d" % side + bytes.fromhex(token), "output[0]"),
    "message": (lambda token, side: Raised("KeyError", "", token + "!" * side), "str(error)"),
    "number in a message": (
        lambda token, side: Raised("KeyError", "", f"{side + int(token, 16) / 2**65} is too large"),
        "numbers(str(error))[0]",
    ),
    "kind": (lambda token, side: Raised(("KeyError", "OSError")[side], "", token), "raises "),
    "in a list": (lambda token, side: [1.0, token + "-" * side], "len(output[1])"),
    "in a dict": (lambda token, side: {"id": token + "-" * side}, "len(output['id'])"),
}


@pytest.mark.spot(3)
@pytest.mark.parametrize("kind", LEAKS)
def test_what_hardly_ever_recurs_is_read(kind):
    make, text = LEAKS[kind]
    assert text in planted([make(t, 0) for t in ONE], [make(t, 1) for t in TWO])


def test_texts_that_recur_are_only_categories():
    table = tabulate(["yes", "no", "perhaps"] * 100)
    assert readings("output", table) == []
    assert [feature.text for feature in features(table, [])] == ["output"]


def test_numbers_alone_are_not_read():
    assert readings("output", tabulate([1.5, 2.5] * 100)) == []


@pytest.mark.parametrize(
    ("what", "argument", "output", "wanted"),
    [
        ("len", 0, "abc", 3),
        ("float", 0, " 1e3 ", 1000),
        ("float", 0, "1e3 x", np.nan),
        ("numbers", 0, "a1b-2.5c1e3", 3),
        ("number", 1, "a1b-2.5c1e3", -2.5),
        ("number", 3, "a1b-2.5c1e3", np.nan),
        ("character", 1, "abc", ord("b")),
        ("character", -1, "abc", ord("c")),
        ("character", 3, "abc", np.nan),
        ("count", "a", "abca", 2),
        ("has", "bc", "abca", 1),
        ("starts", "bc", "abca", 0),
    ],
)
def test_readings_against_python(what, argument, output, wanted):
    for family, given in (("str", output), ("bytes", output.encode())):
        one = Reading("output", family, what, argument)
        values = one.values(tabulate([given, 1.0, None, given]))
        np.testing.assert_array_equal(values, [wanted, np.nan, np.nan, wanted])


def test_parts_of_a_table_are_read_as_the_whole():
    outputs = [*ONE[:50], 1.0, None, *TWO[:50]]
    table = tabulate(outputs)
    part = table.rows(np.arange(len(outputs)) % 3 == 0)
    for reading in readings("output", table):
        alone = [float(reading.values(tabulate([output]))[0]) for output in outputs]
        np.testing.assert_array_equal(reading.values(table), alone)
        np.testing.assert_array_equal(reading.values(part), alone[::3])


def test_exceptions_are_told_apart_by_their_messages():
    kinds = [Raised("KeyError", "", m) for m in ("", "1", "2")] + [Raised("OSError", "", "1")]
    assert len(set(hashes(tabulate(kinds)).tolist())) == 4
    traced = [Raised("KeyError", trace, "1") for trace in ("one", "another")]
    assert len(set(hashes(tabulate(traced)).tolist())) == 1
