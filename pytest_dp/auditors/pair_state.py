"""The inputs of an audit, its pairs, and what was drawn on them and learned of it.

Pairs that share an input share its position. Outputs of a pair teach a model of which input an
output came from, readable events, and a record of what bets on them would have earned, by halves
that are each seen through a detector of the other half. All of this is past: the next batch is
drawn after the bets on it are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pytest_dp.auditors.session import Session
from pytest_dp.basics.arrays import Bools, Ints, join_outputs
from pytest_dp.basics.errors import MechanismError
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.betting.betting_loop import PairState
from pytest_dp.betting.detector import Binning, Reader, joint_counts
from pytest_dp.betting.models import Posterior, check_by_itself, fit_model, quantities
from pytest_dp.claiming.settings import Settings
from pytest_dp.data import describe, dropped_part_advice
from pytest_dp.outputs.feature import Feature, leaf
from pytest_dp.outputs.features import choose_places, keep_affordable
from pytest_dp.outputs.leaves import opaque_types
from pytest_dp.outputs.raised import MAX_ELEMENTS, Raised, is_cut
from pytest_dp.outputs.table import Table, concatenate, hashes, tabulate
from pytest_dp.outputs.user_features import target_of, user_features
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline
from pytest_dp.running.sampler import Sampler, SampleRequest, used_up

BLIND = (
    "no event that was tried distinguishes the two inputs of any pair, so a leak may have gone "
    "unseen: compute the quantity that leaks with features=, name pairs that differ by more, or "
    "raise max_samples"
)
NEARLY_ALL = 0.9
"""Share of the outputs that are empty where advice on groups is given."""

OUTPUTS_PER_FEATURE = 250
"""Outputs for each feature of a model. Fewer: it learns noise; more: it misses features."""
MAX_PLACES = 256
"""Places of an output that are features. More learn noise; fewer miss differences."""


class Pool:
    """Inputs of an audit, each with its first and last batch of outputs."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.first: dict[int, Table] = {}
        """The first batch of outputs on each input."""
        self.last: dict[int, Table] = {}
        """The last batch of outputs on each input."""
        self.runs = 0
        """The number of outputs in all batches so far."""
        self.returned = False
        """Whether any run returned an output, instead of raising."""
        self.varies = False
        """Whether any two outputs differed."""
        self._mark: int | None = None
        self._position: dict[Any, int] = {}
        self._alive: list[Any] = []  # so that nothing else gets the id of what was added

    def add(self, data: Any) -> int:
        """Add an input unless an equal one is there, and return its position."""
        item = Input(data)
        key = item.frozen if item.frozen is not None else id(data)
        if key not in self._position:
            self._position[key] = len(self.inputs)
            self.inputs.append(item)
            self._alive.append(data)
        return self._position[key]

    def add_outputs(self, which: int, table: Table) -> None:
        """Keep a batch of outputs as the last one on the input at a position, and count them."""
        self.first.setdefault(which, table)
        self.last[which] = table
        self.runs += len(table)
        self.returned |= any(not isinstance(output, Raised) for output in table.raw)
        if not self.varies and len(table):
            marks = hashes(table)
            self._mark = int(marks[0]) if self._mark is None else self._mark
            self.varies = bool((marks != self._mark).any())


def note_left_out(sampler: Sampler, tried: int, total: int) -> None:
    """Add a note that only `tried` of the claim's `total` pairs were looked at."""
    sampler.note(
        f"tried {tried} of {total:,} pairs: raise max_samples or max_seconds, or "
        "name the pairs that matter with pairs=",
        hinders=True,
    )


def raise_if_nothing_returned(sampler: Sampler, pool: Pool, first: Any, examples: Any) -> None:
    """Raise MechanismError if no run of the mechanism has returned an output.

    The message has the error on the `first` input, and advice by the `examples` of the claim. If
    the mechanism worked before the audit, the message says that it may be used up.
    """
    if pool.returned:
        return
    raised, *others = [table.raw[0] for table in pool.first.values()]
    if sampler.worked:
        raise used_up(sampler.name, "when it was tried out", raised)
    examples = examples if isinstance(examples, list | tuple) else ()
    advice = next(filter(None, map(dropped_part_advice, examples)), "")
    other = next((outcome for outcome in others if outcome.kind != raised.kind), None)
    raise MechanismError(
        f"{sampler.name} raised in all {pool.runs:,} runs, so there is nothing to audit. "
        f"The first time, on {describe(first)}:\n{raised.trace}"
        + (f"\nOn other inputs it {other!r}." if other else "")
        + (f"\n{advice}" if advice else "")
    )


