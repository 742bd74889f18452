"""Quantities of an output that an event can speak about, as a person would write them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pytest_dp.outputs.table import ABSENT, NUMBER, Bools, Floats, Ints, Table, tabulate, written

Kind = Literal["leaf", "last", "len", "mean", "min", "max", "count", "hamming"]
_MANY = 64
_SCREENED, _SCREENED_ROWS = 2_000, 1_000
"""Of many places, how many are compared, on how many outputs of each input."""
SUMMARIES: tuple[Kind, ...] = ("mean", "min", "max")


@dataclass(frozen=True, slots=True)
class Feature:
    """A quantity of an output.

    Attributes
    ----------
    text : str
        How a person would write it: ``"output[2]"``, ``"len(output)"``.
    kind : str
    argument : hashable
        The place of a leaf, the category that is counted, or the leaves compared with.
    """

    text: str
    kind: Kind
    argument: Hashable = None

    def columns(self, table: Table) -> tuple[Floats, Ints]:
        """Its value for every output: numbers, and codes as in `Table`, shape (n,) each."""
        match self.kind:
            case "leaf":
                return table.leaf(str(self.argument))
            case "last":
                return table.last()
            case "len":
                lengths = [np.nan if s.length is None else s.length for s in table.structures]
                return _numeric(np.array(lengths, dtype=np.float64)[table.structure])
            case "count":
                code = table.levels.get(self.argument, ABSENT)  # type: ignore[call-overload]
                owners = table.owner[table.codes == code]
                return _numeric(np.bincount(owners, minlength=len(table)).astype(np.float64))
            case "hamming":
                return _numeric(_hamming(table, self.argument))  # type: ignore[arg-type]
            case _:
                return _numeric(_summary(table, self.kind))


def leaf(place: str) -> Feature:
    """The leaf at a place."""
    return Feature(place, "leaf", place)


LEN = Feature("len(output)", "len")
LAST = Feature("output[-1]", "last")


def features(table: Table, references: list[Any], first: Bools | None = None) -> list[Feature]:
    """The quantities that StatDP's event families speak about, for outputs such as these.

    Parameters
    ----------
    table : Table
        Outputs seen so far.
    references : list
        Noiseless answers, to compare with by Hamming distance.
    first : ndarray of bool, shape (n,), optional
        Which outputs are those on the first input: of very many places, those where the two sides
        differ are chosen.
    """
    lengths = {structure.length for structure in table.structures}
    containers = [s for s in table.structures if s.length is not None]
    found = [LEN] if len(lengths) > 1 else []
    found += [leaf(place) for place in _places(table, first)]
    if len(lengths) > 1 and any(structure.is_flat for structure in containers):
        found.append(LAST)
    if any(len(structure.places) > 1 for structure in containers):
        if np.any(table.codes == NUMBER):
            every = "output.values()" if {s.kind for s in containers} == {"dict"} else "output"
            found += [Feature(f"{name}({every})", name) for name in SUMMARIES]
        for level in list(table.levels)[:_MANY]:
            found.append(Feature(f"output.count({written(level)})", "count", level))
        found += [_distance(reference) for reference in references if _is_vector(reference)]
    return list(dict.fromkeys(found))


def _places(table: Table, first: Bools | None) -> list[str]:
    """Places of leaves; of very many, those where the two sides look most different."""
    places = list(table.place_index)
    if len(places) > _MANY and first is not None:
        places = _spread(places, _SCREENED)
        rows = np.concatenate([np.flatnonzero(side)[:_SCREENED_ROWS] for side in (first, ~first)])
        few = np.zeros(len(table), dtype=bool)
        few[rows] = True
        part, sides = table.rows(few), first[few]
        gaps = np.array([_gap(*part.leaf(place), sides) for place in places])
        order = np.argsort(-gaps, kind="stable")[:_MANY]
        places = [places[i] for i in np.sort(order)]
    return _spread(places, _MANY)


def _spread(places: list[str], most: int) -> list[str]:
    if len(places) <= most:
        return places
    return [places[i] for i in np.unique(np.linspace(0, len(places) - 1, most).astype(int))]


def _gap(numbers: Floats, codes: Ints, first: Bools) -> float:
    """How many standard errors apart two samples are, at the best threshold, value or category."""
    widest = 0.0
    for values in (np.where(codes == NUMBER, numbers, -np.inf), codes):
        inverse = np.unique(values, return_inverse=True)[1]
        if not len(inverse):
            continue
        many = int(inverse.max()) + 1
        c1 = np.bincount(inverse[first], minlength=many)
        c2 = np.bincount(inverse[~first], minlength=many)
        upward, downward = (c1.cumsum(), c2.cumsum()), (c1[::-1].cumsum(), c2[::-1].cumsum())
        for one, two in ((c1, c2), upward, downward):
            widest = max(widest, float(np.max(np.abs(one - two) / np.sqrt(one + two + 1.0))))
    return widest


def _is_vector(reference: Any) -> bool:
    try:
        return bool(np.ndim(reference) == 1)
    except ValueError:  # lists of several lengths
        return False


def _distance(reference: Any) -> Feature:
    if isinstance(reference, np.ndarray):
        reference = reference.tolist()
    alone = tabulate([list(reference)])
    names = {code: level for level, code in alone.levels.items()}
    keys = tuple(
        ("number", number) if code == NUMBER else names[code]
        for number, code in zip(alone.numbers.tolist(), alone.codes.tolist(), strict=True)
    )
    return Feature(f"hamming(output, {list(reference)!r})", "hamming", keys)


def _numeric(numbers: Floats) -> tuple[Floats, Ints]:
    return numbers, np.where(np.isnan(numbers), ABSENT, NUMBER)


def _summary(table: Table, kind: str) -> Floats:
    """Mean, min or max over the numbers in each output; NaN where there are none."""
    is_number = table.codes == NUMBER
    owner, numbers = table.owner[is_number], table.numbers[is_number]
    if kind == "mean":
        counts = np.bincount(owner, minlength=len(table))
        sums = np.bincount(owner, weights=numbers, minlength=len(table))
        with np.errstate(all="ignore"):
            means: Floats = sums / counts
        return means
    found = np.full(len(table), np.nan)
    if len(owner):
        rows, starts = np.unique(owner, return_index=True)
        reduce = np.minimum if kind == "min" else np.maximum
        found[rows] = reduce.reduceat(numbers, starts)
    return found


def _hamming(table: Table, keys: tuple[tuple[str, Any], ...]) -> Floats:
    """In how many positions each output differs from the reference; NaN for bare leaves."""
    values = np.array([key[1] if key[0] == "number" else np.nan for key in keys], dtype=np.float64)
    codes = np.array(
        [NUMBER if key[0] == "number" else table.levels.get(key, ABSENT) for key in keys],
        dtype=np.int64,
    )
    distance = np.full(len(table), np.nan)
    for number, structure in enumerate(table.structures):
        if structure.length is None:
            continue
        rows = np.flatnonzero(table.structure == number)
        shared = min(len(structure.places), len(keys))
        at = table.offsets[rows][:, None] + np.arange(shared)
        same = (table.codes[at] == codes[:shared]) & (
            (codes[:shared] != NUMBER) | (table.numbers[at] == values[:shared])
        )
        extra = max(len(structure.places), len(keys)) - shared
        distance[rows] = shared - same.sum(axis=1) + extra
    return distance
