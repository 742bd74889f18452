"""Which features of the outputs at hand an event may speak about, and which are worth a look."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.outputs.feature import LAST, LEN, PLACE_KINDS, Feature, leaf
from pytest_dp.outputs.leaves import NUMBER, category_text
from pytest_dp.outputs.place_choice import (
    MAX_NUMBERS,
    MIN_PAIRED,
    Places,
    affordable_number,
    choose,
    differing_columns,
    informative,
    leading_rows,
)
from pytest_dp.outputs.quantities import observe_forms
from pytest_dp.outputs.table import Table
from pytest_dp.registry import load, names

MAX_PAIRED = 32
"""Differences that are features, where only some places are looked at. More learn noise by heart;
fewer miss what tells inputs apart."""
MAX_COMPARED = 400_000
"""Outputs times features that are compared to choose features. More take longer; fewer choose less
well."""
MIN_ROWS = 48
"""Outputs on either input by which features are chosen, at least. More take longer; fewer choose
by chance."""
MAX_ROWS = 200
"""Outputs on either input by which features are chosen, at most. More take longer; fewer choose by
chance."""
MAX_CHOSEN = 512
"""Features of which the most distinguishing are not chosen. More take longer; fewer miss what
tells inputs apart."""
MAX_FORMS = 16
"""Forms of outputs that are features. More learn noise by heart; fewer miss what tells inputs
apart."""
MAX_SUMS = 8
"""Sums that are features. More learn noise by heart; fewer miss what tells inputs apart."""
MAX_FEATURES = 64
"""Features of one kind. More learn noise by heart; fewer miss what tells inputs apart."""
SAMPLED = 1_000
"""Outputs on either input by which a feature is judged. More take longer; fewer judge by chance."""


def features(table: Table, on_d: Bools | None = None, paired: int = 0) -> list[Feature]:
    """Return the quantities that StatDP's event families speak about, for outputs such as these.

    Of very many places, those where the two sides differ are chosen. So many `paired` outputs on
    either input, from the start, share their random numbers in order.
    """
    return basic_features(Sample(table, on_d, paired, choose(table, on_d, paired)))


@dataclass(frozen=True)
class Sample:
    """Outputs for which features are chosen."""

    table: Table
    on_d: Bools | None
    """Which outputs are those on D; None where that is unknown."""
    paired: int
    """So many outputs on either input, from the start, share their random numbers in order."""
    places: Places
    many: bool = False
    """Whether many features can be weighed against each other, as for `all_features`."""

    @cached_property
    def leaves(self) -> list[Feature]:
        """The leaves at the chosen places."""
        return _pick_evenly([leaf(place) for place in self.places.chosen], MAX_FEATURES)

    @cached_property
    def sides(self) -> tuple[list[str], Floats, Floats] | None:
        """Places, and the numbers there of some outputs on D and on D'; None if there are none."""
        table, on_d = self.table, self.on_d
        if on_d is None or not np.any(table.codes == NUMBER):
            return None
        among = set(table.places)
        if not self.places.all and (self.paired >= MIN_PAIRED or len(among) > MAX_CHOSEN):
            among = set(self.places.chosen)
        affordable_rows = (MAX_COMPARED) // max(len(among), 1)
        rows = leading_rows(on_d, int(np.clip(affordable_rows, MIN_ROWS, MAX_ROWS)))
        index, numbers, _ = table.matrix(rows)
        columns = [i for i, place in enumerate(index) if place in among]
        numbers = numbers[:, columns] if len(columns) < len(index) else numbers
        return [index[i] for i in columns], numbers[on_d[rows]], numbers[~on_d[rows]]

    def most_distinguishing(
        self, candidates: list[Feature], limit: int = MAX_FEATURES
    ) -> list[Feature]:
        """Return the features at which the two sides look most different, if there are many."""
        return _most_distinguishing(candidates, self.table, self.on_d, limit)


def basic_features(sample: Sample) -> list[Feature]:
    """Return the features of `features`, for outputs whose places are chosen."""
    table, leaves = sample.table, sample.leaves
    lengths = {structure.length for structure in table.structures}
    containers = [s for s in table.structures if s.length is not None]
    collected = [LEN] if len(lengths) > 1 else []
    forms = sample.most_distinguishing([Feature(*each) for each in observe_forms(table)], MAX_FORMS)
    collected = [form for form in forms if form.kind == "key"] + collected + leaves
    collected += [feature for name in names("reader") for feature in load("reader", name)(sample)]
    collected += forms
    if len(lengths) > 1 and any(structure.is_flat for structure in containers):
        collected.append(LAST)
    collected += _summaries(table, ("mean", "min", "max"))
    if any(len(structure.places) > 1 for structure in containers):
        every = "output" if _every(table) == "output" else f"list({_every(table)})"
        for level in list(table.levels)[:MAX_FEATURES]:
            collected.append(Feature(f"{every}.count({category_text(level)})", "count", level))
    return list(dict.fromkeys(collected))


def all_features(table: Table, on_d: Bools | None = None, paired: int = 0) -> list[Feature]:
    """Return the quantities of `features` and further ones, for models that weigh many.

    Further: sums, where the largest and the smallest number stand, and how much each number of a
    flat output differs from the one before. Parameters are those of `features`.
    """
    places = choose(table, on_d, paired)
    sample = Sample(table, on_d, paired, places, many=True)
    collected = basic_features(sample)
    collected += _summaries(table, ("sum", "argmax", "argmin"))
    collected += _differences(table, on_d, places)
    if places.all or on_d is None or paired < MIN_PAIRED:
        return collected
    return [feature for feature in collected if _differs(feature, table, on_d, paired)]


