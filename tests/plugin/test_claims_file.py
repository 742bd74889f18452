"""``dp-claims.json`` itself: how it is written, damaged, shown and looked for."""

from __future__ import annotations

import json

import pytest
from recorded import (
    COUNT,
    INI_FILE,
    MEAN,
    SHOP_FILE,
    TESTS_FILE,
    VISITORS,
    edit,
    entries,
    failed,
    mechanisms,
)

from pytest_dp.basics.errors import ClaimsFileError
from pytest_dp.records.entries import load_entries

pytestmark = pytest.mark.usefixtures("_without_blame")


@pytest.mark.slow
def test_an_update_says_what_it_changes_and_keeps_the_rest(shop):
    edit(
        shop,
        (SHOP_FILE, "eps=1.0", "eps=2.0"),
        (SHOP_FILE, "def visitors", "def guests"),
        (SHOP_FILE, "@dp_claim(rho", "# @dp_claim(rho"),
        (TESTS_FILE, "mu=1.0", "mu=2.0"),
    )
    before = entries(shop)
    assert shop.run("--dp-claims=update", "-k", "count").ret == 0
    after = entries(shop)
    assert after.pop("shop.py::count[eps=2.0]")["promise"] == {"eps": 2.0}
    assert after == {MEAN: before[MEAN]}, "what nobody claims any more is gone, others stay"
    result = shop.run("--dp-claims=update", SHOP_FILE, "-q", "-n", "1")
    guests = VISITORS.replace("visitors", "guests")
    assert list(entries(shop)) == ["shop.py::count[eps=2.0]", guests, MEAN]
    assert entries(shop)[guests] == before[VISITORS]
    assert f"  added: {guests}" in result.outlines
    assert failed(shop.run()) == mechanisms(MEAN)
    result = shop.run("--dp-claims=update", TESTS_FILE)
    assert f"  changed: {MEAN}" in result.outlines
    result = shop.run()
    assert result.ret == 0
    assert "dp-claims.json: 3 as on record" in result.outlines


