"""Claims that make no sense, each said at the decorated line; other tests go on."""

from __future__ import annotations

import pytest
from projects import laplace


def fails(project, *cases: tuple[str, str, str, str, str], options=()) -> pytest.RunResult:
    """Each claim fails with its message, at its line and without our frames; the rest passes.

    Each has keywords, a signature, a body, a message and the kind of error.
    """
    for number, (claim, signature, body, *_) in enumerate(cases):
        project.write(
            f"test_{number}.py",
            f"# a line above\n@dp_claim({claim})\ndef mechanism({signature}):\n    {body}\n",
            "def test_plain(): pass",
        )
    result = project.run(*options)
    result.assert_outcomes(failed=len(cases), passed=len(cases))
    texts = {r.nodeid.partition(":")[0]: r.longreprtext for r in result.reprec.getfailures()}
    rows = {name.partition(":")[0]: row for name, [row] in project.rows(result).items()}
    for number, (*_, message, kind) in enumerate(cases):
        file = f"test_{number}.py"
        assert f"E   {kind}: " in texts[file], message
        assert message in texts[file].replace("\n", " ")
        source = (project.root / file).read_text().splitlines()
        line = next(n for n, text in enumerate(source, 1) if text.startswith("@dp_claim"))
        assert texts[file].endswith(f"{file}:{line}: {kind}")
        assert (rows[file]["status"], rows[file]["line"]) == ("error", line)
    assert "pytest_dp/" not in result.stdout.str(), "none of our frames"
    assert "Error" in result.stdout.str().partition("short test summary info")[2]
    return result


PAIR = "pairs=[([1], [])]"


RECORDS = "inputs=[[{'user_id': 7, 'paid': n} for n in range(1000)]]"


CLAIMS = (
    (f"epz=1.0, {PAIR}", "A claim has no keyword 'epz'. Did you mean 'eps'?"),
    (f"eps=1.0, unit='user', {PAIR}", "Write neighbors=add_remove_one(unit='user')."),
    ("eps=1.0", "inputs= or pairs=, one of the two; neither given"),
    (f"eps='e', params={{'e': [-1]}}, {PAIR}", "Here eps is params['e']."),
    (
        "eps=1.0, neighbors='replace_one', pairs=[([1], [2]), ([1], [])]",
        "pairs[1] is not a pair of neighbours under neighbors='replace_one'",
    ),
    ("eps=1.0, neighbors='replace_one', inputs='os:nothing'", "there is no 'nothing'"),
    ("eps=1.0, neighbors='replace_one', inputs=lambda: 1 / 0", "ZeroDivisionError"),
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
)


@pytest.mark.slow
def test_claims_that_make_no_sense(project):
    fails(project, *((claim, "d, rng", "return 0", said, "ClaimError") for claim, said in CLAIMS))


BY_SIZE = ", vectorized='size'"


MECHANISMS = (
    ("", "", "0", "The mechanism is mechanism(), but a claim calls it as mechanism(data)"),
    ("d, scale", "", "0", "missing a required argument: 'scale'"),
    ("d", ", params={'scale': 1}", "0", "params has 'scale', but the mechanism is mechanism(d)"),
    ("d", BY_SIZE, "0", "vectorized='size', but the mechanism is mechanism(d)"),
    ("d", ", rng='gen'", "0", "rng='gen', but the mechanism is mechanism(d)"),
    ("d, rng, size", BY_SIZE, "0", "the mechanism returned a single value for size="),
    ("d, rng, size", BY_SIZE, "rng.laplace(size=3)", "the mechanism returned 3 outputs for size="),
)


def test_mechanisms_that_are_not_as_the_claim_says(project):
    cases = (
        (f"eps=1.0, {PAIR}{more}", signature, f"return {output}", message, "ClaimError")
        for signature, more, output, message in MECHANISMS
    )
    fails(project, *cases)


def test_a_mechanism_that_always_raises_shows_its_traceback(project):
    claim = f"eps=1.0, {PAIR}, max_samples=2000, vectorized='size'"
    body, message = "raise KeyError('no such patient')", "KeyError: 'no such patient'"
    case = (claim, "d, rng, size=1", body, message, "MechanismError")
    result = fails(project, case, options=["--dp-jobs=2"])
    result.stdout.fnmatch_lines(['*File "*test_0.py", line *, in mechanism', f"*{body}"])


def test_a_fixture_that_fails_leaves_the_claim_unaudited(project):
    project.write(
        "test_a.py",
        "@pytest.fixture(autouse=True)\ndef broken(): raise OSError('no database')\n",
        laplace("noisy", 1.0),
    )
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E*OSError: no database", "*::noisy * NOT AUDITED *"])


@pytest.mark.slow
def test_a_claim_on_something_that_takes_no_attributes(project):
    project.write("test_a.py", f"dp_claim(eps=1.0, {PAIR})(len)\n")
    result = project.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ClaimError: A claim cannot be attached to *len*"])
