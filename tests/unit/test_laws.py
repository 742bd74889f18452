"""Laws of draws, held against those of scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from pytest_dp.running import laws
from pytest_dp.running.laws import Law


@pytest.mark.parametrize(
    ("law", "same"),
    [
        (Law(laws.LAPLACE), lambda: scipy.stats.laplace()),
        (Law(laws.NORMAL), lambda: scipy.stats.norm()),
        (Law(laws.LOGISTIC), lambda: scipy.stats.logistic()),
        (Law(laws.GUMBEL), lambda: scipy.stats.gumbel_r()),
        (Law(laws.EXPONENTIAL), lambda: scipy.stats.expon()),
        (Law(laws.UNIFORM), lambda: scipy.stats.uniform()),
        (Law(laws.GEOMETRIC, 0.7), lambda: scipy.stats.geom(0.3, loc=-1)),
        (Law(laws.INTEGERS, 4), lambda: scipy.stats.randint(0, 4)),
    ],
    ids=lambda law: getattr(law, "family", ""),
)
def test_laws_are_those_of_scipy(law, same):
    same = same()
    x = np.array([-9.0, -2.0, -0.75, 0.0, 0.25, 1.0, 2.5, 6.0, 30.0])
    below, between = np.exp(law.log_below(x)), np.exp(law.log_between(x[:-1], x[1:]))
    assert below == pytest.approx(same.cdf(x), rel=1e-9, abs=1e-300)
    assert np.exp(law.log_above(x)) == pytest.approx(same.sf(x), rel=1e-9, abs=1e-15)
    assert between == pytest.approx(np.diff(same.cdf(x)), rel=1e-9, abs=1e-15)
    if not law.lattice:
        assert law.log_density(x) == pytest.approx(same.logpdf(x), rel=1e-12)
