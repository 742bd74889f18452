"""A claim as an entry of ``dp-claims.json``, and the file: a line for each value, easy to merge.

Entries are plain values that say the same on every machine.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_dp.basics.atomic_files import write_whole
from pytest_dp.basics.errors import ClaimError, ClaimsFileError
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.claiming.more_declarations import Riskiest
from pytest_dp.claiming.setting_fields import FIELDS, is_strategy
from pytest_dp.claiming.settings import Settings
from pytest_dp.data.types import type_of
from pytest_dp.declaration import Queries, Values
from pytest_dp.privacy import (
    ApproximateDP,
    AttackAUC,
    GaussianDP,
    Guarantee,
    RenyiDP,
    ZeroConcentratedDP,
    read_guarantee,
)
from pytest_dp.privacy.composition import implies
from pytest_dp.records.identity import brief, digest_of_text, text_of

VERSION = 1
"""Given with the format of the file; what a newer one says is not guessed at."""
RECORDED_EPS = (0.0, 0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""Values of eps on record for a curve. More: longer files; fewer: changes between are unseen."""

SAME_CURVE = 1e-6
"""Relative difference of equal deltas. Larger: weaker claims pass; smaller: rounding counts."""

WEAKER, STRONGER, OTHER = "weaker", "stronger", "not comparable"

Entry = dict[str, Any]

_FORMS: Mapping[str, type] = {
    **dict.fromkeys(("promise", "relation", "params", "effort"), dict),
    **dict.fromkeys(("inputs", "hidden"), str),
    "examples": list,
    "group": int,
}
"""The type of each field of an entry, where it has that field."""

_DIGEST = re.compile(r"#([0-9a-f]{12})( \([\d,]+ records?\))?$")


def make_entry(claim: Claim, settings: Settings, resolved: Promise | None = None) -> Entry:
    """Return the entry of a claim: its fields as plain values, without empty ones.

    `settings` are those that files give: the command line is no part of a claim. `resolved` is the
    promise with its inputs looked up; None before an audit.
    """
    promise = claim.promise
    looked_up = resolved or promise
    parts: Entry = {
        "promise": promise_of(promise.of_one_unit.guarantee),
        "relation": _relation_fields(looked_up),
        **_membership_fields(promise),
        "inputs": _source_of_inputs(promise),
        "examples": input_texts(looked_up, written=input_texts(promise) is not None),
        "params": {
            name: _text_or_digest(value)
            for name, value in {**claim.arguments.params, **claim.arguments.drawn}.items()
        },
        "group": promise.group if promise.group > 1 else None,
        "effort": _effort(settings),
    }
    return {name: part for name, part in parts.items() if part not in (None, {}, [])}


def promise_of(given: Guarantee) -> Entry:
    """Return a guarantee as plain values of nine digits; of a privacy curve, delta at some eps."""
    if isinstance(given, ApproximateDP | ZeroConcentratedDP | GaussianDP | AttackAUC):
        numbers = {given.parameter: given.claimed} | ({"delta": given.delta} if given.delta else {})
        return {name: _nine_digits(number) for name, number in numbers.items()}
    if isinstance(given, RenyiDP):
        return {"RenyiDP": [[order, _nine_digits(bound)] for order, bound in given.bounds]}
    values = [[eps, _nine_digits(float(given.delta_at(eps)))] for eps in RECORDED_EPS]
    return {"guarantee": str(given).partition("=")[2], "curve": values}


def _nine_digits(number: float) -> float:
    return float(f"{number:.9g}")


def guarantee_of(promise: Mapping[str, Any]) -> Guarantee | None:
    """Return an entry's guarantee; None for a curve. Raises ClaimError for wrong values."""
    if "curve" in promise:
        return None
    try:
        orders = promise.get("RenyiDP")
        return read_guarantee(promise if orders is None else {"guarantee": RenyiDP(dict(orders))})
    except (TypeError, ValueError) as error:
        raise ClaimError(f"{dict(promise)!r} is not a promise: {error}") from None


