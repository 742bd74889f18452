"""Claims that have no decorator to stand on: a composed report, and a vendor's function."""

import numpy as np
import pytest
from diffprivlib import tools

from clinic_stats.billing import total_cost
from clinic_stats.counts import seniors
from clinic_stats.report import EPS_REPORT, monthly_report


@pytest.mark.dp_claim(
    eps=EPS_REPORT,
    composes=[seniors, total_cost],
    neighbors="add_remove_one",
    inputs="tests.dp_inputs:ages_and_costs",
)
def test_monthly_report(dp_check):
    dp_check(monthly_report)


@pytest.mark.dp_claim(eps=1.0, neighbors="replace_one", inputs=[[1, 0], [1, 1]], max_samples=15_000)
def test_vendor_count(dp_check):
    """Private if the number of flags is public: with "add_remove_one" the audit fails.

    diffprivlib truncates the noisy count at the number of flags, which shows it.
    """
    result = dp_check(lambda flags: tools.count_nonzero(np.array(flags), epsilon=1.0))
    assert result.resolution < 1.5
