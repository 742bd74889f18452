"""A program and a service under audit."""

from __future__ import annotations

import pytest

PROGRAM = """
    import json, os, random, sys
    records = json.load(sys.stdin)
    for _ in range(int(sys.argv[1])):
        noise = random.choice([-1, 1]) * random.expovariate(1 / float(os.environ["SCALE"]))
        print(json.dumps({"count": len(records) + noise}))
"""
TESTS = """
    import sys
    from pytest_dp import dp_command, dp_url

    def count(scale):
        return dp_command([sys.executable, "count.py", "{size}"], env={"SCALE": scale})

    CLAIM = dict(eps=1.0, pairs=[([1], [])], vectorized="size")

    @pytest.mark.dp_claim(**CLAIM, max_samples=1000)
    def test_right(dp_check):
        assert not dp_check(count("1")).replayable

    broken = dp_claim(**CLAIM)(count("0.25"))

    @pytest.mark.dp_claim(eps=1.0, pairs=[([1], [])])
    def test_nobody_there(dp_check):
        dp_check(dp_url("http://127.0.0.1:1/count", seconds=0.1))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_programs_and_services_are_mechanisms(project):
    project.write("count.py", PROGRAM, imports="")
    project.write("test_box.py", TESTS)
    result = project.run("test_box.py")
    assert result.parseoutcomes() == {"passed": 1, "failed": 2}
    result.stdout.fnmatch_lines_random(
        ["*claimed eps = 1.0, but eps >*", "*no connection to 127.0.0.1:1 in 0.1 s*"]
    )
    [row] = project.rows(result)["test_box.py::broken[eps=1.0]"]
    assert row["status"] == "violated"
    assert "output['count']" in row["details"]