def promise_text(promise: Mapping[str, Any]) -> str:
    """Return the promise of an entry as keywords of a claim: ``"eps=1.0, delta=1e-06"``."""
    given = {name: value for name, value in promise.items() if name != "curve"}
    if "RenyiDP" in given:
        return str(RenyiDP(dict(given["RenyiDP"])))
    return ", ".join(f"{name}={value}" for name, value in given.items())


def compare_promises(old: Entry, new: Entry) -> str:
    """Return the verdict on a new promise; empty if equal. Raises ClaimError for wrong promises."""
    if old == new:
        return ""
    forth, back = _follows(old, new), _follows(new, old)
    if forth and back and guarantee_of(old) == guarantee_of(new):
        return ""
    return STRONGER if forth else WEAKER if back else OTHER


def _follows(asked: Entry, given: Entry) -> bool:
    """Return whether promise `asked` follows from `given`; from a curve, only curves follow."""
    wanted, have = guarantee_of(asked), guarantee_of(given)
    if wanted is not None and have is not None:
        return implies(have, wanted)
    if wanted is not None:
        return False
    if have is not None:
        return all(have.delta_at(eps) <= delta * (1 + SAME_CURVE) for eps, delta in asked["curve"])
    both = zip(asked["curve"], given["curve"], strict=True)
    return all(new <= delta * (1 + SAME_CURVE) for (_, delta), (_, new) in both)


def input_texts(promise: Promise, *, written: bool = True) -> list[str] | None:
    """Return a text for each input or pair; None if the claim only names a source of inputs.

    Inputs that are not `written` in the claim itself may be personal data. Each has a digest and
    its number of records in place of its content.
    """
    as_text = _text_or_digest if written else _digest_and_size
    if promise.games is not None:
        known = not isinstance(promise.inputs, str) and not callable(promise.inputs)
        return [as_text(promise.inputs)] if known else None
    if promise.pairs is not None:
        pairs = promise.pairs if isinstance(promise.pairs, tuple) else None
        if pairs is None:
            return None
        return [
            _text_or_digest(pair) if written else f"#{digest_of_text(text_of(pair))}"
            for pair in pairs
        ]
    inputs = promise.inputs
    if isinstance(inputs, Queries):
        return [f"queries({text_of(length)})" for length in inputs.lengths]
    if isinstance(inputs, Values):
        return [f"value {_text_or_digest(option)}" for option in inputs.options]
    if isinstance(inputs, list | tuple):
        return [as_text(dataset) for dataset in inputs]
    if is_strategy(inputs):
        return [f"strategy {_text_or_digest(inputs)}"]
    return None


def _text_or_digest(value: Any) -> str:
    """Return a value as text, cut if it is long, with a digest of the whole."""
    return brief(text_of(value))


def _digest_and_size(value: Any) -> str:
    """Return ``"#1a2b3c4d5e6f (9 records)"`` for a value; no count if it has no records."""
    data = type_of(value)
    count = None if data is None else data.length(value)
    many = "" if count is None else f" ({plural(count, 'record')})"
    return f"#{digest_of_text(text_of(value))}{many}"


def digest_of_example(example: str) -> str:
    """Return a digest that is equal for the text of an example and for its digest on record."""
    stands_for = _DIGEST.search(example)
    return stands_for.group(1) if stands_for else digest_of_text(example)


def _source_of_inputs(promise: Promise) -> str | None:
    """Return the source of inputs by name, or as text; None if `input_texts` has the inputs."""
    given = promise.inputs if promise.pairs is None else promise.pairs
    if isinstance(given, str):
        return given
    if input_texts(promise) is not None:
        return None
    return _text_or_digest(given)


def _membership_fields(promise: Promise) -> Entry:
    """Return the records and the score of a claim about membership; empty for other claims."""
    if promise.games is None:
        return {}
    records, score = promise.games.records, promise.games.score
    said = {"records": repr(records) if isinstance(records, Riskiest) else _text_or_digest(records)}
    return said if score is None else {**said, "score": _text_or_digest(score)}


def _relation_fields(promise: Promise) -> Entry | None:
    """Return the keywords of the relation, without the group; None without a stated relation."""
    if promise.relation is None:
        return None
    stated = {"neighbors": promise.relation.neighbors, **promise.relation.arguments}
    stated.pop("group", None)
    return {name: v if isinstance(v, str | int) else text_of(v) for name, v in stated.items()}


