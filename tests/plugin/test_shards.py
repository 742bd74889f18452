"""``--dp-shard``: each audit in exactly one share, and shares that take about as long."""

from __future__ import annotations

import json

import numpy as np
import pytest
from projects import laplace

from pytest_dp.plugin.shards import partition


@pytest.mark.parametrize("shards", [1, 2, 5, 40])
def test_each_name_is_in_one_share(shards):
    names = [f"test_{i}" for i in range(23)]
    parts = partition(names, {}, shards)
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_shares_take_about_as_long():
    rng = np.random.default_rng(1)
    seconds = {f"test_{i}": float(s) for i, s in enumerate(rng.exponential(10, 60))}
    loads = [sum(map(seconds.get, part)) for part in partition(list(seconds), seconds, 4)]
    assert max(loads) <= 4 / 3 * max(sum(loads) / 4, max(seconds.values()))
    assert partition(list(reversed(seconds)), seconds, 4) == partition(list(seconds), seconds, 4)


@pytest.fixture
def shop(project):
    project.write("test_a.py", *(laplace(f"count{i}", 1.0) for i in range(4)))
    project.write("test_b.py", "def test_other(): pass")
    return project


def ids(shop, shard, *options):
    return set(shop.ids(f"--dp-shard={shard}", *options))


def test_shares_make_up_the_whole(shop):
    first, second = ids(shop, "1/2"), ids(shop, "2/2")
    assert first | second == set(shop.ids())
    assert not first & second
    assert "test_b.py::test_other" in first
    assert (len(first), len(second)) == (3, 2)


@pytest.mark.slow
def test_durations_are_remembered_and_used(shop):
    assert shop.run_apart("--dp-shard=1/1").ret == 0
    file = next((shop.root / ".pytest_cache").rglob("durations"))
    seconds = json.loads(file.read_text())
    assert len(seconds) == 4
    longest = max(seconds)
    file.write_text(json.dumps({name: 100.0 if name == longest else 1.0 for name in seconds}))
    result = shop.run_apart("--dp-shard=1/2", "--collect-only", "-q")
    audits = [line for line in result.outlines if line.startswith("test_a.py::")]
    assert audits == [longest]


@pytest.mark.slow
def test_claims_on_record_of_other_shares_are_not_missed(shop):
    shop.run("--dp-update")
    for shard in ("1/2", "2/2"):
        assert shop.run(f"--dp-shard={shard}", "--dp-claims=check").ret == 0


@pytest.mark.slow
def test_under_xdist(shop):
    result = shop.run("--dp-shard=2/2", "-n", "2")
    assert result.ret == 0
    result.assert_outcomes(passed=2)


@pytest.mark.parametrize("given", ["0/2", "3/2", "2", "a/b", ""])
def test_what_is_no_share_is_refused(shop, given):
    result = shop.run(f"--dp-shard={given}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --dp-shard={given}: allowed is the number of *"])
