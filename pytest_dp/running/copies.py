"""Copies of a mechanism as it was before its first run, for trials.

A mechanism may keep noise or answers from run to run. So runs with repeated random numbers are runs
of a copy that is thrown away; the audited mechanism only sees new ones. Functions, classes and
modules are copied with the variables that they use, and caches of `functools` start empty. Only
libraries, which keep no noise, are shared with the original.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import io
import os
import pickle
import random
import sys
import threading
import types
from collections import ChainMap
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from pytest_dp.basics.reach import is_bound, modules_imported_in, names_in
from pytest_dp.basics.whose_code import is_library
from pytest_dp.declaration import Declaration
from pytest_dp.running.generator_stand_ins import KINDS, Source, stand_in
from pytest_dp.running.modules import NUMPY, PYTHONS, current_instrument

try:  # this joblib's own copy up to 1.5, a dependency of it since
    import cloudpickle
    from cloudpickle import cloudpickle as _parts
except ImportError:
    from joblib.externals import cloudpickle
    from joblib.externals.cloudpickle import cloudpickle as _parts

MAX_STATE_BYTES = 2**26
"""Bytes that a mechanism may hold to be copied. Fewer: its state is not reset."""
MAX_FUNCTIONS = 3_000
"""Functions that a mechanism may reach to be copied. Fewer: its state is not reset."""
_FRAMEWORKS = frozenset(
    ["cloudpickle", "torch", "jax", "jaxlib", "tensorflow", "keras", "numba", "polars", "pyarrow"]
)
_SOURCES = {"np.random": np.random.mtrand._rand, "random": random._inst}  # noqa: SLF001
_GLOBALS = {source.name: source for source in (NUMPY, PYTHONS)}
_NAMES_OF_SOURCES = {id(source): name for name, source in _SOURCES.items()}
_OF_THREADS: dict[type, Any] = {
    type(threading.Lock()): threading.Lock,
    type(threading.RLock()): threading.RLock,
    threading.local: threading.local,
}


class CannotCopy(Exception):  # noqa: N818  a way out, not an error
    """Raised if a mechanism cannot be copied; the message says why."""


def _code_in_file(file: str, make: Callable[..., types.CodeType], arguments: Any) -> types.CodeType:
    return make(*arguments).replace(co_filename=file)


def _with_its_file(code: types.CodeType) -> tuple[Callable[..., types.CodeType], tuple[Any, ...]]:
    # A name of its own, as strings that are one object or two give different pickles.
    return _code_in_file, ("".join(code.co_filename), *_parts._code_reduce(code))  # noqa: SLF001


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """The pickler of cloudpickle, but with the file names of code, which `explain` shows."""

    dispatch_table: ClassVar = ChainMap(
        {types.CodeType: _with_its_file}, cloudpickle.Pickler.dispatch_table
    )


def dumps(obj: Any, module: str | None = None) -> bytes:
    """Pickle an object so that `pickle.loads` reads it where this package is installed.

    Functions and classes of `module` are pickled by value, with the variables of the module.
    Raises whatever pickling raises.
    """
    file = io.BytesIO()
    if module is not None:
        cloudpickle.register_pickle_by_value(sys.modules[module])
    try:
        Pickler(file, pickle.HIGHEST_PROTOCOL).dump(obj)
    finally:
        if module is not None:
            cloudpickle.unregister_pickle_by_value(sys.modules[module])
    return file.getvalue()


class Pristine:
    """A snapshot of a mechanism with its parameters as it is now, to be copied later.

    `reason` says why it cannot be copied, and is empty if it can. `reads` says whether it holds
    values besides code, which an import may have drawn.
    """

    def __init__(self, obj: Any) -> None:
        self.reason, self._written, self.reads = "", b"", False
        self._classes: list[type] = []
        self._reusable: tuple[Any, list[type]] | None = None
        names: frozenset[str] = frozenset()
        try:
            while not self._written:
                copier = _Copier(names)
                copier.dump((obj, copier.classes))  # which is filled by the time it is written
                names = copier.names
                self.reads = copier.reads
                if copier.is_complete():
                    self._written, self._classes = copier.content(), copier.classes
            self.copy()
        except Exception as error:  # whatever pickling raises
            self.reason = _reason_of(error)

    @property
    def size(self) -> int:
        """Bytes of the snapshot."""
        return len(self._written)

    @property
    def content(self) -> bytes:
        """The snapshot as bytes, which are equal as long as nothing in the object changes."""
        return self._written

    @classmethod
    def without_copies(cls, reason: str) -> Pristine:
        """Return a snapshot of which no copy can be made, for this reason."""
        pristine = cls(None)
        pristine.reason = reason
        return pristine

    def __getstate__(self) -> Any:
        return self._written, self._classes, self.reason, self.reads

    def __setstate__(self, state: Any) -> None:
        self._written, self._classes, self.reason, self.reads = state
        self._reusable = None

    def copy(self, *inputs: Any) -> tuple[Any, list[Any]]:
        """Make and return a new copy, and the inputs as objects of the copied classes.

        Raises CannotCopy if there can be no copy, or if an input cannot be pickled.
        """
        obj, classes = self._copy()
        return obj, [self._translate(data, classes) for data in inputs]

    def reusable_copy(self, data: Any) -> tuple[Any, Any]:
        """Return one copy that all calls share, and an input for it; errors are those of `copy`."""
        if self._reusable is None:
            self._reusable = self._copy()
        obj, classes = self._reusable
        return obj, self._translate(data, classes)

    def _copy(self) -> tuple[Any, list[type]]:
        """Make and return a copy, and the copied classes; raise CannotCopy if that fails."""
        if self.reason:
            raise CannotCopy(self.reason)
        try:
            return pickle.loads(self._written)  # type: ignore[no-any-return]  # written here
        except Exception as error:
            raise CannotCopy(_reason_of(error)) from None

    def _translate(self, data: Any, classes: list[type]) -> Any:
        """Return data with objects of the copied classes for originals; may raise CannotCopy."""
        if not self._classes:
            return data
        file = io.BytesIO()
        try:
            _WithNumbers(file, {id(cls): k for k, cls in enumerate(self._classes)}).dump(data)
            file.seek(0)
            return _WithCopies(file, classes).load()
        except Exception as error:
            raise CannotCopy(_reason_of(error)) from None


def _reason_of(error: Exception) -> str:
    """Return the reason why there is no copy, by the error that copying raised."""
    if isinstance(error, CannotCopy):
        return str(error)
    line = str(error).strip().partition("\n")[0]
    return f"it cannot be copied ({type(error).__name__}: {line})"


class _Bounded(io.BytesIO):
    """A file in memory that raises CannotCopy if it gets larger than `MAX_STATE_BYTES`."""

    def write(self, data: Any, /) -> int:
        if self.tell() > MAX_STATE_BYTES:
            raise CannotCopy(f"it holds more than {(MAX_STATE_BYTES) // 1_000_000} MB")
        return super().write(data)


class _Copier(Pickler):
    """A pickler of a snapshot: code of users by value, with the module variables that it names.

    `names` are names in functions, `classes` the classes that were pickled by value. Pickling
    raises CannotCopy beyond its limits.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._file = _Bounded()
        super().__init__(self._file, pickle.HIGHEST_PROTOCOL)
        self.names = names
        self.classes: list[type] = []
        self._modules: list[tuple[types.ModuleType, frozenset[str]]] = []
        self._functions = 0
        self.reads = False

    def content(self) -> bytes:
        """Return the bytes that were pickled so far."""
        return self._file.getvalue()

    def is_complete(self) -> bool:
        """Return whether all module variables that functions name were pickled."""
        return all(self._uses(module) == copied for module, copied in self._modules)

    def _uses(self, module: types.ModuleType) -> frozenset[str]:
        return self.names & vars(module).keys()

    def reducer_override(self, obj: Any) -> Any:
        """Return how to pickle an object, and note the names and values in functions and classes.

        Functions, classes and modules of users are pickled by value. Raises CannotCopy if a
        function imports a user's module while it runs, or if there are more than `MAX_FUNCTIONS`.
        """
        if isinstance(obj, types.FunctionType):
            if _is_shared(obj.__module__):
                return super().reducer_override(obj)
            self._note_function(obj)
            return self._dynamic_function_reduce(obj)
        if isinstance(obj, type):
            if _is_shared(obj.__module__) or _is_compiled(obj):
                return super().reducer_override(obj)
            self.classes.append(obj)
            self._note_values(*vars(obj).values())
            self._count()
            return _as_new_class(_parts._dynamic_class_reduce(obj))  # noqa: SLF001
        if isinstance(obj, types.ModuleType):
            if _is_shared(obj.__name__):
                return super().reducer_override(obj)
            used = self._uses(obj)
            self._modules.append((obj, used))
            variables = {name: vars(obj)[name] for name in sorted(used)}
            self._note_values(*variables.values())
            return _copy_module, (obj.__name__,), variables
        return self._reduce_other(obj)

    def _reduce_other(self, obj: Any) -> Any:
        """Return how to pickle an object that is no function, class or module of a user."""
        if isinstance(obj, Declaration):  # a claim on it, whose strategies change as they are used
            return str, ()
        self.reads |= not is_library(type(obj).__module__)
        if isinstance(obj, functools._lru_cache_wrapper):  # noqa: SLF001
            parameters = obj.cache_parameters()
            return (
                _empty_cache,
                (parameters["maxsize"], parameters["typed"]),
                obj.__wrapped__,
                None,
                None,
                _set_wrapped,
            )
        if id(obj) in _NAMES_OF_SOURCES:
            return _load_source, (_NAMES_OF_SOURCES[id(obj)],)
        if type(obj) in KINDS[:3]:
            make, arguments, *state = obj.__reduce__()
            return _load_generator, (KINDS.index(type(obj)), make, arguments, *state)
        if isinstance(getattr(obj, "__self__", None), KINDS):  # as in "from random import gauss"
            return getattr, (obj.__self__, obj.__name__)
        if obj is os.urandom:  # by the name under which it may be replaced
            return getattr, (os, "urandom")
        if type(obj) is random.SystemRandom:
            return random.SystemRandom, ()
        if type(obj) in _OF_THREADS:  # of a local, with what this thread keeps there
            return _OF_THREADS[type(obj)], (), getattr(obj, "__dict__", None)
        return super().reducer_override(obj)

    def _note_function(self, function: types.FunctionType) -> None:
        """Note names and values that a function uses; raise CannotCopy if it imports modules."""
        code = function.__code__
        cells = [cell.cell_contents for cell in function.__closure__ or () if is_bound(cell)]
        used = [function.__globals__.get(name) for name in code.co_names]
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        self._note_values(*cells, *used, *defaults, *vars(function).values())
        self.names |= names_in(code)
        self._count()
        for name in modules_imported_in(code):
            if _is_shared(name):
                continue
            raise CannotCopy(f"it imports {name.strip('.') or 'modules'} while it runs")

    def _note_values(self, *values: Any) -> None:
        """Set `reads` if one of the values is neither None, callable nor a module."""
        self.reads |= not all(v is None or callable(v) or inspect.ismodule(v) for v in values)

    def _count(self) -> None:
        """Count a function or class; raise CannotCopy if there are more than `MAX_FUNCTIONS`."""
        self._functions += 1
        if self._functions > MAX_FUNCTIONS:
            raise CannotCopy(f"it reaches more than {(MAX_FUNCTIONS):,} functions")


