"""Options ``--dp-*`` and ini keys ``dp_*``."""

from __future__ import annotations

import re
import shlex
import sys
from types import SimpleNamespace

import pytest
from projects import QUICK, laplace

from pytest_dp import DPSniper

PROBE = """
@pytest.mark.dp_claim(eps=1.0, pairs=[([1], [])], vectorized="size"{claim})
def test_a(dp_check, request):
    result = dp_check(lambda d, rng, size: len(d) + rng.laplace(size=size))
    with open("seen", "w") as file:
        print(result.alpha, result.samples, result.method, result.seed, file=file)
"""


def seen(project, *options: str, claim: str = "", ini: str = "") -> list[str]:
    """Alpha, samples, method and seed of one audit under these settings."""
    project.ini(ini)
    project.write("test_a.py", PROBE.format(claim=f", {claim}" if claim else ""))
    project.run(*options).assert_outcomes(passed=1)
    return (project.root / "seen").read_text().split()


@pytest.mark.slow
def test_the_command_line_beats_the_claim_beats_the_ini_file_beats_the_default(project):
    option, claim, ini = "--dp-alpha=0.01", "alpha=0.02", "dp_alpha = 0.03"
    few = "dp_max_samples = 3000\n"
    assert seen(project, option, claim=claim, ini=few + ini)[0] == "0.01"
    assert seen(project, claim=claim, ini=few + ini)[0] == "0.02"
    assert seen(project, ini=few + ini)[0] == "0.03"
    assert seen(project, ini=few)[0] == "1e-06"


@pytest.mark.spot(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "claim", "ini"),
    [
        ("--dp-max-samples=4000", "max_samples=6000", "dp_max_samples = 8_000"),
        ("--dp-max-samples=4e3", "max_samples=6000", "dp_max_samples = 8,000"),
    ],
)
def test_max_samples(project, option, claim, ini):
    assert 2000 < int(seen(project, option, claim=claim, ini=ini)[1]) <= 4000
    assert 4000 < int(seen(project, claim=claim, ini=ini)[1]) <= 6000
    assert 6000 < int(seen(project, ini=ini)[1]) <= 8000


@pytest.mark.slow
def test_method_and_seed(project):
    few = "dp_max_samples = 2000\n"
    assert seen(project, ini=few)[2] == "sequential"
    assert seen(project, "--dp-method=statdp", ini=few)[2] == "statdp"
    assert seen(project, ini=few + "dp_method = statdp")[2] == "statdp"
    assert seen(project, "--dp-seed=8f2c", ini=few + "dp_seed = 1")[3] == str(0x8F2C)
    assert seen(project, "--dp-seed=0", ini=few)[3] == "0"
    assert seen(project, ini=few + "dp_seed = ff")[3] == "255"


@pytest.fixture
def stand_in(monkeypatch):
    """An auditor in DP-Sniper's place, which draws nothing; the claims that it was given."""
    audited = []

    def audit(context):
        audited.append(context.claim)
        return context.result("no violation", lower=0.5, resolution=2.0)

    fake = SimpleNamespace(audit=audit)
    monkeypatch.setitem(sys.modules, "pytest_dp.auditors.dpsniper", fake)
    return audited


@pytest.mark.parametrize(
    ("option", "claim", "ini", "method"),
    [
        ([], "", "dp_method = dpsniper", "dpsniper"),
        ([], "method='dpsniper'", "", "dpsniper"),
        ([], "method='statdp'", "dp_method = dpsniper", "statdp"),
        ([], "method='sequential'", "dp_method = dpsniper", "sequential"),
        (["--dp-method=dpsniper"], "method='statdp'", "", "dpsniper"),
        (["--dp-method=statdp"], "method='dpsniper'", "", "statdp"),
    ],
)
def test_dpsniper_is_reached_from_everywhere(project, stand_in, option, claim, ini, method):
    few = "dp_max_samples = 2000\n"
    assert seen(project, *option, claim=claim, ini=few + ini)[2] == method
    assert len(stand_in) == (method == "dpsniper")


def test_the_keywords_of_dpsniper_travel_with_a_claim(project, stand_in):
    given = "method=DPSniper(c=0.01, classifier='logistic'), floating_point=True, features=abs"
    project.write("test_a.py", laplace("noisy", 1.0, f"eps=1.0, {QUICK}, {given}"))
    project.run().assert_outcomes(passed=1)
    seen(project, claim=given)
    for claim in stand_in:
        method = DPSniper(c=0.01, classifier="logistic")
        effort = {"method": method, "floating_point": True, "features": abs}
        assert claim.effort.items() >= effort.items()
    assert len(stand_in) == 2


