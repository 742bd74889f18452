"""What a run says of mechanisms that were enumerated."""

from __future__ import annotations

import re

import pytest

RESPONSE = """
@dp_claim(eps=1.0, params={"keep": 0.731}, pairs=[(0, 1)], max_samples=20_000)
def response(bit, keep, rng):
    return bit if rng.random() < keep else 1 - bit
"""


@pytest.mark.slow
def test_an_exact_loss_is_a_line_below_its_claim(project):
    project.write("shop/stats.py", RESPONSE)
    project.ini("dp_modules = true")
    result = project.run()
    result.assert_outcomes(passed=1)
    lines = [line.strip() for line in result.outlines]
    (at,) = [k for k, line in enumerate(lines) if line.startswith("exact on these pairs")]
    known = r"exact on these pairs: eps = 0\.999702 \(2 outcomes\), as [\d,]+ runs bear out.*"
    assert re.fullmatch(known, lines[at])
    assert re.match(r"response\[.*no violation \(exact\)", lines[at - 1])
