"""Claims in test modules: which items there are, and what they are called."""

from __future__ import annotations

import pytest
from projects import laplace

COLLECTED = {
    "beside ordinary tests": (
        laplace("noisy", 1.0) + "def test_plain(): pass\n",
        ["noisy[eps=1.0]", "test_plain"],
    ),
    "both a test and a claim": (
        "@dp_claim(eps=1.0, pairs=[(0, 1)])\ndef test_x(d=0): return None\n",
        ["test_x[eps=1.0]", "test_x"],
    ),
    "imported": ("from shop import noisy\ndef test_plain(): assert noisy\n", ["test_plain"]),
    "stacked, of one eps": (
        """
        @dp_claim(eps=1.0, inputs=[[1]], neighbors="add_remove_one")
        @dp_claim(eps=1.0, inputs=[[1]], neighbors="replace_one")
        @dp_claim(eps=1.0, inputs=[[2]], neighbors="replace_one")
        def noisy(d): return 0
        """,
        [f"noisy[eps=1.0-{end}]" for end in ("add_remove_one", "replace_one", "replace_one-2")],
    ),
    "each combination of parameters": (
        """
        @dp_claim(eps="epsilon", params={"epsilon": [0.1, 1, 5.0], "bins": [3, 4]}, pairs=[(0, 1)])
        def noisy(d, epsilon, bins): return 0
        """,
        [f"noisy[eps={eps}-bins={bins}]" for eps in (0.1, 1.0, 5.0) for bins in (3, 4)],
    ),
    "objects that make up attributes": (
        """
        from unittest.mock import MagicMock, call
        mock = MagicMock()

        class Proxy:  # such as Flask's current_app, outside of an application
            def __getattribute__(self, name): raise RuntimeError("touched")
            def __call__(self): raise RuntimeError("called")

        proxy = Proxy()

        @dp_claim(eps=1.0, pairs=[(0, 1)])
        def noisy(d): return 0
        """,
        ["noisy[eps=1.0]"],
    ),
}


@pytest.mark.parametrize("prefix", ["test", "shop"])
def test_items_and_their_names(project, prefix):
    """A file for each case, in tests and in source modules."""
    project.write("shop.py", laplace("noisy", 1.0))
    for number, (code, _) in enumerate(COLLECTED.values()):
        project.write(f"{prefix}_{number}.py", code)
    lines = project.run("--collect-only", "-q", "--dp-modules").outlines
    for number, (name, (_, items)) in enumerate(COLLECTED.items()):
        if prefix == "shop":
            items = [item for item in items if "[" in item]
        file = f"{prefix}_{number}.py::"
        assert [line for line in lines if line.startswith(file)] == [file + i for i in items], name


@pytest.mark.parametrize("kind", ["{}", "{}@classmethod\n    "])
def test_methods_say_what_to_write_instead(project, kind):
    project.write(
        "test_a.py",
        "class Shop:\n    " + kind.format("@dp_claim(eps=1.0, pairs=[(0, 1)])\n    ") + "\n"
        "    def count(self, records): return 0\n"
        "def test_plain(): pass\n",
    )
    result = project.run()
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["E   ClaimError: @dp_claim is on Shop.count, a method*function that*"]
    )
    assert "Traceback" not in result.stdout.str()


def test_pytestmark_and_marks_on_the_mechanism_hold_for_its_claims(project):
    project.write("test_a.py", "pytestmark = pytest.mark.skip\n", laplace("noisy", 0.1))
    project.write("test_b.py", "@pytest.mark.skip(reason='later')", laplace("noisy", 0.1))
    project.run().assert_outcomes(skipped=2)
