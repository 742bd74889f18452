"""Results by themselves: ``repr``, ``str``, notes, and why an audit could tell nothing."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from results import BROKEN, FOUND, PASSED, Event

from pytest_dp import audit
from pytest_dp.results.plain import from_plain, plain

LARGE = replace(
    FOUND,
    d1=np.eye(100),
    d2=["record " * 50] * 1_000,
    event=Event("output in {" + "1, " * 5_000 + "}"),
    attack=len,
    examples=((np.eye(50),) * 3, (np.eye(50),) * 3),
)
MANY = tuple(f"{word} note, which is long: {'more of it, ' * 30}" for word in "abcdefgh")


@pytest.mark.parametrize(
    "result",
    [
        BROKEN,
        PASSED,
        replace(BROKEN, counterexample=LARGE, notes=MANY),
        replace(PASSED, verdict="inconclusive", hindrances=MANY[:1], notes=MANY),
        replace(PASSED, resolution=math.inf, e_value=None, bet_samples=None),
    ],
)
def test_the_repr_fits_a_screen(result):
    lines = repr(result).splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert lines[0] == "AuditResult("
    assert f"  verdict={result.verdict!r}," in lines
    assert "\n" not in str(result)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(0.62, "0.62 s"), (60.3, "60 s"), (102.0, "100 s"), (7_249.0, "7200 s")],
)
def test_seconds_of_an_audit_that_was_too_slow_are_in_plain_digits(seconds, written):
    slow = replace(PASSED, verdict="inconclusive", seconds=seconds, max_seconds=seconds)
    assert f" runs in {written} are too few" in slow.reason


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"max_samples": 30}, "max_samples=30 is too few: raise it"),
        ({"max_seconds": 0.2, "slow": True}, "raise max_seconds"),
        ({"constant": True, "max_samples": 500}, "missing noise, a fixed seed or a cache?"),
        (
            {"pairs": [([1] * k, []) for k in range(1, 40)], "max_samples": 200},
            "name the pairs that matter with pairs=",
        ),
    ],
)
@pytest.mark.parametrize("method", ["sequential", "statdp", "dpsniper"])
def test_why_an_audit_could_tell_nothing_and_what_to_do(given, reason, method):
    import time

    slow, constant = given.get("slow"), given.get("constant")

    def count(d, rng):
        if slow:
            time.sleep(0.02)
        return 0 if constant else len(d) + rng.gamma(1) - rng.gamma(1)

    effort = {name: value for name, value in given.items() if name not in ("slow", "constant")}
    effort.setdefault("pairs", [([1], [])])
    result = audit(count, eps=1.0, method=method, seed=1, n_jobs=1, **effort)
    assert result.verdict == "inconclusive"
    assert reason in result.reason
    assert "  " not in " ".join((result.reason, *result.notes))


@dataclass(frozen=True)
class Numbers:
    some: tuple[float, ...]
    one: float
    maybe: float | None = None


@pytest.mark.parametrize("number", [0.5, -0.0, math.nan, math.inf, -math.inf], ids=str)
def test_numbers_return_from_json_as_they_were(number):
    numbers = Numbers((number, 1.0), number)
    text = json.dumps(plain(numbers), allow_nan=False)
    assert repr(from_plain(Numbers, json.loads(text))) == repr(numbers)
