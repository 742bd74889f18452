"""Claims as test items, those among them that no test item came of.

A function that replaces another of the same name takes its claim away, and so does a decorator that
returns a function of its own: unless somebody says so, a build stays green without the audit.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from pytest_dp.basics.errors import ClaimError, InconclusiveWarning, PytestDPError, invalid
from pytest_dp.claiming.claim import Claim, distinct_labels, expand
from pytest_dp.claiming.claims_table import Claimed, Claims
from pytest_dp.declaration import ATTRIBUTE, DECLARED, Declaration
from pytest_dp.plugin.failure import represent
from pytest_dp.plugin.names import MARKER, has_claims

_NOTHING = object()
"""What a name stands for that stands for nothing."""


class ClaimItem(pytest.Function):
    """The audit of one claim; to pytest, a test function like any other."""

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
        self.line = _line_in(declaration, self.path) or declaration.line
        self.add_marker(MARKER)

    def runtest(self) -> None:
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
        """Return the claims written in this module, in its order."""
        items: list[pytest.Item] = []
        for name, obj in list(vars(self.obj).items()):
            if has_claims(obj):
                items += claim_items(self, name, obj)
        return [*items, *lost_items(self, items)]


def lost_items(collector: pytest.Module, items: Iterable[Any]) -> list[pytest.Item]:
    """Return an item that fails for each claim of a module that none of its items is about."""
    tested = [item.declaration for item in items if isinstance(item, ClaimItem)]

    def written_here(declaration: Declaration) -> bool:
        return _same_file(declaration.file, collector.path)

    lost = _lost_claims(collector.obj, written_here, tested)
    names = [name for _, name, _ in lost]
    return [
        _item(
            collector,
            f"{name}[{_label_of_fault('lost claim', names.count(name), declaration)}]",
            None,
            declaration,
            error,
        )
        for declaration, name, error in lost
    ]


def _label_of_fault(label: str, many: int, declaration: Declaration) -> str:
    """Return the label that distinguishes an invalid claim from others of the same mechanism."""
    return label if many == 1 else f"{label}, line {declaration.line}"


def source_module(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for a source module, unless pytest collects the file as tests anyway."""
    if file_path.name in ("conftest.py", "setup.py", "__main__.py"):
        return None
    patterns = parent.config.getini("python_files")
    if parent.session.isinitpath(file_path) or any(map(file_path.match, patterns)):
        return None
    return SourceModule.from_parent(parent, path=file_path)


def claim_items(collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item]:
    """Return one item for each claim on `obj` that is written in the collector's file."""
    if isinstance(obj, Claims):
        return list(_of_table(collector, name, obj))
    if isinstance(obj, type) and obj.__module__ == collector.obj.__name__:
        return [
            *_items(collector, name, obj, _declarations(obj)),
            *(
                item
                for attribute, value in list(vars(obj).items())
                for item in _of_attribute(collector, obj, attribute, value)
            ),
        ]
    alias = getattr(obj, "__name__", name)
    if alias != name and vars(collector.obj).get(alias) is obj:
        return []  # collected under its own name
    return _items(collector, name, obj, _declarations(obj))


def _of_table(collector: pytest.Module, name: str, table: Claims) -> Iterable[pytest.Item]:
    """Yield an item for each claim of each entry, and a failing item for each wrong entry."""
    allowed = "Allowed: claims({'a name': Claimed(mechanism, eps=1.0, pairs=[...]), ...})."
    here = Declaration({}, *table.site)
    if not isinstance(table.entries, Mapping) or not table.entries:
        yield _item(collector, name, None, here, invalid(name, table.entries, allowed))
        return
    for label, entry in table.entries.items():
        if not isinstance(entry, Claimed) or not isinstance(label, str):
            wrong = invalid(f"{name}[{label!r}]", entry, allowed)
            yield _item(collector, f"{name}[{label}]", None, here, wrong)
            continue
        entry.declaration.made_at = table.site  # where an entry is made by a helper elsewhere
        marks = entry.marks if isinstance(entry.marks, list | tuple) else [entry.marks]
        several = _claims_of(entry.declaration)
        labels = distinct_labels(claim for claim in several if isinstance(claim, Claim))
        full = [f"{name}[{label}-{one}]" for one in labels]
        for item_name, claim in zip(
            full if len(several) > 1 else [f"{name}[{label}]"], several, strict=True
        ):
            yield _item(collector, item_name, entry.mechanism, entry.declaration, claim, marks)


def _claims_of(
    declaration: Declaration, problem: ClaimError | None = None
) -> list[Claim | ClaimError]:
    """Return a claim for each combination of parameters; or what is wrong."""
    try:
        if problem is not None:
            raise problem
        return [*expand(declaration.keywords)]
    except ClaimError as error:
        return [error]


def _declarations(obj: Any) -> tuple[Any, ...]:
    declared = getattr(obj, ATTRIBUTE, ())
    return declared if type(declared) is tuple else ()


def _of_attribute(
    collector: pytest.Module, owner: type, name: str, value: Any
) -> list[pytest.Item]:
    full = f"{owner.__name__}.{name}"
    inner = getattr(value, "__func__", value)
    # The claim may stand above @staticmethod or below it.
    declared = (
        _declarations(value) if value is inner else _declarations(value) + _declarations(inner)
    )
    if isinstance(value, staticmethod):
        return _items(collector, full, inner, declared)
    problem = ClaimError(
        f"@dp_claim is on {full}, a method, and pytest-dp does not know which object to call it "
        "on. Put the claim on a function that makes the object and calls the method."
    )
    return _items(collector, full, inner, declared, problem)


