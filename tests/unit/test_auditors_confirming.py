"""What counts as an answer that is kept."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pytest_dp.auditors import starting_afresh
from pytest_dp.auditors.starting_afresh import _apart, _draw_alike, by_chance, keep_answers
from pytest_dp.running.opened_files import record_opened_files


def repeated(answers, runs):
    outputs = [[answer] * runs for answer in answers]
    assert keep_answers(outputs)
    return outputs


@pytest.mark.parametrize(
    ("answers", "runs"), [((1, -1, -1), 2), ((True, False), 4), (tuple("aabbc"), 3)]
)
def test_a_coin_may_repeat_itself(answers, runs):
    assert by_chance(repeated(answers, runs))


@pytest.mark.parametrize(
    ("answers", "runs"),
    [(np.random.default_rng(1).laplace(size=2).tolist(), 2), ((1, -1, -1, 1), 16)],
    ids=["noise that comes twice", "a coin that falls alike sixteen times"],
)
def test_noise_does_not(answers, runs):
    assert not by_chance(repeated(answers, runs))


@pytest.mark.parametrize(
    ("copies", "alike"),
    [
        (lambda rng: [[0.25, *rng.laplace(size=4).tolist()]] * 8, True),
        (lambda rng: [[rng.laplace(), 0.5, *rng.laplace(size=3).tolist()] for _ in range(8)], True),
        (lambda rng: rng.laplace(size=(8, 5)).tolist(), False),
        (lambda rng: (rng.random((24, 5)) < 0.9).tolist(), False),
        (lambda rng: [[1.0] * 5] * 24, False),
    ],
    ids=["bytes in reserve", "of the second run only", "noise", "a loaded coin", "no noise"],
)
def test_processes_that_draw_alike(copies, alike):
    assert all(_draw_alike(copies(np.random.default_rng(seed))) == alike for seed in range(20))


@pytest.mark.parametrize(
    ("answer", "processes"),
    [
        (lambda number, run: (0, run), 21),
        (lambda number, run: (number % 2, run), 8),
        (lambda number, run: (int(number > 9), run), 11),
        (lambda number, run: "no noise", 21),
    ],
    ids=["a coin that falls alike", "a coin", "a coin that fell alike so far", "no noise"],
)
def test_a_coin_that_is_kept_falls_alike_everywhere_with_chance_alpha_at_most(
    monkeypatch, answer, processes
):
    def draw(sampler, item, other, runs, number, deadline):
        return [answer(number, run) for run in range(runs)]

    monkeypatch.setattr(starting_afresh, "_after_others", draw)
    found = _apart(None, SimpleNamespace(alpha=1e-6), (None, None), None, 4, None)
    assert len(found) == processes
    assert 2.0 ** (1 - 21) <= 1e-6


def test_what_watches_the_machine_is_no_memory(tmp_path):
    if not (watched := Path("/proc/self/stat")).exists():
        pytest.skip("this system has no /proc")
    (kept := tmp_path / "kept").touch()
    with record_opened_files() as files:
        watched.read_text()
        list(watched.parent.iterdir())
        kept.read_text()
    assert files == [str(kept)]
