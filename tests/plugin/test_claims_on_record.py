"""Claims on record in ``dp-claims.json``: what fails a run, and what does not."""

from __future__ import annotations

import pytest
from recorded import (
    ALL,
    COUNT,
    DROPPED,
    INI_FILE,
    MEAN,
    QUICK_AUDITS,
    SHOP,
    SHOP_FILE,
    SKIP,
    TESTS_FILE,
    TOTAL,
    VISITORS,
    edit,
    failed,
)

GONE = "\n".join(SHOP.splitlines()[14:17])
WEAKENED = {
    "eps up": ([(SHOP_FILE, "eps=1.0", "eps=1.1")], [COUNT]),
    "a delta": ([(SHOP_FILE, "eps=1.0", "eps=1.0, delta=1e-9")], [COUNT]),
    "delta up": ([(SHOP_FILE, "1e-6", "1e-5")], [VISITORS]),
    "rho up": ([(SHOP_FILE, "rho=0.5", "rho=0.6")], [TOTAL]),
    "mu up": ([(TESTS_FILE, "mu=1.0", "mu=1.1")], [MEAN]),
    "a weaker notion": ([(SHOP_FILE, "eps=1.0", "eps=1.0, delta=0.1")], [COUNT]),
    "a notion that cannot be compared": (
        [(SHOP_FILE, "rho=0.5", "guarantee=RenyiDP({2: 0.1})")],
        [TOTAL],
    ),
    "other neighbours": ([(SHOP_FILE, '"add_remove_one"', '"replace_one"')], [COUNT]),
    "without unit": ([(SHOP_FILE, "unit=0, rows=2, ", "")], [VISITORS]),
    "fewer rows a unit": (
        [(SHOP_FILE, "rows=2", "rows=1"), ("boxes.py", ", (1, 'b')", "")],
        [VISITORS],
    ),
    "group down": ([(SHOP_FILE, ", group=2", "")], [VISITORS]),
    "alpha down": ([(SHOP_FILE, "eps=1.0", "eps=1.0, alpha=1e-9")], [COUNT]),
    "margin up": ([(SHOP_FILE, "margin=1.5", "margin=2.5")], [TOTAL]),
    "max_samples down": ([(SHOP_FILE, "=1000", "=900")], [COUNT]),
    "max_seconds down": ([(SHOP_FILE, "eps=1.0", "eps=1.0, max_seconds=9")], [COUNT]),
    "another method": ([(SHOP_FILE, "rho=0.5", "rho=0.5, method='statdp'")], [TOTAL]),
    "no search": ([(SHOP_FILE, "eps=1.0", "eps=1.0, search=()")], [COUNT]),
    "margin up in the ini file": ([(INI_FILE, "", "dp_margin = 2\n")], [COUNT, VISITORS, MEAN]),
    "alpha down by addopts": ([(INI_FILE, "", "addopts = --dp-alpha=1e-8\n")], ALL),
    "margin up by conftest.py": (
        [("conftest.py", "", "def pytest_configure(config): config.option.dp_margin = '3'\n")],
        ALL,
    ),
    "a profile for CI": (
        [("conftest.py", "", "import pytest_dp\npytest_dp.register_profile('ci', margin=3)\n")],
        [COUNT, VISITORS, MEAN],
    ),
    "a weaker claim for the fixture": (
        [(TESTS_FILE, "size=size))", "size=size), mu=2.0)")],
        [MEAN],
    ),
    "fewer examples": ([(SHOP_FILE, "[1, 0, 1], ", "")], [COUNT]),
    "other examples": ([(SHOP_FILE, "[1, 0, 1]", "[0, 0, 0]")], [COUNT]),
    "fewer lengths": ([(SHOP_FILE, "queries(2, 3)", "queries(2)")], [TOTAL]),
    "fewer pairs": ([(TESTS_FILE, ", ([2], [])", "")], [MEAN]),
    "fewer examples behind a name": ([("boxes.py", ", [(3, 'c')]", "")], [VISITORS]),
    "skipped": ([(SHOP_FILE, "# total\n", SKIP)], [TOTAL]),
    "skipped by its class": ([(TESTS_FILE, "# vendor\n", SKIP)], [MEAN]),
    "skipped by its module": (
        [(SHOP_FILE, "", f"pytestmark = {SKIP[1:]}")],
        [COUNT, TOTAL, VISITORS],
    ),
    "skipped by a condition": (
        [(SHOP_FILE, "# total\n", "@pytest.mark.skipif(True, reason='')\n")],
        [TOTAL],
    ),
    "skipped as it runs": (
        [(TESTS_FILE, "        dp_check", "        pytest.skip()\n        dp_check")],
        [MEAN],
    ),
    "the module skipped": (
        [(TESTS_FILE, "# vendor\n", "pytest.skip('slow', allow_module_level=True)\n")],
        [MEAN],
    ),
    "xfailed": ([(SHOP_FILE, "# total\n", "@pytest.mark.xfail(strict=False)\n")], [TOTAL]),
    "left out by addopts": (
        [
            (SHOP_FILE, "# total\n", "@pytest.mark.slow\n"),
            (INI_FILE, "", "addopts = -m 'not slow'\n"),
        ],
        [TOTAL],
    ),
    "deselected by addopts": ([(INI_FILE, "", f"addopts = --deselect={TOTAL}\n")], [TOTAL]),
    "dropped by conftest.py": ([("conftest.py", "", DROPPED.format("total"))], [TOTAL]),
    "ignored by conftest.py": (
        [("conftest.py", "", f"collect_ignore = [{SHOP_FILE!r}]\n")],
        ALL[:3],
    ),
    "the modules left out": ([(INI_FILE, "dp_modules = true\n", "")], ALL[:3]),
    "the decorator deleted": ([(SHOP_FILE, GONE, "def total(answers, rng, size):")], [TOTAL]),
    "the test deleted": (
        [
            (TESTS_FILE, "    # mean\n", "    '''"),
            (TESTS_FILE, "\ndef test_pl", "'''\ndef test_pl"),
        ],
        [MEAN],
    ),
    "the claim turned to a comment": ([(SHOP_FILE, "@dp_claim(rho", "# @dp_claim(rho")], [TOTAL]),
    "a claim that is not on record": (
        [(SHOP_FILE, "", "@dp_claim(eps=9.0, pairs=[(1, 2)])\ndef other(d): return d\n")],
        ["shop.py::other[eps=9.0]"],
    ),
    "renamed and weakened": (
        [(SHOP_FILE, "def count", "def number"), (SHOP_FILE, "eps=1.0", "eps=2.0")],
        [COUNT],
    ),
}