def _items(
    collector: pytest.Module,
    name: str,
    obj: Any,
    declarations: tuple[Any, ...],
    problem: ClaimError | None = None,
) -> list[pytest.Item]:
    claims: list[tuple[Declaration, Claim | ClaimError]] = []
    for declaration in declarations:
        if not isinstance(declaration, Declaration) or not _line_in(declaration, collector.path):
            continue
        claims += [(declaration, claim) for claim in _claims_of(declaration, problem)]
    labels = iter(distinct_labels(claim for _, claim in claims if isinstance(claim, Claim)))
    broken = sum(isinstance(claim, ClaimError) for _, claim in claims)
    items: list[pytest.Item] = []
    for declaration, claim in claims:
        if isinstance(claim, Claim):
            label = next(labels)
        else:
            label = _label_of_fault("invalid claim", broken, declaration)
        items.append(_item(collector, f"{name}[{label}]", obj, declaration, claim))
    return items


def _item(
    collector: pytest.Module,
    name: str,
    mechanism: Any,
    declaration: Declaration,
    claim: Claim | ClaimError,
    marks: Iterable[Any] = (),
) -> pytest.Item:
    return ClaimItem.from_parent(
        collector,
        name=name,
        callobj=_stand_in(mechanism, marks),
        mechanism=mechanism,
        declaration=declaration,
        claim=claim,
    )


def _stand_in(mechanism: Any, marks: Iterable[Any]) -> Any:
    """Return a test function without arguments, with the marks of the mechanism, and more."""

    def audit_claim() -> None:
        """Provide marks and a signature only."""

    own = getattr(mechanism, "pytestmark", [])
    audit_claim.pytestmark = [*(own if isinstance(own, list) else [own]), *marks]  # type: ignore[attr-defined]
    return audit_claim


def _line_in(declaration: Declaration, path: Path) -> int | None:
    """Return the line of a file that states a claim or calls its maker; None if none does."""
    if _same_file(declaration.file, path):
        return declaration.line
    if declaration.made_at is not None and _same_file(declaration.made_at[0], path):
        return declaration.made_at[1]
    return None


def _same_file(file: str, other: Path) -> bool:
    path = Path(file)
    try:
        return path == other or path.samefile(other)
    except OSError:
        return False


def _lost_claims(
    module: Any, written_here: Callable[[Declaration], bool], collected: Iterable[Declaration]
) -> list[tuple[Declaration, str, ClaimError]]:
    """Return the declarations of an imported module that are not among those `collected`.

    Each comes with the name of its mechanism, and what became of it. A mechanism that was deleted,
    and that nothing holds any more, was meant to go.
    """
    spec, declared = DECLARED.get(module.__name__, (None, []))
    if spec is not vars(module).get("__spec__"):
        return []  # of another module of that name, or from before it was imported again
    tested = {id(declaration) for declaration in collected}
    missing = [
        (declaration, name, mechanism, _look_up(module, name))
        for declaration, name, mechanism in declared
        if id(declaration) not in tested and written_here(declaration)
    ]
    if any(now is _NOTHING for *_, now in missing):
        gc.collect()  # classes refer to themselves
    lost = []
    for declaration, name, mechanism, now in missing:
        short = name.rpartition("<locals>.")[2] or "mechanism"
        if now is not _NOTHING:
            lost.append((declaration, short, ClaimError(_explain_replaced(short, now, mechanism))))
        elif _mechanism_of(mechanism) is not None:
            lost.append((declaration, short, ClaimError(_out_of_reach(short))))
    return lost


def _mechanism_of(mechanism: Any) -> Any:
    """Return the mechanism of an entry; None if it was deleted."""
    held = mechanism() if isinstance(mechanism, ref) else mechanism
    return _attribute(held, "__func__", held)


def _attribute(of: Any, name: str, default: Any) -> Any:
    """Return an attribute like `getattr`, also of proxies, which may raise any exception."""
    try:
        return getattr(of, name, default)
    except Exception:  # whatever it raises, it has none that we can use
        return default


def _look_up(module: Any, name: str) -> Any:
    """Look up a name in a module; `_NOTHING` if its first part is undefined."""
    if "<locals>" in name:
        return _NOTHING
    root, *rest = name.split(".")
    place = vars(module).get(root, _NOTHING)
    for part in rest if place is not _NOTHING else ():
        place = _attribute(place, "__dict__", {}).get(part)
    return _attribute(place, "__func__", place)  # of a static method


def _explain_replaced(name: str, now: Any, mechanism: Any) -> str:
    """Explain that the mechanism of a claim is not the object that its name refers to."""
    if now is not None and _mechanism_of(mechanism) is now:
        return (
            f"No test came of this claim on {name}, where pytest-dp does not look for claims. Put "
            "it on a function of the module."
        )
    code = _attribute(now, "__code__", None)
    called = _attribute(now, "__qualname__", None) or type(now).__name__
    called = f"another {called}" if called == name else called
    where = f" (line {code.co_firstlineno})" if code is not None else ""
    return (
        f"This claim is lost, so nothing would be audited: {name} now stands for {called}{where}, "
        "which does not carry it. If that is another function of the same name, give one of them "
        "another name; if a decorator made it, put @dp_claim above that decorator, or use "
        "functools.wraps in it."
    )


def _out_of_reach(name: str) -> str:
    return (
        f"This claim is lost, so nothing would be audited: no name of this module stands for "
        f"{name} any more, but something still holds it. Give it a name of its own in the module, "
        "such as noisy_count = make(...), or claim what holds it."
    )
