"""Profiles: settings under a name, and what beats them."""

from __future__ import annotations

import re

import pytest

from pytest_dp import ClaimError
from pytest_dp.claiming.settings import find_profile, register_profile

DEFAULT = [1.25, 60.0, None, "inconclusive", False, None]
CI = [1.25, 60.0, None, "weak", False, None]
DEV = [1.5, 20.0, None, "inconclusive", False, None]


def seen(project, *options: str, **given: str) -> list:
    """Margin, seconds, processes, least grade, accumulation and seed under these settings."""
    settings, accumulates = project.settings(*options, **given)
    effort = [settings.margin, settings.max_seconds, settings.jobs, settings.at_least]
    return [*effort, accumulates, settings.seed]


REGISTERED = (
    "register_profile('mine', parent='dev', max_seconds=7, at_least='fair', jobs=1, seed=255)"
)
MINE = [1.5, 7.0, 1, "fair", False, 255]


@pytest.mark.parametrize(
    ("options", "ini", "conftest", "expected"),
    [
        ([], "", "", DEFAULT),
        (["--dp-profile=dev"], "", "", DEV),
        ([], "dp_profile = dev", "", DEV),
        ([], "", "load_profile('dev')", DEV),
        (["--dp-profile=mine"], "", REGISTERED, MINE),
        (["--dp-profile=dev"], "", "register_profile('dev')", DEFAULT),
        (["--dp-profile=mine"], "dp_at_least = weak", REGISTERED, [*MINE[:3], "weak", *MINE[4:]]),
        (["--dp-profile=mine", "--dp-seed=1"], "dp_seed = 2", REGISTERED, [*MINE[:5], 1]),
    ],
)
def test_who_chooses_a_profile(project, options, ini, conftest, expected):
    assert seen(project, *options, ini=ini, conftest=conftest) == expected


@pytest.mark.parametrize(
    ("options", "claim", "ini", "margin", "seconds"),
    [
        (["--dp-profile=dev"], "max_seconds=9", "", 1.5, 9.0),
        (["--dp-profile=dev"], "margin=None", "", 1.0, 20.0),
        (["--dp-profile=dev", "--dp-margin=1.2"], "margin=1.1", "dp_margin = 1.3", 1.2, 20.0),
        (["--dp-profile=nightly"], "margin=1.5, max_seconds=9", "dp_margin = 3", 1.0, 9.0),
        (["--dp-profile=nightly", "--dp-margin=2"], "margin=1.5", "", 2.0, 60.0),
    ],
)
def test_the_claim_beats_the_profile_but_for_a_margin_that_is_lifted(
    project, options, claim, ini, margin, seconds
):
    assert seen(project, *options, claim=claim, ini=ini)[:2] == [margin, seconds]


@pytest.mark.parametrize("variable", ["CI", "TF_BUILD"])
def test_ci_has_a_profile(project, monkeypatch, variable):
    changed = "register_profile('ci', max_seconds=5)"
    assert seen(project) == DEFAULT
    monkeypatch.setenv(variable, "true")
    assert seen(project) == CI
    assert seen(project, conftest=changed)[1] == 5.0
    assert seen(project, ini="dp_profile = default", conftest=changed)[1] == 60.0
    monkeypatch.delenv(variable)
    assert seen(project, conftest=changed)[1] == 60.0


def test_a_profile_of_the_ini_file_that_is_none_is_a_usage_error(project):
    message = r"ini key dp_profile: There is no profile 'xyz'\.\nValid: default, dev"
    with pytest.raises(pytest.UsageError, match=message):
        project.settings(ini="dp_profile = xyz")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_sample": 3}, "no setting 'max_sample'. Did you mean 'max_samples'?"),
        ({"parent": "nigthly"}, "no profile 'nigthly'. Did you mean 'nightly'?"),
        ({"margin": 0.5}, "Invalid margin=0.5. Allowed: a number above 1"),
        ({"seed": -1}, "Invalid seed=-1. Allowed: a whole number, 0 or more, or 'random'"),
        ({"eps": 1.0}, "no setting 'eps'"),
    ],
)
def test_a_bad_profile_says_what_is_allowed(project, given, message):
    with pytest.raises(ClaimError, match=re.escape(message)):
        register_profile("bad", **given)
    with pytest.raises(ClaimError, match="no profile 'bad'"):
        find_profile("bad")


def test_none_leaves_a_setting_open_again(project):
    register_profile("child", parent="dev", changed=None)
    assert find_profile("child").values == {"margin": 1.5, "max_seconds": 20}
