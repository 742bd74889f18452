"""A project whose claims are on record, what is changed in it, and what then fails."""

from __future__ import annotations

import json
import re

from pytest_dp.records.judging import mechanism_of

SHOP = """
# count
@dp_claim(
    eps=1.0,
    neighbors="add_remove_one",
    inputs=[[1, 0, 1], [1]],
    vectorized="size",
    max_samples=1000,
)
def count(records, rng, size):
    # how many
    return sum(records) + rng.laplace(scale=1.0, size=size)


# total
@dp_claim(rho=0.5, inputs=queries(2, 3), vectorized="size", max_samples=600, margin=1.5)
def total(answers, rng, size):
    return sum(answers) + rng.normal(scale=10.0, size=size)


# visitors
@dp_claim(
    eps=0.5, delta=1e-6, neighbors=add_remove_one(unit=0, rows=2, group=2),
    inputs="boxes:visits", max_samples=300,
)
def visitors(rows, rng):
    return len({row[0] for row in rows}) + rng.laplace(scale=2.0)
"""
TESTS = """
# vendor
class TestVendor:
    # mean
    @pytest.mark.dp_claim(mu=1.0, pairs=[([1], []), ([2], [])], vectorized="size", max_samples=500)
    def test_mean(self, dp_check):
        dp_check(lambda d, rng, size: sum(d) + rng.normal(scale=9.0, size=size))

def test_plain(): pass
"""
BOXES = "visits = [[(1, 'a'), (1, 'b'), (2, 'a')], [(3, 'c')]]\n"
INI = "[pytest]\ndp_modules = true\nmarkers = slow\n"
QUICK_AUDITS = """
import sys
from types import SimpleNamespace

from pytest_dp.auditors.session import AuditFinding

def audit(session):
    return AuditFinding(session.result("no violation", lower=0.5, resolution=2.0))

for method in ("sequential", "statdp"):
    sys.modules[f"pytest_dp.auditors.{method}"] = SimpleNamespace(audit=audit)
"""
SHOP_FILE, TESTS_FILE, INI_FILE = "shop.py", "test_shop.py", "pytest.ini"
COUNT, TOTAL = "shop.py::count[eps=1.0]", "shop.py::total[rho=0.5]"
MEAN = "test_shop.py::TestVendor::test_mean"
VISITORS = "shop.py::visitors[eps=1.0-delta=2.6487212707003925e-06]"
ALL = [COUNT, TOTAL, VISITORS, MEAN]
SKIP = "@pytest.mark.skip(reason='slow')\n"


def edit(project, *edits: tuple[str, str, str]) -> None:
    """Replace a text in a file; an empty one is its end."""
    for path, old, new in edits:
        file = project.root / path
        text = file.read_text()
        assert old in text, (path, old)
        file.write_text(text.replace(old, new, 1) if old else text + new)


def failed(result) -> list[str]:
    """Tests that fail by what is on record, and what the end of the run tells of the rest."""
    text = result.stdout.str()
    own = re.findall(r"^FAILED (.*?) - Weak", text, re.MULTILINE)
    end = re.findall(r"^ERROR: (.*::.*)$", text, re.MULTILINE)
    return sorted(map(mechanism_of, {*own, *end}))


def mechanisms(*names: str) -> list[str]:
    return sorted(map(mechanism_of, names))


def entries(project) -> dict:
    return json.loads((project.root / "dp-claims.json").read_text())["claims"]