def _differs(feature: Feature, table: Table, on_d: Bools, paired: int) -> bool:
    """Return whether a quantity differs between the two outputs of some pair."""
    if feature.kind in PLACE_KINDS:  # which were chosen
        return True
    numbers, codes = feature.columns(table)
    rows1, rows2 = (np.flatnonzero(side)[:paired] for side in (on_d, ~on_d))
    return bool(differing_columns(numbers[:, None], codes[:, None], rows1, rows2)[0])


def float_features(table: Table, on_d: Bools | None = None) -> list[Feature]:
    """Return the last digits of floating-point numbers, which betray what noise was added to.

    For each place that holds numbers, the lowest bit set (see `quantities.lowest_bit`); for the few
    where that differs most between the two sides, all 64 bits. Parameters are those of `features`.
    """
    lowest = _most_distinguishing(
        [lowest_bit_of(place) for place in _numeric_places(table)], table, on_d
    )
    few = _most_distinguishing(lowest, table, on_d, MAX_SUMS)
    return lowest + [bit for feature in few for bit in bits_of(feature.argument)]


def lowest_bit_of(place: str) -> Feature:
    """Return the largest k such that the number at a place is a multiple of 2**k."""
    return Feature(f"log2(lowest bit of {place})", "lowest bit", place)


def bits_of(place: str) -> list[Feature]:
    """Return the 64 bits of the double at a place, from the lowest to the sign."""
    return [Feature(f"bit {k} of {place}", "bit", (place, k)) for k in range(64)]


def _summaries(table: Table, kinds: tuple[str, ...]) -> list[Feature]:
    containers = [s for s in table.structures if s.length is not None]
    if not any(len(s.places) > 1 for s in containers) or not np.any(table.codes == NUMBER):
        return []
    return [Feature(f"{kind}({_every(table)})", kind) for kind in kinds]


def _every(table: Table) -> str:
    """Return the expression for all elements of an output."""
    kinds = {s.kind for s in table.structures if s.length is not None}
    return "output.values()" if kinds == {"dict"} else "output"


def _positions(table: Table) -> Ints:
    """Return the position of each leaf in its output."""
    return np.arange(len(table.codes)) - table.offsets[table.owner]


def _differences(table: Table, on_d: Bools | None, places: Places) -> list[Feature]:
    """Return differences of neighbours that are both numbers in some flat output."""
    is_number, position = table.codes == NUMBER, _positions(table)
    both = is_number[1:] & is_number[:-1] & (position[1:] > 0)
    flat = np.array([structure.is_flat for structure in table.structures], dtype=bool)
    if not flat.all():
        both &= flat[table.structure[table.owner[1:]]]
    pairs = [
        (f"output[{i}]", f"output[{i - 1}]")
        for i in np.flatnonzero(np.bincount(position[1:][both])).tolist()
    ]
    if not places.all:
        chosen = set(places.chosen)
        pairs = [pair for pair in pairs if chosen.intersection(pair)]
    limit = MAX_FEATURES if places.all else MAX_PAIRED
    return _most_distinguishing([_difference(*pair) for pair in pairs], table, on_d, limit)


def _difference(place: str, less: str) -> Feature:
    return Feature(f"{place} - {less}", "difference", (place, less))


def _numeric_places(table: Table) -> list[str]:
    """Return places that hold a number in some output."""
    places = [place for structure in table.structures for place in structure.places]
    starts = np.cumsum([0, *(len(structure.places) for structure in table.structures)])
    holds = np.zeros(len(places), dtype=bool)
    leaf_of = starts[table.structure[table.owner]] + _positions(table)
    holds[leaf_of[table.codes == NUMBER]] = True
    return list(dict.fromkeys(place for place, yes in zip(places, holds, strict=True) if yes))


def affordable(
    candidates: list[Feature], table: Table, on_d: Bools, runs_each: int
) -> list[Feature]:
    """Return the features that the outputs suffice to learn: one for every `runs_each`.

    Of features of single places, take those where the two sides differ most. Keep all others.
    """
    left_out: set[Feature] = set()
    for kind in PLACE_KINDS:
        of_kind = [feature for feature in candidates if feature.kind == kind]
        chosen = _most_distinguishing(of_kind, table, on_d, affordable_number(on_d, runs_each))
        left_out |= set(of_kind) - set(chosen)
    return [feature for feature in candidates if feature not in left_out]


def _most_distinguishing(
    candidates: list[Feature], table: Table, on_d: Bools | None, limit: int = MAX_FEATURES
) -> list[Feature]:
    """Return the features at which the two sides look most different, if there are very many."""
    if len(candidates) <= limit or on_d is None:
        return _pick_evenly(candidates, limit)
    sample = np.zeros(len(table), dtype=bool)
    sample[leading_rows(on_d, min(SAMPLED, MAX_NUMBERS // len(candidates)))] = True
    part = table.rows(sample)
    numbers, codes = (
        np.stack(columns, axis=1)
        for columns in zip(*(feature.columns(part) for feature in candidates), strict=True)
    )
    chosen = informative(numbers, codes, on_d[sample], limit)
    return [candidates[i] for i in chosen.tolist()]


def _pick_evenly(candidates: list[Feature], limit: int) -> list[Feature]:
    if len(candidates) <= limit:
        return candidates
    return [candidates[i] for i in np.linspace(0, len(candidates) - 1, limit).astype(int)]
