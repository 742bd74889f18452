"""From what stands in ``inputs=`` and ``pairs=`` to the objects that are meant, checked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module, invalidate_caches
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from pytest_dp.basics.errors import ClaimError, did_you_mean, invalid
from pytest_dp.claiming.keywords import read_pairs
from pytest_dp.claiming.setting_fields import is_strategy
from pytest_dp.data import describe, key, kind_of
from pytest_dp.data.conversion import describe_non_dataset, refuse_several_tables
from pytest_dp.data.neighbours import MAX_PAIRS
from pytest_dp.data.relations import AddRemoveOne, OfRecords, Pair, Relation
from pytest_dp.declaration import Queries, Values

MAX_DATASETS = 64
"""Datasets taken of a generator. More share the samples; fewer may miss a leak."""
MAX_SUGGESTIONS = 3
"""Names that an error suggests. More hide the right one."""


def resolve(given: Any, root: Path | None, notes: list[str]) -> Any:
    """Return the inputs of a claim: a strategy, `queries`, `values` or examples.

    A name is looked up, a function called, a generator read; appends to `notes` if one is cut off.
    Raises ClaimError for a name that is not found, a function that raises, and other types.
    """
    returns = "queries(...), values([...]) or a list of example datasets, or yields these"
    name = _name_of(given)
    given, origin = _resolve_name("inputs", given, root, returns)
    given = _take_first("inputs", name, given, MAX_DATASETS, "datasets", notes)
    if isinstance(given, Queries | Values | list) or type(given) is tuple or is_strategy(given):
        return given
    allowed = "queries(5), values([0, 1]) or a list of example datasets, such as [[], [1], [1, 0]]."
    if kind_of(given):
        allowed = f"a list of datasets, such as [{describe(given)}] if this is the only one."
    raise ClaimError(
        f"{origin}{describe(given)}, of type {type(given).__name__}. Allowed: {allowed}"
    )


def resolve_pairs(given: Any, root: Path | None, notes: list[str]) -> Any:
    """Return the pairs of a claim: a strategy, or a tuple of pairs of two inputs each.

    A name is looked up, a function called, a generator read; appends to `notes` if one is cut off.
    Raises ClaimError for a name that is not found, a function that raises, and other types.
    """
    if isinstance(given, tuple) or is_strategy(given):  # read when the claim was
        return given
    name = _name_of(given)
    given, origin = _resolve_name("pairs", given, root, "a list of pairs (D, D'), or yields them")
    if is_strategy(given):
        return given
    given = _take_first("pairs", name, given, MAX_PAIRS, "pairs", notes)
    try:
        return read_pairs("pairs", given)
    except ClaimError as error:
        raise ClaimError(
            f"{origin}{describe(given)}, of type {type(given).__name__}. Allowed: a non-empty list "
            "of pairs (D, D'), such as [([1, 0], [1])]."
        ) from error


def resolve_data(given: Any, root: Path | None) -> Any:
    """Return the dataset that a name or a function stands for; another object unchanged.

    Raises ClaimError if the name is not found, or the function raises.
    """
    return _resolve_name("data", given, root, "one dataset")[0]


def stated_pair(where: str, d1: Any, d2: Any, relation: Relation | None) -> Pair:
    """Return a pair that the claim states at the place `where`; ClaimError for no neighbours.

    Without a relation, any two different inputs are a pair.
    """
    pair = Pair(d1, d2) if relation is None else relation.between(d1, d2)
    if isinstance(pair, Pair) and isinstance(relation, OfRecords):  # and so other records
        return pair
    both = f"D = {describe(d1)} and D' = {describe(d2)}"
    if key(d1) == key(d2):
        raise ClaimError(
            f"{where} is not a pair of neighbours: {both} are identical, so no mechanism could "
            "distinguish them. Write two inputs that differ, such as "
            f"{(relation or AddRemoveOne()).example}."
        )
    if isinstance(pair, str):
        assert relation is not None  # or nothing would be asked
        raise ClaimError(
            f"{where} is not a pair of neighbours under {relation}: {both}; {pair}. Required: "
            f"{relation.required}, such as {relation.example}. Correct the pair, or leave "
            "neighbors= out to audit it as it stands."
        )
    return pair


def refuse_unfit_examples(examples: Sequence[Any], relation: OfRecords) -> None:
    """Raise ClaimError unless all examples are datasets that fit the relation."""
    for at, example in enumerate(examples):
        refuse_several_tables(f"inputs[{at}]", example, relation.unit)
        if not kind_of(example):
            raise ClaimError(
                f"inputs[{at}]={describe(example)}, {describe_non_dataset(example)}. If all of "
                f"inputs= is one dataset, write a list of it: inputs={describe([examples])}."
            )
        unfit = relation.check(example)
        if unfit:
            raise ClaimError(
                f"inputs[{at}] is {describe(example)}: {unfit}. Leave some of them out, or promise "
                "more."
            )


def _name_of(given: Any) -> str:
    """Return a given name in quotes, or the name of a function; "" for other objects."""
    return repr(given) if isinstance(given, str) else getattr(given, "__qualname__", "")


def _resolve_name(keyword: str, given: Any, root: Path | None, returns: str) -> tuple[Any, str]:
    """Look up a name and call a function; return the result and how a sentence about it begins.

    `returns` says what a function should return. Raises ClaimError if the name is not found, the
    function raises, or a strategy stands in a list.
    """
    name = _name_of(given)
    origin = f"{keyword}="
    if isinstance(given, str):
        origin = f"{keyword}={name} is "
        given = _look_up(given, root, keyword)
    _refuse_strategies(given, name)
    if not callable(given) or is_strategy(given):
        return given, origin
    try:
        given = given()
    except Exception as error:
        raise _call_error(keyword, name, error, returns) from error
    _refuse_strategies(given, name)
    return given, f"{keyword}={name}: the function returned "


def _take_first(
    keyword: str, name: str, given: Any, limit: int, what: str, notes: list[str]
) -> Any:
    """Return a list of up to `limit` items of a generator; other objects unchanged.

    Appends to `notes` if the limit is reached. Raises ClaimError if the generator raises.
    """
    if not hasattr(given, "__next__"):
        return given
    taken: list[Any] = []
    try:
        taken.extend(islice(given, limit))
    except Exception as error:
        raise _call_error(keyword, name, error, f"yields {what}") from error
    if len(taken) == limit:
        notes.append(f"only the first {limit} {what} that {keyword}={name} yields are tried")
    return taken


def _call_error(keyword: str, name: str, error: Exception, returns: str) -> ClaimError:
    return ClaimError(
        f"{keyword}={name}: the function raised {_error_text(error)}. It is called without "
        f"arguments, and returns {returns}."
    )


def _refuse_strategies(given: Any, name: str) -> None:
    """Raise ClaimError if there is a strategy among examples."""
    for at, entry in enumerate(given if isinstance(given, list | tuple) else ()):
        if is_strategy(entry):
            raise ClaimError(
                f"inputs={name or describe(given)}: a strategy stands at index {at} of a list of "
                "examples. Write the strategy alone, or st.one_of(...) of several; what examples "
                "are to come too, as st.just([1, 0]) in it."
            )


def _look_up(name: str, root: Path | None, keyword: str) -> Any:
    """Import the module of a name, ``"module:attribute"``, and return the attribute.

    Raises ClaimError for a name of another form, and if module or attribute is not found.
    """
    module, colon, path = name.partition(":")
    if not colon or not all(part.isidentifier() for part in f"{module}.{path}".split(".")):
        raise invalid(
            keyword,
            name,
            'Allowed: "module:attribute", such as "tests.dp_inputs:records", or the '
            f"{keyword} themselves.",
        )
    value = _load_module(module, f"{keyword}={name!r}", root)
    for part in path.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            file = getattr(sys.modules[module], "__file__", None) or "built in"
            raise ClaimError(
                f"{keyword}={name!r}: there is no {part!r}; the module {module!r} is {file}."
                f"{did_you_mean(part, dir(value), MAX_SUGGESTIONS)} "
                f"Write the name of something that it defines."
            ) from error
    return value


def _load_module(module: str, name: str, root: Path | None) -> Any:
    """Import and return a module; if it is not found, append `root` to ``sys.path`` and try again.

    At last, a file in `root` is run as the module. Raises ClaimError if all that fails.
    """
    loaded = _import_module(module, name)
    if loaded is None and root is not None and str(root) not in sys.path:
        sys.path.append(str(root))
        invalidate_caches()
        loaded = _import_module(module, name)
    if loaded is None and root is not None:
        # A package of the same name, such as somebody's installed "tests", hides the project's.
        file = root.joinpath(*module.split(".")).with_suffix(".py")
        if file.is_file():
            loaded = _load_file(module, file, name)
    if loaded is not None:
        return loaded
    first = module.partition(".")[0]
    names = {info.name for info in iter_modules()}
    hint = "" if first in names else did_you_mean(first, names, MAX_SUGGESTIONS)
    raise ClaimError(
        f"{name}: there is no module {module!r}; looked on sys.path"
        f"{f' and in {root}' if root else ''}.{hint} Write the module as in an import statement."
    )


def _load_file(module: str, file: Path, name: str) -> Any:
    """Run a file as a module of this name and return it; None if it is no file of Python.

    Raises ClaimError if the module raises.
    """
    spec = spec_from_file_location(module, file)
    if spec is None or spec.loader is None:
        return None
    loaded = module_from_spec(spec)
    sys.modules[module] = loaded
    try:
        spec.loader.exec_module(loaded)
    except BaseException as error:
        del sys.modules[module]
        if not isinstance(error, Exception):
            raise
        raise _import_error(module, name, error) from error
    return loaded


def _import_module(module: str, name: str) -> Any:
    """Import a module; None if there is none of this name. Raise ClaimError if the import fails."""
    try:
        return import_module(module)
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        # Otherwise it is the module that asks for another one that is not there.
        if missing and f"{module}.".startswith(f"{missing}."):
            return None
        raise _import_error(module, name, error) from error


def _import_error(module: str, name: str, error: BaseException) -> ClaimError:
    return ClaimError(
        f"{name}: importing {module!r} raised {_error_text(error)}. Correct the module "
        "so that it can be imported, or name another one."
    )


def _error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")
