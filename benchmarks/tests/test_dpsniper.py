"""The DP-Sniper benchmarks: every mechanism has its published figures, and the tables come out."""

from __future__ import annotations

import sys

import pytest

from benchmarks import dpsniper_bounds, dpsniper_coverage
from benchmarks.cases import CORPUS, MORE_VALUES

NAMES = [case.name for case in CORPUS]


def test_every_mechanism_has_published_figures():
    assert list(dpsniper_bounds.PUBLISHED) == NAMES
    assert dpsniper_bounds.PUBLISHED["Laplace"].samples == pytest.approx(614e6)
    assert dpsniper_bounds.PUBLISHED["SVT1"].samples == pytest.approx(1256e6)


def test_no_published_bound_is_above_the_truth():
    for case in CORPUS:
        assert dpsniper_bounds.PUBLISHED[case.name].bound <= case.truth(dpsniper_bounds.EPS0)


def test_more_values_lose_more():
    assert [round(case.truth(0.1), 4) for case in MORE_VALUES] == [0.4001, 0.8007]


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        (dpsniper_bounds, ["--seeds", "1", "--scale", "0.002", "--only", "RAPPOR"]),
        (dpsniper_coverage, ["--seeds", "2", "--max-samples", "2000", "--jobs", "1"]),
    ],
)
def test_tables(monkeypatch, capsys, script, arguments):
    if script is dpsniper_coverage:
        arguments = [*arguments, "--only", "geometric"]
        monkeypatch.setattr(sys, "exit", lambda status: None)
    monkeypatch.setattr(sys, "argv", ["benchmark", *arguments])
    script.main()
    assert capsys.readouterr().out.startswith("| mechanism")
