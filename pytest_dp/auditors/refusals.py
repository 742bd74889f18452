"""Inputs that a mechanism refuses, and which of them say nothing of its claim."""

from __future__ import annotations

from typing import Any

from pytest_dp.arrays import Outputs
from pytest_dp.auditors.bandit import Bandit
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.datasets import describe, kind_of, records_of
from pytest_dp.limits import LABEL
from pytest_dp.outputs.outcome import all_equal, all_raised


def heed_refusal(context: Context, bandit: Bandit, state: PairState) -> None:
    """Pass over a pair with an input that is as if the mechanism checked it, with a note.

    That is an input on which it always raises, and which a search proposed, or the empty dataset
    where that follows from examples and is none of them. Where all pairs are such, they count.
    """
    sides = state.outputs.sides()
    raised = [all_raised(outputs) for outputs in sides]
    at = raised.index(True) if any(raised) else 0
    data = state.pair.inputs[at]
    if any(raised) and bandit.is_proposed(state):
        state.refused = bandit.source.generated is None
    elif any(raised) and not all(raised):
        state.refused = _says_that_it_is_empty(context, data, sides[at])
    given = bandit.seen[: bandit.claimed]
    if bandit.all_seen and all(seen.refused for seen in given):
        for seen in given:
            seen.refused = False
    elif state.refused and not state.pair.beyond:
        context.sampler.note(
            f"it always {sides[at][0]!r} on {describe(data, LABEL)}, which is inside the claim, as "
            "if it checked its inputs: passed over. An exception tells inputs apart; with this "
            "example in inputs=, it counts"
        )


def _says_that_it_is_empty(context: Context, data: Any, outputs: Outputs) -> bool:
    """Whether an error that the mechanism states itself, always the same, is about no records."""
    examples = context.claim.promise.inputs
    if not isinstance(examples, list | tuple) or not kind_of(data) or records_of(data):
        return False
    is_given = any(not records_of(example) for example in examples if kind_of(example))
    return not is_given and all_equal(outputs) and any(output.is_stated for output in outputs)
