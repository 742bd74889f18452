"""A table of claims gives a test for each of its entries."""

from __future__ import annotations

import pytest

from pytest_dp import audit
from pytest_dp.basics.errors import ClaimError

TABLE = """
import functools
import pytest
from pytest_dp import Claimed, claims

class Measurement:
    def __init__(self, scale):
        self.scale = scale
    def __call__(self, x, rng):
        return x + rng.laplace(scale=self.scale)

def noise(x, scale, rng):
    return x + rng.laplace(scale=scale)

vendor = claims({
    "laplace": Claimed(Measurement(1.0), eps=1.0, pairs=[(0, 1)]),
    "half the noise": Claimed(Measurement(0.5), eps=1.0, pairs=[(0, 1)]),
    "scales": Claimed(noise, params={"scale": [1.0, 2.0]}, eps=1.0, pairs=[(0, 1)]),
    "later": Claimed(noise, eps=1.0, pairs=[(0, 1)], marks=pytest.mark.skip),
})
"""


def test_each_entry_is_a_test_with_its_name(pytester):
    pytester.makepyfile(TABLE)
    result = pytester.runpytest("-q", "--co")
    names = [line.partition("::")[2] for line in result.outlines if "::" in line]
    assert names == [
        "vendor[laplace]",
        "vendor[half the noise]",
        "vendor[scales-eps=1.0-scale=1.0]",
        "vendor[scales-eps=1.0-scale=2.0]",
        "vendor[later]",
    ]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("{}", "*Invalid vendor={}. Allowed: claims({'a name': Claimed(*"),
        ("[1]", "*Invalid vendor=[[]1]. Allowed: claims(*"),
        ("{'a': 1}", "*Invalid vendor[[]'a']=1. Allowed: claims(*"),
        ("{'a': Claimed(print, pairs=[(0, 1)])}", "*A claim needs one of eps=*"),
    ],
)
def test_what_is_no_table_fails_where_it_stands(pytester, table, said):
    pytester.makepyfile(f"from pytest_dp import Claimed, claims\nvendor = claims({table})\n")
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])


KNOWN = """
import pytest
from pytest_dp import Claimed, claims

known = pytest.mark.xfail(strict=True, reason="theirs #12")
vendor = claims({
    "broken": Claimed(lambda x, rng: x + rng.laplace(0, 0.5), eps=1, pairs=[(0, 1)], marks=known),
    "mended": Claimed(lambda x, rng: x + rng.laplace(0, 1), eps=1, pairs=[(0, 1)], marks=known),
})
"""


@pytest.mark.slow
@pytest.mark.usefixtures("_without_blame")
def test_a_known_violation_is_not_red_until_it_is_mended(pytester):
    pytester.makepyfile(KNOWN)
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(xfailed=1, failed=1)
    result.stdout.fnmatch_lines(["*XPASS(strict)*theirs #12*"])
    result.stdout.fnmatch_lines(["broken, as the test expects: vendor[[]broken]"])
    assert "ERROR" not in result.stdout.str()


@pytest.mark.slow
def test_seeds_are_taken_as_reports_print_them():
    def noisy(x, rng):
        return x + rng.standard_t(3)

    claim = {"eps": 1.0, "pairs": [(0, 1)], "max_samples": 500, "n_jobs": 1}
    one, other = (audit(noisy, **claim, seed=seed) for seed in ("6cb99a16", 0x6CB99A16))
    assert (one.seed, one.e_value) == (other.seed, other.e_value)
    with pytest.raises(ClaimError, match="hexadecimal one, such as '6cb99a16'"):
        audit(noisy, **claim, seed="six")
