"""Doubles that are written out in full, inside of texts."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pytest_dp.outputs.leaves import category, without_last_digits
from pytest_dp.outputs.outcome import Raised


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("3.3000000000000003", "3.3"),
        ('{"mean": 0.30000000000000004, "n": 12}', '{"mean": 0.3, "n": 12}'),
        ("-1.7999999999999998 days", "-1.8 days"),
        ("[0.7999999999999999, 12.299999999999999]", "[0.8, 12.3]"),
        ("1.2000000000000002e-07", "1.2e-07"),
        ("4.440892098500626e-16", "0.0"),
        ("-8.326672684688674e-17", "0.0"),
        ("0.10000000000036380", "0.1"),
        ("100.00000000000001", "100.0"),
    ],
)
def test_last_digits_go(text, shorter):
    assert without_last_digits(text) == shorter
    assert category(text) == category(shorter)
    assert category(text.encode()) == category(shorter.encode())
    assert category(Raised("ValueError", message=text)) == category(
        Raised("ValueError", message=shorter)
    )


@pytest.mark.parametrize(
    "text",
    [
        "3.3",
        "12345678901234567890",  # a whole number: no digit of it is an error of rounding
        str(Decimal(1) / 3),  # 28 digits: no double
        "a1.23456789012345678",  # a name
        "2.25.1234567890123456",  # an object identifier, a version
        "2026-11-22T10:00:00.1234567",
        "0." + "0" * 20,
    ],
)
def test_all_else_stays(text):
    assert without_last_digits(text) == text