def test_keywords_without_a_use_are_noted(project, stand_in):
    claim = f"eps=1.0, {QUICK}, method=DPSniper(c=0.5), features=float"
    project.write("test_a.py", laplace("noisy", 1.0, claim))
    for option, notes in (
        ("--dp-method=sequential", []),
        ("--dp-method=statdp", ["method statdp does not use features"]),
        ("--dp-method=dpsniper", []),
    ):
        result = project.run(option, "-v")
        result.assert_outcomes(passed=1)
        [[row]] = project.rows(result).values()
        assert [note for note in row["notes"] if "does not use" in note] == notes
        assert ("does not use" in result.stdout.str()) == bool(notes)


@pytest.mark.slow
def test_max_seconds_limits_the_audit(project):
    body = """
    import time
    @dp_claim(eps=1.0, pairs=[([1], [])]{claim})
    def slow(d, rng):
        time.sleep(0.002)
        return len(d) + rng.laplace()
    """
    seconds = {}
    for claim, options in (("", ["--dp-max-seconds=0.5"]), (", max_seconds=0.5", [])):
        project.write("test_a.py", body.format(claim=claim))
        result = project.run(*options)
        assert result.ret == 0
        [rows] = project.rows(result).values()
        seconds[claim] = rows[0]["seconds"]
    assert all(spent < 1.5 for spent in seconds.values())


@pytest.mark.spot(2)
@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--dp-jobs=2"]])
def test_a_slow_mechanism_still_gets_a_verdict_and_a_note(project, options):
    slow = """
    @dp_claim(eps=1.0, pairs=[([1], [])], max_seconds=1.5)
    def {}(d, rng):
        time.sleep({})
        return len(d) + rng.laplace(scale={})
    """
    mechanisms = ("good", 0.0005, 1), ("broken", 0.0005, 0.1), ("few", 0.2, 1)
    project.write("test_a.py", "import time", *(slow.format(*facts) for facts in mechanisms))
    result = project.run("-v", *options)
    counts = {"passed": 1, "failed": 1, "inconclusive": 1, "warnings": 1}
    assert result.parseoutcomes() == counts
    status = [row["status"] for [row] in project.rows(result).values()]
    assert status == ["no violation", "violated", "inconclusive"]
    good, broken, few = (" ".join(" ".join(lines).split()) for lines in project.told(result))
    for told in (good, few):
        assert re.search(r"note stopped after max_seconds=1.5, with [\d,]+ of 400,000", told)
    assert re.search(r"claimed eps = 1.0, but eps >.* e-value [\d.e]+ after [\d,]+ samples", broken)
    assert "e-value" not in few, "nothing was bet"
    assert "Error" not in result.stdout.str()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "--dp-method=magic",
            "Invalid method='magic'. Valid choices: 'sequential', 'statdp', 'dpsniper'.",
        ),
        ("--dp-method=sniper", "Invalid method='sniper'. *Did you mean 'dpsniper'?"),
        ("--dp-alpha=2", "Invalid alpha=2.0. Allowed: a probability between 0 and 1"),
        ("--dp-alpha=x", "Invalid alpha='x'. Allowed: a probability"),
        ("--dp-alpha=", "Invalid alpha=''. Allowed: a probability"),
        ("--dp-max-samples=1.5", "Invalid max_samples='1.5'. Allowed: a whole number above 0"),
        ("--dp-max-samples=0", "Invalid max_samples=0. Allowed: a whole number above 0"),
        ("--dp-max-samples=nan", "Invalid max_samples='nan'. Allowed: a whole number"),
        ("--dp-max-seconds=-1", "Invalid max_seconds=-1.0. Allowed: a number of seconds"),
        ("--dp-max-seconds=soon", "Invalid max_seconds='soon'. Allowed: a number of seconds"),
        ("--dp-jobs=0", "Invalid jobs='0'. Allowed: a whole number of processes"),
        ("--dp-jobs=two", "Invalid jobs='two'. Allowed: a whole number of processes"),
        ("--dp-seed=xyz", "Invalid seed='xyz'. Allowed: hexadecimal digits"),
        ("--dp-seed=-1", "Invalid seed='-1'. Allowed: hexadecimal digits"),
        ("--dp-seed=", "Invalid seed=''. Allowed: hexadecimal digits"),
    ],
)
def test_bad_values_are_usage_errors_that_say_what_is_allowed(project, option, message):
    project.write("test_a.py", "def test_plain(): pass", imports="")
    result = project.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    name = option.partition("=")[0]
    result.stderr.fnmatch_lines([f"ERROR: {name}: {message}*"])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dp_method = magic", "Invalid method='magic'. Valid choices:"),
        ("dp_alpha = 7", "Invalid alpha=7.0. Allowed:"),
        ("dp_alpha =", "Invalid alpha=''. Allowed:"),
        ("dp_max_samples = many", "Invalid max_samples='many'. Allowed:"),
        ("dp_max_seconds = 0", "Invalid max_seconds=0.0. Allowed:"),
        ("dp_jobs = -1", "Invalid jobs='-1'. Allowed:"),
        ("dp_seed = xyz", "Invalid seed='xyz'. Allowed:"),
        ("dp_accumulate = maybe", "invalid truth value 'maybe'. Allowed: true or false"),
        ("dp_strict = maybe", "invalid truth value 'maybe'. Allowed: true or false"),
        ("dp_modules = perhaps", "invalid truth value 'perhaps'. Allowed: true or false"),
    ],
)
def test_bad_ini_values_are_usage_errors_too(project, line, message):
    project.ini(line)
    project.write("test_a.py", "def test_plain(): pass", imports="")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: ini key {line.split()[0]}: {message}*"])


