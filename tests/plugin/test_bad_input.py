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


@pytest.mark.spot(3)
@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (f"epz=1.0, {PAIR}", "A claim has no keyword 'epz'. Did you mean 'eps'?"),
        (f"eps=1.0, neighbours='any_two', {PAIR}", "Did you mean 'neighbors'?"),
        (f"eps=1.0, budget=3, {PAIR}", "Valid keywords: eps, delta, rho"),
        (PAIR, "A claim needs one of eps"),
        (f"eps=1.0, inputs=[[1]], {PAIR}", "inputs= or pairs=, one of the two; both given"),
        ("eps=1.0", "inputs= or pairs=, one of the two; neither given"),
        (f"eps=0, {PAIR}", "Invalid eps=0. Allowed: a finite number above 0"),
        (f"eps=-1.0, {PAIR}", "Invalid eps=-1.0."),
        (f"eps=float('nan'), {PAIR}", "Invalid eps=nan."),
        (f"eps=float('inf'), {PAIR}", "Invalid eps=inf."),
        (f"eps=True, {PAIR}", "Invalid eps=True."),
        (f"eps=None, {PAIR}", "A claim needs one of eps"),
        (
            f"eps='epsilon', {PAIR}",
            "Invalid eps='epsilon'. A name refers to a parameter in params=",
        ),
        (f"eps='1.0', {PAIR}", "Write eps=1.0, without quotes."),
        (f"eps='e', params={{'e': [-1]}}, {PAIR}", "Here eps is params['e']."),
        (f"eps=1.0, delta=2, {PAIR}", "Invalid delta=2."),
        (f"eps=1.0, alpha=0, {PAIR}", "Invalid alpha=0."),
        (f"eps=1.0, method='magic', {PAIR}", "Valid choices: 'sequential', 'statdp', 'dpsniper'."),
        (f"eps=1.0, method='DPSnipr', {PAIR}", "Did you mean 'dpsniper'?"),
        (f"eps=1.0, method=Sequential(classifier='aditive'), {PAIR}", "Did you mean 'additive'?"),
        (
            f"eps=1.0, method=Sequential(classifier=object()), {PAIR}",
            "It has no fit and no predict_proba.",
        ),
        (f"eps=1.0, features='max', {PAIR}", "Invalid features='max'. Allowed: a function of"),
        (
            f"eps=1.0, method=DPSniper(c=1), {PAIR}",
            "Invalid c=1. Allowed: a probability between 0 and 1, such as",
        ),
        (f"eps=1.0, method='sequentiel', {PAIR}", "Did you mean 'sequential'?"),
        (f"eps=1.0, floating_point=1, {PAIR}", "Invalid floating_point=1. Allowed: True or False"),
        (
            f"eps=1.0, method=Sequential(coupled=1), {PAIR}",
            "Invalid coupled=1. Allowed: True or False.",
        ),
        (
            f"eps=1.0, method=Sequential(coupled='no'), {PAIR}",
            "Invalid coupled='no'. Allowed: True or False.",
        ),
        (f"eps=1.0, max_samples=0.5, {PAIR}", "Invalid max_samples=0.5."),
        (f"eps=1.0, params={{'a': []}}, {PAIR}", "params['a'] is empty"),
        ("eps=1.0, pairs=[1, 2]", "Allowed: a non-empty list of pairs"),
        ("eps=1.0, inputs=queries(5), neighbors='any_two'", "does not fit inputs=queries(5)"),
        ("eps=1.0, inputs=[[1]]", "the claim must say which are neighbours"),
        ("eps=1.0, inputs=queries(5), neighbors='all_querys'", "Did you mean 'all_queries'?"),
        (
            "eps=1.0, neighbors='add_remove_one', pairs=[([1, 2], [3, 4])]",
            "pairs[0] is not a pair of neighbours under neighbors='add_remove_one'",
        ),
        (
            "eps=1.0, neighbors='replace_one', pairs=[([1], [2]), ([1], [])]",
            "pairs[1] is not a pair of neighbours under neighbors='replace_one'",
        ),
        (
            "eps=1.0, neighbors='replace_one', inputs='nowhere.at_all:x'",
            "there is no module 'nowhere.at_all'",
        ),
        ("eps=1.0, neighbors='replace_one', inputs='os:nothing'", "there is no 'nothing'"),
        ("eps=1.0, neighbors='replace_one', inputs='os.path'", 'Allowed: "module:attribute"'),
        ("eps=1.0, neighbors='replace_one', inputs=lambda: 1 / 0", "ZeroDivisionError"),
    ],
)
def test_claims_that_make_no_sense(project, claim, message):
    fails(project, run(project, claim), message)


