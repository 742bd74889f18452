"""cloudpickle, wherever this joblib keeps it: its own copy up to 1.5, a dependency since."""

from __future__ import annotations

try:
    import cloudpickle
except ImportError:
    from joblib.externals import cloudpickle

__all__ = ["cloudpickle"]
