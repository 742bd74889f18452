"""Choice of features: which quantities of given outputs events may be about.

Where an output has very many places, or candidates for features are many, the few that tell the
inputs apart are chosen. If both inputs were run with the same random numbers, these are the ones
that differ between the two outputs of a pair: all others came out as if the inputs were equal.
Else, those at which the two samples look most different.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from pytest_dp.basics.arrays import Bools, Floats, Ints
from pytest_dp.outputs.feature import LAST, LEN, PLACE_KINDS, Feature, form_features, leaf
from pytest_dp.outputs.leaves import NUMBER, category_text
from pytest_dp.outputs.table import Table
from pytest_dp.registry import load, names

MAX_PLACES = 64
"""Places of an output that are all used. More learn noise by heart; fewer: places are chosen by
chance."""
MIN_PLACES = 32
"""Places that are chosen, at least. More learn noise by heart; fewer miss the one that leaks."""
MIN_LEADING = 16
"""Outputs on either input that are compared, at least. Fewer: chance decides."""
ROUNDING = 1e-9
"""Relative error after a few operations. Larger misses small differences; smaller invents some."""
MIN_PAIRED = 8
"""Pairs of outputs that show differences. Fewer: chance decides; more: they show later."""
MAX_NUMBERS = 1_000_000
"""Numbers that are compared at a time. More take memory; fewer mean fewer outputs."""
MAX_PAIRED = 32
"""Differences that are features, if only some places are chosen. More learn noise by heart; fewer
miss what separates inputs."""
MAX_COMPARED = 400_000
"""Outputs times features that are compared. More take longer; fewer choose less well."""
MIN_ROWS = 48
"""Outputs on either input by which features are chosen, at least. More take longer; fewer: by
chance."""
MAX_ROWS = 200
"""Outputs on either input by which features are chosen, at most."""
MAX_CHOSEN = 512
"""Places of an output that are all compared for relations. More take longer; fewer miss some."""
MAX_FORMS = 16
"""Forms of outputs that are features. More learn noise by heart; fewer miss what separates
inputs."""
MAX_SUMS = 8
"""Places whose bits are features. More learn noise by heart; fewer miss what separates inputs."""
MIN_COUNTED = 3
"""Leaves of a category that may be counted in each output. Fewer: inputs that share their random
numbers have each random name twice, and fits on names take ten times as long."""
MAX_FEATURES = 64
"""Features of one kind. More learn noise by heart; fewer miss what separates inputs."""
SAMPLED = 1_000
"""Outputs on either input by which a feature is judged. More take longer; fewer judge by chance."""


@dataclass(frozen=True, slots=True)
class Places:
    """A choice of places of outputs that features are made of."""

    chosen: list[str]
    all: bool = True
    """True if the outputs have no places but the chosen ones."""


def choose_places(table: Table, on_d: Bools | None, paired: int, at_least: int = 0) -> Places:
    """Return all places of outputs; of very many, those that separate the inputs most.

    `on_d` says which outputs are on D; None gives all places. The first `paired` outputs on either
    input share their random numbers in order. Of more than `MAX_PLACES` places (`MIN_PLACES` with
    enough pairs), at most `affordable_number`, or `at_least` if that is more, are chosen.
    """
    places = list(table.places)
    if on_d is None or len(places) <= (MIN_PLACES if paired >= MIN_PAIRED else MAX_PLACES):
        return Places(places)
    rows = leading_rows(on_d, MAX_NUMBERS // len(places))
    places, numbers, codes = table.matrix(rows)
    kinds = codes if table.levels or len(table.structures) > 1 else None
    limit = max(at_least, affordable_number(on_d))
    chosen = informative_columns(numbers, kinds, on_d[rows], limit, paired)
    return Places([places[i] for i in chosen.tolist()], all=False)


def leading_rows(on_d: Bools, limit: int) -> Ints:
    """Return the rows of the first outputs on either input, `limit` or `MIN_LEADING` each."""
    limit = max(limit, MIN_LEADING)
    return np.concatenate([np.flatnonzero(side)[:limit] for side in (on_d, ~on_d)])


def affordable_number(on_d: Bools, runs_each: int = 30) -> int:
    """Return one feature per `runs_each` outputs, from `MIN_PLACES` to `MAX_PLACES`."""
    return int(np.clip(len(on_d) / runs_each, MIN_PLACES, MAX_PLACES))


def informative_columns(
    numbers: Floats, codes: Ints | None, on_d: Bools, limit: int, paired: int = 0
) -> Ints:
    """Return the columns that separate the inputs most, at most `limit`, in increasing order.

    Numbers and codes are as in `Table`, shape (n, columns); `codes` is None if all are numbers.
    With at least `MIN_PAIRED` outputs that share their random numbers in order, columns in which no
    such pair differs are left out.
    """
    rows1, rows2 = np.flatnonzero(on_d), np.flatnonzero(~on_d)
    if min(paired, len(rows1), len(rows2)) < MIN_PAIRED:
        return _furthest_columns(numbers, codes, rows1, rows2, np.arange(numbers.shape[1]), limit)
    moved = differing_columns(numbers, codes, rows1[:paired], rows2[:paired])
    return _furthest_columns(numbers, codes, rows1, rows2, np.flatnonzero(moved), limit)


def differing_columns(numbers: Floats, codes: Ints | None, rows1: Ints, rows2: Ints) -> Bools:
    """Return which columns differ in some pair of rows by more than rounding, shape (columns,).

    Row `rows1[i]` is paired with row `rows2[i]`; without rows, no column differs.
    """
    a, b = numbers[rows1], numbers[rows2]
    if not len(a):
        return np.zeros(numbers.shape[1], bool)
    sizes = np.abs(a[:: max(1, len(a) // 100)])
    with np.errstate(all="ignore"):
        usual = np.median(np.where(np.isfinite(sizes), sizes, 0.0), axis=0)
        near = np.abs(a - b) <= ROUNDING * (np.abs(a) + np.abs(b) + usual)
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | (near & np.isfinite(a) & np.isfinite(b))
    if codes is not None:
        same &= codes[rows1] == codes[rows2]
    differ: Bools = ~same.all(axis=0)
    return differ


def _furthest_columns(
    numbers: Floats, codes: Ints | None, rows1: Ints, rows2: Ints, among: Ints, limit: int
) -> Ints:
    """Return the columns of `among` in which two samples differ most, at most `limit`, increasing.

    `rows1` are outputs on D, `rows2` outputs on D'.
    """
    if len(among) <= limit:
        return among
    rows = min(len(rows1), len(rows2), max(MIN_PAIRED, MAX_NUMBERS // (2 * len(among))))
    outputs = np.concatenate([rows1[:rows], rows2[:rows]])
    kinds = None if codes is None else codes[np.ix_(outputs, among)]
    distances = standard_errors_apart(numbers[np.ix_(outputs, among)], kinds)
    return np.sort(among[np.argsort(-distances, kind="stable")[:limit]])


def standard_errors_apart(numbers: Floats, codes: Ints | None) -> Floats:
    """Return how many standard errors apart two samples are, shape (columns,).

    The first half of the rows is one sample, the last half the other. The distance is the largest
    gap in the frequency of a half-line, a single value or a category.
    """
    if codes is None or np.all(codes == NUMBER):
        return _widest(numbers)
    plain = np.where(codes == NUMBER, numbers, -np.inf)
    return np.maximum(_widest(plain), _widest(codes.astype(np.float64)))


def _widest(values: Floats) -> Floats:
    """Return `standard_errors_apart` of numbers alone; NaN counts as one value of its own."""
    rows, width = values.shape
    if not rows or not width:
        return np.zeros(width)
    columns = np.ascontiguousarray(values.T)
    columns = np.minimum(columns, np.finfo(np.float64).max)
    columns[np.isnan(columns)] = np.inf  # as one value, and none of the others
    order = np.argsort(columns, axis=1)
    ordered = np.take_along_axis(columns, order, axis=1)
    ends = np.ones((width, rows), bool)
    ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    # Both samples are equally large, so that each column sums to 0: one running sum does for all.
    ahead = np.cumsum(np.where(order < rows // 2, 1, -1).ravel())
    at = np.flatnonzero(ends)
    lead, below = ahead[at], at % rows + 1
    starts = np.flatnonzero(ends.ravel()[:-1]) + 1 if ends.size > 1 else np.zeros(0, int)
    starts = np.concatenate([[0], starts])
    counted = at + 1 - starts
    gained = np.diff(lead, prepend=0)
    above = rows - below
    before = lead - gained
    shown = np.maximum(np.abs(lead) / np.sqrt(below + 1.0), np.abs(gained) / np.sqrt(counted + 1.0))
    over = np.abs(before) / np.sqrt(above + counted + 1.0)
    first_of = np.flatnonzero(at // rows != np.concatenate([[-1], at[:-1] // rows]))
    widest: Floats = np.maximum.reduceat(np.maximum(shown, over), first_of)
    return widest


def features(table: Table, on_d: Bools | None = None, paired: int = 0) -> list[Feature]:
    """Return the features of StatDP's event families, and of readers, for a table's outputs.

    Parameters are those of `choose_places`.
    """
    return basic_features(Sample(table, on_d, paired, choose_places(table, on_d, paired)))


@dataclass(frozen=True)
class Sample:
    """A sample of outputs for which features are chosen."""

    table: Table
    on_d: Bools | None
    """Which outputs are on D; None if unknown."""
    paired: int
    """How many first outputs on either input share their random numbers in order."""
    places: Places
    many: bool = False
    """Whether features are for models, which weigh many: see `all_features`."""

    @cached_property
    def leaves(self) -> list[Feature]:
        """The leaves at the chosen places, at most `MAX_FEATURES`, evenly spaced."""
        return _pick_evenly([leaf(place) for place in self.places.chosen], MAX_FEATURES)

    @cached_property
    def sides(self) -> tuple[list[str], Floats, Floats] | None:
        """Places, and the numbers there in some outputs on D and on D', shape (n, places) each.

        None if it is unknown which outputs are on D, or no output has a number.
        """
        table, on_d = self.table, self.on_d
        if on_d is None or not np.any(table.codes == NUMBER):
            return None
        among = set(table.places)
        if not self.places.all and (self.paired >= MIN_PAIRED or len(among) > MAX_CHOSEN):
            among = set(self.places.chosen)
        rows_in_time = MAX_COMPARED // max(len(among), 1)
        rows = leading_rows(on_d, int(np.clip(rows_in_time, MIN_ROWS, MAX_ROWS)))
        index, numbers, _ = table.matrix(rows)
        columns = [i for i, place in enumerate(index) if place in among]
        numbers = numbers[:, columns] if len(columns) < len(index) else numbers
        return [index[i] for i in columns], numbers[on_d[rows]], numbers[~on_d[rows]]

    def most_distinguishing(
        self, candidates: list[Feature], limit: int = MAX_FEATURES
    ) -> list[Feature]:
        """Return the `limit` features in which the samples differ most; all if there are fewer."""
        return _most_distinguishing(candidates, self.table, self.on_d, limit)


def basic_features(sample: Sample) -> list[Feature]:
    """Return the features of StatDP's event families, and the features of all readers."""
    table, leaves = sample.table, sample.leaves
    lengths = {structure.length for structure in table.structures}
    containers = [s for s in table.structures if s.length is not None]
    collected = [LEN] if len(lengths) > 1 else []
    forms = sample.most_distinguishing(list(form_features(table)), MAX_FORMS)
    collected = [form for form in forms if form.kind == "key"] + collected + leaves
    collected += [feature for name in names("reader") for feature in load("reader", name)(sample)]
    collected += forms
    if len(lengths) > 1 and any(structure.is_flat for structure in containers):
        collected.append(LAST)
    collected += _summaries(table, ("mean", "min", "max"))
    if any(len(structure.places) > 1 for structure in containers):
        every = "output" if _elements_text(table) == "output" else f"list({_elements_text(table)})"
        times = np.bincount(table.codes[table.codes >= 0], minlength=len(table.levels))
        recurring = (c for c, n in zip(table.levels, times, strict=True) if n >= MIN_COUNTED)
        for level in islice(recurring, MAX_FEATURES):
            collected.append(Feature(f"{every}.count({category_text(level)})", "count", level))
    return list(dict.fromkeys(collected))


