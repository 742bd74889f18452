"""Claims in production code, collected with ``dp_modules``."""

from __future__ import annotations

import pytest
from projects import laplace


@pytest.fixture
def shop(project):
    project.write("shop/__init__.py", imports="")
    project.write("shop/stats.py", laplace("noisy_count", 1.0))
    project.write("tests/test_plain.py", "def test_plain(): pass")
    return project


def test_source_modules_are_collected_only_where_asked_for(shop):
    assert shop.ids() == ["tests/test_plain.py::test_plain"]
    expected = ["shop/stats.py::noisy_count[eps=1.0]", "tests/test_plain.py::test_plain"]
    assert shop.ids("--dp-modules") == expected
    shop.ini("dp_modules = true")
    assert shop.ids() == expected
    assert shop.ids("tests") == expected[1:]
    shop.ini("dp_modules = true", "testpaths = tests shop")
    assert shop.ids() == expected[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--dp-modules"]])
def test_a_source_file_given_by_name(shop, options):
    expected = ["shop/stats.py::noisy_count[eps=1.0]"]
    assert shop.ids("shop/stats.py", *options) == expected
    assert shop.ids("shop/stats.py::noisy_count[eps=1.0]", *options) == expected
    shop.run("shop/stats.py", *options).assert_outcomes(passed=1)


def test_what_is_left_alone(shop):
    """Files without claims, which are not imported; what runs when it is imported; other tests."""
    shop.write("shop/dangerous.py", "raise RuntimeError('imported')", imports="")
    shop.write("scripts/launch.py", "raise SystemExit('imported')", imports="")
    for name in ("setup.py", "conftest.py", "shop/conftest.py", "shop/__main__.py"):
        shop.write(name, laplace("noisy", 1.0))
    shop.write("shop/api.py", "from shop.stats import noisy_count  # dp_claim\n")
    shop.write("shop/other.py", laplace("noisy", 1.0), "def test_connection(): raise OSError\n")
    result = shop.run("--dp-modules", "--collect-only", "-q")
    assert result.ret == 0
    assert [line for line in result.outlines if "::" in line] == [
        "shop/other.py::noisy[eps=1.0]",
        "shop/stats.py::noisy_count[eps=1.0]",
        "tests/test_plain.py::test_plain",
    ]


def test_a_source_file_that_mentions_a_claim_and_cannot_be_imported_is_an_error(shop):
    shop.write("shop/broken.py", "import nowhere_to_be_found\n")
    result = shop.run("--dp-modules")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ERROR collecting shop/broken.py*", "*nowhere_to_be_found*"])


def test_a_file_that_is_a_test_module_is_collected_once(shop):
    shop.ini("python_files = test_*.py stats.py", "dp_modules = true")
    assert shop.ids().count("shop/stats.py::noisy_count[eps=1.0]") == 1
    assert len(shop.ids()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["prepend", "importlib"])
def test_a_src_layout_with_relative_imports(project, mode):
    project.write("src/clinic/__init__.py", laplace("in_init", 1.0))
    project.write("src/clinic/noise.py", "SCALE = 1.0\n", imports="")
    project.write(
        "src/clinic/sub/__init__.py", "from ..noise import SCALE\n", laplace("in_sub", 1.0)
    )
    project.write(
        "src/clinic/counts.py",
        "from .noise import SCALE\nfrom . import in_init\n",
        laplace("noisy", 1.0).replace("scale=1.0", "scale=SCALE"),
    )
    project.ini("dp_modules = true", "pythonpath = src")
    result = project.run(f"--import-mode={mode}", "-v")
    result.assert_outcomes(passed=3)
    assert set(project.rows(result)) == {
        "src/clinic/__init__.py::in_init[eps=1.0]",
        "src/clinic/sub/__init__.py::in_sub[eps=1.0]",
        "src/clinic/counts.py::noisy[eps=1.0]",
    }


@pytest.mark.slow
def test_inputs_named_by_module_are_found_from_the_root(shop):
    shop.write("checks/dp_inputs.py", "records = [[], [1]]\n", imports="")
    shop.write(
        "shop/more.py",
        laplace(
            "more",
            0.2,
            'eps=1.0, inputs="checks.dp_inputs:records", neighbors="add_remove_one", '
            'vectorized="size", max_samples=4000',
        ),
    )
    result = shop.run("--dp-modules", "--import-mode=importlib", "shop/more.py")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E     D'*(one record *)"])