def note_constant_outputs(sampler: Sampler, pool: Pool, *, by_features: bool) -> bool:
    """Add notes on outputs that are constant, unreadable or cut; return whether they are constant.

    Unreadable outputs are not constant if a function of the user's reads them (`by_features`), nor
    are outputs that vary, or a single output.
    """
    unreadable = describe_unreadable(pool)
    if any(map(is_cut, _first_outputs(pool).raw)):
        sampler.note(
            f"only the first {MAX_ELEMENTS:,} elements of an iterator were read: return a list, "
            "or use features="
        )
    if unreadable:
        if by_features:
            return False
        said = f"{unreadable}: return plain values, or use features="
        sampler.note(said, hinders=True)
    if pool.varies or pool.runs < 2:
        return False
    if not unreadable:
        sampler.note(_describe_constant(pool), hinders=True)
    return True


def _describe_constant(pool: Pool) -> str:
    """Return a note on outputs that never vary: the likely cause, and a remedy."""
    value = _first_outputs(pool).raw[0]
    hint = "is a return missing?" if value is None else "missing noise, a fixed seed or a cache?"
    return advice_on_empty(pool) or f"returned the same value in all {pool.runs:,} runs: {hint}"


def advice_on_empty(pool: Pool) -> str:
    """Return advice if nearly all last outputs on each input are empty containers; else ""."""
    shown = ""
    for which, last in pool.last.items():
        table = pool.first[which] if last.is_extract else last
        empty = [output for output in table.raw if _is_empty(output)]
        if len(empty) < NEARLY_ALL * max(len(table), 1):
            return ""
        shown = on_one_line(empty[0])
    return (
        f"returned an empty answer ({shown}) in nearly all runs: no group was large enough to be "
        "released, so nothing was seen. Give inputs= in which groups are larger than the threshold"
    )


def _is_empty(output: Any) -> bool:
    """Return whether an output is an empty container, table or text, or a dict of such values."""
    if isinstance(output, dict) and output:
        return all(map(_is_empty, output.values()))
    return isinstance(output, Sized) and not len(output)


def describe_unreadable(pool: Pool) -> str:
    """Return a phrase on types in outputs whose content cannot be read; "" if there is none."""
    outputs = _first_outputs(pool)
    hidden = opaque_types(outputs.levels)
    if not hidden:
        return ""
    types = {type(output).__name__ for output in outputs.raw}
    of_outputs = [kind for kind in hidden if kind in types]
    what = (
        f"outputs of type {' and '.join(of_outputs)}"
        if of_outputs
        else f"{' and '.join(hidden)} in outputs"
    )
    return f"{what} cannot be read"


def _first_outputs(pool: Pool) -> Table:
    """Return a table of up to 32 first outputs on each input."""
    return tabulate(join_outputs([table.raw[:32] for table in pool.first.values()]))


def request_outputs(
    pool: Pool, state: PairState, size: int, purpose: int, *rest: int
) -> list[SampleRequest]:
    """Return requests for `size` new outputs on each input of a pair, one request for each input.

    Their random numbers follow from `purpose`, the pair and `rest`: each key gives others.
    """
    key = purpose, state.number, *rest
    return [
        SampleRequest(pool.inputs[i], size, key if state.coupled else (*key, side), state.coupled)
        for side, i in enumerate((state.input1, state.input2))
    ]


def seed_in(settings: Settings) -> int:
    """Return the seed in the settings of an audit that has begun."""
    assert settings.seed is not None
    return settings.seed