@pytest.mark.spot(3)
@pytest.mark.parametrize("name", WEAKENED)
def test_what_is_less_than_on_record_fails_the_run(shop, name):
    edits, claims = WEAKENED[name]
    edit(shop, *edits)
    result = shop.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert failed(result) == claims
    assert result.parseoutcomes()["failed"] == len(claims)
    assert "If that is meant:  pytest --dp-claims=update  and commit" in result.stdout.str()


HARMLESS = {
    "nothing": [],
    "formatting": [(SHOP_FILE, "    eps=1.0,\n    neighbors=", "    eps=1.0, neighbors=")],
    "comments": [(SHOP_FILE, "# how many", "# the number of ones"), (SHOP_FILE, "# total", "#")],
    "keywords reordered": [
        (SHOP_FILE, "    eps=1.0,\n", ""),
        (SHOP_FILE, "    max_samples=1000,\n", "    max_samples=1000,\n    eps=1.0,\n"),
    ],
    "the same number": [(SHOP_FILE, "eps=1.0", "eps=2 / 2")],
    "examples reordered": [(SHOP_FILE, "[[1, 0, 1], [1]]", "[[1], [1, 0, 1]]")],
    "examples by a name": [
        (SHOP_FILE, "[[1, 0, 1], [1]]", '"boxes:ones"'),
        ("boxes.py", "", "ones = [[1, 0, 1], [1]]\n"),
    ],
    "the mechanism changed": [(SHOP_FILE, "scale=1.0", "scale=1.5")],
    "a docstring": [(SHOP_FILE, "    # how many", "    '''How many.'''")],
    "a stronger promise": [
        (SHOP_FILE, "eps=1.0", "eps=0.9"),
        (SHOP_FILE, "scale=1.0", "scale=2.0"),
    ],
    "a stronger notion": [(SHOP_FILE, "rho=0.5", "mu=0.9")],
    "more effort": [(SHOP_FILE, "=1000", "=1100"), (SHOP_FILE, "margin=1.5", "margin=1.4")],
    "more inputs": [(SHOP_FILE, "[[1, 0, 1], [1]]", "[[1, 0, 1], [1], [0]]")],
    "more rows a unit": [(SHOP_FILE, "rows=2", "rows=3")],
    "renamed": [(SHOP_FILE, "def count", "def number")],
    "moved": [
        (SHOP_FILE, "# total", "'''"),
        (SHOP_FILE, "# visitors", "'''"),
        (TESTS_FILE, "", "\n".join(SHOP.splitlines()[14:19])),
    ],
    "a mark": [(SHOP_FILE, "# total\n", "@pytest.mark.slow\n")],
    "unused code": [(SHOP_FILE, "", "def other(): pass\n")],
    "another test": [(TESTS_FILE, "", "def test_other(): pass\n")],
    "a profile for a desk": [
        ("conftest.py", "", "import pytest_dp\npytest_dp.register_profile('dev', margin=9)\n")
    ],
}


