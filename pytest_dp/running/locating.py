"""Import a mechanism anew: find its module, and the attributes that lead to it there.

pytest loads test modules in ways that no import repeats. So each module of the project is loaded
from the file, and under the name, that it has already.
"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from operator import attrgetter
from pathlib import Path
from typing import Any

from pytest_dp.basics.whose_code import is_project_file

MAIN = "__main__", "__mp_main__"
"""Names of scripts: to import a script once more would run it once more."""


@dataclass(frozen=True, slots=True)
class ModulePlace:
    """A module, and the names of attributes that lead from there to a mechanism, with dots."""

    module: str
    path: str
    qualname: str
    """The qualified name of the mechanism, by which another object at that place is noticed."""


def locate(mechanism: Any) -> ModulePlace | None:
    """Return the module and names by which an import finds a function, method or object again.

    None if it is no variable of a module of the project, and in no class of its own module. Scripts
    do not count.
    """
    owner, method = mechanism, ""
    if isinstance(mechanism, types.MethodType):
        owner, method = mechanism.__self__, f".{mechanism.__name__}"
    own = sys.modules.get(getattr(owner, "__module__", None) or "")
    for module in dict.fromkeys([*([own] if own is not None else []), *_project_modules()]):
        names = [name for name, value in list(vars(module).items()) if value is owner]
        for name in (getattr(owner, "__qualname__", ""), *names):
            if module.__name__ not in MAIN and _follow(module, name) is owner:
                return ModulePlace(module.__name__, name + method, qualname_of(mechanism))
    return None


def _follow(module: types.ModuleType, path: str) -> Any:
    """Return the object to which names with dots lead from a module; None if there is none."""
    try:
        return attrgetter(path)(module)
    except Exception:  # of modules that look attributes up themselves, which may raise anything
        return None


def _project_modules() -> list[types.ModuleType]:
    """Return the modules of the project that are loaded."""
    return [
        module
        for module in list(sys.modules.values())
        if isinstance(module, types.ModuleType)
        and is_project_file(str(getattr(module, "__file__", None) or "<frozen>"))
    ]


def import_anew(place: ModulePlace) -> Any:
    """Import all modules of the project once more, and return the mechanism at a place.

    Only for a process that does nothing else, as others keep the old modules. Raises LookupError if
    another object, or none, is at the place, and whatever an import raises.
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
    found = _follow(import_module(place.module), place.path)
    if qualname_of(found) != place.qualname:
        raise LookupError(f"{place.module} has no {place.qualname} at its old place")
    return found


def qualname_of(obj: Any) -> str:
    """Return the qualified name of an object, or that of its type."""
    return str(getattr(obj, "__qualname__", None) or type(obj).__qualname__)


class _Finder(MetaPathFinder):
    """Finds modules in the files they were loaded from; with `parents`, packages without a file."""

    def __init__(self, files: dict[str, tuple[str, bool]], *, parents: bool = False) -> None:
        self._files, self._parents = files, parents

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Return how to load a module; None if this finder does not know it."""
        if self._parents:
            inside = any(name.startswith(f"{fullname}.") for name in self._files)
            return ModuleSpec(fullname, None, is_package=True) if inside else None
        if fullname not in self._files:
            return None
        file, is_package = self._files[fullname]
        folders = [str(Path(file).parent)] if is_package else None
        return spec_from_file_location(fullname, file, submodule_search_locations=folders)
