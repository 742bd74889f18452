"""Results of audits for reports, and one report of a violation, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pytest_dp.auditors.session import AuditResult
from pytest_dp.claiming.claim import Claim, Promise
from pytest_dp.privacy import ApproximateDP
from pytest_dp.report.record import Record, claim_fields
from pytest_dp.results.outcome import Bar, Histogram, Pictures
from pytest_dp.results.result import Counterexample


@dataclass(frozen=True)
class Event:
    source: str

    def __str__(self):
        return self.source

    def __call__(self, output):
        raise NotImplementedError


COUNT = "shop/stats.py::noisy_count[eps=1.0]"

FOUND = Counterexample(
    d1=[0],
    d2=[],
    event=Event("output >= 1.0"),
    counts=(10_012, 1_351),
    runs=(20_000, 20_000),
    intervals=((0.48905, 0.51215), (0.0614, 0.0738)),
    p_value=2.7e-212,
    lower=1.8909,
    eps_clopper_pearson=1.8909,
    difference="one record removed",
    diagnosis=(
        "The observed loss is about 2 times the claim. That fits noise of half the size that is "
        "needed, or less.",
    ),
)

BROKEN = AuditResult(
    verdict="violated",
    claim=Claim(Promise(ApproximateDP(1.0)), label="eps=1.0"),
    name=COUNT,
    method="sequential",
    alpha=1e-6,
    lower=1.8909,
    p_value=2.4e-10,
    e_value=4.29e9,
    bet_samples=1_840,
    samples=184_000,
    seconds=0.83,
    resolution=1.31,
    seed=0x8F2C,
    counterexample=FOUND,
    strongest="output >= 1.0",
    pairs=(12, 40),
)

PASSED = replace(
    BROKEN, verdict="no violation", counterexample=None, lower=0.71, p_value=0.31, e_value=0.654
)

VIOLATION = """\
claimed eps = 1.0, but eps >= 1.89 (99.9999 % confidence)

  D  = [0]
  D' = []                     (one record removed)
  S  = {output >= 1.0}

  Outputs in S come 7.41 times as often on D as on D'; 2.72 is allowed.
  In fresh runs of the mechanism M:
  Pr[M(D)  in S]  10,012/20,000 = 0.501   at least 0.489
  Pr[M(D') in S]   1,351/20,000 = 0.068   at most  0.074

The observed loss is about 2 times the claim. That fits noise of half the
  size that is needed, or less.
Reproduce:  pytest "shop/stats.py::noisy_count[eps=1.0]" --dp-seed=8f2c
As a test:  pairs=[([0], [])]
Evidence: e-value 4e9 (1,840 samples), p-value 3e-212, DP-Sniper bound 1.89"""


# What there is to draw

COUNTS = [(90, 10), (300, 40), (500, 250), (90, 500), (20, 200)]
RANGES = tuple(
    Bar("", 10.0 * k if k else None, 10.0 * k + 10, counts, counts if k < 3 else (0, 0))
    for k, counts in enumerate([*COUNTS, (0, 0), (0, 0)])
)
BY_RANGE = Histogram("output", (1_000, 1_000), RANGES)
ALLOWED = ((0.0, 1.0), (0.25, 0.25), (1.0, 0.0))
PICTURES = Pictures(
    outputs=BY_RANGE,
    attack=((0.0, 1.0), (0.1, 0.2), (1.0, 0.0)),
    event=((0.08, 0.1, 0.12), (0.18, 0.2, 0.23)),
    allowed=ALLOWED,
)


def rows():
    half = replace(PASSED, claim=Claim(Promise(ApproximateDP(0.5))), lower=0.0)
    name = "shop/stats.py::sparse_vector_with_gap[eps=0.5-threshold=12]"
    unknown = replace(half, verdict="inconclusive", resolution=math.inf, samples=912, seconds=60.3)
    unknown = replace(unknown, max_samples=400_000, max_seconds=60.0)
    high = replace(half, resolution=0.6231, rarest=1.0, samples=2_400_000, seconds=125.3)
    one = replace(PASSED, resolution=1.3101, rarest=2.43e-4)
    return [
        Record.of(BROKEN, COUNT, "shop/stats.py", 8),
        Record.of(one, "shop/stats.py::noisy_max[eps=1.0]", "shop/stats.py", 20),
        Record.of(high, "shop/stats.py::noisy_max[eps=0.5]", "shop/stats.py", 20),
        Record.of(
            replace(unknown, notes=("stopped by max_seconds=60",)), name, "shop/stats.py", 30
        ),
        replace(
            Record.of_error(
                "shop/stats.py::mean[eps=1.0]",
                "shop/stats.py",
                41,
                "The mechanism raised on all 50 runs.\n\nValueError: a | b",
            ),
            **claim_fields(BROKEN.claim),
        ),
    ]