@pytest.mark.spot(3)
@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_less_passes(shop, name):
    edit(shop, *HARMLESS[name])
    result = shop.run()
    assert failed(result) == []
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["dp-claims.json: *"])
    for word in ("stronger", "renamed"):
        stated = f"  {word}: " in result.stdout.str()
        assert stated == (
            word in name
            or (word == "renamed" and name == "moved")
            or (word == "stronger" and name.startswith("more"))
        ), word


@pytest.mark.spot(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "failing"),
    [
        ([], [COUNT, TOTAL]),
        (["-n", "1"], [COUNT, TOTAL]),
        (["-k", "count"], [COUNT]),
        (["-k", "visitors"], []),
        (["-m", "not dp_claim"], []),
        ([TESTS_FILE], []),
        ([VISITORS], []),
        ([SHOP_FILE], [COUNT, TOTAL]),
        ([f"{SHOP_FILE}::total[rho=0.6]"], [TOTAL]),
        (["--deselect", "shop.py::total[rho=0.6]"], [COUNT]),
        (["--dp-claims=off"], []),
        (["--ignore", SHOP_FILE], []),
        (["--dp-max-samples=200", "-k", "visitors"], []),
        (["--dp-max-samples=200", "-k", "visitors", "-n", "1"], []),
        (["--dp-profile=dev", "-k", "visitors"], []),
    ],
)
def test_only_what_a_run_is_about_is_judged(shop, options, failing):
    edit(shop, (SHOP_FILE, "eps=1.0", "eps=2.0"), (SHOP_FILE, "rho=0.5", "rho=0.6"))
    result = shop.run(*options)
    assert failed(result) == failing
    assert result.ret == (1 if failing else 0)


MARKED = [(SHOP_FILE, "# total\n", "@pytest.mark.slow\n")]


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "failing"),
    [
        (["-m", "not slow"], [TOTAL]),
        (["-m", "not slow", "-n", "1"], [TOTAL]),
        (["-m", "slow"], []),
        (["-m", "not dp_claim"], []),
        ([], []),
    ],
)
def test_a_new_mark_hides_a_claim_from_runs_that_had_it(shop, options, failing):
    edit(shop, *MARKED)
    result = shop.run(*options)
    assert failed(result) == failing
    if failing:
        result.stdout.fnmatch_lines(["E  *not audited (deselected: by slow, with -m 'not slow');*"])
        shop.run("--dp-claims=update")
        assert failed(shop.run(*options)) == [], "a mark on record is no news"


