"""The pytest plugin: options, collection, the fixture, and what is printed at the end.

This module is imported by every pytest run that has pytest-dp installed. It therefore imports
next to nothing; the rest of the plugin is loaded when the first claim is met.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_dp.basics import clocks  # noqa: F401  ahead of tests that move the time
from pytest_dp.claiming.setting_fields import OPTIONS, flag_of, shown_default
from pytest_dp.plugin import claim_session
from pytest_dp.plugin.claim_session import (
    MARKER,
    PLUGIN,
    ClaimSession,
    claim_session_of,
    claims_path,
    has_claims,
    option_or_ini,
    read_ini,
)

_MENTION = b"dp_claim"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Register the `ClaimSession`, and add an option and an ini key for each setting."""
    pluginmanager.register(ClaimSession(parser), PLUGIN)
    group = parser.getgroup("dp", "differential privacy claims (pytest-dp)")
    for name, field in OPTIONS.items():
        is_flag = field.kind == "flag"
        text = field.help if is_flag else f"{field.help} (default: {shown_default(field)})"
        kind: Any = "bool" if is_flag else "string"
        parser.addini(f"dp_{name}", text, type=kind, default=None)
        more: dict[str, Any] = {"action": "store_true"} if is_flag else {"metavar": "VALUE"}
        group.addoption(flag_of(name), dest=f"dp_{name}", default=None, help=text, **more)
    reports = "write a report: FILE ends in .html, .json, .sarif or .gitlab.json; may be repeated"
    group.addoption("--dp-report", metavar="FILE", action="append", help=reports)
    parser.addini("dp_report", "files of reports, one per line", type="linelist", default=None)
    group.addoption(
        "--dp-evidence", action="store_true", help="print the evidence of earlier runs, and exit"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Print the evidence of earlier runs and return 0 if ``--dp-evidence`` is given; else None."""
    if not config.option.dp_evidence:
        return None
    from pytest_dp.plugin.earlier import describe_evidence

    for line in describe_evidence(config):
        print(line)  # noqa: T201  as pytest --fixtures does
    return 0


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hook `pytest_dp_report`, which conftest.py and plugins can implement."""
    pluginmanager.add_hookspecs(claim_session)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and ``dp-claims.json``; raise UsageError for wrong options."""
    config.addinivalue_line(
        "markers", f"{MARKER}(eps, ...): a differential privacy claim, audited by pytest-dp."
    )
    collects_modules(config)  # a value that makes no sense is said now
    # Loaded by now only where conftest.py has registered a profile, or loaded one.
    profiles_in_use = "pytest_dp.claiming.settings" in sys.modules
    if profiles_in_use or any(
        option_or_ini(config, name) is not None
        for name in OPTIONS
        if name not in ("modules", "claims")
    ):
        from pytest_dp.plugin.options import configure

        configure(config)
    if may_compare_claims(config):
        from pytest_dp.plugin.claims_file import register_claims_file

        register_claims_file(config)


def may_compare_claims(config: pytest.Config) -> bool:
    """Return whether claims may be compared: there is a file of claims, or a setting names a mode.

    The mode may be "off" all the same: `register_claims_file` decides.
    """
    if config.option.dp_claims or read_ini(config, "claims"):
        return True
    return os.path.exists(claims_path(config))  # noqa: PTH110  that of Path may raise


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the seed and the cluster of this run to an xdist worker."""
    for name in ("seed", "backend"):
        node.workerinput[f"dp_{name}"] = getattr(node.config.option, f"dp_{name}", None)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return header lines for the profile, the cluster and the seed, each only if it is set."""
    seed = getattr(config.option, "dp_seed", None)
    profile = claim_session_of(config).profile
    backend = getattr(config.option, "dp_backend", None)
    lines = [f"dp: profile {profile}"] if profile else []
    lines += [f"dp: runs on {backend}"] if backend else []
    return lines + ([f"dp: seed {seed}; repeat this run with --dp-seed={seed}"] if seed else [])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for a source module that mentions a claim if ``dp_modules`` is set."""
    if file_path.suffix != ".py" or not collects_modules(parent.config):
        return None
    if _MENTION not in file_path.read_bytes():
        return None
    from pytest_dp.plugin.collect import make_source_module

    return make_source_module(file_path, parent)


def collects_modules(config: pytest.Config) -> bool:
    """Return whether source modules are collected; raise UsageError if the ini key is wrong."""
    return bool(getattr(config.option, "dp_modules", None) or read_ini(config, "modules"))


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> Generator[None, Any, Any]:
    """Return items for the claims on an object of a test module, then what pytest collects."""
    collected = yield
    if isinstance(collector, pytest.Module):
        claim_session_of(collector.config).searched.add(collector)
    if isinstance(collector, pytest.Module) and has_claims(obj):
        from pytest_dp.plugin.collect import claim_items

        items = claim_items(collector, name, obj)
        if items:
            others = [] if collected is None else collected
            return items + (others if isinstance(others, list) else [others])
    return collected


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests whose class or module has a claim that no test audits; only in whole runs."""
    marked = any(item.get_closest_marker(MARKER) is not None for item in items)
    # With ids and --lf, some tests of a class or module were not collected.
    is_partial = getattr(config.option, "lf", False) or any("::" in arg for arg in config.args)
    if marked and not is_partial:
        from pytest_dp.plugin.collect import refuse_unaudited

        refuse_unaudited(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compute the project's digest before the first run, if earlier evidence counts."""
    if "pytest_dp.plugin.options" in sys.modules:  # as an option was given, or a profile loaded
        from pytest_dp.plugin.options import accumulates, audits_only_changed

        if accumulates(session.config) or audits_only_changed(session.config):
            from pytest_dp.records.identity import project_digest

            project_digest(session.config.rootpath)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Add a failing item for each claim that a test module declared and then lost."""
    report = yield
    if report.passed and collector in claim_session_of(collector.config).searched:
        assert isinstance(collector, pytest.Module)
        declaration = sys.modules.get("pytest_dp.declaration")
        if declaration is not None and collector.obj.__name__ in declaration.DECLARED:
            from pytest_dp.plugin.collect import lost_items

            report.result += lost_items(collector, report.result)
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one item for each claim of a marked test, if it has several."""
    if "dp_check" in metafunc.fixturenames and metafunc.definition.get_closest_marker(MARKER):
        from pytest_dp.plugin.collect import parametrize

        parametrize(metafunc)


@pytest.fixture
def dp_check(request: pytest.FixtureRequest) -> Any:
    """Audit a mechanism against the claim of this test's ``dp_claim`` marker.

    ``dp_check(mechanism, **overrides)`` returns the `AuditResult`, or raises `PrivacyViolation`.
    """
    from pytest_dp.plugin.check import make_checker

    return make_checker(request)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget earlier audits of a marked test; raise ClaimError for a marker that is wrong."""
    if item.get_closest_marker(MARKER) is not None:
        from pytest_dp.plugin.check import reset_audits

        reset_audits(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the records of audits on the report of a test, which xdist workers send."""
    report = yield
    if item.get_closest_marker(MARKER) is not None:
        from pytest_dp.plugin.check import attach_records

        attach_records(item, call, report)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> Any:
    """Return letter and words for passes that are inconclusive, unchanged or broken outside."""
    if report.when != "call" or not report.passed or hasattr(report, "wasxfail"):
        return None
    records = getattr(report, "dp_records", ())
    if any(record["status"] == "inconclusive" for record in records):
        return "inconclusive", "I", ("INCONCLUSIVE", {"yellow": True})
    if records and all(record["status"] == "unchanged" for record in records):
        return "unchanged", "u", ("UNCHANGED", {"green": True})
    if any(record["beyond"] for record in records):
        return "outside the declared inputs", "b", ("BEYOND", {"yellow": True})
    return None


def pytest_unconfigure() -> None:
    """Stop the worker processes of audits."""
    if "pytest_dp.running.workers" in sys.modules:
        sys.modules["pytest_dp.running.workers"].stop()
