"""Claims on record in ``dp-claims.json``: which runs fail, with which tests, and which do not."""

from __future__ import annotations

import pytest
from recorded import (
    ALL,
    COUNT,
    INI_FILE,
    MEAN,
    SHOP,
    SHOP_FILE,
    SKIP,
    TESTS_FILE,
    TOTAL,
    VISITORS,
    edit,
    failed,
    mechanisms,
)

LINES = SHOP.splitlines()
CLAIM_OF_TOTAL = "\n".join(LINES[14:17])
WEAKER = {
    "claims": (
        [
            (SHOP_FILE, "eps=1.0", "eps=1.1"),
            (SHOP_FILE, "queries(2, 3)", "queries(2)"),
            ("boxes.py", ", [(3, 'c')]", ""),
            (TESTS_FILE, "size=size))", "size=size), mu=2.0)"),
        ],
        ALL,
    ),
    "effort of the ini file": ([(INI_FILE, "", "dp_margin = 2\n")], [COUNT, VISITORS, MEAN]),
    "not on record": (
        [(SHOP_FILE, "", "@dp_claim(eps=9.0, pairs=[(1, 2)])\ndef other(d): return d\n")],
        ["shop.py::other"],
    ),
}


@pytest.mark.parametrize("name", WEAKER)
def test_a_claim_that_is_less_than_on_record_fails_its_test(shop, name):
    edits, claims = WEAKER[name]
    edit(shop, *edits)
    result = shop.run()
    assert failed(result) == mechanisms(*claims)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["failed"] == len(claims)
    assert "If this is intended:  pytest --dp-claims=update  and commit" in result.stdout.str()


HIDDEN = {
    "by marks": (
        [
            (SHOP_FILE, "# total\n", SKIP),
            (SHOP_FILE, "# visitors\n", "@pytest.mark.xfail(strict=False)\n"),
            (TESTS_FILE, "# vendor\n", SKIP),
        ],
        [TOTAL, VISITORS, MEAN],
    ),
    "with their modules": (
        [
            (SHOP_FILE, "", f"pytestmark = {SKIP[1:]}"),
            (TESTS_FILE, "# vendor\n", "pytest.skip('slow', allow_module_level=True)\n"),
        ],
        ALL,
    ),
    "by addopts": (
        [
            (SHOP_FILE, "# total\n", "@pytest.mark.slow\n"),
            (INI_FILE, "", f"addopts = -m 'not slow' --deselect={VISITORS}\n"),
        ],
        [TOTAL, VISITORS],
    ),
    "deleted": (
        [
            (SHOP_FILE, CLAIM_OF_TOTAL, "def total(answers, rng, size):"),
            (TESTS_FILE, "    # mean\n", "    '''"),
            (TESTS_FILE, "\ndef test_pl", "'''\ndef test_pl"),
        ],
        [TOTAL, MEAN],
    ),
    "never run": (
        [("conftest.py", "", "def pytest_runtest_protocol(item, nextitem): return True\n")],
        ALL,
    ),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_claim_that_is_audited_no_more_fails_the_run(shop, name):
    """What no test can fail with is told at the end, and makes no tests up."""
    edits, claims = HIDDEN[name]
    edit(shop, *edits)
    result = shop.run("--dp-claims=check")
    assert failed(result) == mechanisms(*claims)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "failed" not in result.parseoutcomes()
    assert "on record" in result.stdout.str()


def test_what_is_no_less_passes(shop):
    edit(
        shop,
        (SHOP_FILE, "    eps=1.0,\n    neighbors=", "    eps=2 / 2, neighbors="),
        (SHOP_FILE, "[[1, 0, 1], [1]]", '"boxes:ones"'),
        ("boxes.py", "", "ones = [[1], [1, 0, 1]]\n"),
        (SHOP_FILE, "    # how many", "    '''How many.'''"),
        (SHOP_FILE, "scale=1.0", "scale=1.5"),
        (SHOP_FILE, "# total\n", "@pytest.mark.slow\n"),
        (TESTS_FILE, "", "def test_other(): pass\n"),
        ("conftest.py", "", "import pytest_dp\npytest_dp.register_profile('dev', margin=9)\n"),
    )
    result = shop.run()
    assert result.ret == 0, result.stdout.str()
    assert "dp-claims.json: 4 as on record" in result.outlines


def test_what_is_stronger_passes_with_a_note(shop):
    edit(shop, (SHOP_FILE, "eps=1.0", "eps=0.9"))
    result = shop.run()
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "dp-claims.json: 3 as on record, 1 stronger",
            f"  stronger: {COUNT}: eps=1.0 -> eps=0.9",
            "To put that on record:  pytest --dp-claims=update  and commit dp-claims.json.",
        ]
    )


@pytest.mark.parametrize(
    ("options", "failing"),
    [
        (["-k", "visitors"], [TOTAL]),
        ([TESTS_FILE], []),
        ([SHOP_FILE], [COUNT, TOTAL]),
        (["--dp-claims=off"], []),
        ([f"{SHOP_FILE}::visitors", "--dp-max-samples", "200"], []),
    ],
)
def test_only_what_a_run_is_about_is_judged(shop, options, failing):
    edit(
        shop,
        (SHOP_FILE, "eps=1.0", "eps=2.0"),
        (SHOP_FILE, CLAIM_OF_TOTAL, "def total(answers, rng, size):"),
    )
    result = shop.run(*options)
    assert failed(result) == mechanisms(*failing)
    assert result.ret == (1 if failing else 0)


@pytest.mark.slow
def test_workers_tell_what_files_say_from_what_was_typed(shop):
    edit(shop, (INI_FILE, "", "addopts = --dp-margin=2\n"))
    weaker = shop.run("-k", "visitors", "-n", "1", "--dp-max-samples=100")
    assert failed(weaker) == mechanisms(VISITORS)
    assert "E     margin  1.25 -> 2.0  (weaker)" in weaker.outlines
    assert "max_samples" not in weaker.stdout.str().partition("WeakenedClaim")[2]


@pytest.mark.slow
def test_a_profile_that_is_loaded_counts_in_ci(shop, monkeypatch):
    """Elsewhere, it may be that of a desk."""
    edit(shop, ("conftest.py", "", "import pytest_dp\npytest_dp.load_profile('dev')\n"))
    assert failed(shop.run("-k", "count")) == []
    monkeypatch.setenv("CI", "true")
    assert failed(shop.run("-k", "count")) == mechanisms(COUNT)
    assert failed(shop.run("-k", "count", "--dp-profile=ci")) == mechanisms(COUNT)
    edit(shop, ("conftest.py", "pytest_dp.load", "# pytest_dp.load"))
    edit(shop, (INI_FILE, "", "dp_profile = dev\n"))
    assert failed(shop.run("-k", "count", "--dp-profile=nightly")) == mechanisms(COUNT)
