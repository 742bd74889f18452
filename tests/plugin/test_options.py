"""Options ``--dp-*`` and ini keys ``dp_*``: which one holds, and what a run makes of them."""

from __future__ import annotations

import re
import shlex

import pytest
from projects import QUICK, laplace

from pytest_dp import DPSniper, Sequential, StatDP

FEW = laplace("few", 1.0).replace("2000", "20")


@pytest.mark.parametrize(
    ("name", "option", "claim", "ini", "expected"),
    [
        ("alpha", "0.01", "alpha=0.02", "0.03", (0.01, 0.02, 0.03, 1e-6)),
        ("max_samples", "4e3", "max_samples=6000", "8_000", (4000, 6000, 8000, 400_000)),
        ("max_seconds", "0.5", "max_seconds=None", "none", (0.5, 1e9, 1e9, 60.0)),
        ("margin", "none", "margin=2", "3", (1.0, 2.0, 3.0, 1.25)),
        (
            "method",
            "statdp",
            "method=Sequential(coupled=False)",
            "dpsniper",
            (StatDP(), Sequential(coupled=False), DPSniper(), Sequential()),
        ),
        ("beyond", "off", "beyond='fail'", "fail", ("off", "fail", "fail", "tell")),
        ("seed", "8f2c", "", "ff", (0x8F2C, 255, 255, None)),
    ],
)
def test_the_command_line_beats_the_claim_beats_the_ini_file_beats_the_default(
    project, name, option, claim, ini, expected
):
    option, ini = f"--dp-{name.replace('_', '-')}={option}", f"dp_{name} = {ini}"
    settings = (
        project.settings(option, claim=claim, ini=ini)[0],
        project.settings(claim=claim, ini=ini)[0],
        project.settings(ini=ini)[0],
        project.settings()[0],
    )
    assert tuple(getattr(each, name) for each in settings) == expected


BAD = {
    "method=sniper": "Invalid method='sniper'. .*Did you mean 'dpsniper'?",
    "alpha=x": "Invalid alpha='x'. Allowed: a probability",
    "max-samples=0": "Invalid max_samples=0. Allowed: a whole number above 0",
    "max-seconds=soon": "Invalid max_seconds='soon'. Allowed: a number of seconds",
    "margin=no": "Invalid margin='no'. Allowed: a number above 1, such as 1.25, or None to use",
    "beyond=never": "Invalid beyond='never'. Valid choices: 'off', 'tell', 'fail'",
    "jobs=0": "Invalid jobs=0. Allowed: a whole number of processes",
    "seed=xyz": "Invalid seed='xyz'. .*, or 'random'; in options hexadecimal, as 8f2c",
    "at-least=good": "Invalid at_least='good'. Valid choices: 'inconclusive', 'weak', 'fair'",
    "profile=nigthly": "There is no profile 'nigthly'. Did you mean 'nightly'?",
}


def test_a_bad_value_is_a_usage_error_that_says_what_is_allowed(project):
    for option, said in BAD.items():
        message = re.escape(said).replace(r"\.\*", ".*")
        name, _, value = option.partition("=")
        with pytest.raises(pytest.UsageError, match=f"--dp-{name}: {message}"):
            project.settings(f"--dp-{option}")
        key = f"dp_{name.replace('-', '_')}"
        with pytest.raises(pytest.UsageError, match=f"ini key {key}: {message}"):
            project.settings(ini=f"{key} = {value}")


def test_a_usage_error_is_shown_as_one(project):
    result = project.run("--dp-method=magic")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --dp-method: Invalid method='magic'. Valid choices: *"])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.slow
def test_runs_agree_but_for_a_random_seed_which_is_shown_and_repeats_the_run(project):
    project.write(
        "test_a.py",
        """
        @dp_claim(eps=1.0, pairs=[([1], [])], max_samples=4_000)
        def good(records, rng): return len(records) + 2 * rng.standard_t(5)
        """,
    )
    plain = project.run()
    assert "dp: seed" not in plain.stdout.str()
    assert project.facts(plain) == project.facts(project.run())
    project.ini("dp_seed = random")
    first, second = project.run(), project.run()
    [command] = re.findall(r"repeat this run with (--dp-seed=\w+)", first.stdout.str())
    assert project.facts(first) != project.facts(second)
    assert project.facts(first) == project.facts(project.run(command))


@pytest.mark.slow
@pytest.mark.usefixtures("_without_blame")
def test_the_reproduce_line_of_a_failure_reproduces_it(project):
    project.write(
        "test_a.py",
        f"@pytest.mark.dp_claim(eps=1.0, {QUICK})\n"
        "def test_vendor(dp_check):\n"
        "    noisy = lambda d, rng, size: len(d) + rng.laplace(scale=0.2, size=size)\n"
        "    with pytest.raises(PrivacyViolation): dp_check(noisy)\n"
        "    dp_check(noisy)\n",
    )
    first = project.run()
    [command] = re.findall(r"Reproduce:\s+(?:E\s+)?pytest (.*)", first.stdout.str())
    nodeid, seed = shlex.split(command)
    again = project.run(nodeid, seed)
    again.assert_outcomes(failed=1)
    details = [project.facts(run)[nodeid][-1] for run in (first, again)]
    assert details[0] == details[1]


@pytest.mark.parametrize(
    ("option", "claim", "ini", "expected"),
    [
        ("weak", "at_least='fair'", "strong", "fair"),
        ("inconclusive", "", "fair", "inconclusive"),
        (None, "at_least='inconclusive'", "fair", "fair"),
        (None, "", "", "inconclusive"),
    ],
)
def test_of_what_a_run_and_a_claim_ask_of_a_pass_the_higher_grade_holds(
    project, option, claim, ini, expected
):
    options = [f"--dp-at-least={option}"] if option else []
    ini = f"dp_at_least = {ini}" if ini else ""
    assert project.settings(*options, claim=claim, ini=ini)[0].at_least == expected


@pytest.mark.slow
@pytest.mark.parametrize("in_ci", [True, False])
def test_what_nothing_is_known_of_fails_in_ci_with_its_remedy_and_warns_elsewhere(
    project, monkeypatch, in_ci
):
    let = laplace("let", 1.0, f"eps=1.0, at_least='inconclusive', {QUICK.replace('2000', '20')}")
    project.write("test_a.py", FEW, let, laplace("good", 1.0))
    if in_ci:
        monkeypatch.setenv("CI", "true")
    result = project.run()
    if not in_ci:
        assert result.parseoutcomes() == {"passed": 1, "inconclusive": 2, "warnings": 2}
        return
    outcomes = result.parseoutcomes()
    assert outcomes == {"passed": 1, "inconclusive": 1, "failed": 1, "warnings": 1}
    text = " ".join(line.removeprefix("E   ").strip() for line in result.outlines)
    assert (
        "max_samples=20 is too few: raise it at_least='weak' (profile ci) asks for a pass" in text
    )
    assert "ask for less, with at_least='inconclusive'." in text
