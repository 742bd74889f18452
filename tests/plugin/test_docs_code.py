"""Code in the README and in docs/ runs, and the commands and settings in it exist."""

from __future__ import annotations

import functools
import io
import re
import runpy
import shlex
import subprocess
import sys
import tomllib

import api_page
import pytest
import yaml
from pages import DOCUMENTATION, ROOT, Block, blocks, commands, name
from projects import laplace
from shown import OUTPUT

import pytest_dp

EFFORT = ("--dp-max-samples=500", "--dp-margin=2", "--dp-jobs=1")
BROKEN_ON_PURPOSE = "README.md", "docs/tutorial.md"
"""Pages that show a failure; what they print is compared by tests of their own."""
SHELL = ("git", "cd", ".")
PAGES_WITH_PYTHON = [p for p in DOCUMENTATION if any(b.language == "python" for b in blocks(p))]


def test_each_block_is_of_a_kind_that_is_tested_or_says_why_not():
    for page in DOCUMENTATION:
        tested = ("python", "console", "toml", "yaml", "mermaid")
        if page == api_page.PAGE:
            tested += ("text", "pycon")  # of docstrings
        for block in blocks(page):
            assert block.mark in ("", "not run", *OUTPUT), block.where
            assert block.mark or block.file or block.language in tested, block.where


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_WITH_PYTHON, ids=name)
def test_python_blocks_run(page, project, few_pairs, monkeypatch):
    monkeypatch.setattr(pytest_dp, "audit", with_little_effort(pytest_dp.audit))
    monkeypatch.syspath_prepend(project.root)
    monkeypatch.setattr("sys.argv", ["a program", "1"])
    monkeypatch.setattr("sys.stdin", io.StringIO("[1, 0, 1]"))
    project.write("tests/__init__.py", imports="")
    for number, block in enumerate(blocks(page)):
        if block.language == "python" and block.mark != "not run":
            file = block.file or f"block_{number}.py"
            project.write(file, block.text, imports="")
            run(project, file, block, may_fail=name(page) in BROKEN_ON_PURPOSE)


def run(project, file: str, block: Block, *, may_fail: bool) -> None:
    """Audit the claims of a block and run its tests, or execute it if it has none."""
    if file == "conftest.py":
        file = project.write("test_any.py", laplace("claimed", 0.1)).name
        may_fail = True
    elif not re.search(r"@dp_claim|def test_|mark\.dp_claim", block.text):
        runpy.run_path(str(project.root / file), run_name="__main__")
        return
    result = project.run(file, *EFFORT)
    outcomes = result.parseoutcomes()
    assert "errors" not in outcomes, block.where
    assert "Error" not in result.stdout.str().partition("= FAILURES =")[2], block.where
    assert set(outcomes) - {"warning", "warnings"}, block.where
    assert may_fail or "failed" not in outcomes, block.where


def with_little_effort(audit):
    @functools.wraps(audit)
    def limited(mechanism, **keywords):
        return audit(mechanism, **{**keywords, "max_samples": 8_000, "n_jobs": 1})

    return limited


def all_blocks(language: str) -> list[Block]:
    return [b for page in DOCUMENTATION for b in blocks(page) if b.language == language]


def test_commands_exist(pytester):
    for block in all_blocks("console"):
        if block.mark != "not run":
            assert commands(block.text), block.where
            for command in commands(block.text):
                check(command, pytester)


def check(command: str, pytester) -> None:
    program, *arguments = shlex.split(command)
    if program == "python" and arguments[:1] == ["-m"]:
        _, program, *arguments = arguments
    if program == "pytest":
        pytester.parseconfig(*arguments)  # raises where an option is unknown
    elif program == "make":
        for target in arguments:
            rules = (ROOT / "Makefile").read_text()
            assert re.search(rf"^[\w ]*\b{target}\b[\w ]*:", rules, re.MULTILINE), command
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for asked in re.findall(r"pytest-dp\[([\w,]+)\]", command):
            assert set(asked.split(",")) <= set(extras["optional-dependencies"]), command
    else:
        assert program == "venv" or program in SHELL, command


def test_settings_exist(pytester):
    for block in all_blocks("toml"):
        pytester.path.joinpath("pyproject.toml").write_text(block.text)
        config = pytester.parseconfig("--strict-config")
        tools = tomllib.loads(block.text).get("tool", {})  # none in one about packaging
        for key, value in tools.get("pytest", {}).get("ini_options", {}).items():
            assert config.getini(key) in (value, [value]), (block.where, key)


def test_workflows_run_commands_that_exist(pytester):
    for block in all_blocks("yaml"):
        workflow = yaml.safe_load(block.text)
        found = [*scripts(workflow), *arguments_of_actions(workflow)]
        assert found, block.where
        for command in found:
            check(command, pytester)


FORMS = {
    ".github/workflows": "github-workflows",
    ".gitlab-ci.yml": "gitlab-ci",
    "action.yml": "github-actions",
    "dependabot.yml": "dependabot",
    "ISSUE_TEMPLATE/config.yml": "github-issue-config",
}


@pytest.mark.slow
@pytest.mark.parametrize("place", FORMS)
def test_workflows_have_the_form_that_their_service_reads(place, tmp_path):
    """By the schemas of others: what pages show, and what this repository and its example run."""
    for number, block in enumerate(block for page in DOCUMENTATION for block in blocks(page)):
        if block.language == "yaml" and block.file.startswith(place):
            (tmp_path / f"{number}.yml").write_text(block.text)
    for root in (ROOT, ROOT / "example_project"):
        for number, file in enumerate((root / ".github").rglob("*.yml")):
            if place in file.as_posix():
                (tmp_path / f"{root.name} {number}.yml").write_text(file.read_text())
    check = [sys.executable, "-m", "check_jsonschema", f"--builtin-schema=vendor.{FORMS[place]}"]
    found = sorted(tmp_path.iterdir())
    assert found
    done = subprocess.run([*check, *found], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_actions_of_others_are_pinned_by_commit():
    files = [*(ROOT / ".github").rglob("*.yml")]
    used = [each for file in files for each in re.findall(r"uses: (.*)", file.read_text())]
    assert used
    for each in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


def test_inputs_of_the_action_are_listed():
    page = (ROOT / "docs/how-to/ci.md").read_text()
    for given, about in action("dp-audit")["inputs"].items():
        default = f"`{about['default']}`" if about["default"] else "none"
        assert f"| `{given}` | {default} |" in page


def action(called: str):
    return yaml.safe_load((ROOT / f".github/actions/{called}/action.yml").read_text())


def arguments_of_actions(workflow):
    """What our own actions run, by what a workflow gives them."""
    for job in workflow.get("jobs", {}).values():
        for step in job["steps"]:
            ours = re.fullmatch(
                r"pytest-dp/pytest-dp/.github/actions/([\w-]+)@v1", step.get("uses", "")
            )
            if ours:
                given = step["with"]
                inputs = action(ours[1])["inputs"]
                assert set(given) <= set(inputs)
                values = {name: about["default"] for name, about in inputs.items()} | given
                yield f"pytest --dp-profile={values['profile']} {values['arguments']}"
                yield from filter(None, [values["install"]])


def scripts(workflow):
    """The commands of a workflow of GitHub or GitLab, or of hooks of pre-commit."""
    if isinstance(workflow, dict):
        for key, value in workflow.items():
            given = value if isinstance(value, list) else [value]
            yield from given if key in ("run", "script", "entry") else scripts(value)
    elif isinstance(workflow, list):
        for each in workflow:
            yield from scripts(each)
