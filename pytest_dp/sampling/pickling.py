"""cloudpickle, wherever this joblib keeps it: its own copy up to 1.5, a dependency since."""

from __future__ import annotations

try:
    import cloudpickle
    from cloudpickle.cloudpickle import _dynamic_class_reduce as class_by_value
except ImportError:
    from joblib.externals import cloudpickle
    from joblib.externals.cloudpickle.cloudpickle import _dynamic_class_reduce as class_by_value

__all__ = ["class_by_value", "cloudpickle"]
