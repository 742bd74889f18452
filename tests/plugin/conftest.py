"""A small project for each test."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path

import pytest
from projects import Project
from recorded import BOXES, INI, INI_FILE, QUICK_AUDITS, SHOP, SHOP_FILE, TESTS, TESTS_FILE
from results import BROKEN, FOUND, PASSED

import pytest_dp.auditors
import pytest_dp.claiming.settings
from pytest_dp.pairs import Pair, resolve_promise


@pytest.fixture(scope="session", autouse=True)
def _loaded() -> None:
    """Load the package and the libraries of data before the first test, not at collection.

    Runs inside this process would load (and forget) what they use one by one, and are not to write
    compiled files.
    """
    for module in pkgutil.walk_packages(pytest_dp.__path__, "pytest_dp."):
        with suppress(ModuleNotFoundError):  # of an optional package
            import_module(module.name)
    for library in ("pandas", "polars"):
        import_module(library)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return an empty project; pytest runs on it as in a plain terminal of 80 columns."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    # A file that is changed within a second, to one as long, would be taken for the compiled one.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    registered = dict(pytest_dp.claiming.settings._PROFILES)  # a conftest.py may add to them
    monkeypatch.setattr(pytest_dp.claiming.settings, "_PROFILES", registered)
    return Project(pytester)


@pytest.fixture
def no_audits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, object]]:
    """Verdicts by the names of tests, in place of audits in this process: all are broken but some.

    The pairs that are told of: the first that follows from each claim.
    """
    told: list[tuple[object, object]] = []

    def run(claim, mechanism, settings, name, root, progress, past):
        promise = resolve_promise(claim.promise, root)
        given = promise.pairs or map(Pair.inputs.fget, promise.relation.pairs(promise.inputs[0]))
        pair = (*past.pairs(promise), *islice(given, 1))[0]
        d1, d2 = pair.inputs if isinstance(pair, Pair) else pair
        told.append((d1, d2))
        test = name.rpartition("::")[2]
        passes = any(word in test for word in ("good", "fine", "vendor"))
        found = None if passes else replace(FOUND, d1=d1, d2=d2)
        claim = replace(claim, promise=promise)
        return replace(PASSED if passes else BROKEN, claim=claim, name=name, counterexample=found)

    monkeypatch.setattr(pytest_dp.auditors, "run", run)
    return told


@pytest.fixture
def python():
    """Run a snippet in a fresh interpreter; its standard output."""

    def run(code: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=cwd,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture(scope="session")
def on_record():
    """The content of the file for the shop, once it was written."""
    return {}


@pytest.fixture
def shop(project, on_record):
    """A project whose claims are on record, and that is audited in no time, by workers too."""
    for path, text in ((SHOP_FILE, SHOP), (TESTS_FILE, TESTS)):
        project.write(path, text)
    project.write("boxes.py", BOXES, imports="")
    project.write(INI_FILE, INI)
    project.write("conftest.py", QUICK_AUDITS, imports="")
    file = project.root / "dp-claims.json"
    if not on_record:
        result = project.run("--dp-claims=update")
        assert result.parseoutcomes()["passed"] >= 1
        assert "failed" not in result.parseoutcomes()
        on_record["text"] = file.read_text()
    file.write_text(on_record["text"])
    return project
