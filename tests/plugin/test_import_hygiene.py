"""What is loaded when, each in a fresh interpreter."""

from __future__ import annotations

import pkgutil

import pytest

import pytest_dp

HEAVY = ("numpy", "scipy", "pytest", "_pytest", "hypothesis", "joblib", "pandas")


def test_production_code_loads_nothing_heavy(python):
    loaded = python(
        """
        import sys
        before = set(sys.modules)
        from pytest_dp import (
            add_remove_one, dp_claim, queries, replace_one, replace_special, values
        )
        @dp_claim(eps=-1, epsilon=3, inputs=queries(5))
        @dp_claim(eps=1.0, inputs=values([0, 1]), params={"a": [1, 2]})
        def f(x): return x
        assert f.__name__ == "f" and f(3) == 3
        add_remove_one(unit="user_id", rows=3), replace_one(), replace_special(0)
        print(*sorted(set(sys.modules) - before))
        """
    ).split()
    assert not set(loaded) & {*HEAVY, "dataclasses", "inspect", "typing", "re"}
    ours = {name for name in loaded if name.startswith("pytest_dp")}
    assert ours <= {"pytest_dp", "pytest_dp.declaration"}
    assert len(loaded) < 10


@pytest.mark.slow
def test_only_the_plugin_imports_pytest(python):
    modules = [
        found.name
        for found in pkgutil.walk_packages(pytest_dp.__path__, "pytest_dp.")
        if not found.name.startswith("pytest_dp.plugin")
    ]
    assert "pytest_dp.methods.statdp" in modules
    code = f"""
    import importlib, sys
    sys.modules["pytest"] = sys.modules["_pytest"] = None
    for name in {modules!r}:
        importlib.import_module(name)
    print("done")
    """
    assert python(code) == "done"


def test_every_public_name_exists_and_is_listed():
    assert sorted(pytest_dp.__all__) == pytest_dp.__all__
    assert set(pytest_dp.__all__) == pytest_dp._HOME.keys() < set(dir(pytest_dp))
    assert all(getattr(pytest_dp, name).__name__ == name for name in pytest_dp.__all__)


SPY = """
import atexit, sys
def pytest_unconfigure():
    names = ("numpy", "scipy", "joblib", "pytest_dp.claiming.claim", "pytest_dp.plugin.collect")
    with open("loaded", "w") as file:
        print(*(name for name in names if name in sys.modules), file=file)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--dp-modules"], ["-n", "1"]])
def test_a_run_without_claims_loads_nothing_of_it(project, options):
    project.write("conftest.py", SPY, imports="")
    project.write("shop.py", "def price(): return 1\n", imports="")
    project.write(
        "test_a.py", "import shop\nclass TestA:\n    def test_plain(self): pass\n", imports=""
    )
    result = project.run_apart("-p", "no:cacheprovider", *options)
    assert result.ret == 0
    assert (project.root / "loaded").read_text().split() == []
    assert "privacy claims" not in result.stdout.str()


AUDITS = """
import pytest_dp, sys
def pytest_collection_finish():
    heavy = ("numpy", "scipy", "joblib", "pytest_dp.auditors", "pytest_dp.running")
    with open("loaded", "w") as file:
        print(*(name for name in heavy if name in sys.modules), file=file)
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [["-n", "1"], ["--dp-profile=dev"]])
def test_collecting_claims_loads_nothing_that_only_audits_need(project, options):
    project.write("conftest.py", AUDITS, imports="")
    project.write(
        "test_a.py",
        """
        import pytest
        from pytest_dp import PrivacyProfile, RenyiDP, add_remove_one, dp_claim, queries
        @dp_claim(eps=1.0, delta=1e-5, inputs=queries(3), params={"scale": [1.0, 2.0]})
        @dp_claim(guarantee=RenyiDP({2: 0.5}), inputs=[[1, 2]], neighbors=add_remove_one())
        @dp_claim(eps=None)
        def noisy(records, scale=1.0): return 0.0
        @pytest.mark.dp_claim(mu=1.0, pairs=[(0, 1)], params={"n": [1, 2]})
        def test_marked(dp_check): dp_check(lambda data, n, rng: data + rng.normal())
        """,
        imports="",
    )
    result = project.run_apart("-p", "no:cacheprovider", "--co", *options)
    assert "test_marked" in result.stdout.str() or "-n" in options
    assert (project.root / "loaded").read_text().split() == []
