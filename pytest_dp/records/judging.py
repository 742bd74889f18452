"""Claims of a run against those on record: which are kept, weakened, hidden, gone or new.

Entries are compared field by field, each by the order of its values, if it has one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NamedTuple

from pytest_dp.basics.reprs import LINE_WIDTH, plural
from pytest_dp.claiming.method_settings import METHODS
from pytest_dp.claiming.setting_fields import FIELDS
from pytest_dp.claiming.settings import Settings
from pytest_dp.records.entries import (
    OTHER,
    STRONGER,
    WEAKER,
    Entry,
    compare_promises,
    digest_of_example,
    promise_text,
)

_OBJECTS: tuple[Any, ...] = (*(method() for method in METHODS.values()), Settings())
_USUAL = {name: getattr(usual, name) for usual in _OBJECTS for name in usual.__match_args__}
_USUAL["method"] = Settings().method.name
KEPT = "as on record"
WEAKENED, HIDDEN, GONE, NEW = "weakened", "hidden", "gone", "not on record"
_FAILING = (WEAKENED, HIDDEN, GONE, NEW)
_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


class FieldChange(NamedTuple):
    """A difference between two entries of a claim."""

    what: str
    """The keyword of a claim, or ``"promise"``."""
    before: str
    after: str
    verdict: str
    """`WEAKER`, `STRONGER` or `OTHER`."""

    @property
    def is_loss(self) -> bool:
        """True unless the change is stronger: also if the two values cannot be compared."""
        return self.verdict != STRONGER

    def __str__(self) -> str:
        what = "" if self.what == "promise" else f"{self.what} "
        return f"{what}{self.before} -> {self.after}"


def _fields_by_keyword(entry: Entry) -> dict[str, Any]:
    """Return the fields of an entry by the keywords of a claim, in the order of display."""
    params = entry.get("params", {})
    return {
        "promise": entry.get("promise", {}),
        "inputs": (entry.get("inputs"), entry.get("examples")),
        "neighbours": entry.get("relation", {}),
        "group": entry.get("group", 1),
        **{f"params[{name!r}]": params[name] for name in sorted(params)},
        **{name: entry[name] for name in ("records", "score") if name in entry},
        **entry.get("effort", {}),
    }


def claim_changes(before: Entry, after: Entry) -> Iterator[FieldChange]:
    """Yield the differences between two entries of a claim, each with a verdict.

    Values that a field's order does not know, as in a file that was edited, are `OTHER`.
    """
    old_fields, new_fields = _fields_by_keyword(before), _fields_by_keyword(after)
    for name in dict.fromkeys((*old_fields, *new_fields)):
        old, new = (fields.get(name, _USUAL.get(name)) for fields in (old_fields, new_fields))
        try:
            verdict = _compare_values(name, old, new) if old != new else ""
        except (TypeError, ValueError, KeyError):
            verdict = OTHER
        if verdict:
            texts = _text_of_field(name, old, new), _text_of_field(name, new, old)
            yield FieldChange(name, *texts, verdict)


def _compare_values(name: str, before: Any, after: Any) -> str:
    """Return the verdict on two values of a field; empty if both are worth equally much.

    Raises TypeError, ValueError or KeyError for values that the field's order does not know.
    """
    if name == "promise":
        return compare_promises(before, after)
    if name == "inputs":
        return _compare_inputs(before, after)
    if name == "neighbours":
        return STRONGER if not before else WEAKER if not after else OTHER
    field = FIELDS.get(name)
    order = "rising" if name == "group" else "" if field is None else field.order
    if order == "ranked" and field is not None:
        before, after = field.choices.index(before), field.choices.index(after)
    if order == "falling":
        before, after = after, before
    # With a larger alpha less evidence is enough: it finds more, among it more false alarms.
    return (STRONGER if after > before else WEAKER) if order else OTHER


_Inputs = tuple[str | None, list[str] | None]
"""Where inputs come from, if the claim names it, and the examples, if these are known."""


def _compare_inputs(old: _Inputs, new: _Inputs) -> str:
    """Return the verdict on inputs: more examples are stronger, lost and new ones together `OTHER`.

    Empty if the examples are equal or, where one list is unknown, the sources are equal.
    """
    (old_source, before), (new_source, after) = old, new
    if before is None or after is None:
        return OTHER if old_source != new_source else ""
    lost, gained = _examples_missing(before, after), _examples_missing(after, before)
    return OTHER if lost and gained else WEAKER if lost else STRONGER if gained else ""


def _examples_missing(texts: list[str], others: list[str]) -> list[str]:
    """Return the examples of `texts` that `others` lacks, or has less often."""
    missing = Counter(map(digest_of_example, texts)) - Counter(map(digest_of_example, others))
    return [text for text in texts if digest_of_example(text) in missing]


def _text_of_field(name: str, value: Any, other: Any) -> str:
    """Return a field as text; of inputs, a count and what `other` lacks; "not given" for None."""
    if name == "promise":
        return promise_text(value)
    if name == "inputs":
        (source, examples), (_, others) = value, other
        count = plural(len(examples or []), "example")
        if examples is None or others is None:
            return str(source or count)
        own = _examples_missing(examples, others)
        more = f" and {len(own) - 2} more" if len(own) > 2 else ""
        return f"{count}, among them {', '.join(own[:2])}{more}" if own else count
    if isinstance(value, dict):
        stated = ", ".join(f"{key}={part!r}" for key, part in value.items() if key != "neighbors")
        called = value.get("neighbors")
        given = f"neighbors={called}({stated})" if stated else f"neighbors={called!r}"
        return given if value else "not stated"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "not given" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Collected:
    """A claim that this run has collected."""

    id: str
    """As in the file: path and name."""
    entry: Entry | None
    """None where it is not known what is claimed: the test was not run, or the claim is broken."""
    hidden: str = ""
    """Why it is not audited, in words: ``"skipped: too slow"``; empty if it is."""
    selected: bool = True
    """Whether it is judged: a run of some tests says nothing of others."""
    on_record: str = ""
    """The id on record that it belongs to, as by `counterparts`."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a claim compares with the one on record."""

    kind: str
    """`KEPT`, `STRONGER`, `WEAKENED`, `HIDDEN` (not audited), `GONE` or `NEW`."""
    id: str
    """The id on record, or else the id that was found."""
    collected: Collected | None = None
    changes: tuple[FieldChange, ...] = ()

    @property
    def is_failure(self) -> bool:
        """True if the claim fails its test, or the run."""
        return self.kind in _FAILING

    @property
    def losses(self) -> list[FieldChange]:
        """The changes that fail a claim: first weaker ones, then those that cannot be compared."""
        lost = [change for change in self.changes if change.is_loss]
        return sorted(lost, key=lambda change: change.verdict != WEAKER)


