"""Claims as test items: those that code declares, those of markers, and what no item came of.

Collecting tests needs no more than this: audits, with all that they load, begin with the first one.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from pytest_dp.basics.errors import ClaimError, InconclusiveWarning, PytestDPError, invalid
from pytest_dp.claiming.claim import Claim, distinct_labels, expand, variants
from pytest_dp.claiming.keywords import read_keywords
from pytest_dp.claiming.more_declarations import Claimed, Claims
from pytest_dp.declaration import ATTRIBUTE, DECLARED, Declaration
from pytest_dp.plugin.claim_session import MARKER, audits_of, has_claims, relative_path, represent

LOST = (
    "This claim is lost, so nothing would be audited: no name of the module stands for the {} that "
    "carries it. If there is another function of the same name, give one of them another name; if "
    "a decorator made another function of it, put @dp_claim above that decorator, or use "
    "functools.wraps in it; if something else holds it, give it a name of its own in the module."
)


class ClaimItem(pytest.Function):
    """A test item that audits one claim; to pytest, a test function like any other."""

    def __init__(
        self,
        *,
        mechanism: Any,
        declaration: Declaration,
        claim: Claim | ClaimError,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        structured = getattr(self, "id", None)
        if structured is not None:
            # Newer versions of pytest compare ids in parts (--lf, --nf): the brackets are a part of
            # their own.
            self._id = type(structured).parse(self.nodeid)
        self.mechanism, self.declaration, self.claim = mechanism, declaration, claim
        self.line = _line_of_claim(declaration, self.path) or declaration.line
        self.add_marker(MARKER)

    def runtest(self) -> None:
        """Audit the claim, or raise its ClaimError if it is invalid."""
        if isinstance(self.claim, ClaimError):
            raise self.claim
        from pytest_dp.plugin.check import audit_or_look_up

        audit_or_look_up(self, self.mechanism, self.claim, self.declaration.keywords)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the decorator."""
        return self.path, self.line - 1, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        """Return our own errors at the decorated line, without our frames; others as usual."""
        # A warning comes here where filters make it an error.
        if isinstance(excinfo.value, PytestDPError | InconclusiveWarning):
            return represent(excinfo.value, self.config, self.path, self.line)
        return super().repr_failure(excinfo)


class SourceModule(pytest.Module):
    """A module of production code, of which only the claims are collected."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return items for this module's claims, in its order; failing ones for lost claims."""
        items: list[pytest.Item] = []
        for name, obj in list(vars(self.obj).items()):
            if has_claims(obj):
                items += claim_items(self, name, obj)
        return [*items, *lost_items(self, items)]


def lost_items(collector: pytest.Module, items: Iterable[Any]) -> list[pytest.Item]:
    """Return an item that fails for each claim of a module that is in none of `items`.

    Such as of a function that another one replaced. None for mechanisms that were deleted and that
    nothing holds any more, and none for claims of another file or of an earlier import.
    """
    module = collector.obj
    spec, declared = DECLARED.get(module.__name__, (None, []))
    if spec is not vars(module).get("__spec__"):
        return []  # of another module of that name, or from before it was imported again
    tested = {id(item.declaration) for item in items if isinstance(item, ClaimItem)}
    missing = [
        entry
        for entry in declared
        if id(entry[0]) not in tested and _is_same_file(entry[0].file, collector.path)
    ]
    if missing:
        gc.collect()  # classes refer to themselves
    lost = [
        (declaration, name.rpartition("<locals>.")[2] or "mechanism")
        for declaration, name, mechanism in missing
        if ("<locals>" not in name and name.partition(".")[0] in vars(module))
        or not isinstance(mechanism, ref)
        or mechanism() is not None
    ]
    names = [name for _, name in lost]
    return [
        _make_item(
            collector,
            f"{name}[{_label_of_fault('lost claim', names.count(name), declaration)}]",
            None,
            declaration,
            ClaimError(LOST.format(name)),
        )
        for declaration, name in lost
    ]


def _label_of_fault(label: str, many: int, declaration: Declaration) -> str:
    """Return a label for an invalid claim, with its line if a mechanism has several."""
    return label if many == 1 else f"{label}, line {declaration.line}"


