"""The identity of a project: another after each edit, and the same in every process and place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from pytest_dp.records import identity
from pytest_dp.records.identity import files_of, project_digest

FILES = {
    "pkg/__init__.py": "",
    "pkg/stats.py": "SCALE = 1.0  # of the noise\n",
    "pkg/rates.json": "[1, 2]",
    "README.md": "# A project",
    "setup.cfg": "[tool:pytest]",
}
SOURCES = sorted(set(FILES) - {"README.md"})


@pytest.fixture(autouse=True)
def _anew():
    project_digest.cache_clear()
    yield
    project_digest.cache_clear()


@pytest.fixture(params=["repository", "folder"])
def project(tmp_path, request):
    root = tmp_path / "here"
    write(root, FILES)
    if request.param == "repository":
        for arguments in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", "-C", root, *arguments], check=True)
    return root


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def digest(root):
    project_digest.cache_clear()
    return project_digest(root)


@pytest.mark.slow
def test_each_edit_gives_another_identity(project):
    before = digest(project)
    for name in SOURCES:
        (project / name).write_text(FILES[name] + "# a comment\n")
        after = digest(project)
        (project / name).unlink()
        assert len({before, after, digest(project)}) == 3
        write(project, FILES)
    assert digest(project) == before


def test_prose_caches_and_reports_are_no_source(project):
    before = digest(project)
    (project / "README.md").write_text("# Another text")
    write(project, {".dp/pairs/a.py": "x", ".cache/a": "x", "pkg/__pycache__/a.pyc": "x"})
    write(project, {".gitignore": "__pycache__\n", ".dp/.gitignore": "*\n"})
    assert files_of(project) == SOURCES
    assert digest(project) == before


def test_an_environment_inside_of_the_folder_is_no_source(tmp_path):
    write(tmp_path, FILES | {"env/pyvenv.cfg": "", "env/lib/a.py": "", "a.egg-info/PKG-INFO": ""})
    assert files_of(tmp_path) == SOURCES


@pytest.mark.slow
def test_it_is_the_same_in_every_process_and_place(project, tmp_path):
    shutil.copytree(project, tmp_path / "there")
    code = "import sys; from pathlib import Path; from pytest_dp.records.identity import *\n"
    code += "from pytest_dp.records.identity import project_digest\n"
    code += "print(project_digest(Path(sys.argv[1])))"
    told = set()
    for seed, root in (("1", project), ("2", tmp_path / "there")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "GIT_DIR": "nowhere"}
        command = [sys.executable, "-c", code, root]
        told.add(subprocess.check_output(command, env=environment))
    assert len(told) == 1


def test_an_imported_module_counts_wherever_it_lies(tmp_path, monkeypatch):
    write(tmp_path, {"here/stats.py": "", "elsewhere/noise.py": "SCALE = 1"})
    before = digest(tmp_path / "here")
    noise = ModuleType("noise")
    noise.__file__ = str(tmp_path / "elsewhere/noise.py")
    monkeypatch.setitem(sys.modules, "noise", noise)
    imported = digest(tmp_path / "here")
    write(tmp_path, {"elsewhere/noise.py": "SCALE = 2"})
    assert len({before, imported, digest(tmp_path / "here")}) == 3


def installed(name, version, origin=None):
    return SimpleNamespace(name=name, version=version, read_text=lambda file: origin)


def test_what_is_installed_counts(tmp_path, monkeypatch):
    lib = tmp_path / "lib"
    write(lib, {"lib.py": "x = 1"})
    editable = f'{{"url": "{lib.as_uri()}", "dir_info": {{"editable": true}}}}'

    def with_installed(*distributions):
        monkeypatch.setattr(identity.metadata, "distributions", lambda: iter(distributions))
        return digest(tmp_path / "here")

    (tmp_path / "here").mkdir()
    told = [
        with_installed(),
        with_installed(installed("numpy", "2.0")),
        with_installed(installed("numpy", "2.1")),
        with_installed(installed("numpy", "2.1", '{"vcs_info": {"commit_id": "abc"}}')),
        with_installed(installed("lib", "1.0", editable)),
    ]
    write(lib, {"lib.py": "x = 2"})
    told.append(with_installed(installed("lib", "1.0", editable)))
    assert len(set(told)) == len(told)
    two = installed("a", "1"), installed("b", "1", "damaged")
    assert with_installed(*two) == with_installed(*reversed(two))
