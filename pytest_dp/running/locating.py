"""Import a mechanism anew: find its module, and the steps that lead to it there.

pytest loads test modules and conftest files in ways that no import repeats: from folders that are
not on `sys.path`, under names that it made up. So each module of the project is loaded from the
file, and under the name, that it has already.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.outputs.raised import attributes

MAX_OBJECTS = 5_000
"""Objects of a mechanism's own module among which it is looked for. Fewer miss one that is deep in
a table; more take longer for one that is in no module."""
MAX_STEPS = 5
"""Steps from its own module to a mechanism. A table of claims takes three."""
MAX_STEPS_ELSEWHERE = 2
"""Steps from another module of the project, such as that of a test which made the mechanism. With
more, each closure is looked for among all objects of a large project."""
MAIN = "__main__", "__mp_main__"
"""Scripts: to import them once more would run them once more."""


@dataclass(frozen=True, slots=True)
class ModulePlace:
    """A module, and the steps from there: names of attributes, and keys of items."""

    module: str
    steps: tuple[tuple[str, Any], ...]
    qualname: str
    """Of what is there, so that nothing else is taken for it."""


def locate(mechanism: Any) -> ModulePlace | None:
    """Return where a function, a method or an object is found after another import, or None."""
    owner, last = mechanism, []
    if isinstance(mechanism, types.MethodType):
        owner, last = mechanism.__self__, [("attribute", mechanism.__name__)]
    own = sys.modules.get(getattr(owner, "__module__", None) or "")
    if own is not None and own.__name__ not in MAIN:
        named = [("attribute", name) for name in getattr(owner, "__qualname__", "").split(".")]
        if _follow(own, named) is owner:
            return ModulePlace(own.__name__, (*named, *last), qualname_of(mechanism))
    for module in dict.fromkeys([*([own] if own is not None else []), *_project_modules()]):
        if module.__name__ not in MAIN:
            steps = _search(module, owner, MAX_STEPS if module is own else MAX_STEPS_ELSEWHERE)
            if steps is not None:
                return ModulePlace(module.__name__, (*steps, *last), qualname_of(mechanism))
    return None


def import_anew(place: ModulePlace) -> Any:
    """Import the modules of the project once more, and return what is at a place.

    In a process for this alone: what others hold of these modules is what it was. Raises
    LookupError if there is nothing at the place, or something else.
    """
    files = {
        name: (str(module.__file__), hasattr(module, "__path__"))
        for name, module in list(sys.modules.items())
        if name not in MAIN
        and isinstance(getattr(module, "__file__", None), str)
        and is_project_file(str(module.__file__))
    }
    for name in files:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(files))
    sys.meta_path.append(_Finder(files, parents=True))
    found = _follow(import_module(place.module), place.steps)
    if qualname_of(found) != place.qualname:
        raise LookupError(f"{place.module} has no {place.qualname} at its old place")
    return found


def qualname_of(obj: Any) -> str:
    """Return the qualified name of an object, or that of its type."""
    return str(getattr(obj, "__qualname__", None) or type(obj).__qualname__)


_LEAVES = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type, str, int, float)
"""Types of values at the top of a module that have no mechanism inside."""


def _follow(start: Any, steps: Sequence[tuple[str, Any]]) -> Any:
    """Return what the steps lead to, or None."""
    try:
        for how, name in steps:
            start = start[name] if how == "item" else getattr(start, name)
    except (AttributeError, LookupError, TypeError):
        return None
    return start


def _project_modules() -> list[types.ModuleType]:
    return [
        module
        for module in list(sys.modules.values())
        if isinstance(module, types.ModuleType)
        and is_project_file(str(getattr(module, "__file__", None) or "<frozen>"))
    ]


def _search(
    module: types.ModuleType, wanted: Any, most_steps: int
) -> tuple[tuple[str, Any], ...] | None:
    """Return the steps from a module to an object, the fewest there are; None if it is too far."""
    top = list(vars(module).items())
    named = next((name for name, value in top if value is wanted), None)
    if named is not None:
        return (("attribute", named),)
    left: deque[tuple[tuple[tuple[str, Any], ...], Any]] = deque(
        (((("attribute", name),)), value)
        for name, value in top
        if not isinstance(value, _LEAVES) and not name.startswith("__")
    )
    seen = {id(module)}
    while left and len(seen) < MAX_OBJECTS:
        steps, obj = left.popleft()
        if obj is wanted:
            return steps
        if id(obj) not in seen and len(steps) < most_steps:
            seen.add(id(obj))
            left.extend(((*steps, step), value) for step, value in _parts(obj))
    return None


def _parts(obj: Any) -> Iterator[tuple[tuple[str, Any], Any]]:
    if isinstance(obj, dict):
        plain = [(key, value) for key, value in obj.items() if isinstance(key, str | int | tuple)]
        yield from ((("item", key), value) for key, value in plain)
    elif isinstance(obj, list | tuple):
        yield from ((("item", index), value) for index, value in enumerate(obj))
    else:
        yield from ((("attribute", n), value) for n, value in (attributes(obj) or {}).items())


class _Finder(MetaPathFinder):
    """Finds modules in the files from which they were loaded before.

    The one of their `parents` finds packages that have no file, as pytest makes them up.
    """

    def __init__(self, files: dict[str, tuple[str, bool]], *, parents: bool = False) -> None:
        self._files, self._parents = files, parents

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Return how to load a module, or None."""
        if self._parents:
            inside = any(name.startswith(f"{fullname}.") for name in self._files)
            return ModuleSpec(fullname, None, is_package=True) if inside else None
        if fullname not in self._files:
            return None
        file, is_package = self._files[fullname]
        folders = [str(Path(file).parent)] if is_package else None
        return spec_from_file_location(fullname, file, submodule_search_locations=folders)
