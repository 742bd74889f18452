"""Small projects, and what pytest says about them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import pytest_dp
from pytest_dp.claiming import settings as profiles
from pytest_dp.claiming.claim import expand
from pytest_dp.claiming.settings import Settings
from pytest_dp.plugin.options import accumulates, settings_of
from pytest_dp.records.identity import project_digest

IMPORTS = (
    "import pytest\nfrom pytest_dp import ClaimError, PrivacyViolation, dp_claim, queries, values, "
    "DPSniper, RenyiDP, Sequential, add_remove_one, replace_one\n"
)

QUIET = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:unraisableexception")
"""For runs inside this process: Hypothesis would be loaded again, and garbage collected five times
at the end of each.
"""
QUICK = 'pairs=[([1], [])], vectorized="size", max_samples=2000'


def laplace(name: str, scale: float, claim: str = f"eps=1.0, {QUICK}") -> str:
    """A vectorised count with Laplace noise, and one claim on it."""
    return (
        f"@dp_claim({claim})\n"
        f"def {name}(records, rng, size):\n"
        f"    return len(records) + rng.laplace(scale={scale}, size=size)\n\n"
    )


@contextmanager
def forgotten() -> Iterator[None]:
    """Profiles and digests of a run in this process, taken back as the end of a process does."""
    registered, loaded = dict(profiles._PROFILES), list(profiles._loaded)
    try:
        yield
    finally:
        profiles._PROFILES.clear()
        profiles._PROFILES.update(registered)
        profiles._loaded[:] = loaded
        project_digest.cache_clear()


class Project:
    """Files below a temporary directory, and pytest runs on them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.root: Path = pytester.path

    def write(self, path: str, *parts: str, imports: str = IMPORTS) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        body = "\n".join(textwrap.dedent(part) for part in parts)
        file.write_text(imports + body if file.suffix == ".py" else body, encoding="utf-8")
        return file

    def ini(self, *lines: str) -> None:
        self.write("pytest.ini", "[pytest]\n" + "\n".join(lines) + "\n")

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in this process."""
        with forgotten():
            return self.pytester.runpytest_inprocess(*QUIET, *args)

    def settings(
        self, *options: str, claim: str = "", ini: str = "", conftest: str = ""
    ) -> tuple[Settings, bool]:
        """The settings of a claim with these keywords; whether evidence is kept."""
        self.ini(ini)
        self.write("conftest.py", conftest, imports="from pytest_dp import *\n")
        with forgotten():
            config = self.pytester.parseconfigure(*QUIET, *options)
            keywords = eval(f"dict({claim})", vars(pytest_dp))
            [claimed] = expand({"eps": 1.0, "pairs": [([1], [])], **keywords})
            return settings_of(config, claimed), accumulates(config)

    def run_apart(self, *args: str, timeout: float = 90) -> pytest.RunResult:
        """Run pytest in a process of its own."""
        return self.pytester.runpytest_subprocess(*args, timeout=timeout)

    def ids(self, *args: str) -> list[str]:
        """What is collected."""
        result = self.run("--collect-only", "-q", *args)
        return [line for line in result.outlines if "::" in line and " " not in line.split("[")[0]]

    def rows(self, result: pytest.RunResult) -> dict[str, list[dict]]:
        """The outcomes that travelled on the reports of a run in this process."""
        reports = result.reprec.getreports("pytest_runtest_logreport")
        return {r.nodeid: r.dp_records for r in reports if hasattr(r, "dp_records")}

    def facts(self, result: pytest.RunResult) -> dict[str, list[tuple]]:
        """The outcomes without the times, which differ from run to run."""
        wanted = (
            *("status", "seed", "method", "lower", "samples", "p_value", "e_value"),
            *("bet_samples", "resolution", "strongest", "notes", "details"),
        )
        return {
            nodeid: [tuple(row[key] for key in wanted) for row in rows]
            for nodeid, rows in self.rows(result).items()
        }

    def told(self, result: pytest.RunResult) -> list[list[str]]:
        """What ``-v`` tells about each claim below the table, its name first; without the times."""
        text = result.stdout.str().partition(" privacy claims ")[2].partition("\n===")[0]
        blocks = [block for block in text.split("\n\n") if "\n  method " in block]
        return [re.sub(r" in [\d.]+ m?s$", "", block, flags=re.M).splitlines() for block in blocks]

    def table(self, result: pytest.RunResult) -> list[str]:
        """The table of claims, without the times; empty if there is none."""
        lines = result.outlines
        start = next((i for i, line in enumerate(lines) if " privacy claims " in line), None)
        if start is None:
            return []
        table = []
        for line in lines[start + 1 :]:
            if line.startswith("===") or not line:
                break
            table.append(" ".join(re.sub(r" [\d.]+ m?s$", "", line).split()))
        return table