ANNOUNCED = """
def pytest_collection_modifyitems(items, config):
    gone = [item for item in items if "total" in item.name]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]
"""


@pytest.mark.parametrize(
    ("conftest", "options", "failing"),
    [
        (DROPPED.format("total"), ["-m", "not slow"], [TOTAL]),
        (DROPPED.format("total"), ["-k", "count or total"], [TOTAL]),
        (DROPPED.format("total"), ["--group", "1"], []),
        (ANNOUNCED, [], [TOTAL]),
        (ANNOUNCED, ["-m", "not slow"], [TOTAL]),
        (ANNOUNCED, ["-k", "count or total"], []),
    ],
)
def test_what_others_leave_out_is_told_from_what_was_asked_for(shop, conftest, options, failing):
    shares = 'def pytest_addoption(parser): parser.addoption("--group")\n'
    edit(shop, ("conftest.py", "", shares + conftest))
    assert failed(shop.run(*options)) == failing


@pytest.mark.slow
def test_workers_tell_what_files_say_from_what_was_typed(shop):
    edit(shop, (INI_FILE, "", "addopts = --dp-margin=2\n"))
    assert failed(shop.run("-k", "visitors", "-n", "1", "--dp-max-samples=100")) == [VISITORS]
    assert failed(shop.run("-k", "visitors", "-n", "1", "--dp-margin=3")) == []


def test_a_profile_that_is_loaded_counts_in_ci(shop, monkeypatch):
    """Elsewhere, it may be that of a desk."""
    edit(shop, ("conftest.py", "", "import pytest_dp\npytest_dp.load_profile('dev')\n"))
    assert failed(shop.run("-k", "count")) == []
    monkeypatch.setenv("CI", "true")
    assert failed(shop.run("-k", "count")) == [COUNT]
    assert failed(shop.run("-k", "count", "--dp-profile=ci")) == [COUNT]


def test_the_profile_of_the_ini_file_counts_anywhere(shop):
    edit(shop, (INI_FILE, "", "dp_profile = dev\n"))
    assert failed(shop.run("-k", "count", "--dp-profile=nightly")) == [COUNT]


