"""Doubles that are written out in full, inside of texts."""

from __future__ import annotations

from pytest_dp.outputs.leaves import category, without_last_digits
from pytest_dp.outputs.outcome import Raised


def test_last_digits_go():
    for text, shorter in [
        ("3.3000000000000003", "3.3"),
        ('{"mean": 0.30000000000000004, "n": 12}', '{"mean": 0.3, "n": 12}'),
        ("-1.7999999999999998 days", "-1.8 days"),
        ("[0.7999999999999999, 12.299999999999999]", "[0.8, 12.3]"),
        ("1.2000000000000002e-07", "1.2e-07"),
        ("4.440892098500626e-16", "0.0"),
        ("-8.326672684688674e-17", "0.0"),
        ("0.10000000000036380", "0.1"),
        ("100.00000000000001", "100.0"),
    ]:
        assert without_last_digits(text) == shorter
        assert category(text) == category(shorter)
        assert category(text.encode()) == category(shorter.encode())
        assert category(Raised("ValueError", message=text)) == category(
            Raised("ValueError", message=shorter)
        )
