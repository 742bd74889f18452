"""The user's own ``@given`` tests: nothing about them changes beside claims with strategies."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

MODULE = """
    from hypothesis import strategies as st
    from pytest_dp import dp_claim

    THRESHOLD = 123_457

    counts = st.lists(st.integers(0, 10**6))

    @dp_claim(eps=1.0, inputs=counts, neighbors="add_remove_one", params={"k": st.integers(1, 3)},
              max_samples=8_000, margin=3.0)
    def noisy_count(records, k, rng):
        return len(records) + rng.laplace(scale=1.0)

    @dp_claim(eps=1.0, inputs=counts, neighbors="add_remove_one", max_samples=2_000)
    def broken_count(records, rng):
        return len(records) + rng.laplace(scale=0.1)
"""
PROFILE = """
    from hypothesis import Phase, settings
    from hypothesis.database import DirectoryBasedExampleDatabase

    settings.register_profile(
        "own",
        database=DirectoryBasedExampleDatabase("examples"),
        deadline=150,
        max_examples=30,
        print_blob=True,
    )
    settings.load_profile("own")

    # Hypothesis draws constants of all local modules, which these are where they are developed:
    # so that claims import none of them that would not be there without.
    import pkgutil
    from importlib import import_module

    import pytest_dp

    for module in pkgutil.walk_packages(pytest_dp.__path__, "pytest_dp."):
        import_module(module.name)

    from pytest_dp.pairs import generated, pair_strategies

    generated.POOL, pair_strategies.MAX_LENGTHS = 30, 10  # fewer draws: nothing shows of them
"""
OWN = """
    import stats
    from hypothesis import HealthCheck, given, seed, settings
    from hypothesis import strategies as st

    def record(name, value):
        with open("drawn.txt", "a") as file:
            print(name, value, file=file)

    @seed(7)
    @given(st.lists(st.integers()), st.text())
    def test_seeded(numbers, text):
        record("seeded", (numbers, text.encode("unicode-escape")))

    @settings(derandomize=True, database=None)
    @given(st.lists(st.floats()))
    def test_derandomized(numbers):
        record("derandomized", numbers)

    @given(st.booleans())
    def test_that_fails(value):
        assert not value

    def test_the_profile_holds():
        assert settings.default is settings.get_profile("own")
        assert settings.default.max_examples == 30
        assert HealthCheck.too_slow not in settings.default.suppress_health_check
"""


@pytest.mark.nightly
def test_claims_with_strategies_leave_them_alone(project):
    def run(*options: str):
        result = project.run_apart("-q", "-W", "error", *options, timeout=300)
        drawn, examples = project.root / "drawn.txt", project.root / "examples"
        kept = {
            str(file.relative_to(examples)): file.read_bytes()
            for file in examples.rglob("*")
            if file.is_file()
        }
        text = drawn.read_text()
        drawn.unlink()
        for file in examples.rglob("*"):
            if file.is_file():
                file.unlink()
        return result, text, kept

    project.write("stats.py", MODULE, imports="")
    project.write("conftest.py", PROFILE, imports="")
    project.write("test_own.py", OWN, imports="")
    alone, drawn_alone, kept_alone = run("test_own.py")
    alone.assert_outcomes(passed=3, failed=1)
    both, drawn, kept = run("-p", "no:cacheprovider", "stats.py", "test_own.py")
    both.assert_outcomes(passed=4, failed=2)
    assert drawn == drawn_alone
    assert kept == kept_alone
    assert "warning" not in both.stdout.str().lower()
    assert drawn_alone.count("seeded") >= 30
    assert kept_alone
