"""What there is to draw of an audit is what was counted."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from results import BROKEN

from pytest_dp import audit
from pytest_dp.auditors.held_out import error_rates_of
from pytest_dp.privacy import ApproximateDP, GaussianDP
from pytest_dp.report.drawings import complete_pictures
from pytest_dp.results.outcome import Pictures, from_json_value

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("sign", [1, -1])
def test_attack_is_the_error_rates_of_all_thresholds(sign):
    joint = np.array([[4.0, 0, 1], [2, 2, 0], [5, 1, 5]])
    on_d, on_d2 = joint.sum(1), joint.sum(0)
    expected = set()
    for k in range(4):
        if sign > 0:
            expected.add((on_d2[k:].sum() / 20, 1 - on_d[k:].sum() / 20))
        else:
            expected.add((on_d[:k].sum() / 20, 1 - on_d2[:k].sum() / 20))
    assert {(round(a, 6), round(b, 6)) for a, b in error_rates_of(joint, sign)} == {
        (round(a, 6), round(b, 6)) for a, b in expected
    }


@pytest.mark.parametrize("guarantee", [ApproximateDP(0.3, 0.01), GaussianDP(1.5)])
def test_what_a_claim_allows_is_its_trade_off_function(guarantee):
    claim = replace(BROKEN.claim, promise=replace(BROKEN.claim.promise, guarantee=guarantee))
    event = ((0.1, 0.12, 0.15), (0.3, 0.33, 0.36))
    allowed = complete_pictures(
        replace(BROKEN, claim=claim, pictures=Pictures(event=event))
    ).allowed
    assert allowed[0][0] == 0.0
    assert allowed[-1] == (1.0, 0.0)
    for x, y in allowed:
        assert y == pytest.approx(1 - guarantee.largest_probability(x), abs=1e-5) or (x, y) == (
            0,
            1,
        )
    at = np.linspace(0, 1, 501)
    between = np.interp(at, *zip(*allowed, strict=True))
    assert between[1:] == pytest.approx(1 - guarantee.largest_probability(at)[1:], abs=2e-3)


@pytest.mark.parametrize(
    ("method", "pair"), [("sequential", ([0], [])), ("statdp", ([], [0])), ("dpsniper", ([0], []))]
)
def test_a_violation_has_all_pictures(method, pair):
    scale = 1.1 if method == "sequential" else 0.5  # bets on more outputs give a sharper curve
    result = audit(
        lambda records, rng, scale: len(records) + rng.laplace(scale=scale),
        eps=0.7,
        pairs=[pair],
        params={"scale": scale},
        method=method,
        max_samples=20_000,
        seed=3,
    )
    assert result.verdict == "violated"
    pictures = complete_pictures(result)
    drawn = pictures.outputs
    (c1, c2), (n1, n2) = result.counterexample.counts, result.counterexample.runs
    assert drawn.runs == (n1, n2)
    assert [sum(bar.inside[side] for bar in drawn.bars) for side in (0, 1)] == [c1, c2]
    positives, negatives = pictures.event
    assert positives[1] == pytest.approx(c2 / n2, rel=1e-5)
    at, least = zip(*pictures.allowed, strict=True)
    assert negatives[2] < np.interp(positives[0], at, least)
    assert from_json_value(Pictures, json.loads(json.dumps(asdict(pictures)))) == pictures
    assert len(json.dumps(asdict(pictures))) < 8_000
    if method == "sequential":
        curve = zip(*sorted(pictures.attack), strict=True)  # of cuts of a score
        assert np.interp(positives[1], *curve) == pytest.approx(negatives[1], abs=0.1)
