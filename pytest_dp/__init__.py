"""Audit differential privacy claims from pytest.

Importing this package loads nothing but this file: public names are imported when first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

_NAMES = {
    "auditors": "audit",
    "auditors.session": "AuditResult InconclusiveAudit PrivacyViolation",
    "basics.errors": "ClaimError InconclusiveWarning MechanismError PytestDPError",
    "black_boxes": "dp_command dp_url",
    "claiming.claim": "Claim",
    "claiming.method_settings": "DPFinder DPSniper Membership OneRun Sequential StatDP",
    "claiming.more_declarations": "Claimed claims between risk_claim riskiest",
    "claiming.settings": "load_profile register_profile",
    "declaration": "dp_claim add_remove_one queries replace_one replace_special values",
    "estimating": "estimate LossEstimate",
    "privacy": "RenyiDP PrivacyProfile TradeOff",
    "results.outcome": "Blame",
    "results.result": "Counterexample",
    "risks": "MembershipRisk membership_risk",
}
"""The public names of each module."""
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AuditResult",
    "Blame",
    "Claim",
    "ClaimError",
    "Claimed",
    "Counterexample",
    "DPFinder",
    "DPSniper",
    "InconclusiveAudit",
    "InconclusiveWarning",
    "LossEstimate",
    "MechanismError",
    "Membership",
    "MembershipRisk",
    "OneRun",
    "PrivacyProfile",
    "PrivacyViolation",
    "PytestDPError",
    "RenyiDP",
    "Sequential",
    "StatDP",
    "TradeOff",
    "add_remove_one",
    "audit",
    "between",
    "claims",
    "dp_claim",
    "dp_command",
    "dp_url",
    "estimate",
    "load_profile",
    "membership_risk",
    "queries",
    "register_profile",
    "replace_one",
    "replace_special",
    "risk_claim",
    "riskiest",
    "values",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pytest_dp.auditors import audit
    from pytest_dp.auditors.session import AuditResult, InconclusiveAudit, PrivacyViolation
    from pytest_dp.basics.errors import (
        ClaimError,
        InconclusiveWarning,
        MechanismError,
        PytestDPError,
    )
    from pytest_dp.black_boxes import dp_command, dp_url
    from pytest_dp.claiming.claim import Claim
    from pytest_dp.claiming.method_settings import (
        DPFinder,
        DPSniper,
        Membership,
        OneRun,
        Sequential,
        StatDP,
    )
    from pytest_dp.claiming.more_declarations import Claimed, between, claims, risk_claim, riskiest
    from pytest_dp.claiming.settings import load_profile, register_profile
    from pytest_dp.declaration import (
        add_remove_one,
        dp_claim,
        queries,
        replace_one,
        replace_special,
        values,
    )
    from pytest_dp.estimating import LossEstimate, estimate
    from pytest_dp.privacy import PrivacyProfile, RenyiDP, TradeOff
    from pytest_dp.results.outcome import Blame
    from pytest_dp.results.result import Counterexample
    from pytest_dp.risks import MembershipRisk, membership_risk


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