def _is_shared(module: str | None) -> bool:
    """Return whether a module is of a library, which copies share with the original."""
    root = (module or "").partition(".")[0]
    return root in _FRAMEWORKS or (is_library(module) and root != "test")


def _is_compiled(cls: type) -> bool:
    """Return whether a class looks as if it is written in C.

    Such a class is pickled by its name, and the copy shares it with the original. Signs are a
    static type, and methods in C.
    """
    heap = 1 << 9  # Py_TPFLAGS_HEAPTYPE
    return not cls.__flags__ & heap or any(
        isinstance(value, types.MethodDescriptorType) for value in vars(cls).values()
    )


def _as_new_class(reduced: Any) -> Any:
    """Return a reduced class without its number, by which cloudpickle would find the class."""
    make, arguments, (members, *more), *rest = reduced
    members.pop("__slotnames__", None)  # which `copyreg` notes when the first object is copied
    return make, (*arguments[:-2], None, arguments[-1]), (members, *more), *rest


def _load_source(name: str) -> Any:
    """Return a global generator by its name, or its stand-in while an instrument is in place."""
    instrument = current_instrument()
    return stand_in(instrument, _GLOBALS[name]) if instrument else _SOURCES[name]


def _load_generator(kind: int, make: Any, arguments: Any, state: Any = None) -> Any:
    """Return a new generator in a pickled state, or a stand-in while an instrument is in place."""
    instrument = current_instrument()
    if instrument:
        return stand_in(instrument, Source("its generator", KINDS[kind]))
    generator = make(*arguments)
    if state is not None:
        generator.__setstate__(state)
    return generator


