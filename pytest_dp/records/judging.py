"""Which of the claims on record are kept, weakened, hidden, renamed or gone, and which are new."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from pytest_dp.records.comparing import Change, changes
from pytest_dp.records.entries import Entry

KEPT, STRONGER, RENAMED = "kept", "stronger", "renamed"
WEAKENED, HIDDEN, GONE, NEW = "weakened", "hidden", "gone", "not on record"
FAILING = (WEAKENED, HIDDEN, GONE, NEW)


@dataclass(frozen=True, slots=True)
class Collected:
    """A claim that this run has collected."""

    id: str
    """As in the file: path and name."""
    entry: Entry | None
    """None where it is not known what is claimed: the test was not run, or the claim is broken."""
    path: str = ""
    line: int = 1
    hidden: str = ""
    """Why it is not audited, in words: ``"skipped: too slow"``; empty if it is."""
    selected: bool = True
    """Whether it is judged: a run of some tests says nothing of others."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a claim."""

    kind: str
    """`KEPT`, `STRONGER`, `RENAMED`, `WEAKENED`, `HIDDEN`, `GONE` or `NEW`."""
    id: str
    """As on record, or else as found."""
    collected: Collected | None = None
    changes: tuple[Change, ...] = field(default=())

    @property
    def fails(self) -> bool:
        return self.kind in FAILING


def judge(
    recorded: Mapping[str, Entry], collected: Iterable[Collected], expected: Callable[[str], bool]
) -> list[Judgement]:
    """What became of each claim on record that this run was about, and of each that it found.

    The entries on record are by their ids; `expected` tells whether this run should have found a
    claim of that id. Raises ClaimError if something on record is no entry.
    """
    claims = list(collected)
    pairs = matched(recorded, claims)
    judged = []
    for name, claim in pairs:
        if claim.selected:
            judged.append(_judged(name, recorded[name], claim))
    taken = {name for name, _ in pairs}
    judged += [Judgement(GONE, name) for name in recorded if name not in taken and expected(name)]
    known = {claim.id for _, claim in pairs}
    judged += [
        Judgement(NEW, claim.id, claim)
        for claim in claims
        if claim.id not in known and claim.entry is not None and claim.selected
    ]
    return sorted(judged, key=lambda judgement: judgement.id)


def _judged(name: str, old: Entry, claim: Collected) -> Judgement:
    new = claim.entry
    compared = () if new is None else tuple(changes(old, _filled(new, old)))
    if claim.hidden and claim.hidden.partition(":")[0] != old.get("hidden"):
        return Judgement(HIDDEN, name, claim, compared)
    if any(change.loses for change in compared):
        return Judgement(WEAKENED, name, claim, compared)
    if mechanism_of(name) != mechanism_of(claim.id):
        return Judgement(RENAMED, name, claim, compared)
    # Those that the ini file leaves out may be what another run is for.
    runs_again = old.get("hidden", "deselected") != "deselected" and not claim.hidden
    kind = STRONGER if compared or runs_again else KEPT
    return Judgement(kind, name, claim, compared)


def matched(
    recorded: Mapping[str, Entry], collected: Iterable[Collected]
) -> list[tuple[str, Collected]]:
    """Pairs of an id on record and the collected claim that it belongs to.

    Those of one mechanism, as the rest of an id follows from what is promised; then, as a mechanism
    may get another name, those of one source. Of several, those first that have most in common.
    """
    claims = {claim.id: claim for claim in collected}
    left = dict(recorded)
    pairs: list[tuple[str, Collected]] = []
    for alike in (_of_one_mechanism, _of_one_source):
        offered = [
            (_in_common(name, entry, claim), name, claim.id)
            for name, entry in left.items()
            for claim in claims.values()
            if alike(name, entry, claim)
        ]
        for _, name, id_ in sorted(offered, key=lambda offer: (-offer[0], *offer[1:])):
            if name in left and id_ in claims:
                del left[name]
                pairs.append((name, claims.pop(id_)))
    return pairs


def mechanism_of(name: str) -> str:
    """An id without what it says of the promise."""
    return re.sub(r"\[.*\]", "", name, flags=re.DOTALL)


def _of_one_mechanism(name: str, entry: Entry, claim: Collected) -> bool:  # noqa: ARG001
    same = mechanism_of(name) == mechanism_of(claim.id)
    return same and (claim.entry is not None or name == claim.id)


def _of_one_source(name: str, entry: Entry, claim: Collected) -> bool:  # noqa: ARG001
    return claim.entry is not None and entry.get("source") == claim.entry["source"]


def _in_common(name: str, old: Entry, claim: Collected) -> int:
    """How similar two entries are; what they say counts for more than the id."""
    new = claim.entry
    if new is None:
        return 0
    same = [key for key in {*old, *new} if old.get(key) == new.get(key)]
    one_notion = bool(old.get("promise", {}).keys() == new["promise"].keys())
    return 2 * len(same) + 3 * int(one_notion) + int(name == claim.id)


def updated(
    recorded: Mapping[str, Entry], collected: Iterable[Collected], expected: Callable[[str], bool]
) -> dict[str, Entry]:
    """The entries after a run: those it found anew, without what is gone; all others stay."""
    claims = list(collected)
    pairs = matched(recorded, claims)
    earlier = {claim.id: recorded[name] for name, claim in pairs}
    taken = {name for name, _ in pairs}
    entries = {
        name: entry for name, entry in recorded.items() if name not in taken and not expected(name)
    }
    for name, claim in pairs:
        if claim.entry is None or not claim.selected:
            entries[name] = _marked(recorded[name], claim) if claim.selected else recorded[name]
    for claim in claims:
        if claim.entry is not None and claim.selected:
            entries[claim.id] = _marked(_filled(claim.entry, earlier.get(claim.id, {})), claim)
    return entries


def _filled(new: Entry, old: Entry) -> Entry:
    """The new entry; what only an audit can tell is taken from the old one if need be."""
    same = new.get("inputs") == old.get("inputs") and "examples" not in new
    more = ("examples", "relation") if same else ()
    return {**{name: old[name] for name in more if name in old}, **new}


def _marked(entry: Entry, claim: Collected) -> Entry:
    entry = {name: value for name, value in entry.items() if name not in ("hidden", "chosen")}
    return {**entry, "hidden": claim.hidden.partition(":")[0]} if claim.hidden else entry