def make_source_module(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for a module; None if pytest collects it as tests, or for conftest.py."""
    if file_path.name in ("conftest.py", "setup.py", "__main__.py"):
        return None
    patterns = parent.config.getini("python_files")
    if parent.session.isinitpath(file_path) or any(map(file_path.match, patterns)):
        return None
    return SourceModule.from_parent(parent, path=file_path)


def claim_items(collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item]:
    """Return an item for each claim on `obj` that is written, or made, in the collector's file.

    `obj` is a table, a function, or a class, whose methods count as well. Invalid claims give items
    that fail. Empty if `obj` is collected under its own name.
    """
    if isinstance(obj, Claims):
        return list(_items_of_table(collector, name, obj))
    if isinstance(obj, type) and obj.__module__ == collector.obj.__name__:
        return [
            *_items_of_object(collector, name, obj, _declarations(obj)),
            *(
                item
                for attribute, value in list(vars(obj).items())
                for item in _items_of_attribute(collector, obj, attribute, value)
            ),
        ]
    alias = getattr(obj, "__name__", name)
    if alias != name and vars(collector.obj).get(alias) is obj:
        return []  # collected under its own name
    return _items_of_object(collector, name, obj, _declarations(obj))


def _items_of_table(collector: pytest.Module, name: str, table: Claims) -> Iterable[pytest.Item]:
    """Yield an item for each claim of each entry of a table; a failing one for a wrong entry."""
    allowed = "Allowed: claims({'a name': Claimed(mechanism, eps=1.0, pairs=[...]), ...})."
    here = Declaration({}, *table.site)
    if not isinstance(table.entries, Mapping) or not table.entries:
        yield _make_item(collector, name, None, here, invalid(name, table.entries, allowed))
        return
    for label, entry in table.entries.items():
        if not isinstance(entry, Claimed) or not isinstance(label, str):
            wrong = invalid(f"{name}[{label!r}]", entry, allowed)
            yield _make_item(collector, f"{name}[{label}]", None, here, wrong)
            continue
        entry.declaration.made_at = table.site  # where an entry is made by a helper elsewhere
        marks = entry.marks if isinstance(entry.marks, list | tuple) else [entry.marks]
        several = _expand_or_error(entry.declaration)
        labels = distinct_labels(claim for claim in several if isinstance(claim, Claim))
        full = [f"{name}[{label}-{one}]" for one in labels]
        for item_name, claim in zip(
            full if len(several) > 1 else [f"{name}[{label}]"], several, strict=True
        ):
            yield _make_item(collector, item_name, entry.mechanism, entry.declaration, claim, marks)


def _expand_or_error(declaration: Declaration) -> list[Claim | ClaimError]:
    """Return the claims of a declaration, or its ClaimError in a list."""
    try:
        return [*expand(declaration.keywords)]
    except ClaimError as error:
        return [error]


def _declarations(obj: Any) -> tuple[Any, ...]:
    """Return the declarations on an object; an empty tuple if it has none."""
    declared = getattr(obj, ATTRIBUTE, ())
    return declared if type(declared) is tuple else ()


def _items_of_attribute(
    collector: pytest.Module, owner: type, name: str, value: Any
) -> list[pytest.Item]:
    """Return items for the claims on an attribute of a class, which fail unless it is static."""
    full, inner = f"{owner.__name__}.{name}", getattr(value, "__func__", value)
    declared = _declarations(value)
    if inner is not value:  # the claim may stand above @staticmethod or below it
        declared += _declarations(inner)
    if isinstance(value, staticmethod):
        return _items_of_object(collector, full, inner, declared)
    problem = ClaimError(
        f"@dp_claim is on {full}, a method, and pytest-dp does not know which object to call it "
        "on. Put the claim on a function that makes the object and calls the method."
    )
    return _items_of_object(collector, full, inner, declared, problem)


def _items_of_object(
    collector: pytest.Module,
    name: str,
    obj: Any,
    declarations: tuple[Any, ...],
    problem: ClaimError | None = None,
) -> list[pytest.Item]:
    """Return an item for each claim of the declarations in this file; `problem` makes all fail."""
    claims = [
        (declaration, claim)
        for declaration in declarations
        if isinstance(declaration, Declaration) and _line_of_claim(declaration, collector.path)
        for claim in ([problem] if problem is not None else _expand_or_error(declaration))
    ]
    labels = iter(distinct_labels(claim for _, claim in claims if isinstance(claim, Claim)))
    broken = sum(isinstance(claim, ClaimError) for _, claim in claims)
    items: list[pytest.Item] = []
    for declaration, claim in claims:
        if isinstance(claim, Claim):
            label = next(labels)
        else:
            label = _label_of_fault("invalid claim", broken, declaration)
        items.append(_make_item(collector, f"{name}[{label}]", obj, declaration, claim))
    return items


def _make_item(
    collector: pytest.Module,
    name: str,
    mechanism: Any,
    declaration: Declaration,
    claim: Claim | ClaimError,
    marks: Iterable[Any] = (),
) -> pytest.Item:
    """Return a test item for a claim, with the marks of its mechanism and `marks`."""

    def audit_claim() -> None:
        """Provide marks and a signature only."""

    own = getattr(mechanism, "pytestmark", [])
    audit_claim.pytestmark = [*(own if isinstance(own, list) else [own]), *marks]  # type: ignore[attr-defined]
    return ClaimItem.from_parent(
        collector,
        name=name,
        callobj=audit_claim,
        mechanism=mechanism,
        declaration=declaration,
        claim=claim,
    )


def _line_of_claim(declaration: Declaration, path: Path) -> int | None:
    """Return the line of a file that states a claim or calls its maker; None if none does."""
    if _is_same_file(declaration.file, path):
        return declaration.line
    if declaration.made_at is not None and _is_same_file(declaration.made_at[0], path):
        return declaration.made_at[1]
    return None


def _is_same_file(file: str, other: Path) -> bool:
    path = Path(file)
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make a test with ``dp_check`` one item for each claim, if its markers state several.

    Nothing changes if a marker is invalid, which `reset_audits` raises later.
    """
    variations: list[tuple[dict[str, Any], str]] = []
    for marker in reversed(closest_markers(metafunc.definition)):  # the topmost first
        try:
            claims = variants(read_marker(marker))
        except ClaimError:
            return  # `check.reset_audits` shows it when the test is run
        for arguments, label in claims:
            keywords = dict(marker.kwargs)
            if arguments.params or arguments.drawn:
                params = {name: [value] for name, value in arguments.params.items()}
                keywords["params"] = params | dict(arguments.drawn)
            variations.append((keywords, label))
    if len(variations) > 1:
        metafunc.parametrize(
            "dp_check",
            [k for k, _ in variations],
            ids=[label or None for _, label in variations],
            indirect=True,
        )


def refuse_unaudited(items: Sequence[pytest.Item]) -> None:
    """Note on a test each marker of its module or class that no test audits, so that it fails."""
    first: dict[int, tuple[str, pytest.Item]] = {}
    audited: set[int] = set()
    for item in items:
        *around, _ = item.listchain()
        for node in around:
            for marker in node.own_markers:
                if marker.name == MARKER:
                    first.setdefault(id(marker), (node.name, item))
        if takes_dp_check(item):
            audited |= set(map(id, closest_markers(item)))
    for key in first.keys() - audited:
        name, item = first[key]
        audits_of(item).unaudited = name


def closest_markers(item: pytest.Item) -> list[pytest.Mark]:
    """Return the ``dp_claim`` markers of a test, else of its closest class or module, else []."""
    for node in reversed(item.listchain()):
        own = [marker for marker in node.own_markers if marker.name == MARKER]
        if own:
            return own
    return []


def takes_dp_check(item: pytest.Item) -> bool:
    """Return whether a test takes the fixture that audits the claim of its marker."""
    return "dp_check" in getattr(item, "fixturenames", ())


def read_marker(marker: pytest.Mark) -> dict[str, Any]:
    """Return the checked keywords of a marker, some of which may be missing; raise ClaimError."""
    if marker.args:
        raise ClaimError(
            f"pytest.mark.dp_claim was given {marker.args[0]!r} without a keyword. "
            "Write the name: @pytest.mark.dp_claim(eps=1.0, ...)."
        )
    return read_keywords(marker.kwargs)


def path_and_line(item: pytest.Item) -> tuple[str, int]:
    """Return the path of a test, relative to the root, and its line."""
    _, line, _ = item.reportinfo()
    return relative_path(item.path, item.config.rootpath), (line or 0) + 1
