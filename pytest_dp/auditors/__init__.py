"""Search and evidence together: a claim in, an `AuditResult` out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import joblib

from pytest_dp.auditors.afresh import confirmed
from pytest_dp.auditors.job import Job
from pytest_dp.auditors.result import AuditResult
from pytest_dp.claim import KEYWORDS, Claim, expand, invalid
from pytest_dp.errors import ClaimError
from pytest_dp.inputs import pairs_of
from pytest_dp.sampling.calling import prepare
from pytest_dp.sampling.sampler import Progress
from pytest_dp.sampling.streams import claim_seed
from pytest_dp.settings import Settings, settle


def auditor(method: str) -> Callable[[Job], AuditResult]:
    """What audits by this method: ``audit`` in the module of that name, loaded when first used."""
    found: Callable[[Job], AuditResult] = import_module(f"{__name__}.{method}").audit
    return found


def audit(
    mechanism: Callable[..., Any],
    *,
    eps: float | str,
    delta: float = 0.0,
    neighbors: str | None = None,
    inputs: Any = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    params: Mapping[str, Any] | None = None,
    vectorized: str | bool | None = None,
    rng: str = "rng",
    alpha: float | None = None,
    max_samples: int | None = None,
    max_seconds: float | None = None,
    margin: float | None = 1.25,
    method: str | None = None,
    classifier: Any = None,
    features: Callable[[Any], Any] | None = None,
    c: float | None = None,
    floating_point: bool = False,
    coupled: bool = True,
    seed: int | None = None,
    n_jobs: int | None = None,
) -> AuditResult:
    """Audit one claim, without pytest.

    The keywords of the claim are those of `dp_claim`, which describes them; a list in `params` must
    hold one value, as this function audits one claim. Keywords that the method has no use for are
    named in the notes of the result.

    Parameters
    ----------
    mechanism : callable
        ``mechanism(data, ...)``, one output a call unless `vectorized`.
    seed : int, optional
        Replays an audit. By default it follows from the mechanism's source and the claim.
    n_jobs : int, optional
        Processes at most; by default as many as there are cores, where that pays. The result does
        not depend on it.

    Returns
    -------
    AuditResult

    Raises
    ------
    ClaimError
        If the claim makes no sense, or needs a package that is not installed.
    MechanismError
        If the mechanism always raises, hangs, or takes its process down.

    Examples
    --------
    >>> from pytest_dp import audit
    >>> def noisy_count(records, rng):
    ...     return len(records) + rng.laplace(scale=0.5)
    >>> result = audit(noisy_count, eps=1.0, pairs=[([0], [])], seed=1)
    >>> result.verdict
    'violated'
    """
    given = dict(locals())
    plain = audit.__kwdefaults__ or {}
    claims = expand(
        {name: given[name] for name in KEYWORDS if given[name] is not plain.get(name, given)}
    )
    if len(claims) > 1:
        raise ClaimError(
            f"params gives {len(claims)} claims; audit() takes one at a time. Call it in a loop."
        )
    if seed is not None and (not isinstance(seed, int) or seed < 0):
        invalid("seed", seed, "Allowed: a whole number, 0 or more.")
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs < 1):
        invalid("n_jobs", n_jobs, "Allowed: a whole number, 1 or more.")
    settings = settle(claims[0], {}, {"seed": seed, "n_jobs": n_jobs})
    name = f"{getattr(mechanism, '__qualname__', type(mechanism).__qualname__)}[{claims[0].label}]"
    return run(claims[0], mechanism, settings, name)


def run(
    claim: Claim,
    mechanism: Callable[..., Any],
    settings: Settings,
    name: str,
    root: Path | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Audit a validated claim; `root` is where ``"module:attribute"`` inputs are looked up."""
    call = prepare(mechanism, claim)
    pairs = pairs_of(claim, root)
    seed = settings.seed if settings.seed is not None else claim_seed(name, mechanism)
    # Where xdist has shared out the cores already, one process each.
    cores = 1 if "PYTEST_XDIST_WORKER" in os.environ else joblib.cpu_count()
    n_jobs = settings.n_jobs or cores
    audit_by = auditor(settings.method)  # before the clock starts: what it imports takes a while
    job = Job(claim, call, pairs, settings, seed, name, n_jobs, progress)
    unused = claim.unused(settings.method)
    if unused:
        job.sampler.note(f"method {settings.method} does not use {', '.join(unused)}")
    return confirmed(job, audit_by(job))
