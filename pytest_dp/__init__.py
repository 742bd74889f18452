"""Audit differential privacy claims from pytest.

Importing this package loads nothing but this file: public names are imported when first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

_HOME = {
    "dp_claim": "declaration",
    "queries": "declaration",
    "replace_special": "declaration",
    "values": "declaration",
    "audit": "auditors",
    "estimate": "estimating",
    "LossEstimate": "estimating",
    "AuditResult": "auditors.result",
    "Blame": "results.blame",
    "Counterexample": "results.result",
    "Claim": "claim",
    "ClaimError": "errors",
    "InconclusiveAudit": "auditors.result",
    "InconclusiveWarning": "errors",
    "MechanismError": "errors",
    "PrivacyViolation": "auditors.result",
    "PytestDPError": "errors",
    "load_profile": "profiles",
    "register_profile": "profiles",
}

__all__ = [
    "AuditResult",
    "Blame",
    "Claim",
    "ClaimError",
    "Counterexample",
    "InconclusiveAudit",
    "InconclusiveWarning",
    "LossEstimate",
    "MechanismError",
    "PrivacyViolation",
    "PytestDPError",
    "audit",
    "dp_claim",
    "estimate",
    "load_profile",
    "queries",
    "register_profile",
    "replace_special",
    "values",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.auditors import audit
    from pytest_dp.auditors.result import AuditResult, InconclusiveAudit, PrivacyViolation
    from pytest_dp.claim import Claim
    from pytest_dp.declaration import dp_claim, queries, replace_special, values
    from pytest_dp.errors import (
        ClaimError,
        InconclusiveWarning,
        MechanismError,
        PytestDPError,
    )
    from pytest_dp.estimating import LossEstimate, estimate
    from pytest_dp.profiles import load_profile, register_profile
    from pytest_dp.results.blame import Blame
    from pytest_dp.results.result import Counterexample


def __getattr__(name: str) -> object:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOME))