def all_features(table: Table, on_d: Bools | None = None, paired: int = 0) -> list[Feature]:
    """Return the features of `features`, and sums and differences of neighbours, for models.

    If places were left out, features that no pair of outputs differs in are left out as well.
    """
    places = choose_places(table, on_d, paired)
    sample = Sample(table, on_d, paired, places, many=True)
    collected = basic_features(sample)
    collected += _summaries(table, ("sum",))
    collected += _differences(table, on_d, places)
    if places.all or on_d is None or paired < MIN_PAIRED:
        return collected
    return [feature for feature in collected if _differs_in_pair(feature, table, on_d, paired)]


def _differs_in_pair(feature: Feature, table: Table, on_d: Bools, paired: int) -> bool:
    """Return whether a feature differs in some pair of outputs; True for features of places."""
    if feature.kind in PLACE_KINDS:  # which were chosen
        return True
    numbers, codes = feature.columns(table)
    rows1, rows2 = (np.flatnonzero(side)[:paired] for side in (on_d, ~on_d))
    return bool(differing_columns(numbers[:, None], codes[:, None], rows1, rows2)[0])


def float_features(table: Table, on_d: Bools | None = None) -> list[Feature]:
    """Return features of the last digits of floats, which reveal what noise was added to.

    For each place with numbers, the lowest bit that is set; for the `MAX_SUMS` places where that
    differs most between the samples, all 64 bits.
    """
    lowest = _most_distinguishing(
        [lowest_bit_of(place) for place in _numeric_places(table)], table, on_d
    )
    few = _most_distinguishing(lowest, table, on_d, MAX_SUMS)
    return lowest + [bit for feature in few for bit in bits_of(feature.argument)]


