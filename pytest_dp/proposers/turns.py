"""Pairs around inputs that take other branches of the code, and strategies of such inputs.

Where a claim has no strategy, datasets are drawn that are like its examples, with constants of the
code among their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

from hypothesis import errors, reject
from hypothesis import strategies as st

from pytest_dp.basics.errors import ClaimError
from pytest_dp.claiming.claim import Promise
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.data import is_real, kind_of, rebuild, records_of
from pytest_dp.data.conversion import length
from pytest_dp.data.fields import columns_of, fields_of, with_known
from pytest_dp.data.ordering import distinct, representatives
from pytest_dp.data.relations import OfRecords, Pair
from pytest_dp.declaration import Queries
from pytest_dp.pairs.drawing import draw_values
from pytest_dp.pairs.edits import DrawnValue
from pytest_dp.pairs.pair_strategies import can_edit, edit_into_pairs
from pytest_dp.pairs.sources import PairSource
from pytest_dp.proposers.guided import MAX_DRAWN, Guided
from pytest_dp.proposers.interesting_values import LARGEST_NUMBER, reachable_patterns
from pytest_dp.running.calling import Call

MAX_NEIGHBOURS, MAX_MOVED = 6, 20
"""Neighbours of a dataset, and of answers of queries, that are screened. Fewer may miss the one
that leaks."""
FEWEST_NEIGHBOURS, MAX_TRIES = 3, 8
"""Neighbours wanted of an input, and rounds of edits for them. With fewer, its neighbours are
missed."""
ENDS = (127, 255, 32_767, 65_535)
"""The largest whole numbers of small types of numpy: answers one above are cast to others."""
MAX_RECORDS = 24
"""Records of the examples that may come into an input. Fewer miss rare ones."""
LARGEST_ANSWER = 1_000_000
"""Answers of queries are tried up to this number."""


def pairs_at_new_branches(
    source: PairSource,
    promise: Promise,
    call: Call,
    seed: int,
    constants: Callable[[], Sequence[Any]],
) -> Iterator[Pair]:
    """Run the mechanism; yield pairs around inputs that take new branches of the code.

    Pairs around some drawn inputs follow, where the claim has no strategy. Nothing for stated
    pairs, for `values`, and for relations by functions. Raises OutOfTime if runs are slow.
    """
    inputs, relation = promise.inputs, promise.relation
    if relation is None:
        return
    known, corners = constants(), list[DrawnValue]()
    ends: tuple[Any, ...] | None = None
    if is_strategy(inputs) and can_edit(relation):
        strategy = inputs
    elif isinstance(inputs, Queries):
        strategy = _vectors(inputs.lengths)
        corners = [DrawnValue([end] * n) for n in inputs.lengths for end in ENDS]
    elif _are_datasets(inputs) and isinstance(relation, OfRecords):
        strategy = datasets_like(inputs, relation, known)
        ends = (0, 1, 2)  # most of its choices are places in lists of values
    else:
        return
    guided = Guided(strategy, call, seed, known, ends)
    generated = source.generated
    drawn = [] if generated else [*corners, *guided.donors[:MAX_DRAWN]]
    records: list[Any] = []
    most = MAX_NEIGHBOURS if isinstance(relation, OfRecords) else MAX_MOVED
    if _are_datasets(inputs):
        every = chain.from_iterable(records_of(example) for example in inputs)
        records = list(islice(distinct(every), MAX_RECORDS))
    for made, place in chain(guided.find_openings(), ((one, "") for one in drawn)):
        origin = f"one input takes another way at {Path(place).name}" if place else ""
        chosen: list[Pair] = []
        if generated is None:
            with suppress(ClaimError):  # such as records that nobody owns, under unit=
                chosen += islice(relation.pairs(made.value, records), most)
        for _ in range(0 if records else MAX_TRIES):
            donor = guided.random.choice(guided.donors)
            edited = edit_into_pairs(strategy, relation, [(made, donor)], guided.random)[0]
            chosen += [generated.remember_pair(one) if generated else one.value for one in edited]
            if len(chosen) >= FEWEST_NEIGHBOURS:
                break
        yield from (replace(pair, origin=origin) for pair in chosen)


def _vectors(lengths: Sequence[int]) -> st.SearchStrategy[list[int]]:
    """Return a strategy of answers of counting queries, whose number is one of the lengths."""
    numbers = st.integers(0, LARGEST_ANSWER)
    return st.one_of(*(st.lists(numbers, min_size=n, max_size=n) for n in lengths))


def _are_datasets(inputs: Any) -> bool:
    """Return whether inputs are datasets of one type, at least one of which has a record."""
    if not isinstance(inputs, list | tuple) or not all(map(kind_of, inputs)):
        return False
    return len({kind_of(one)[:1] for one in inputs}) == 1 and any(map(records_of, inputs))


MAX_NEW = 8
"""Records that are drawn into a dataset. With fewer, conditions on several are not met."""
MAX_LENGTH = 300
"""Records of a dataset, if their number may vary. Fewer miss conditions on long datasets."""
MAX_TEMPLATES = 100
"""Records of the examples that drawn ones are made of. With fewer, rare kinds are left out."""

Records = list[Any]


def datasets_like(
    examples: Sequence[Any], relation: OfRecords, constants: Sequence[Any]
) -> st.SearchStrategy[Any]:
    """Return a strategy of datasets of the examples' type, made of records like theirs.

    Values are those of the examples, numbers between them, and constants of the code, around which
    its behaviour may change.
    """
    bases = [records_of(example) for example in examples]
    like, longest = max(examples, key=length), max(bases, key=len)
    every = list(distinct(chain.from_iterable(bases)))
    columns = columns_of(every)
    templates = [every[at] for at in representatives(every, MAX_TEMPLATES)][:MAX_TEMPLATES]
    new = st.lists(_records_like(templates, columns, constants), max_size=MAX_NEW)
    if relation.name.startswith("replace"):  # the mechanism may rely on the number of records
        lists = st.builds(_put_first, new, st.sampled_from(bases))
    else:
        usual = min(len(longest), MAX_LENGTH)
        sizes = st.sampled_from([0, usual]) | st.integers(0, MAX_NEW) | st.integers(0, MAX_LENGTH)
        lists = st.builds(lambda rows, n: [*rows, *islice(cycle(longest), n)], new, sizes)
    return lists.map(lambda records: _rebuild_or_reject(like, records))


def _rebuild_or_reject(like: Any, records: Records) -> Any:
    """Return the records as a dataset like the given one; reject a draw that it cannot hold."""
    try:
        return rebuild(like, records)
    except ClaimError:  # such as 6.5 in a column of whole numbers
        return reject()


def _put_first(rows: Records, base: Records) -> Records:
    """Return `base` with its first records replaced by `rows`; its length stays."""
    return [*rows, *base[len(rows) :]][: len(base)]


def _records_like(
    templates: Records, columns: dict[Hashable, dict[Hashable, Any]], constants: Sequence[Any]
) -> st.SearchStrategy[Any]:
    """Return a strategy of records of examples: unchanged, with one field changed, or with all."""
    values = {
        name: _values_like(list(column.values()), constants)
        for name, column in columns.items()
        if column
    }
    kept = st.sampled_from(templates)
    if not values:
        return kept
    changes = st.one_of(*(st.tuples(st.just(name), of) for name, of in values.items()))
    one_changed = st.builds(lambda record, change: with_known(record, *change), kept, changes)

    @st.composite
    def all_changed(draw: st.DrawFn) -> Any:
        record = draw(kept)
        for name in fields_of(record):
            record = with_known(record, name, draw(values[name]))
        return record

    return st.one_of(all_changed(), one_changed, kept)


def _values_like(known: list[Any], constants: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of values of a field: those known, constants, numbers between them.

    Flags (0 and 1) and values other than numbers and texts stay among those known.
    """
    if all(isinstance(value, str) for value in known):
        texts = [value for value in constants if isinstance(value, str)]
        around = [text for value in texts for text in (f"{value}x", f"x{value}")]
        return st.sampled_from([*known, *texts, *around])
    if not all(is_real(value) and not isinstance(value, bool) for value in known):
        return st.sampled_from(known)
    if {0, 1}.issuperset(known):  # flags
        return st.sampled_from(known)
    is_whole = all(isinstance(value, int) for value in known)
    numbers = [value for value in constants if is_real(value) and abs(value) <= LARGEST_NUMBER]
    ends = [*known, *numbers]
    if is_whole:
        return st.sampled_from(known) | st.integers(int(min(ends)) - 1, int(max(ends)) + 1)
    low, high = float(min(ends)), float(max(ends))
    return st.sampled_from(known) | st.floats(low, high, allow_nan=False)


MAX_PATTERNS = 20
"""Regular expressions that are sampled."""
SAMPLES = 12
"""Texts of each that are drawn: a strategy of texts may not allow the letters of all."""
_PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)


def matching_texts(mechanism: Any, params: dict[str, Any], seed: int) -> list[str]:
    """Return up to 12 texts for each regular expression that a mechanism reaches.

    Those of each expression are sorted by length. Expressions that cannot be sampled are left out.
    """
    found: list[str] = []
    for pattern in islice(dict.fromkeys(reachable_patterns(mechanism, params)), MAX_PATTERNS):
        try:
            strategy = st.from_regex(pattern, fullmatch=True, alphabet=_PRINTABLE)
            drawn = islice(draw_values(strategy, seed), SAMPLES)
            texts = [one.value for one in drawn if one is not None]
        except (re.error, errors.InvalidArgument):
            continue
        found += sorted(dict.fromkeys(texts), key=len)
    return found