def _effort(settings: Settings) -> Entry:
    """Return the settings of an audit, and of its method, that are not the defaults."""
    usual = Settings()
    given = {name: getattr(settings, name) for name, field in FIELDS.items() if field.in_claims}
    given |= {"method": settings.method.name, **settings.method.changed_settings()}
    effort = {}
    for name, value in given.items():
        expected = usual.method.name if name == "method" else getattr(usual, name, None)
        if value != expected:
            is_plain = isinstance(value, bool | int | float | str)
            effort[name] = value if is_plain else _text_or_digest(value)
    return effort


def load_entries(file: Path) -> dict[str, Entry]:
    """Return the entries of a file by id; empty if there is no such file.

    Raises ClaimsFileError if the file cannot be read, is damaged, or a newer version wrote it.
    """

    def damaged(what: str) -> ClaimsFileError:
        return ClaimsFileError(
            f"{file.name} {what} Restore it (git checkout {file.name}), or delete it and run "
            "pytest --dp-claims=update to write it again."
        )

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice = [name for name, n in Counter(name for name, _ in pairs).items() if n > 1]
        if twice:
            raise damaged(f"says {json.dumps(twice[0], ensure_ascii=False)} twice.")
        return dict(pairs)

    try:
        content = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=unique_keys)
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise damaged(f"cannot be read: {error}.") from error
    except ValueError as error:
        raise damaged(f"is no JSON, as after a merge: {error}.") from error
    return _checked_entries(content, file, damaged)


def _checked_entries(
    content: Any, file: Path, damaged: Callable[[str], ClaimsFileError]
) -> dict[str, Entry]:
    """Return the entries of a file; raise ClaimsFileError if damaged or of a newer version."""
    version = content.get("version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise ClaimsFileError(
            f"{file.name} is of version {version}, written by a newer pytest-dp; this one knows "
            f"version {VERSION}. Install the newer one."
        )
    entries = content.get("claims") if isinstance(content, dict) else None
    if version != VERSION or not isinstance(entries, dict):
        raise damaged("is not a file of claims.")
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise damaged(f"has {entry!r} for {name}, where the fields of a claim belong.")
        for field, form in _FORMS.items():
            if field in entry and not isinstance(entry[field], form):
                raise damaged(f"has {field}={entry[field]!r} for {name}, not a {form.__name__}.")
        try:
            guarantee_of(entry["promise"])
        except (ClaimError, TypeError, ValueError, KeyError) as error:  # edited
            raise damaged(f"has no promise for {name}: {error}") from None
    return entries


def entries_text(entries: Mapping[str, Entry]) -> str:
    """Return the content of a file: a sorted block for each claim, a line for each field."""
    blocks = []
    for name in sorted(entries):
        facts = [
            f"      {json.dumps(k)}: {_json_lines(v)}" for k, v in sorted(entries[name].items())
        ]
        block = ",\n".join(facts)
        blocks.append(f"    {json.dumps(name, ensure_ascii=False)}: {{\n{block}\n    }}")
    inside = ",\n".join(blocks)
    claims = f"{{\n{inside}\n  }}" if blocks else "{}"
    return f'{{\n  "claims": {claims},\n  "version": {VERSION}\n}}\n'


def _json_lines(value: Any) -> str:
    """Return a value as JSON, on one line if short or no container, else indented."""
    short = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(short) <= 92 or not isinstance(value, list | dict):
        return short
    return json.dumps(value, sort_keys=True, ensure_ascii=False, indent=2).replace("\n", "\n      ")


def write_entries(file: Path, entries: Mapping[str, Entry]) -> bool:
    """Write the file if it changes, and return whether it does; raise ClaimsFileError on errors."""
    content = entries_text(entries).encode("utf-8")
    try:
        if file.exists() and file.read_bytes() == content:
            return False
        write_whole(file, content)
    except OSError as error:
        raise ClaimsFileError(
            f"{file.name} could not be written: {error}. Nothing was changed. Make "
            f"{file.parent} writable, or run pytest --dp-claims=update where you can write."
        ) from error
    return True