def test_of(name: str) -> str:
    """Return the id of the test of a claim, without ``#2``, the number of an audit."""
    return re.sub(r"#\d+$", "", name)


def mechanism_of(name: str) -> str:
    """Return an id without brackets, which hold the promise and parameters."""
    return re.sub(r"\[.*\]", "", name, flags=re.DOTALL)


def counterparts(
    recorded: Mapping[str, Entry], found: Mapping[str, Entry | None], tests: Collection[str] = ()
) -> dict[str, str]:
    """Return the id on record for each id in `found`; an id without one is left out.

    `found` has entries by id, None where the entry is not known. An id on record stands for itself.
    Any other id gets the entry with equal mechanism and parameters, if only one such entry and one
    such id are left. Entries of `tests`, ids of tests with claims still to be found, are not given
    away.
    """
    pairs = {name: name for name in found if name in recorded}
    old = [name for name in recorded if name not in pairs.values() and test_of(name) not in tests]
    before = _group_by_fields({name: recorded[name] for name in old})
    now = _group_by_fields({name: found[name] for name in found if name not in pairs})
    only = [key for key in now if len(now[key]) == len(before.get(key, ())) == 1]
    return pairs | {now[key][0]: before[key][0] for key in only}


def _group_by_fields(entries: Mapping[str, Entry | None]) -> dict[str, list[str]]:
    """Return lists of ids; those of one list have equal mechanisms and parameters."""
    groups: dict[str, list[str]] = {}
    for name, entry in entries.items():
        params = None if entry is None else [entry.get("params")]
        key = json.dumps([mechanism_of(name), params], sort_keys=True)
        groups.setdefault(key, []).append(name)
    return groups


def judge_claim(recorded: Mapping[str, Entry], claim: Collected) -> Judgement | None:
    """Return the judgement of a claim; None without any entry. Raises ClaimError for wrong ones."""
    name, new = claim.on_record, claim.entry
    if not name:
        return None if new is None else Judgement(NEW, claim.id, claim)
    old = recorded[name]
    compared = () if new is None else tuple(claim_changes(old, _fill_from_old(new, old)))
    if claim.hidden and claim.hidden.partition(":")[0] != old.get("hidden"):
        return Judgement(HIDDEN, name, claim, compared)
    if any(change.is_loss for change in compared):
        return Judgement(WEAKENED, name, claim, compared)
    # Those that the ini file leaves out may be what another run is for.
    runs_again = old.get("hidden", "left out") != "left out" and not claim.hidden
    return Judgement(STRONGER if compared or runs_again else KEPT, name, claim, compared)


def judge(
    recorded: Mapping[str, Entry], claims: Sequence[Collected], expected: Callable[[str], bool]
) -> list[Judgement]:
    """Compare claims with those on record; return the judgements, sorted by id.

    Each selected claim gets one, unless the claim is neither on record nor known. Each entry on
    record that no claim belongs to gets one of kind `GONE`, if `expected` is true for its id:
    whether this run should have found it. The id is that on record, or else that of the claim.
    Raises ClaimError as `judge_claim`.
    """
    found = (judge_claim(recorded, claim) for claim in claims if claim.selected)
    gone = [Judgement(GONE, name) for name in _names_not_found(recorded, claims) if expected(name)]
    judgements = [*(judgement for judgement in found if judgement is not None), *gone]
    return sorted(judgements, key=lambda judgement: judgement.id)


