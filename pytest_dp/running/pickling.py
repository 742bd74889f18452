"""Pickles by value, by cloudpickle, of code that still tells which file it is from."""

from __future__ import annotations

import io
import pickle
import types
from collections import ChainMap
from collections.abc import Callable
from typing import Any, ClassVar

try:  # this joblib's own copy up to 1.5, a dependency of it since
    import cloudpickle
    from cloudpickle import cloudpickle as _parts
except ImportError:
    from joblib.externals import cloudpickle
    from joblib.externals.cloudpickle import cloudpickle as _parts

__all__ = ["Pickler", "class_by_value", "cloudpickle", "dumps"]

class_by_value = _parts._dynamic_class_reduce  # noqa: SLF001


def _code_in_file(file: str, make: Callable[..., types.CodeType], arguments: Any) -> types.CodeType:
    return make(*arguments).replace(co_filename=file)


def _with_its_file(code: types.CodeType) -> tuple[Callable[..., types.CodeType], tuple[Any, ...]]:
    # A name of its own, as strings that are one object or two give different pickles.
    return _code_in_file, ("".join(code.co_filename), *_parts._code_reduce(code))  # noqa: SLF001


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """cloudpickle's; from 3.1.3 on it leaves out which file code is from, which blame needs."""

    dispatch_table: ClassVar = ChainMap(
        {types.CodeType: _with_its_file}, cloudpickle.Pickler.dispatch_table
    )


def dumps(obj: Any) -> bytes:
    """Return an object as bytes, which `pickle.loads` reads where this package is installed."""
    file = io.BytesIO()
    Pickler(file, pickle.HIGHEST_PROTOCOL).dump(obj)
    return file.getvalue()
