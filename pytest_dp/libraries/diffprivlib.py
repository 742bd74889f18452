"""diffprivlib: claims of mechanisms, by their own epsilon, delta, sensitivity and bounds."""

from __future__ import annotations

import math
from typing import Any

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.claiming.more_declarations import Claimed
from pytest_dp.declaration import values
from pytest_dp.libraries import import_library, refuse_promises


def claimed(mechanism: Any, /, *, marks: Any = (), **claim: Any) -> Claimed:
    """Return a mechanism's ``randomise`` as an entry of `claims`, with its epsilon and delta.

    Raises ClaimError if no pairs of inputs follow from its attributes.

    Parameters
    ----------
    mechanism : diffprivlib.mechanisms.DPMechanism
    marks : mark or iterable of marks, optional
        As of ``pytest.param``.
    **claim
        Further keywords of `dp_claim`. Without ``pairs=`` or ``inputs=``, pairs of numbers are made
        by the sensitivity, at both ends if there are bounds; any two labels are neighbours.
    """
    if not isinstance(mechanism, import_library("diffprivlib.mechanisms").DPMechanism):
        raise invalid("mechanism", mechanism, "Allowed: an object of diffprivlib.mechanisms.")
    refuse_promises(claim, "mechanism")
    promised: dict[str, Any] = {"eps": mechanism.epsilon, "delta": mechanism.delta}
    if not mechanism.delta:
        del promised["delta"]
    if "pairs" not in claim and "inputs" not in claim:
        promised |= _keywords_for_inputs(mechanism)
    claim.setdefault("beyond", "off")  # what is beyond the bounds is not promised
    return Claimed(mechanism.randomise, marks=marks, **claim | promised)


def _keywords_for_inputs(mechanism: Any) -> dict[str, Any]:
    """Return keywords for a mechanism's inputs; raise ClaimError if they do not follow."""
    labels = _input_labels(mechanism)
    if labels:
        return {"inputs": values(labels)}
    sensitivity = getattr(mechanism, "sensitivity", None)
    if not sensitivity or hasattr(mechanism, "utility"):
        raise ClaimError(
            f"The inputs of {type(mechanism).__name__} do not follow from its attributes. Write "
            "pairs=[(D, D')], or Claimed(function, eps=..., pairs=[...]) if the data goes into "
            "the mechanism when it is made."
        )
    lower = getattr(mechanism, "lower", -math.inf)
    upper = getattr(mechanism, "upper", math.inf)
    starts = [end for end in (lower, upper - sensitivity) if math.isfinite(end)]
    starts = [start for start in starts if lower <= start and start + sensitivity <= upper]
    if not starts and upper - lower < sensitivity:  # which is as far as it goes
        return {"pairs": [(lower, upper)]}
    return {"pairs": [(start, start + sensitivity) for start in dict.fromkeys(starts or [0])]}


def _input_labels(mechanism: Any) -> list[str]:
    """Return the labels that a mechanism takes as inputs; empty if it takes numbers."""
    if hasattr(mechanism, "value0"):
        return [mechanism.value0, mechanism.value1]
    pairs = getattr(mechanism, "utility_list", None) or []
    return list(dict.fromkeys(label for one, other, _ in pairs for label in (one, other)))
