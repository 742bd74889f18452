"""What the README shows is what a user gets."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_first_example_prints_what_the_readme_says(pytester, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code = next(block for block in blocks("python") if block.startswith("# stats.py"))
    shown = next(block for block in blocks("text") if block.startswith("stats.py"))
    pytester.path.joinpath("stats.py").write_text(code)
    printed = pytester.runpytest_subprocess("stats.py").stdout.str()
    assert without_times(shown) in without_times(printed)


def test_every_option_is_in_the_readme():
    from pytest_dp.keywords import KEYWORDS
    from pytest_dp.plugin import _OPTIONS

    for name, *_ in _OPTIONS:
        assert f"`--dp-{name.replace('_', '-')}`" in README
    for keyword in KEYWORDS:
        assert f"`{keyword}`" in README


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def without_times(text: str) -> str:
    return re.sub(r" +[\d.]+ m?s  ", "  TIME  ", text).rstrip()