CODE = """
from functools import partial
from hypothesis import strategies as st
LIMIT = 3
RATES = {"low": [1, 2]}
def helper(output): return round(output, LIMIT)
def features(output): return [helper(output)]
def wide(output, by): return [output * by]
def small(value): return value < RATES["low"][1]
def neighbours(data): return [data[:-1]] if len(data) < LIMIT else []
@st.composite
def drawn(draw): return draw(st.lists(st.integers(0, 9), min_size=1))
class Model:
    classes_ = [0, 1]
    def fit(self, X, y): return self
    def predict_proba(self, X): return self.shared(X)
    def shared(self, X): return [[0.5, 0.5]] * len(X)
def scorer(): return Model()
"""
CLAIMED = """
import helping
@dp_claim(eps=1.0, pairs=[([1], [])], {}, max_samples=99)
def count(records, rng): return len(records) + rng.laplace()
"""
FILTERED = "inputs=helping.st.lists(helping.st.integers(0, 3).filter(helping.small))"
KEYWORDS = {
    "features": ("features=helping.features", "round(output, ", "round(1 + output, "),
    "a constant of features": ("features=helping.features", "LIMIT = 3", "LIMIT = 4"),
    "partial features": (
        "features=helping.partial(helping.wide, by=2)",
        "[output * by]",
        "[output + by]",
    ),
    "a method of a classifier": (
        "method=Sequential(classifier=helping.Model())",
        "[[0.5, 0.5]]",
        "[[0.4, 0.6]]",
    ),
    "a strategy": ("inputs=helping.drawn()", "0, 9", "0, 8"),
    "a filter": (
        FILTERED,
        "value < RATES",
        "value <= RATES",
    ),
    "what a filter reads": (
        FILTERED,
        "[1, 2]",
        "[1, 3]",
    ),
    "a map": (
        "inputs=helping.st.lists(helping.st.integers(0, 3).map(helping.helper))",
        "LIMIT)",
        "2)",
    ),
    "a lambda's global": (
        "inputs=helping.st.lists(helping.st.integers(0, 3).map(lambda x: x + helping.LIMIT))",
        "LIMIT = 3",
        "LIMIT = 4",
    ),
    "a constant of neighbours": (
        "inputs=[[1, 2], [1]], neighbors=helping.neighbours",
        "LIMIT = 3",
        "LIMIT = 2",
    ),
}


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", KEYWORDS)
def test_code_that_a_claim_is_made_of_is_on_record(project, few_pairs, name):
    keywords, old, new = KEYWORDS[name]
    if "inputs" in keywords and "neighbors" not in keywords:
        keywords += ", neighbors='add_remove_one'"
    claimed = CLAIMED.replace("{}", keywords)
    claimed = claimed.replace("pairs=[([1], [])], ", "") if "inputs" in keywords else claimed
    project.write("conftest.py", QUICK_AUDITS, imports="")
    project.write("helping.py", CODE, imports="")
    project.write("test_count.py", claimed)
    assert project.run("--dp-claims=update").ret == 0
    edit(project, ("test_count.py", "rng.laplace()", "rng.laplace(scale=2)"))
    edit(project, ("helping.py", "import st", "import st"), ("helping.py", "", "# a comment\n"))
    assert failed(project.run("--dp-claims=check")) == []
    edit(project, ("helping.py", old, new))
    assert failed(project.run("--dp-claims=check")) == ["test_count.py::count[eps=1.0]"]


PROFILE = "import pytest_dp\npytest_dp.register_profile({!r}, alpha={})\n"


@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("recorded", "now", "options", "failing"),
    [
        (PROFILE.format("release", 1e-4), PROFILE.format("release", 1e-300), ["release"], ALL),
        (PROFILE.format("release", 1e-4), PROFILE.format("release", 1e-300), [], []),
        (PROFILE.format("release", 1e-4), PROFILE.format("release", 1e-3), ["release"], []),
        (PROFILE.format("release", 1e-4), PROFILE.format("release", 1e-4), ["release"], []),
        ("", PROFILE.format("nightly", 1e-300), ["nightly"], ALL),
        ("", PROFILE.format("other", 1e-300), ["other"], ALL),
        ("", "", ["dev"], []),
    ],
)
def test_a_profile_of_the_project_that_is_chosen_is_on_record(
    shop, recorded, now, options, failing
):
    edit(shop, ("conftest.py", "", recorded))
    shop.run("--dp-claims=update")
    edit(shop, ("conftest.py", recorded, now))
    chosen = [f"--dp-profile={name}" for name in options]
    assert failed(shop.run("--dp-claims=check", *chosen)) == failing


NOTHING_RUNS = {
    "protocol": "def pytest_runtest_protocol(item, nextitem): return True\n",
    "loop": "def pytest_runtestloop(session): return True\n",
    "one": "def pytest_runtest_protocol(item): return True if 'total' in item.name else None\n",
    "no audit": (
        "def pytest_itemcollected(item):\n"
        "    if 'total' in item.name: item.runtest = lambda: None\n"
    ),
}


@pytest.mark.parametrize("name", NOTHING_RUNS)
def test_what_was_collected_and_not_run_is_noticed(shop, name):
    edit(shop, ("conftest.py", "", NOTHING_RUNS[name]))
    result = shop.run("--dp-claims=check")
    assert failed(result) == (ALL if name in ("protocol", "loop") else [TOTAL])
    assert result.ret == 1
    result.stdout.fnmatch_lines(["E   WeakenedClaim: not audited (*"])
