"""Claims that make no sense, each said at the decorated line; other tests go on."""

from __future__ import annotations

import pytest
from projects import laplace


def fails(project, result, message: str, kind: str = "ClaimError") -> None:
    """One claim failed with this message, at its line and without our frames; the rest passed."""
    result.assert_outcomes(failed=1, passed=1)
    lines = result.outlines
    text = result.stdout.str()
    assert f"E   {kind}: " in text
    assert message in text.replace("\n", " ")
    source = (project.root / "test_a.py").read_text().splitlines()
    [place] = [line for line in lines if line.startswith("test_a.py:")]
    number = int(place.split(":")[1])
    assert source[number - 1].startswith("@dp_claim"), "at the decorated line"
    assert place == f"test_a.py:{number}: {kind}"
    assert "pytest_dp/" not in text, "none of our frames"
    assert "Error" in text.partition("short test summary info")[2]
    [row] = [
        row for rows in project.rows(result).values() for row in rows if row["status"] == "error"
    ]
    assert row["line"] == number


def run(project, claim: str, signature: str = "d, rng", body: str = "return 0", *options: str):
    project.write(
        "test_a.py",
        "import os, threading, time\n",
        f"# a line above\n@dp_claim({claim})\ndef mechanism({signature}):\n    {body}\n",
        "def test_plain(): pass",
    )
    return project.run(*options)


PAIR = "pairs=[([1], [])]"


RECORDS = "inputs=[[{'user_id': 7, 'paid': n} for n in range(1000)]]"


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (f"epz=1.0, {PAIR}", "A claim has no keyword 'epz'. Did you mean 'eps'?"),
        ("eps=1.0", "inputs= or pairs=, one of the two; neither given"),
        (f"eps='e', params={{'e': [-1]}}, {PAIR}", "Here eps is params['e']."),
        (
            "eps=1.0, neighbors='replace_one', pairs=[([1], [2]), ([1], [])]",
            "pairs[1] is not a pair of neighbours under neighbors='replace_one'",
        ),
        ("eps=1.0, neighbors='replace_one', inputs='os:nothing'", "there is no 'nothing'"),
        ("eps=1.0, neighbors='replace_one', inputs=lambda: 1 / 0", "ZeroDivisionError"),
        (f"eps=1.0, {RECORDS}, neighbors=add_remove_one(unit='userid')", "Did you mean 'user_id'?"),
        (
            f"eps=1.0, {RECORDS}, neighbors=add_remove_one(unit='user_id', rows=3)",
            "(1,000 records): user_id=7 has 1,000 rows, more than rows=3.",
        ),
        (
            "eps=1.0, inputs=lambda: (x for x in iter(int, 1) if x), max_seconds=1",
            "no pairs within max_sec",
        ),
        (
            "eps=1.0, inputs=[[1], [4]], neighbors=lambda d: (x for x in iter(int, 1) if x), "
            "max_seconds=1",
            "no pairs wi",
        ),
    ],
)
def test_claims_that_make_no_sense(project, claim, message):
    fails(project, run(project, claim), message)


BY_SIZE = ", vectorized='size'"


@pytest.mark.parametrize(
    ("signature", "more", "body", "message"),
    [
        ("", "", "", "The mechanism is mechanism(), but a claim calls it as mechanism(data)"),
        ("d, scale", "", "", "missing a required argument: 'scale'"),
        ("d", ", params={'scale': 1}", "", "params has 'scale', but the mechanism is mechanism(d)"),
        ("d", BY_SIZE, "", "vectorized='size', but the mechanism is mechanism(d)"),
        ("d", ", rng='gen'", "", "rng='gen', but the mechanism is mechanism(d)"),
        ("d, rng, size", BY_SIZE, "0", "the mechanism returned a single value for size="),
        (
            *("d, rng, size", BY_SIZE, "rng.laplace(size=3)"),
            "the mechanism returned 3 outputs for size=",
        ),
    ],
)
def test_mechanisms_that_are_not_as_the_claim_says(project, signature, more, body, message):
    result = run(project, f"eps=1.0, {PAIR}{more}", signature, f"return {body or 0}")
    fails(project, result, message)


@pytest.mark.parametrize(
    ("options", "vectorized"), [([], ""), (["--dp-jobs=2"], ", vectorized='size'")]
)
def test_a_mechanism_that_always_raises_shows_its_traceback(project, options, vectorized):
    signature = "d, rng, size=1"
    result = run(
        project,
        f"eps=1.0, {PAIR}, max_samples=2000{vectorized}",
        signature,
        "raise KeyError('no such patient')",
        *options,
    )
    fails(project, result, "KeyError: 'no such patient'", "MechanismError")
    result.stdout.fnmatch_lines(
        [
            '*File "*test_a.py", line *, in mechanism',
            "*raise KeyError('no such patient')",
        ]
    )


def test_outputs_that_never_vary_are_named(project):
    result = run(project, f"eps=1.0, {PAIR}, max_samples=2000")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*1 passed, 1 warning, 1 inconclusive*"])
    result.stdout.fnmatch_lines(["*returned the same value in all * runs: missing noise, *"])


def test_a_fixture_that_fails_leaves_the_claim_unaudited(project):
    project.write(
        "test_a.py",
        "@pytest.fixture(autouse=True)\ndef broken(): raise OSError('no database')\n",
        laplace("noisy", 1.0),
    )
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E*OSError: no database", "noisy*ERROR"])


def test_a_claim_on_something_that_takes_no_attributes(project):
    project.write("test_a.py", f"dp_claim(eps=1.0, {PAIR})(len)\n")
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ClaimError: A claim cannot be attached to *len*"])
