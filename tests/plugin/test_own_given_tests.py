"""The user's own ``@given`` tests: nothing about them changes beside claims with strategies."""

from __future__ import annotations

import pytest

MODULE = """
    from hypothesis import strategies as st
    from pytest_dp import dp_claim

    counts = st.lists(st.integers(0, 10**6))

    @dp_claim(eps=1.0, inputs=counts, neighbors="add_remove_one", max_samples=2_000)
    def broken_count(records, rng):
        return len(records) + rng.laplace(scale=0.1)
"""
PROFILE = """
    import pkgutil
    from importlib import import_module

    import pytest_dp
    from hypothesis import settings
    from hypothesis.database import DirectoryBasedExampleDatabase

    # Hypothesis draws constants of local modules, as ours are here: with and without claims.
    for module in pkgutil.walk_packages(pytest_dp.__path__, "pytest_dp."):
        import_module(module.name)
    kept = DirectoryBasedExampleDatabase("examples")
    settings.register_profile("own", database=kept, deadline=150, max_examples=30)
    settings.load_profile("own")
"""
OWN = """
    from hypothesis import given, seed, settings
    from hypothesis import strategies as st

    @seed(7)
    @given(st.lists(st.integers()), st.text())
    def test_seeded(numbers, text):
        with open("drawn.txt", "a") as file:
            print(numbers, text.encode("unicode-escape"), file=file)

    def test_the_profile_holds():
        assert settings.default is settings.get_profile("own")
        assert settings.default.max_examples == 30
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_claims_with_strategies_leave_them_alone(project):
    project.write("test_stats.py", MODULE, imports="")
    project.write("conftest.py", PROFILE, imports="")
    project.write("test_own.py", OWN, imports="")
    found = []
    for files in (["test_own.py"], ["test_stats.py", "test_own.py"]):
        result = project.run_apart("-W", "error", "-p", "no:cacheprovider", *files, timeout=300)
        assert result.parseoutcomes()["passed"] == 2
        drawn = project.root / "drawn.txt"
        found.append(drawn.read_text())
        drawn.unlink()
        kept = [file for file in (project.root / "examples").rglob("*") if file.is_file()]
        assert not kept, "no example of a claim is in the database"
    assert result.parseoutcomes()["failed"] == 1
    assert found[0] == found[1] != ""
