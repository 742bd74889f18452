"""Runs on more than one machine: joblib's backends for Dask and Ray, for the time of a session."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any, NamedTuple

import joblib
import pytest

STARTING_SECONDS = 25.0
"""Seconds in which a cluster has to answer. More: a wrong address is found later; fewer: slow
clusters fail."""


RETRIED = {"ray_remote_args": {"max_restarts": 3, "max_task_retries": 3}}
"""As Dask does: what a worker that died was doing is done again, so many times."""


class Cluster(NamedTuple):
    """How others reach it, as ``--dp-backend`` takes it, and how many processes it has."""

    backend: str
    processes: int


def _dask(address: str, stack: ExitStack) -> Cluster:
    distributed = _import_backend("distributed", "dask")
    address = address or _import_backend("dask", "dask").config.get("scheduler-address", None) or ""
    if not address:
        cluster = distributed.LocalCluster(threads_per_worker=1, dashboard_address=None)
        address = stack.enter_context(cluster).scheduler_address
    client = distributed.Client(address, timeout=STARTING_SECONDS, set_as_default=False)
    stack.enter_context(client)
    client.wait_for_workers(1, timeout=STARTING_SECONDS)
    stack.enter_context(joblib.parallel_config("dask", client=client))
    return Cluster(f"dask={address}", len(client.scheduler_info(n_workers=-1)["workers"]))


def _ray(address: str, stack: ExitStack) -> Cluster:
    ray = _import_backend("ray", "ray")
    from ray.util.joblib import register_ray

    if not ray.is_initialized():
        ray.init(address=address or None, log_to_driver=False)
        stack.callback(ray.shutdown)
    register_ray()
    stack.enter_context(joblib.parallel_config("ray", **RETRIED))
    cluster = ray.get_runtime_context().gcs_address
    return Cluster(f"ray={cluster}", int(ray.cluster_resources().get("CPU", 1)))


_BACKENDS: dict[str, Callable[[str, ExitStack], Cluster]] = {"dask": _dask, "ray": _ray}


def connect(config: pytest.Config, given: str) -> Cluster:
    """Run mechanisms on a cluster until pytest ends.

    ``"dask"`` and ``"ray"`` stand for what they find by themselves, else a cluster on this machine;
    an address may follow, as in ``"dask=tcp://10.0.0.1:8786"``. Raises UsageError if there is no
    such backend, its package is not installed, or it does not answer.
    """
    name, _, address = given.partition("=")
    if name not in _BACKENDS:
        raise pytest.UsageError(
            f"--dp-backend={given}: there is no backend {name!r}. Allowed: dask or ray, with an "
            "address where there is one: --dp-backend=dask=tcp://10.0.0.1:8786."
        )
    stack = ExitStack()
    config.add_cleanup(stack.close)
    try:
        return _BACKENDS[name](address, stack)
    except (OSError, TimeoutError, ValueError) as error:
        raise pytest.UsageError(
            f"--dp-backend={given}: the cluster does not answer ({type(error).__name__}: {error}). "
            "Start it first, or leave the address out for one on this machine."
        ) from None


def _import_backend(module: str, extra: str) -> Any:
    try:
        package: ModuleType = importlib.import_module(module)
    except ImportError:
        raise pytest.UsageError(
            f"--dp-backend={extra} needs the package {module}, which is not installed. Run: "
            f'pip install "pytest-dp[{extra}]"'
        ) from None
    return package
