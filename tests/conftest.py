"""For all tests."""

from hypothesis import settings

pytest_plugins = ["pytester"]

# The same examples every time, and no wall-clock limits: a red build means something.
settings.register_profile("tests", deadline=None, derandomize=True)
settings.load_profile("tests")
