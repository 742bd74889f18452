"""Mechanisms on a cluster: a real one of two processes on this machine, by Dask and by Ray."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import joblib
import pytest

from pytest_dp import audit, queries
from pytest_dp.plugin.options import RETRIED
from pytest_dp.running import sampler, workers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=["dask", "ray"])
def cluster(request):
    """Is used by joblib; says how many mechanisms its workers keep."""
    if request.param == "ray":
        ray = pytest.importorskip("ray", reason="needs the extra ray: make ray")
        from ray.util.joblib import register_ray

        ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
        register_ray()
        with joblib.parallel_config("ray", **RETRIED):
            yield lambda: {1}
            workers.stop()
        ray.shutdown()
        return
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, dashboard_address=None, silence_logs="CRITICAL"
        ) as local,
        distributed.Client(local, set_as_default=False) as client,
        joblib.parallel_config("dask", client=client),
    ):
        yield lambda: set(client.run(loaded).values())


def loaded():
    return len(sys.modules["pytest_dp.running.workers"]._LOADED)


@pytest.fixture
def shared(monkeypatch):
    """Every draw is shared out, however quick."""
    monkeypatch.setattr(sampler, "START_WORKERS_FROM", 0.0)
    monkeypatch.setattr(sampler, "NOTICED_SECONDS", 0.0)


def count(records, rng, scale=1.0):
    return len(records) + rng.laplace(scale=scale)


def histogram(counts, rng, scale):
    return [c + rng.laplace(scale=scale) for c in counts]


PAIR = {"pairs": [([1], [])]}
HERE = {"search": ()}
"""A search runs in this process in any case, and its clock is the wall's: nothing of a cluster."""
CLAIMS = [
    (count, {"eps": 1.0, **PAIR, "params": {"scale": 0.4}}),
    (histogram, {"mu": 1.0, "inputs": queries(2), "params": {"scale": 0.5}, **HERE}),
]
TOLD = ("verdict", "lower", "p_value", "e_value", "samples", "resolution", "strongest")


@pytest.mark.parametrize("number", range(len(CLAIMS)))
def test_verdicts_are_those_of_a_local_run(number, cluster, shared):
    mechanism, claim = CLAIMS[number]
    keywords = claim | {"max_samples": 1_000, "seed": number, "max_seconds": 300}
    here = audit(mechanism, n_jobs=1, **keywords)
    there = audit(mechanism, n_jobs=2, **keywords)
    assert there.notes == here.notes
    assert [getattr(there, name) for name in TOLD] == [getattr(here, name) for name in TOLD]

    assert 1 in cluster() <= {0, 1}


@pytest.mark.nightly
def test_workers_that_die_are_survived(cluster, shared, tmp_path):
    here, flag = os.getpid(), str(tmp_path / "died")

    def dies_once(records, rng):
        if os.getpid() != here and not Path(flag).exists():
            Path(flag).touch()
            os._exit(1)
        return len(records) + rng.laplace()

    claim = {"eps": 1.0, **PAIR, "max_samples": 2_000, "seed": 1, "max_seconds": 300}
    result = audit(dies_once, n_jobs=2, **claim)
    assert Path(flag).exists()
    assert result.notes == ()
    assert result.verdict == "no violation"
    assert result.e_value == audit(dies_once, n_jobs=1, **claim).e_value


@pytest.mark.parametrize(
    ("backend", "package"), [("dask", "distributed"), ("ray", "ray")], ids=["dask", "ray"]
)
def test_with_pytest(project, backend, package):
    pytest.importorskip(package)
    project.write(
        "test_stats.py",
        "import time",
        "@dp_claim(eps=1.0, pairs=[([1], [])], max_samples=1500)",
        "def slow(records, rng): time.sleep(0.001); return len(records) + rng.laplace()",
    )
    result = project.run_apart(f"--dp-backend={backend}", "--dp-jobs=2")
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"dp: runs on {backend}=*:*"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("spark", "there is no backend 'spark'. Allowed: dask or ray"),
        ("dask=nowhere", "the cluster does not answer"),
        ("ray", 'Run: pip install "pytest-dp[[]ray]"'),
    ],
)
def test_what_cannot_be_is_said_at_the_start(project, monkeypatch, given, told):
    monkeypatch.setitem(sys.modules, "ray", None)
    result = project.run(f"--dp-backend={given}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --dp-backend={given}*{told}*"])