@pytest.mark.parametrize(
    ("options", "ini", "message"),
    [
        (["--dp-claims=yes"], "", "--dp-claims: Invalid claims='yes'. Valid choices: 'auto', "),
        ([], "addopts = --dp-claims=off", "dp_claims=off stands in a file, where a change"),
        (["--dp-claims=update", "--co"], "", "--dp-claims=update: some claims are known only once"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(shop, options, ini, message):
    edit(shop, (INI_FILE, "", ini))
    result = shop.run(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}*"])
    assert "Traceback" not in result.stderr.str()


def test_a_missing_file_fails_where_it_has_to_be_there(shop):
    (shop.root / "dp-claims.json").unlink()
    edit(shop, (INI_FILE, "", "dp_claims=check"))
    result = shop.run("--color=yes", "-q")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*ERROR: dp-claims.json*", "  There is no dp-claims.json in *", "\x1b[[]31m*1 error*"]
    )
    edit(shop, (INI_FILE, "dp_claims=check", ""))
    assert shop.run().ret == 0


@pytest.mark.slow
def test_what_could_not_be_collected_is_not_gone(shop):
    edit(shop, (SHOP_FILE, "", "oops\n"))
    assert failed(shop.run("--continue-on-collection-errors")) == []
    result = shop.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert failed(result) == []
    before = entries(shop)
    result = shop.run("--dp-claims=update")
    result.stdout.fnmatch_lines(["dp-claims.json was not changed: this run did not end normally."])
    assert entries(shop) == before


@pytest.mark.slow
def test_what_a_crashed_worker_has_not_told_is_not_gone(shop):
    edit(
        shop, (TESTS_FILE, "def test_plain(): pass", "def test_plain(): __import__('os')._exit(3)")
    )
    result = shop.run("-n", "1", "--max-worker-restart=0", "-k", "plain", TESTS_FILE)
    assert result.ret == 1
    assert "crashed" in result.stdout.str()
    assert failed(result) == []


@pytest.mark.slow
def test_without_the_plugin_nothing_passes_where_claims_are_checked(shop):
    edit(shop, (INI_FILE, "", "addopts = -p no:dp\n"))
    result = shop.run_apart("--dp-claims=check")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--dp-claims=check" in result.stderr.str()


def test_a_run_that_stops_early_is_judged_by_what_it_has_seen(shop):
    edit(shop, (SHOP_FILE, "count(records, rng, size)", "count(records, rng)"))
    assert failed(shop.run("-x")) == []
    before = entries(shop)
    shop.run("-x", "--dp-claims=update")
    assert entries(shop)[VISITORS] == before[VISITORS], "what only an audit can tell stays"
    assert entries(shop)[MEAN] == before[MEAN]


DAMAGES = {
    "empty": ("", "is no JSON"),
    "cut short": ('{\n  "claims": {\n    "a.py::b": {\n', "is no JSON"),
    "no JSON": ("claims: yes", "is no JSON"),
    "of a newer version": ('{"claims": {}, "version": 2}', "is of version 2, written by a newer"),
    "merge conflict": (
        '{\n<<<<<<< ours\n  "claims": {},\n=======\n>>>>>>> theirs\n  "version": 1}',
        "is no JSON, as after a merge",
    ),
    "a claim twice": (
        '{"claims": {"a": {"promise": {"eps": 1}}, "a": {"promise": {"eps": 2}}}, "version": 1}',
        'says "a" twice.',
    ),
    "without a promise": ('{"claims": {"shop.py::count": {}}, "version": 1}', "has no promise for"),
    "an impossible promise": (
        json.dumps({"claims": {COUNT: {"promise": {"eps": -1}}}, "version": 1}),
        "is not a promise: Invalid eps=-1",
    ),
    "a claim that is a number": (json.dumps({"claims": {COUNT: 3}, "version": 1}), "has 3 for"),
    "examples that are a number": (
        json.dumps({"claims": {COUNT: {"promise": {"eps": 1}, "examples": 3}}, "version": 1}),
        "has examples=3",
    ),
}


def test_a_damaged_file_says_what_is_wrong_and_what_to_do(tmp_path):
    file = tmp_path / "dp-claims.json"
    for text, message in DAMAGES.values():
        file.write_text(text)
        with pytest.raises(ClaimsFileError) as error:
            load_entries(file)
        said = str(error.value)
        assert message in said
        assert any(word in said for word in ("git checkout", "Install")), said


def test_a_damaged_file_fails_the_run_and_no_test(shop):
    file = shop.root / "dp-claims.json"
    file.write_text("claims: yes")
    result = shop.run()
    assert (result.ret, result.parseoutcomes()) == (1, {"passed": 5, "errors": 1})
    result.stdout.fnmatch_lines(["ERROR: dp-claims.json", "  dp-claims.json is no JSON*"])
    assert shop.run("--dp-claims=update").ret == 1
    assert file.read_text() == "claims: yes", "what it had may be worth something"


def test_a_file_that_cannot_be_written_is_an_error_and_stays(shop, monkeypatch):
    edit(shop, (SHOP_FILE, "eps=1.0", "eps=2.0"))
    before = entries(shop)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pytest_dp.basics.whose_code.Path.replace", full)
    result = shop.run("--dp-claims=update")
    assert (result.ret, result.parseoutcomes()) == (1, {"passed": 5, "errors": 1})
    result.stdout.fnmatch_lines(["  dp-claims.json could not be written: *No space*"])
    assert entries(shop) == before
    assert not list(shop.root.glob(".dp-claims*")), "nothing is left behind"


@pytest.mark.slow
def test_a_violation_that_a_test_expects_is_no_claim(project):
    broken = "    dp_check(lambda d, rng: d + rng.laplace(scale=0.1))\n"
    marker = "@pytest.mark.dp_claim(eps=1.0, pairs=[(0, 1)], max_samples=600)\n"
    expecting = f"    with pytest.raises(PrivacyViolation):\n    {broken}"
    kept = ["test_b.py::test_kept", "test_c.py::test_kept"]
    project.write("test_a.py", f"{marker}def test_broken(dp_check):\n{expecting}")
    for file in ("test_b.py", "test_c.py"):
        project.write(file, f"{marker}def test_kept(dp_check):\n{broken}")
    project.run("--dp-claims=update").assert_outcomes(passed=1, failed=2)
    assert list(entries(project)) == kept
    project.write("test_b.py", f"{marker}def test_kept(dp_check):\n{expecting}")
    project.write("test_c.py", f"{marker}@pytest.mark.xfail\ndef test_kept(dp_check):\n{broken}")
    result = project.run()
    assert failed(result) == kept
    result.stdout.fnmatch_lines(["  not audited (violated: as the test expects)*"])
    result.stdout.fnmatch_lines(["  not audited (xfailed); *"])