def lowest_bit_of(place: str) -> Feature:
    """Return the feature: the largest k such that 2**k divides the number at a place."""
    return Feature(f"log2(lowest bit of {place})", "lowest bit", place)


def bits_of(place: str) -> list[Feature]:
    """Return features for the 64 bits of the double at a place, from the lowest to the sign."""
    return [Feature(f"bit {k} of {place}", "bit", (place, k)) for k in range(64)]


def _summaries(table: Table, kinds: tuple[str, ...]) -> list[Feature]:
    """Return features that summarise all numbers of an output, one for each of `kinds`.

    None if no output has a number, or none has several leaves.
    """
    containers = [s for s in table.structures if s.length is not None]
    if not any(len(s.places) > 1 for s in containers) or not np.any(table.codes == NUMBER):
        return []
    return [Feature(f"{kind}({_elements_text(table)})", kind) for kind in kinds]


def _elements_text(table: Table) -> str:
    kinds = {s.kind for s in table.structures if s.length is not None}
    return "output.values()" if kinds == {"dict"} else "output"


def _differences(table: Table, on_d: Bools | None, places: Places) -> list[Feature]:
    """Return features for differences of neighbouring numbers in flat outputs.

    The `MAX_FEATURES` that separate the inputs most, or `MAX_PAIRED` if places were chosen.
    """
    is_number, position = table.codes == NUMBER, table.positions
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
    differences = [Feature(" - ".join(pair), "difference", pair) for pair in pairs]
    return _most_distinguishing(differences, table, on_d, limit)


