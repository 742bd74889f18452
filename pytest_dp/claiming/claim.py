"""Claims: a validated `Claim` for each combination of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.basics.reprs import on_one_line
from pytest_dp.claiming.keywords import NUMBERS, PRIVACY, read_keywords
from pytest_dp.claiming.method_settings import Membership
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.claiming.settings import NAMES as SETTINGS
from pytest_dp.data.equality import key
from pytest_dp.data.relations import (
    RELATIONS,
    OfRecords,
    Relation,
)
from pytest_dp.declaration import ATTRIBUTE, Queries, Values
from pytest_dp.privacy import NOTIONS, STATED, Guarantee, of_group, read_guarantee, smallest_claim
from pytest_dp.registry import load_entry_points


@dataclass(frozen=True, slots=True)
class Games:
    """The target records and the score of a claim about membership."""

    records: Any
    """As the claim names them; once the data is looked up, `pairs.targets.Target`s."""
    score: Any = None
    """What a model says of a record, if the claim says it."""


@dataclass(frozen=True, slots=True)
class Promise:
    """The promise of a mechanism, and the inputs that it is about.

    Attributes
    ----------
    guarantee : Guarantee
        The notion of privacy, with its parameters.
    relation : Relation or None
        Which inputs are neighbours; None for explicit pairs without a stated relation, and where it
        follows from inputs that are not looked up yet.
    inputs : object
        Where neighbouring inputs come from, or None if `pairs` are given.
    pairs : tuple of (D, D'), strategy, str, callable or None
        Explicit neighbouring inputs, or where they come from.
    one_unit : Guarantee or None
        What holds for one unit, from which that of a group follows.
    games : Games or None
        Of a promise about membership, whose `inputs` are the data.
    composes : tuple of (mechanism, int)
        The parts of the mechanism, and how often each is used, if the claim names them.
    """

    guarantee: Guarantee
    relation: Relation | None = None
    inputs: Any = None
    pairs: Any = None
    one_unit: Guarantee | None = None
    games: Games | None = None
    composes: tuple[tuple[Any, int], ...] = ()

    @property
    def group(self) -> int:
        """The number of units in which D and D' differ."""
        return self.relation.group if isinstance(self.relation, OfRecords) else 1

    @property
    def of_one_unit(self) -> Promise:
        """The promise for one unit, from which the group's follows; itself without a group."""
        if not isinstance(self.relation, OfRecords) or self.one_unit is None:
            return self
        return replace(self, guarantee=self.one_unit, relation=replace(self.relation, group=1))


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a mechanism, besides its data.

    Attributes
    ----------
    params : dict
        Arguments with their values.
    drawn : dict
        Arguments with strategies, whose values are drawn with the inputs.
    privacy_param : str or None
        That of `params` which carries ε, ρ or µ, if the claim names one.
    vectorized : str or None
        The parameter that takes the number of draws.
    rng : str
        The parameter that takes a generator, if the mechanism has it.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    privacy_param: str | None = None
    vectorized: str | None = None
    rng: str = "rng"
    drawn: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claim:
    """A validated claim about one mechanism with one set of parameters.

    Attributes
    ----------
    promise : Promise
    arguments : Arguments
    effort : dict
        What the claim itself says of how it is audited: some of `claiming.settings.Settings`.
    label : str
        What tells this claim from others on the same mechanism: ``"eps=1.0"``.
    """

    promise: Promise
    arguments: Arguments = field(default_factory=Arguments)
    effort: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __str__(self) -> str:
        parts = [str(self.promise.of_one_unit.guarantee)]
        if self.promise.relation:
            parts.append(str(self.promise.relation))
        kind = "dp" if self.promise.games is None else "risk"
        return f"@{kind}_claim({', '.join(parts)})"


def expand(keywords: Mapping[str, Any]) -> list[Claim]:
    """Load extensions, validate the keywords of a claim, and return a claim for each of ``params``.

    Raises ClaimError if a keyword is unknown, missing, contradictory or out of range, or if the
    promise is less than those of its parts add up to.
    """
    load_entry_points()  # which may add relations
    given = read_keywords(keywords)
    if "auc" in keywords:
        return _membership_claims(given)
    if not any(name in given for name in NOTIONS):
        read_guarantee(given)  # says what is missing
    inputs, pairs = given.get("inputs"), given.get("pairs")
    if (inputs is None) == (pairs is None):
        raise ClaimError(
            "A claim needs inputs= or pairs=, one of the two; "
            f"{'neither' if inputs is None else 'both'} given. For example "
            "inputs=[[], [1], [1, 0]] with neighbors='add_remove_one', inputs=queries(5), or "
            "pairs=[([1, 0], [1])]."
        )
    relation = fit_relation(given.get("neighbors"), inputs)
    effort = {name: value for name, value in given.items() if name in SETTINGS}
    if isinstance(effort.get("method"), Membership):
        raise invalid("method", effort["method"], "It is for claims of auc=: write @risk_claim.")
    claims = []
    for arguments, label in variants(given):
        one_unit = _stated_guarantee(given, arguments.params)
        promised = _guarantee_of_group(one_unit, relation)
        composes = given.get("composes", ())
        promise = Promise(promised, relation, inputs, pairs, one_unit, composes=composes)
        _check_parts(promise.of_one_unit)
        claims.append(Claim(promise, arguments, effort, label))
    return claims


def _membership_claims(given: Mapping[str, Any]) -> list[Claim]:
    """Return a claim about membership for each combination of ``params``.

    `given` is from `read_keywords`. Raises ClaimError if auc, data or records is missing, if the
    method is not Membership, or if a parameter is drawn from a strategy.
    """
    missing = [name for name in ("auc", "data", "records") if name not in given]
    if missing:
        raise ClaimError(
            f"A claim about membership needs auc=, data= and records=; {missing[0]}= is missing. "
            'For example @risk_claim(auc=0.6, data="tests.data:patients", records=riskiest(5)).'
        )
    effort = {"method": Membership()} | {n: v for n, v in given.items() if n in SETTINGS}
    if not isinstance(effort["method"], Membership):
        allowed = "Allowed for claims of auc=: Membership(), or Membership(classifier=...)."
        raise invalid("method", effort["method"], allowed)
    promise = Promise(
        _stated_guarantee(given, {}),
        RELATIONS["add_remove_one"](),
        given["data"],
        games=Games(given["records"], given.get("score")),
    )
    every = variants(given)
    if any(arguments.drawn for arguments, _ in every):
        raise ClaimError("Games draw no parameters: give each of params= a value or a list.")
    return [Claim(promise, arguments, effort, label) for arguments, label in every]


def _check_parts(promise: Promise) -> None:
    """Raise ClaimError if a promise for one unit is less than those of its parts add up to.

    If a part has several claims, the smallest sum counts. Also raises as `_promises_of_part`.
    """
    if not promise.composes:
        return
    choices = [[(part, n) for part in _promises_of_part(m, promise)] for m, n in promise.composes]
    sums, problem = [], ""
    for chosen in product(*choices):
        try:
            sums.append(smallest_claim(promise.guarantee, chosen))
        except ClaimError as error:
            problem = str(error)
    if not sums:
        raise ClaimError(f"composes: {problem}")
    least = min(sums, key=lambda total: total.claimed)
    if least.claimed > promise.guarantee.claimed:
        used = [
            f"{_mechanism_name(m)} {n} times" if n > 1 else _mechanism_name(m)
            for m, n in promise.composes
        ]
        raise ClaimError(
            f"This mechanism claims {promise.guarantee}, but what it is made of "
            f"({', '.join(used)}) adds up to {least}. Claim that, or let the parts promise more."
        )


def _promises_of_part(mechanism: Any, claimed: Promise) -> list[Guarantee]:
    """Return the promises of a part that hold for the neighbours of the whole.

    Raises ClaimError if it has no claim, several by its parameters, or other neighbours.
    """
    name, declared = _mechanism_name(mechanism), getattr(mechanism, ATTRIBUTE, ())
    if not declared:
        raise ClaimError(
            f"composes: {name} has no claim of its own. Put @dp_claim(...) on it, or leave it out "
            "if it does not touch the data."
        )
    expanded = [expand(declaration.keywords) for declaration in declared]
    promises = [claims[0].promise.of_one_unit for claims in expanded if len(claims) == 1]
    if not promises:
        raise ClaimError(
            f"composes: {name} has {len(expanded[0])} claims, by its params. Compose a function "
            "that calls it with the parameters used here, and has its own claim."
        )
    alike = [promise for promise in promises if _part_covers_whole(promise, claimed)]
    if not alike:
        raise ClaimError(
            f"composes: {name} has {_neighbours_text(promises[0])}, the whole has "
            f"{_neighbours_text(claimed)}. Losses add up for the same neighbours only: write the "
            "same neighbors= on both, such as neighbors='add_remove_one', also beside pairs=."
        )
    return [promise.guarantee for promise in alike]


def _part_covers_whole(part: Promise, whole: Promise) -> bool:
    """Return whether a part's promise holds for the whole's neighbours; equal sources do."""
    if whole.relation:
        return part.relation is not None and part.relation.covers(whole.relation)
    if isinstance(whole.pairs, tuple) and part.relation:  # it promises no more than these pairs
        return not any(part.relation.fault(*pair) for pair in whole.pairs)
    if isinstance(whole.pairs, tuple) and isinstance(part.pairs, tuple):
        promised = {key(pair[::step]) for pair in part.pairs for step in (1, -1)}
        return all(key(pair) in promised for pair in whole.pairs)
    # What is looked up later is the same under the same name.
    return part.relation is None and (part.inputs, part.pairs) == (whole.inputs, whole.pairs)


def _neighbours_text(promise: Promise) -> str:
    if promise.relation:
        return str(promise.relation)
    return "inputs= by a name" if promise.pairs is None else "its pairs= only"


def _mechanism_name(mechanism: Any) -> str:
    return getattr(mechanism, "__name__", on_one_line(mechanism))


def variants(given: Mapping[str, Any]) -> list[tuple[Arguments, str]]:
    """Return arguments and label for each combination of ``params``.

    The label is empty if no guarantee is given, as on the marker of a test. `given` is by
    `read_keywords`. Raises ClaimError if the guarantee is wrong, or its parameter drawn.
    """
    choices, drawn = _fixed_and_drawn(given)
    named = {name: given[name] for name in NUMBERS if isinstance(given.get(name), str)}
    varied = [name for name in choices if len(choices[name]) > 1 and name not in named.values()]
    claimed = any(name in given for name in STATED)
    combinations = []
    for chosen in product(*choices.values()):
        params = dict(zip(choices, chosen, strict=True))
        label = ""
        if claimed:
            # On one line, as part of an id: arrays have a repr of several.
            others = [f"{name}={on_one_line(params[name], 30)}" for name in varied]
            promised = _guarantee_of_group(_stated_guarantee(given, params), given.get("neighbors"))
            label = "-".join([promised.label, *others])
        carries = next((named[name] for name in NOTIONS if name in named), None)
        taken = {name: given[name] for name in ("vectorized", "rng") if name in given}
        combinations.append((Arguments(params, carries, drawn=drawn, **taken), label))
    return combinations


def _fixed_and_drawn(given: Mapping[str, Any]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return ``params`` with lists, and with strategies; raise ClaimError if one is the promise."""
    choices: dict[str, list[Any]] = dict(given.get("params", {}))
    drawn = {name: choices.pop(name)[0] for name in list(choices) if is_strategy(choices[name][0])}
    for name in NUMBERS:
        if isinstance(given.get(name), str) and given[name] in drawn:
            raise ClaimError(
                f"{name}={given[name]!r} is what the claim promises, and params[{given[name]!r}] "
                f"is a strategy: {on_one_line(drawn[given[name]])}. Each audit tests one promise. "
                f"Write a list, which gives an audit for each: params={{{given[name]!r}: "
                "[0.1, 1.0]}."
            )
    return choices, drawn


def distinct_labels(claims: Iterable[Claim]) -> list[str]:
    """Return labels of claims on one mechanism: equal ones get the relation, then a number."""
    claims = list(claims)
    relations: dict[str, set[str]] = {}
    for claim in claims:
        relations.setdefault(claim.label, set()).add(str(claim.promise.relation))
    seen: dict[str, int] = {}
    numbered = []
    for claim in claims:
        label, relation = claim.label, claim.promise.relation
        if relation and len(relations[label]) > 1:
            label = f"{label}-{relation.label}"
        seen[label] = seen.get(label, 0) + 1
        numbered.append(label if seen[label] == 1 else f"{label}-{seen[label]}")
    return numbered


def fit_relation(relation: Relation | None, inputs: Any) -> Relation | None:
    """Return the given relation, or without one the only relation for `queries` and `values`.

    Raises ClaimError if a relation does not fit the inputs, or example datasets have none.
    Relations for names and functions are not checked here.
    """
    if not isinstance(inputs, Queries | Values | list | tuple):
        return relation
    given_by = type(inputs) if isinstance(inputs, Queries | Values) else None
    if relation is not None and relation.of is given_by:
        return relation
    kinds = [kind for kind in RELATIONS.values() if kind.of is given_by]
    choices = " or ".join(f"neighbors={kind.name!r}" for kind in kinds)
    if relation is not None:
        raise ClaimError(f"{relation} does not fit inputs={on_one_line(inputs)}: write {choices}.")
    if given_by is not None:
        return kinds[0]()
    raise ClaimError(
        f"inputs={on_one_line(inputs)} are example datasets, so the claim must say which are "
        f"neighbours: {choices}."
    )


def _stated_guarantee(given: Mapping[str, Any], params: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee with the values of named parameters; raise ClaimError if it is wrong."""
    values = {name: _stated_value(name, given[name], params) for name in PRIVACY if name in given}
    try:
        return read_guarantee(values)
    except ClaimError as error:
        named = [f"{name} is params[{given[name]!r}]" for name in values if given[name] in params]
        raise ClaimError(f"{error} Here {' and '.join(named)}." if named else str(error)) from None


def _guarantee_of_group(promised: Guarantee, relation: Relation | None) -> Guarantee:
    """Return the guarantee for the group of a relation; unchanged for relations without groups."""
    return of_group(promised, relation.group) if isinstance(relation, OfRecords) else promised


def _stated_value(name: str, given: Any, params: Mapping[str, Any]) -> Any:
    """Return a value, or that of the parameter that it names; raise ClaimError if there is none."""
    if not isinstance(given, str) or name not in NUMBERS:
        return given
    if given in params:
        return params[given]
    try:
        float(given)
        better = f"Write {name}={given}, without quotes."
    except ValueError:
        better = f"Write params={{{given!r}: [0.1, 1.0]}}, or give {name} as a number."
    names = ", ".join(map(repr, params)) or "none"
    known = f"A name refers to a parameter in params=, which has: {names}."
    raise invalid(name, given, f"{known} {better}")
