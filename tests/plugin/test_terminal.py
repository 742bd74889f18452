"""What a run looks like on a terminal: failures, the table, progress."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys

import pytest
from projects import laplace

from pytest_dp.plugin import check


@pytest.fixture
def shop(project):
    project.write("shop/stats.py", laplace("good", 1.0), laplace("broken", 0.2))
    project.ini("dp_modules = true")
    return project


def block(lines: list[str], title: str) -> list[str]:
    start = next(i for i, line in enumerate(lines) if line.strip("_ ") == title)
    end = next(i for i in range(start + 1, len(lines)) if lines[i].startswith(("___", "===")))
    return lines[start + 1 : end]


@pytest.mark.slow
def test_a_violation_shows_the_claim_the_counterexample_where_it_is_and_the_table(shop):
    result = shop.run()
    lines = block(result.outlines, "broken[eps=1.0]")
    assert lines[1].startswith("    @dp_claim(eps=1.0, ")
    assert lines[2] == "    def broken(records, rng, size):"
    shown = [line for line in lines[3:] if line.startswith("E")]
    assert re.fullmatch(
        r"E   PrivacyViolation: claimed eps = 1.0, but eps >= (2|3)\.\d+ \(99.9999 % confidence\)",
        shown[0],
    )
    assert [line for line in shown if line.startswith("E     D")]
    command = r'E   Reproduce:  pytest "shop/stats.py::broken\[eps=1.0\]" --dp-seed=\w+'
    assert any(re.fullmatch(command, line) for line in shown)
    assert shown[-1].startswith("E   Evidence: e-value ")
    bound = shown[0].partition(">= ")[2].partition(" ")[0]
    assert lines[-1] == (
        f"shop/stats.py:8: PrivacyViolation: claimed eps = 1.0, but eps >= {bound}"
    )
    source = shop.root.joinpath("shop/stats.py").read_text().splitlines()
    assert source[8 - 1] == lines[1].strip(), "the line is that of the decorator"
    assert all(len(line) <= 80 for line in shown)
    text = result.stdout.str()
    assert "\x1b" not in text
    assert "  method " not in text
    start = next(i for i, line in enumerate(result.outlines) if " privacy claims " in line)
    table = result.outlines[start:]
    assert all(len(line) <= 80 for line in table)
    rows = "\n".join(table)
    assert re.search(r"::good\s+eps 1.0 +(pass|weak)  (loss|detects) ", rows, re.M)
    assert re.search(r"::broken\s+eps 1.0 +VIOLATED  eps >= \d", rows, re.M)
    assert text.index("privacy claims") < text.index("short test summary info")


@pytest.mark.slow
@pytest.mark.usefixtures("_without_blame")
def test_verbose_adds_how_each_claim_was_audited_with_the_e_value_of_its_failure(shop):
    result = shop.run("-v")
    result.stdout.fnmatch_lines(
        ["good[[]eps=1.0]", "  method *sequential, alpha*", "  strongest *", "  seed *"]
    )
    lines = result.outlines
    [good, broken] = [line for line in lines if line.startswith("  e-value ")]
    number = r"[\d,.]+(?:e-?\d+)?"
    assert re.fullmatch(rf"  e-value      {number} after [\d,]+ samples", good)
    assert re.fullmatch(rf"  e-value      {number} after [\d,]+ samples", broken)
    [shown] = [line for line in block(lines, "broken[eps=1.0]") if "e-value" in line]
    assert "e-value {} ({} ".format(*broken.split()[1::2][:2]) in shown
    e_value = float(broken.split()[1].replace(",", ""))
    assert e_value >= 1e6, "refuted at 1 / alpha"


@pytest.mark.usefixtures("no_audits")
def test_every_traceback_style_shows_the_headline_and_none_of_our_frames(shop):
    plain = shop.run("-q", "--tb=no")
    plain.stdout.fnmatch_lines(
        ["FAILED shop/stats.py::broken[[]eps=1.0] - PrivacyViolation: claimed eps = 1*"]
    )
    assert "privacy claims" not in plain.stdout.str(), "-q leaves the table out"
    plain.stdout.fnmatch_lines(["privacy: 2 claims, 1 VIOLATED"])
    for style in ("line", "native"):
        result = shop.run(f"--tb={style}", "--color=yes")
        result.stdout.fnmatch_lines(["\x1b[[]3?m* pass  *\x1b[[]0m"])
        result.stdout.fnmatch_lines(["\x1b[[]31m\x1b[[]1m*VIOLATED  eps >= *\x1b[[]0m"])
        text = result.stdout.str()
        assert "PrivacyViolation: claimed eps = 1.0, but eps >= " in text
        assert "pytest_dp/" not in text


SLOW = """
@dp_claim(eps=1.0, pairs=[([1], [])], max_seconds=0.6)
def slow(d, rng):
    time.sleep(0.001)
    return len(d) + rng.gamma(1) - rng.gamma(1)  # Laplace noise, not traced
"""


@pytest.mark.slow
def test_no_progress_in_logs(project, monkeypatch):
    monkeypatch.setattr(check, "QUIET_SECONDS", 0.0)
    project.write("test_a.py", "import time", SLOW)
    assert " samples, " not in project.run("--color=yes").stdout.str()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_progress_on_a_real_terminal(project, monkeypatch):
    import pty

    monkeypatch.delenv("PY_COLORS")  # as pytester sets it

    project.write(
        "conftest.py",
        "import pytest_dp.plugin.check as progress\nprogress.QUIET_SECONDS = 0.0\n",
        imports="",
    )
    # Long enough to be seen on a busy machine, too.
    project.write("test_a.py", "import time", SLOW.replace("0.6", "1"))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(project.root)]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, cwd=project.root)
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # how a closed pseudo-terminal ends on Linux
        while chunk := os.read(ours, 4096):
            output += chunk
    os.close(ours)
    assert process.wait() == 0
    lines = output.decode().replace("\r", "").splitlines()
    [line] = [line for line in lines if line.startswith("test_a.py ")]
    assert re.search(r" samples, \d+ of 1 s", line)
    # What is drawn last takes the progress away, as the cursor moves back; I on a busy machine.
    *_, left = re.split(r"\x1b\[\d+D", line)
    assert re.fullmatch(r"\x1b\[K[.I] +\[100%\]", re.sub(r"\x1b\[\d*m", "", left))