@pytest.mark.slow
@pytest.mark.parametrize(("ini", "options"), [("", ["--dp-seed=random"]), ("dp_seed=random", [])])
def test_a_random_seed_is_shown_and_repeats_the_run(project, ini, options):
    project.ini(ini)
    project.write("test_a.py", laplace("good", 1.0))
    first, second = project.run(*options), project.run(*options)
    [command] = re.findall(r"repeat this run with (--dp-seed=\w+)", first.stdout.str())
    assert project.facts(first) != project.facts(second)
    again = project.run(command)
    assert project.facts(again) == project.facts(first)


@pytest.mark.slow
def test_without_a_seed_the_header_says_nothing_and_runs_agree(project):
    project.write("test_a.py", laplace("broken", 0.2))
    first = project.run()
    assert "dp: seed" not in first.stdout.str()
    assert project.facts(first) == project.facts(project.run())


@pytest.mark.slow
def test_the_reproduce_line_of_a_failure_reproduces_it(project):
    project.write(
        "test_a.py",
        laplace("broken", 0.2),
        f"@pytest.mark.dp_claim(eps=1.0, {QUICK})\n"
        "def test_vendor(dp_check):\n"
        "    noisy = lambda d, rng, size: len(d) + rng.laplace(scale=0.2, size=size)\n"
        "    with pytest.raises(PrivacyViolation): dp_check(noisy)\n"
        "    dp_check(noisy)\n",
    )
    first = project.run()
    commands = re.findall(r"Reproduce:\s+(?:E\s+)?pytest (.*)", first.stdout.str())
    assert len(commands) == 2
    for command in commands:
        nodeid, seed = shlex.split(command)
        again = project.run(nodeid, seed)
        again.assert_outcomes(failed=1)
        details = [project.facts(run)[nodeid][-1] for run in (first, again)]
        assert details[0] == details[1]


@pytest.mark.parametrize(("ini", "options"), [("", ["--dp-strict"]), ("dp_strict = true", [])])
def test_strict_fails_inconclusive_audits(project, ini, options):
    project.ini(ini)
    project.write("test_a.py", laplace("few", 1.0).replace("2000", "20"), laplace("good", 1.0))
    result = project.run(*options)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["E   InconclusiveAudit: inconclusive: could not test eps = 1.0 with *", "few*inconclusive"]
    )
    assert "pytest_dp/" not in result.stdout.str()


@pytest.mark.parametrize("marker", [False, True])
@pytest.mark.parametrize("ini", ["", "filterwarnings = error"])
def test_inconclusive_audits_warn(project, marker, ini):
    few = laplace("few", 1.0).replace("2000", "20")
    if marker:
        few = (
            f"@pytest.mark.dp_claim(eps=1.0, {QUICK.replace('2000', '20')})\n"
            "def test_few(dp_check):\n"
            "    dp_check(lambda d, rng, size: len(d) + rng.laplace(size=size))\n"
        )
    project.ini(ini)
    project.write("test_a.py", few)
    result = project.run()
    counts = {"failed": 1} if ini else {"inconclusive": 1, "warnings": 1}
    assert result.parseoutcomes() == counts
    result.stdout.fnmatch_lines(["*InconclusiveWarning: test_a.py::*inconclusive: could not test*"])
    assert "pytest_dp/" not in result.stdout.str(), "nothing of ours is shown"


def test_help_lists_every_option_once(project):
    text = project.run("--help").stdout.str()
    for name in ("modules", "method", "alpha", "max-samples", "max-seconds", "jobs", "seed"):
        assert len(re.findall(rf"^  --dp-{name}\b", text, re.MULTILINE)) == 1
        assert f"dp_{name.replace('-', '_')} (" in text