def _names_not_found(recorded: Mapping[str, Entry], claims: Sequence[Collected]) -> list[str]:
    """Return the ids on record that belong to no claim of this run."""
    used = {claim.on_record for claim in claims}
    return [name for name in recorded if name not in used]


def update_entries(
    recorded: Mapping[str, Entry], claims: Sequence[Collected], expected: Callable[[str], bool]
) -> dict[str, Entry]:
    """Return the entries after a run: selected claims are written anew, expected ones not found go.

    All other entries stay. `expected` returns whether this run should have found the claim of an
    id.
    """
    entries = {
        name: recorded[name] for name in _names_not_found(recorded, claims) if not expected(name)
    }
    for claim in claims:
        old = recorded.get(claim.on_record, {})
        if claim.entry is not None and claim.selected:
            entries[claim.id] = _mark_hidden(_fill_from_old(claim.entry, old), claim)
        elif old:
            entries[claim.on_record] = _mark_hidden(old, claim) if claim.selected else old
    return entries


def _fill_from_old(new: Entry, old: Entry) -> Entry:
    """Return the new entry; with the old examples and relation if only an audit looks inputs up."""
    same = new.get("inputs") == old.get("inputs") and "examples" not in new
    more = ("examples", "relation") if same else ()
    return {**{name: old[name] for name in more if name in old}, **new}


def _mark_hidden(entry: Entry, claim: Collected) -> Entry:
    """Return a copy of an entry with the kind of reason for no audit, if there is a reason."""
    entry = {name: value for name, value in entry.items() if name != "hidden"}
    return {**entry, "hidden": claim.hidden.partition(":")[0]} if claim.hidden else entry


def failure_message(judgement: Judgement, file: str) -> str:
    """Return lines on a failing claim: what is wrong, the fields that changed, and what to do."""
    room = " " * len("WeakenedClaim: ")  # which comes before it
    lines = wrap(room + _failure_headline(judgement, file), LINE_WIDTH, **_WHOLE_WORDS)
    lines[0] = lines[0].strip()
    details = _changes_in_columns(judgement.changes)
    if details:
        lines += ["", *details]
    return "\n".join(
        [*lines, "", f"If this is intended:  pytest --dp-claims=update  and commit {file}."]
    )


def _failure_headline(judgement: Judgement, file: str) -> str:
    """Return what is wrong with a failing claim, in one line."""
    collected = judgement.collected
    if collected is None:
        return f"gone: no test is about this claim, which {file} has on record"
    if judgement.kind == HIDDEN:
        return f"not audited ({collected.hidden}); {file} has it on record"
    if judgement.kind == NEW and collected.entry is not None:
        promise = promise_text(collected.entry["promise"])
        return f"not on record: {file} has no such claim ({promise})"
    losses = judgement.losses
    is_less = "is less than" if losses[0].verdict == WEAKER else "is not what"
    more = f" (and {len(losses) - 1} more)" if len(losses) > 1 else ""
    return f"{losses[0]}{more} {is_less} {file} has on record"


def _changes_in_columns(changed: Sequence[FieldChange]) -> list[str]:
    """Return a line for each changed field, wrapped: keyword, old value, new value, verdict."""
    width = max((len(change.what) for change in changed), default=0)
    lines = []
    for change in changed:
        said = f"{change.before} -> {change.after}  ({change.verdict})"
        room = max(LINE_WIDTH - width - 4, 30)
        start, *rest = wrap(said, room, break_on_hyphens=False)
        lines.append(f"  {change.what:<{width}}  {start}")
        lines += [f"  {'':<{width}}  {text}" for text in rest]
    return lines


def summarize(judgements: Iterable[Judgement], file: str) -> list[str]:
    """Return the lines at the end of a run: counts of claims by judgement, and stronger claims."""
    judgements = list(judgements)
    kinds = [judgement.kind for judgement in judgements]
    words = (KEPT, STRONGER, *_FAILING)
    counted = [f"{kinds.count(kind)} {kind}" for kind in words if kind in kinds]
    lines = [f"{file}: {', '.join(counted)}"] if counted else []
    for judgement in judgements:
        if judgement.kind == STRONGER:
            said = "; ".join(map(str, judgement.changes)) or "it is audited again"
            line = f"  stronger: {judgement.id}: {said}"
            lines += wrap(line, LINE_WIDTH, subsequent_indent="    ", **_WHOLE_WORDS)
    if STRONGER in kinds and not any(judgement.is_failure for judgement in judgements):
        lines.append(f"To put that on record:  pytest --dp-claims=update  and commit {file}.")
    return lines