def _copy_module(name: str) -> types.ModuleType:
    """Return a module that takes attributes it lacks from the module of that name."""
    copied = types.ModuleType(name)
    vars(copied)["__getattr__"] = functools.partial(getattr, importlib.import_module(name))
    return copied


class _Late:
    """A function that is set later, as it may refer to the cache around it."""

    function: Any = None

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function(*args, **keywords)


def _empty_cache(maxsize: int | None, typed: bool) -> Any:
    """Return an empty cache around a function that `_set_wrapped` sets."""
    return functools.lru_cache(maxsize, typed)(_Late())


def _set_wrapped(cache: Any, function: Any) -> None:
    """Set the function that an empty cache calls."""
    cache.__wrapped__.function = function
    functools.update_wrapper(cache, function)


class _WithNumbers(Pickler):
    """A pickler that writes the numbers of classes instead of the classes."""

    def __init__(self, file: io.BytesIO, numbers: dict[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._numbers = numbers

    def persistent_id(self, obj: Any) -> int | None:
        return self._numbers.get(id(obj))


class _WithCopies(pickle.Unpickler):
    """An unpickler that reads the numbers of classes as copied classes."""

    def __init__(self, file: io.BytesIO, copies: list[type]) -> None:
        super().__init__(file)
        self._copies = copies

    def persistent_load(self, number: int) -> type:
        return self._copies[number]