RECORDS = "inputs=[[{'user_id': 7, 'paid': n} for n in range(1000)]]"
FEW = "inputs=[[1], [4]]"


@pytest.mark.spot(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "message"),
    [
        (f"{RECORDS}, neighbors=add_remove_one(unit='userid')", "Did you mean 'user_id'?"),
        (
            f"{RECORDS}, neighbors=add_remove_one(unit='user_id', rows=3)",
            "(1,000 records): user_id=7 has 1,000 rows, more than rows=3.",
        ),
        (f"{RECORDS}, neighbors=add_remove_one(rows=3)", "add_remove_one(rows=3) needs unit="),
        ("inputs=queries(5), neighbors=add_remove_one(unit='a')", "does not fit inputs=queries(5)"),
        (f"{FEW}, neighbors=add_remove_one(unit='user_id')", "the record 1 of [1] has no such"),
        (f"{FEW}, neighbors=lambda d: [d]", "yields D itself, for D = [1]"),
        (f"{FEW}, neighbors=lambda d: d", "yields 1, of type int, as a neighbour of D = [1]"),
        (f"{FEW}, neighbors=lambda a, b: False", "accepts or yields none. Write examples that"),
        (
            f"{FEW}, neighbors=lambda d: (x for x in iter(int, 1) if x), max_seconds=1",
            "no pairs wi",
        ),
        ("inputs=lambda: (x for x in iter(int, 1) if x), max_seconds=1", "no pairs within max_sec"),
        ("neighbors='add_remove_one', pairs=lambda: [([1], [2])]", "pairs[0] is not a pair of n"),
        ("neighbors='replace_special', inputs=['abc']", "'abc' cannot hold missing values"),
        (f"{FEW}, neighbors=replace_one(group='k')", "Invalid group='k'."),
    ],
)
def test_data_and_neighbours_that_make_no_sense(project, claim, message):
    fails(project, run(project, f"eps=1.0, {claim}"), message)


@pytest.mark.parametrize(
    ("signature", "more", "message"),
    [
        ("", "", "The mechanism is mechanism(), but a claim calls it as mechanism(data)"),
        ("d, scale", "", "missing a required argument: 'scale'"),
        ("d", ", params={'scale': 1}", "params has 'scale', but the mechanism is mechanism(d)"),
        ("d", ", vectorized='size'", "vectorized='size', but the mechanism is mechanism(d)"),
        ("d", ", rng='generator'", "rng='generator', but the mechanism is mechanism(d)"),
    ],
)
def test_signatures_that_do_not_fit(project, signature, more, message):
    fails(project, run(project, f"eps=1.0, {PAIR}{more}", signature), message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 0", "the mechanism returned a single value for size="),
        ("return rng.laplace(size=3)", "the mechanism returned 3 outputs for size="),
        ("return [rng.laplace()] * size", "the draws of a call share their noise"),
    ],
)
def test_vectorized_mechanisms_that_are_not(project, body, message):
    fails(project, run(project, f"eps=1.0, {PAIR}, vectorized=True", "d, rng, size", body), message)


@pytest.mark.parametrize("options", [[], ["--dp-jobs=2"]])
@pytest.mark.parametrize("vectorized", ["", ", vectorized='size'"])
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
    result.stdout.fnmatch_lines(["*ClaimError: @dp_claim cannot be attached to *len*"])