def features_for_models(
    settings: Settings, state: PairState, table: Table, on_d: Bools, paired: int
) -> list[Feature]:
    """Return the features of outputs on a pair: `models.quantities`, and features of its target.

    Only the former for an extract. The first `paired` outputs on either input share random numbers.
    Raises ClaimError if the user's features fail.
    """
    about = quantities(settings, table, on_d, paired)
    if table.is_extract:
        return about
    wanted = state.target
    return about + user_features(wanted, table, wanted.labels) if wanted is not None else about


def reduce_to_features(settings: Settings, state: PairState) -> None:
    """Replace the kept outputs of a pair, and its later ones, by columns of features: an extract.

    For outputs, such as long vectors, that no longer fit into the room of the pair.
    """
    table, on_d = state.outputs.table()
    about = features_for_models(settings, state, table, on_d, state.outputs.coupled)
    if not state.outputs.coupled and any(feature.kind == "leaf" for feature in about):
        places = choose_places(table, on_d, 0, MAX_PLACES).chosen
        about += [replace(leaf(place), exact=about[0].exact) for place in places]
    state.outputs.keep_only(list(dict.fromkeys(about)))


def count_joint_bins(parts: Iterable[list[Any]], binnings: Sequence[Binning]) -> list[Ints]:
    """Return the counts of pairs of bins, shape (width, width), for each binning.

    `parts` are the values that a `Reader` returned for each chunk of outputs, on D and on D'.
    """
    bins1, bins2 = (np.concatenate([bins for bins, _ in part], axis=1) for part in parts)
    return [
        joint_counts(a, b, binning.width)
        for a, b, binning in zip(bins1, bins2, binnings, strict=True)
    ]


def draw_batch(
    session: Session,
    pool: Pool,
    state: PairState,
    size: int,
    purpose: int,
    max_kept: int,
    deadline: Deadline,
) -> list[Ints]:
    """Draw `size` pairs of outputs on a pair of inputs; return the counts of its bins.

    The counts have shape (width, width) for each binning. Outputs are added to the pair and the
    pool while the pair keeps at most `max_kept` pairs of outputs and has room; outputs that do not
    fit are first reduced to features. Raises OutOfTime at the deadline.
    """
    outputs = state.outputs
    if outputs.extract is None and not outputs.has_room(size):
        session.budget.compute(partial(reduce_to_features, session.settings, state), deadline)
    keep = outputs.pairs + size <= max_kept and outputs.has_room(size)
    draws = request_outputs(pool, state, size, purpose, state.batches)
    state.batches += 1
    reader = Reader(state.binnings, keep, outputs.extract)
    parts = session.sampler.measure(draws, reader, deadline)
    state.drawn += size
    if keep:
        batch1, batch2 = (
            concatenate([table for _, table in part if table is not None]) for part in parts
        )
        outputs.add(batch1, batch2, coupled=state.coupled)
        pool.add_outputs(state.input1, batch1)
        pool.add_outputs(state.input2, batch2)
    return count_joint_bins(parts, state.binnings)


def set_target(settings: Settings, state: PairState) -> None:
    """Set the target of a pair by its first outputs, unless a function of the user's reads them."""
    if settings.features is None:
        inputs = state.pair.inputs
        state.target = target_of(*inputs, state.outputs.examples().raw, seed_in(settings))


def outputs_to_learn(settings: Settings, state: PairState) -> tuple[Table, Bools, list[Feature]]:
    """Return the outputs on a pair, a mask of those on D, and as many features as they teach."""
    table, on_d = state.outputs.table()
    about = features_for_models(settings, state, table, on_d, state.outputs.coupled)
    return table, on_d, keep_affordable(about, table, on_d, OUTPUTS_PER_FEATURE)


def make_model_fitter(
    settings: Settings, about: list[Feature]
) -> Callable[[Table, Bools], Posterior] | None:
    """Return a function that fits the method's classifier; None if that is the additive score."""
    if settings.method.classifier in (None, "additive"):
        return None
    classifier, seed = settings.method.classifier, seed_in(settings)
    return lambda table, on_d: fit_model(classifier, table, on_d, about, seed)


def check_user_functions(
    settings: Settings, state: PairState, model: Posterior, about: list[Feature]
) -> None:
    """Raise ClaimError if the user's classifier or features do not look at each output alone."""
    if settings.method.classifier is not None or settings.features is not None:
        check_by_itself(model, about, state.outputs.examples())
