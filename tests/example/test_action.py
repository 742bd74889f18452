"""What runs on GitHub: the action's own script, and workflows that name what there is."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / ".github/actions/dp-audit/action.yml").read_text())
STEPS = {step.get("id") or step.get("name"): step for step in ACTION["runs"]["steps"]}
INSTALL = runpy.run_path(str(ROOT / ".github/actions/dp-audit/install.py"))
UV = INSTALL["UV"]
WORKFLOWS = [
    *(ROOT / ".github/workflows").glob("*.yml"),
    *(ROOT / "example_project/.github/workflows").glob("*.yml"),
]

STATS = """
from pytest_dp import dp_claim

@dp_claim(eps=1.0, pairs=[([1], [])], vectorized="size", max_samples=2000)
def count(records, rng, size):
    return len(records) + rng.laplace(scale={scale}, size=size)
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The claims of the project, as `--dp-claims=update` puts them on record."""
    project = tmp_path_factory.mktemp("recorded")
    (project / "test_stats.py").write_text(STATS.format(scale=1.0))
    update = [sys.executable, "-m", "pytest", "-q", "--dp-claims=update", f"--rootdir={project}"]
    subprocess.run(update, cwd=project, check=True, capture_output=True)
    return (project / "dp-claims.json").read_text()


@pytest.fixture
def audit(tmp_path, record):
    """Runs the action's audit in a project, as a job on GitHub would."""
    outputs, summary = tmp_path / "output", tmp_path / "summary.md"

    def run(scale, *, recorded=True, profile="ci", arguments="-q", path="./my project/", **given):
        project = tmp_path / "repository" / path
        project.mkdir(parents=True, exist_ok=True)
        (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
        (project / "test_stats.py").write_text(STATS.format(scale=scale))
        outputs.write_text("")
        settings = {name: v for name, v in os.environ.items() if not name.startswith("PYTEST_")}
        settings |= {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(tmp_path / "repository"),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(summary),
            "PROFILE": profile,
            "ARGUMENTS": arguments,
            "PROJECT": path,
            "CATEGORY": given.get("category", ""),
            "AT_LEAST": given.get("at_least", ""),
            "BEYOND": given.get("beyond", ""),
            "RUNNER_TEMP": str(tmp_path / "temp"),
        }
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
        if recorded:
            (project / "dp-claims.json").write_text(record)
        command, texts = [*bash, STEPS["audit"]["run"]], {"capture_output": True, "text": True}
        done = subprocess.run(command, cwd=project, env=settings, check=False, **texts)
        return done, outputs.read_text().splitlines(), project

    return run


bash_only = pytest.mark.skipif(shutil.which("bash") is None, reason="the action's script is bash")


@bash_only
def test_a_night_on_a_sound_project_is_green_and_leaves_reports_and_evidence(audit, tmp_path):
    done, outputs, project = audit(1.0, profile="nightly", arguments="-q -m dp_claim")
    assert done.returncode == 0, done.stdout + done.stderr
    reports = tmp_path / "temp/dp-reports/pytest-dp-my-project-nightly"
    assert outputs == [
        f"reports={reports}",
        "category=pytest-dp/my project",
        "artifact=pytest-dp-my-project-nightly",
    ]
    assert {file.name for file in reports.iterdir()} == {"dp.json", "dp.sarif", "dp.html"}
    assert json.loads((reports / "dp.sarif").read_text())["runs"][0]["results"] == []
    assert "## ✅ Privacy: " in (tmp_path / "summary.md").read_text()
    assert list((project / ".dp").rglob("*.json"))
    assert STEPS["Save evidence"]["with"]["path"].endswith("}}/.dp")
    assert STEPS["Restore evidence"]["with"] == STEPS["Save evidence"]["with"] | {
        "restore-keys": "dp-evidence-${{ inputs.path }}-"
    }


@bash_only
def test_claims_that_are_broken_and_that_nobody_recorded_are_red(audit):
    done, outputs, _ = audit(0.2, recorded=False)
    assert done.returncode == 1
    reports = Path(outputs[0].removeprefix("reports="))
    assert "There is no dp-claims.json" in done.stdout
    (line,) = re.findall(r"^::error file=(.*),line=4,", done.stdout, re.M)
    [run] = json.loads((reports / "dp.sarif").read_text())["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    [place] = [place for place in places if place["region"] == {"startLine": 4}]
    assert place["artifactLocation"]["uri"] == line.replace(" ", "%20")
    assert line == "my project/test_stats.py"


@bash_only
@pytest.mark.parametrize(("at_least", "code"), [("inconclusive", 0), ("fair", 1)])
def test_what_fails_beside_violations_is_chosen(audit, at_least, code):
    few = "-q --dp-max-samples=600 --dp-claims=off"
    not_traced = "1.0 + 0 * rng.random()"
    done, *_ = audit(not_traced, recorded=False, arguments=few, at_least=at_least, beyond="fail")
    assert done.returncode == code


GROUPS = '[project]\nname = "a"\n[dependency-groups]\ndev = []\ntest = []'
EXTRAS = '[project]\nname = "a"\n[project.optional-dependencies]\ndev = []'


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"pyproject.toml": GROUPS}, ["install --editable . --group test"]),
        ({"pyproject.toml": EXTRAS}, ["install --editable .[dev]"]),
        (
            {"setup.py": "", "requirements-dev.txt": "", "requirements.txt": ""},
            ["install --editable . --requirement requirements-dev.txt pytest"],
        ),
        ({"pyproject.toml": GROUPS, "../uv.lock": ""}, ["install uv", f"sync {' '.join(UV)}"]),
        (
            {"pyproject.toml": GROUPS, "poetry.lock": ""},
            ["install poetry", "install --all-extras"],
        ),
    ],
)
def test_a_project_is_installed_with_what_it_has(files, commands, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    project = tmp_path / "a"
    for name, text in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    found = INSTALL["commands"](project)
    assert [" ".join(command[3:]) for command in found] == commands


@bash_only
def test_options_that_make_no_sense_end_it_without_reports(audit):
    done, outputs, _ = audit(1.0, profile="nigthly")
    assert done.returncode == 4
    assert outputs == []
    assert "nightly" in done.stderr


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_run_what_there_is(file):
    workflow = yaml.safe_load(file.read_text())
    targets = set(re.findall(r"^([\w ]+):", (ROOT / "Makefile").read_text(), re.M))
    targets = {name for line in targets for name in line.split()}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "run" in step:
                tool, *names = step["run"].split()
                assert tool == "make"
                assert set(names) <= targets
            elif "dp-audit" in step["uses"]:
                assert set(step["with"]) <= set(ACTION["inputs"])


def test_every_input_is_used_and_no_text_of_others_becomes_a_script():
    text = yaml.safe_dump(ACTION["runs"])
    assert all(f"inputs.{name}" in text for name in ACTION["inputs"])
    assert not any("${{" in step.get("run", "") for step in STEPS.values())
