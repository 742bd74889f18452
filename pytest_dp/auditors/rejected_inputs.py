"""Pairs that an audit passes over, as the mechanism rejects one of the inputs."""

from __future__ import annotations

from typing import Any

from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.pairs_in_play import ClaimPairs
from pytest_dp.basics.arrays import Outputs
from pytest_dp.basics.reprs import LABEL_LENGTH
from pytest_dp.data import describe, kind_of
from pytest_dp.data.conversion import length
from pytest_dp.outputs.outcome import all_equal, all_raised


def skip_rejected_input(context: Context, pairs: ClaimPairs, state: PairState) -> None:
    """Mark a pair as refused if the mechanism seems to check its inputs, with a note.

    It seems so if it always raises on an input that a search proposed, or on the empty dataset
    where that follows from examples and is none of them. Where all pairs are such, none is refused.
    """
    sides = state.outputs.sides()
    raised = [all_raised(outputs) for outputs in sides]
    at = raised.index(True) if any(raised) else 0
    data = state.pair.inputs[at]
    if any(raised) and pairs.is_proposed(state):
        state.refused = pairs.source.generated is None
    elif any(raised) and not all(raised):
        state.refused = rejects_empty_dataset(context, data, sides[at])
    given = pairs.seen_given
    if pairs.all_seen and all(seen.refused for seen in given):
        for seen in given:
            seen.refused = False
    elif state.refused and not state.pair.beyond:
        shown = describe(data, LABEL_LENGTH)
        context.sampler.note(
            f"it always {sides[at][0]!r} on {shown}, which is inside the claim, as "
            "if it checked its inputs: passed over. An exception tells inputs apart; with this "
            "example in inputs=, it counts"
        )


def rejects_empty_dataset(context: Context, data: Any, outputs: Outputs) -> bool:
    """Return whether a mechanism always raises the same error of its own on an empty dataset."""
    examples = context.claim.promise.inputs
    if not isinstance(examples, list | tuple) or not kind_of(data) or length(data):
        return False
    is_given = any(not length(example) for example in examples if kind_of(example))
    return not is_given and all_equal(outputs) and any(output.is_stated for output in outputs)
