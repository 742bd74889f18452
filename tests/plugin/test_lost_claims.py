"""Claims that were declared and that no test came of are errors at their lines."""

from __future__ import annotations

import pytest
from projects import laplace

CLAIM = "@dp_claim(eps=1.0, pairs=[(0, 1)])\n"
PLAIN = "def noisy(d): return 0\n"
HIDING = """
def cached(function):
    def wrapper(*args): return function(*args)
    return wrapper

"""
KEEPING = HIDING.replace("    def", "    @functools.wraps(function)\n    def")

LOST = {
    "replaced by a function": CLAIM + PLAIN + PLAIN,
    "replaced by a proxy": CLAIM + PLAIN + "class Proxy:\n"
    "    def __getattribute__(self, name): raise RuntimeError('touched')\n"
    "noisy = Proxy()\n",
    "hidden by a decorator": HIDING + "@cached\n" + CLAIM + PLAIN,
    "a loop": "for eps in (1.0, 2.0):\n    @dp_claim(eps=eps, pairs=[(0, 1)])\n    " + PLAIN,
    "a list": "def make():\n    " + CLAIM + "    " + PLAIN + "    return noisy\nmade = [make()]\n",
    "single dispatch": "import functools\n@functools.singledispatch\ndef noisy(d): return 0\n"
    "@noisy.register\n" + CLAIM + "def _(d: int): return 1\n"
    "@noisy.register\ndef _(d: list): return 2\n",
}

KEPT = {
    "functools.wraps": "import functools\n" + KEEPING + "@cached\n" + CLAIM + PLAIN,
    "stacked": CLAIM + CLAIM.replace("1.0", "2.0") + PLAIN,
    "made by a function": "def make():\n    " + CLAIM + "    " + PLAIN + "    return noisy\n"
    "first, second = make(), make()\n",
    "an import that failed": CLAIM + PLAIN + "try:\n    from nowhere import noisy\n"
    "except ImportError: pass\n",
    "in a test": "def test_it():\n    " + CLAIM + "    " + PLAIN + "    noisy(3)\n",
}

GONE = {
    "deleted": CLAIM + PLAIN + "del noisy\n",
    "never kept": "def make():\n    " + CLAIM + "    " + PLAIN + "    return 3\nmake()\n",
}


def lost(project, *options: str) -> list[str]:
    return [name for name in project.ids(*options) if "lost claim" in name]


@pytest.mark.parametrize("prefix", ["test", "shop"])
def test_a_lost_claim_is_an_error_at_its_line(project, prefix):
    """A file for each way to lose one, in tests and in source modules."""
    files = {f"{prefix}_{number}.py": name for number, name in enumerate(LOST)}
    paths = {file: project.write(file, LOST[name]) for file, name in files.items()}
    result = project.run("--dp-modules", "-k", "lost")
    reports = result.reprec.getreports("pytest_runtest_logreport")
    found = {report.nodeid.partition("::")[0]: report for report in reports if report.failed}
    assert found.keys() == files.keys()
    for file, name in files.items():
        assert found[file].nodeid.endswith("[lost claim]")
        text = " ".join(found[file].longreprtext.replace("\nE", "").split())
        assert "ClaimError: " in text
        assert "This claim is lost, so nothing would be audited" in text
        line = next(
            number
            for number, line in enumerate(paths[file].read_text().splitlines(), 1)
            if "dp_claim(" in line and "import" not in line
        )
        line += 3 * (name == "a list")  # where the function that makes it is called
        assert f"{file}:{line}: ClaimError" in text, name


def test_claims_that_are_tested_or_meant_to_go_are_none(project):
    files = {f"shop_{n}.py": name for n, name in enumerate((*KEPT, *GONE))}
    for file, name in files.items():
        project.write(file, {**KEPT, **GONE}[name], "def test_plain(): pass")
    ids = project.ids("--dp-modules")
    assert [name for name in ids if "lost claim" in name] == []
    claimed = {files[found.partition("::")[0]] for found in ids if "eps=" in found}
    assert claimed == KEPT.keys() - {"in a test"}


@pytest.mark.slow
def test_it_is_one_failure_under_doctests_too(project):
    project.write("test_a.py", '"""\n>>> 1\n1\n"""\n', CLAIM, PLAIN, PLAIN)
    result = project.run("--import-mode=importlib", "--doctest-modules")
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*ClaimError: This claim is lost, so nothing would be audited: *"])


def test_several_of_one_name_are_told_apart_by_their_lines(project):
    project.write("test_a.py", CLAIM, PLAIN, CLAIM, PLAIN, PLAIN)
    assert lost(project) == [f"test_a.py::noisy[lost claim, line {line}]" for line in (3, 7)]


@pytest.mark.parametrize(
    ("ini", "args", "told"),
    [
        ("", (), "no test audits the claims in shop.py: write dp_modules = true, and shop.py or *"),
        ("dp_modules = true\ntestpaths = test_a.py", (), "no test * write shop.py or its folder *"),
        ("dp_modules = true", (), ""),
    ],
)
def test_claims_that_were_imported_and_not_collected_are_told(project, ini, args, told):
    project.write("shop.py", laplace("count", 1.0))
    project.write("test_a.py", "from shop import count\ndef test_a(): pass\n", imports="")
    project.ini(*ini.splitlines())
    result = project.run("-q", "--deselect=shop.py", *args)
    assert result.ret == 0
    if told:
        result.stdout.fnmatch_lines([told])
    else:
        result.stdout.no_fnmatch_line("no test audits*")
