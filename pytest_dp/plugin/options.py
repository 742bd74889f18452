"""From options, ini keys and profiles to the settings of a run, and to its cluster."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import pytest

from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.claim import Claim
from pytest_dp.claiming.setting_fields import FIELDS, GRADES, OPTIONS, flag_of
from pytest_dp.claiming.settings import (
    Profile,
    Settings,
    choose_profile,
    in_ci,
    profile_of_ci,
    read_text,
    settings_for,
)
from pytest_dp.plugin.claim_session import claim_session_of, option_or_ini, read_ini

STARTING_SECONDS = 25.0
"""Seconds in which a cluster has to answer. More: late errors; fewer: slow clusters fail."""
RETRIED = {"ray_remote_args": {"max_restarts": 3, "max_task_retries": 3}}
"""As Dask does: what a worker that died was doing is done again, so many times."""
_PACKAGES = {"dask": "distributed", "ray": "ray"}
"""The package that each backend of joblib needs."""


def configure(config: pytest.Config) -> None:
    """Check options, connect to the cluster, and draw the seed; raise UsageError for wrong ones."""
    profile = profile_of(config)
    if profile.values:
        claim_session_of(config).profile = profile.name
    _settings_of_run(config)  # values that make no sense are said now
    given = getattr(config, "workerinput", {})
    backend = given.get("dp_backend") or option_or_ini(config, "backend")
    if backend:
        config.option.dp_backend, processes = connect(config, str(backend))
        if option_or_ini(config, "jobs") is None:
            config.option.dp_jobs = str(processes)
    seed = option_or_ini(config, "seed")
    if seed is None:
        seed = profile.values.get("seed")
    if seed == "random":
        # An xdist worker is given the seed of the run.
        seed = given.get("dp_seed") or secrets.randbits(32)
    config.option.dp_seed = format(seed, "x") if isinstance(seed, int) else seed


def connect(config: pytest.Config, given: str) -> tuple[str, int]:
    """Run mechanisms on a cluster until pytest ends, by joblib's backends for Dask and Ray.

    ``"dask"`` and ``"ray"`` stand for a cluster that these find by themselves, else one on this
    machine; an address may follow, as in ``"dask=tcp://10.0.0.1:8786"``. Returns the option with
    which others reach the cluster, and its number of processes. Raises UsageError if there is no
    such backend, its package is not installed, or it does not answer.
    """
    name, _, address = given.partition("=")
    if name not in _PACKAGES:
        raise pytest.UsageError(
            f"--dp-backend={given}: there is no backend {name!r}. Allowed: dask or ray, with an "
            "address where there is one: --dp-backend=dask=tcp://10.0.0.1:8786."
        )
    stack = ExitStack()
    config.add_cleanup(stack.close)
    try:
        package = import_module(_PACKAGES[name])
        return (_use_dask if name == "dask" else _use_ray)(package, address, stack)
    except ImportError:
        problem = f"it needs the package {_PACKAGES[name]}, which is not installed. Run: "
        problem += f'pip install "pytest-dp[{name}]"'
    except (OSError, TimeoutError, ValueError) as error:
        problem = f"the cluster does not answer ({type(error).__name__}: {error}). Start it "
        problem += "first, or leave the address out for one on this machine."
    raise pytest.UsageError(f"--dp-backend={given}: {problem}")


def _use_dask(distributed: Any, address: str, stack: ExitStack) -> tuple[str, int]:
    """Connect to a Dask cluster, or start one, until `stack` ends; return its option and size."""
    import dask
    import joblib

    address = address or dask.config.get("scheduler-address", None) or ""
    if not address:
        cluster = distributed.LocalCluster(threads_per_worker=1, dashboard_address=None)
        address = stack.enter_context(cluster).scheduler_address
    client = distributed.Client(address, timeout=STARTING_SECONDS, set_as_default=False)
    stack.enter_context(client)
    client.wait_for_workers(1, timeout=STARTING_SECONDS)
    stack.enter_context(joblib.parallel_config("dask", client=client))
    return f"dask={address}", len(client.scheduler_info(n_workers=-1)["workers"])


def _use_ray(ray: Any, address: str, stack: ExitStack) -> tuple[str, int]:
    """Connect to a Ray cluster, or start one, until `stack` ends; return its option and size."""
    import joblib
    from ray.util.joblib import register_ray

    if not ray.is_initialized():
        ray.init(address=address or None, log_to_driver=False)
        stack.callback(ray.shutdown)
    register_ray()
    stack.enter_context(joblib.parallel_config("ray", **RETRIED))
    cluster = ray.get_runtime_context().gcs_address
    return f"ray={cluster}", int(ray.cluster_resources().get("CPU", 1))


def settings_of(config: pytest.Config, claim: Claim) -> Settings:
    """Return a claim's settings from the command line, claim, ini file, profile and defaults.

    The earlier win, but a profile without a margin wins over the claim's and the ini file's. The
    highest grade that ini file, command line and claim ask for holds. Raises UsageError for a wrong
    value.
    """
    return _layer_settings(config, profile_of(config), claim, _values_of_options(config))


def settings_of_files(config: pytest.Config, claim: Claim) -> Settings:
    """Return a claim's settings by files alone: those with which CI audits the claim.

    Typed options do not count; options of ``addopts`` and of ``conftest.py`` do. Raises UsageError.
    """
    typed = claim_session_of(config).typed_options
    values = {name: getattr(config.option, f"dp_{name}", None) for name in (*FIELDS, "profile")}
    options = {name: v for name, v in values.items() if v and f"dp_{name}" not in typed}
    try:
        profile = profile_of_ci(options.get("profile"), read_ini(config, "profile"))
    except ClaimError as error:
        raise pytest.UsageError(f"profile of this project: {error}") from None
    return _layer_settings(config, profile, claim, _read_values(options.get, flag_of))


def _layer_settings(
    config: pytest.Config, profile: Profile, claim: Claim, options: Mapping[str, Any]
) -> Settings:
    """Return the settings of a claim from a profile, the ini file, the claim and `options`."""
    file = _values_of_ini(config)
    layers = (profile.settings, file, claim.effort, profile.overriding, options)
    settings = settings_for(*layers, vectorized=claim.arguments.vectorized is not None)
    asked = [said["at_least"] for said in ({**file, **options}, claim.effort) if "at_least" in said]
    return replace(settings, at_least=max(asked or [settings.at_least], key=GRADES.index))


def _values_of_options(config: pytest.Config) -> dict[str, Any]:
    return _read_values(lambda name: getattr(config.option, f"dp_{name}", None), flag_of)


def _values_of_ini(config: pytest.Config) -> dict[str, Any]:
    return _read_values(partial(read_ini, config), lambda name: f"ini key dp_{name}")


def _read_values(given: Callable[[str], Any], said_by: Callable[[str], str]) -> dict[str, Any]:
    """Return the values of fields that are options, without those left open.

    `given` returns the text of a field or None, and `said_by` its source, for UsageError.
    """
    values = {}
    for name in FIELDS.keys() & OPTIONS.keys():
        text = given(name)
        try:
            value = None if text is None else read_text(name, str(text))
        except ClaimError as error:
            raise pytest.UsageError(f"{said_by(name)}: {error}") from None
        if value is not None:
            values[name] = value
    return values


def profile_of(config: pytest.Config) -> Profile:
    """Return the profile of this run; raise UsageError if the given name is unknown."""
    option, file = getattr(config.option, "dp_profile", None), read_ini(config, "profile")
    try:
        return choose_profile(option, file)
    except ClaimError as error:
        where = "--dp-profile" if option else "ini key dp_profile"
        raise pytest.UsageError(f"{where}: {error}") from None


def accumulates(config: pytest.Config) -> bool:
    """Return whether this run keeps evidence for later runs (``--dp-accumulate``)."""
    return _settings_of_run(config).accumulate


def audits_only_changed(config: pytest.Config) -> bool:
    """Return whether claims that passed are skipped; never in CI or while evidence adds up."""
    run = _settings_of_run(config)
    never = run.accumulate or in_ci() or profile_of(config).name == "ci"
    return run.changed and not never


def _settings_of_run(config: pytest.Config) -> Settings:
    """Return the settings of this run for claims without settings of their own."""
    return Settings().over(
        profile_of(config).settings, _values_of_ini(config), _values_of_options(config)
    )