def _numeric_places(table: Table) -> list[str]:
    """Return the places that hold a number in some output."""
    places = [place for structure in table.structures for place in structure.places]
    starts = np.cumsum([0, *(len(structure.places) for structure in table.structures)])
    holds = np.zeros(len(places), dtype=bool)
    leaf_of = starts[table.structure[table.owner]] + table.positions
    holds[leaf_of[table.codes == NUMBER]] = True
    return list(dict.fromkeys(place for place, yes in zip(places, holds, strict=True) if yes))


def keep_affordable(
    candidates: list[Feature], table: Table, on_d: Bools, runs_each: int
) -> list[Feature]:
    """Return candidates without the features of places that are too many to learn.

    Of each kind of features of places, the `affordable_number` in which the samples differ most
    stay.
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
    """Return the `limit` features in which samples differ most; evenly spaced without `on_d`."""
    if len(candidates) <= limit or on_d is None:
        return _pick_evenly(candidates, limit)
    sample = np.zeros(len(table), dtype=bool)
    sample[leading_rows(on_d, min(SAMPLED, MAX_NUMBERS // len(candidates)))] = True
    part = table.rows(sample)
    numbers, codes = (
        np.stack(columns, axis=1)
        for columns in zip(*(feature.columns(part) for feature in candidates), strict=True)
    )
    chosen = informative_columns(numbers, codes, on_d[sample], limit)
    return [candidates[i] for i in chosen.tolist()]


def _pick_evenly(candidates: list[Feature], limit: int) -> list[Feature]:
    if len(candidates) <= limit:
        return candidates
    return [candidates[i] for i in np.linspace(0, len(candidates) - 1, limit).astype(int)]
