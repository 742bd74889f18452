"""Facts about the run as a whole: the code, the project, and the profile."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from pytest_dp.plugin.options import profile_of


def about_run(config: pytest.Config) -> dict[str, str]:
    """Project, commit, branch and profile, as far as they are known."""
    root = config.rootpath
    known = {"project": _project(root), **_code(root), "profile": profile_of(config).name}
    return {name: said for name, said in known.items() if said}


def _project(root: Path) -> str:
    """The name by which a project is published, or that of its folder."""
    try:
        read = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
        return str(read["project"]["name"])
    except (OSError, ValueError, KeyError, TypeError):  # none, or one that says nothing of it
        return root.name


def _code(root: Path) -> dict[str, str]:
    """Commit and branch by git; what it does not know, by the variables of GitHub and GitLab."""
    commit, branch = _of_variables("GITHUB_SHA", "CI_COMMIT_SHA"), ""
    command = ["git", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, timeout=10, check=True, encoding="utf-8"
        )
    except (OSError, ValueError, subprocess.SubprocessError):  # no git, or no repository
        lines = []
    else:
        lines = done.stdout.splitlines()
    told = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    if told.get("branch.oid", "(initial)") != "(initial)":
        changed = any(not line.startswith("#") for line in lines)
        commit = told["branch.oid"] + (" with changes" if changed else "")
    if told.get("branch.head", "(detached)") != "(detached)":
        branch = told["branch.head"]
    of_ci = _of_variables("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")
    return {"commit": commit, "branch": branch or of_ci}


def _of_variables(*names: str) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
