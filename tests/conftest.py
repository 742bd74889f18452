"""For all tests."""

import gc

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# The same examples every time, and no wall-clock limits: a red build means something.
settings.register_profile("tests", deadline=None, derandomize=True)
settings.load_profile("tests")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: none of them is to run alone at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Each run of pytest inside this process collects garbage: not among thousands of tests."""
    gc.collect()
    gc.freeze()
