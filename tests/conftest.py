"""For all tests."""

import ctypes
import gc
import inspect
import os
import re
import sys
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings

from pytest_dp.claiming.settings import _CI_VARIABLES

pytest_plugins = ["pytester"]

OF_THE_MACHINE = ("BUILD_NUMBER", "PYTEST_ADDOPTS", "FORCE_COLOR", "NO_COLOR", "PY_COLORS")
"""Variables of the environment, besides those of CI, by which pytest and pytest-dp print or select
something else. Without the removal, a test passes at a desk and fails in CI.
"""
PREFIXES_OF_CI = ("GITHUB_", "CI_")
"""How names of further variables begin that CI sets: of the job, the branch, the workspace."""

MAX_ID_LENGTH = 60
"""Characters of the part of a test's id that one value gives. Longer ids fill a line each."""

for _name in {*os.environ}:
    if _name in {*_CI_VARIABLES, *OF_THE_MACHINE} or _name.startswith(PREFIXES_OF_CI):
        del os.environ[_name]

os.environ["PYTEST_DP_RAISE_FAULTS"] = "1"  # which a user's run would only note

# The same examples every time, and no limits by the clock: a red build means something.
settings.register_profile(
    "tests",
    settings.get_profile("default"),
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")


@pytest.fixture
def _without_blame(monkeypatch):
    """No lines to blame after a violation: for tests of hundreds of verdicts, which ask for none.

    Looking for them takes several times as long as a small audit does.
    """
    monkeypatch.setattr("pytest_dp.explain.blame_lines", lambda *_: ())


@pytest.fixture
def _by_samples(monkeypatch):
    """Nothing is known without a sample, for tests of what samples show.

    To enumerate outcomes takes most of the time of a short audit.
    """
    from pytest_dp.auditors.pairs_in_play import KnownLosses

    monkeypatch.setattr("pytest_dp.auditors.sequential.load_known_losses", lambda _: KnownLosses())


@pytest.fixture
def few_pairs(monkeypatch):
    """Strategies are drawn from less often before an audit: most of its time, where it is short."""
    monkeypatch.setattr("pytest_dp.pairs.generated.POOL", 30)


@pytest.fixture
def _verdict_only(monkeypatch, _without_blame):
    """Nor is a refuted claim shown on a smaller pair, or counted on held-out samples.

    The verdict of a sequential audit is known by then. For tests that ask for nothing else.
    """
    monkeypatch.setattr(
        "pytest_dp.auditors.violation_shown.shrink_pair", lambda game, state: (game, state)
    )
    monkeypatch.setattr("pytest_dp.auditors.violation_shown.find_attack", lambda *_: None)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name cases by their values where pytest would number them, such as ``keywords7``.

    None leaves the name to pytest: of numbers and texts, and where a value has no short text that
    is the same in all processes, as of sets.
    """
    if val is None or isinstance(val, str | bytes | bool | int | float | complex | re.Pattern):
        return None
    try:
        if has_no_short_text(val):
            return None
        if isinstance(val, dict) and val and all(isinstance(key, str) for key in val):
            text = ", ".join(f"{key}={in_short(value)}" for key, value in val.items())
        else:
            text = in_short(val)
    except Exception:  # a repr that fails is what some tests are about
        return None
    is_plain = text.isascii() and " at 0x" not in text and "\n" not in text
    return text if is_plain and len(text) <= MAX_ID_LENGTH else None


def has_no_short_text(value: object) -> bool:
    """Return whether a value is a set, or too long for an id, or holds such a value."""
    if isinstance(value, set | frozenset):
        return True
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return len(value) > MAX_ID_LENGTH or any(map(has_no_short_text, value))
    return False


def in_short(value: object) -> str:
    """Return a value as code: the name of a function, the body of a lambda alone in its line.

    Of other lambdas the repr, which has an address.
    """
    if not inspect.isroutine(value) and not isinstance(value, type):
        return repr(value)
    name = getattr(value, "__name__", "<lambda>")
    if name != "<lambda>":
        return name
    _, _, body = inspect.getsource(value).partition("lambda")
    body = body.partition(":")[2]
    if "lambda" in body:
        return repr(value)
    depth = 0
    for at, letter in enumerate(body):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (depth == 0 and letter in ",\n"):
            return body[:at].strip()
    return body.strip()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as nightly what `make test` leaves out; the long ones first: none runs alone at the end.

    Of the cases of a slow test the first is run by day, or every n-th as its mark says; of the
    statistical tests, the first case of each canary.
    """
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("spot")
        is_statistical = item.path.parent.name == "statistical"
        is_long = is_statistical or item.get_closest_marker("slow")
        step = mark.args[0] if mark else sys.maxsize if is_long else 1
        if is_statistical and not item.get_closest_marker("canary"):
            item.add_marker("nightly")
        if step > 1 and not item.get_closest_marker("nightly"):
            function = item.nodeid.partition("[")[0]
            if seen[function] % step:
                item.add_marker("nightly")
            seen[function] += 1
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Each run of pytest inside this process collects garbage: not among thousands of tests."""
    _tidy()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After a module: audits fork this process, which takes the longer the more it holds."""
    if nextitem is not None and nextitem.path != item.path:
        _tidy()


def _tidy() -> None:
    """Free what is not needed any more, and look at none of the rest again."""
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # of another C library
            ctypes.CDLL(None).malloc_trim(0)
