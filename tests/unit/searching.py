"""The search for events that tell two inputs apart, and types of outputs that it meets."""

from __future__ import annotations

import pickle

import numpy as np

from pytest_dp.basics.arrays import join_outputs
from pytest_dp.counterexample import simplest_event
from pytest_dp.outputs.event_search import search
from pytest_dp.outputs.features import features
from pytest_dp.outputs.table import ABSENT, NUMBER, tabulate
from pytest_dp.privacy import ApproximateDP
from pytest_dp.statistics.event_bets import rank_for


def best_events(outputs, about=features, eps=1.0, **more):
    """The most promising events for outputs of which the first half is on D."""
    table, first = tabulate(outputs), np.arange(len(outputs)) < len(outputs) // 2
    rank = rank_for(ApproximateDP(eps), 0.0)(len(outputs) // 2)
    chosen = about(table, first)
    return search(table, first, rank, chosen, **{"limit": 1} | more)


def look(one, two, eps=0.5, most=8):
    """What the search finds for equally many outputs on D and on D'."""
    table = tabulate(join_outputs([one, two]))
    first = np.arange(len(table)) < len(one)
    rank, about = rank_for(ApproximateDP(eps))(len(one)), features(table, first)
    return search(table, first, rank, about, limit=most), table, first


def planted(one, two, **keywords):
    """The best event for outputs that leak, checked and made simple, as text."""
    found, table, first = look(one, two, **keywords)
    check(found, table, first, [*one, *two])
    best = simplest_event(
        found[0], table, first, rank_for(ApproximateDP(keywords.get("eps", 0.5)))(len(one))
    )
    assert best.rank > 20, f"{best.event}: {best.c1} against {best.c2}"
    return str(best.event)


def check(found, table, first, outputs, sample=25):
    """Counts are sums of masks, masks are what single outputs give, events can be sent about."""
    at = np.unique(np.linspace(0, len(outputs) - 1, min(sample, len(outputs))).astype(int))
    for one in found:
        mask = one.event.mask(table)
        assert mask.dtype == bool
        assert mask.shape == (len(table),)
        assert one.c1 == int(np.sum(mask & first))
        assert one.c2 == int(np.sum(mask & ~first))
        assert str(one.event)
        again = pickle.loads(pickle.dumps(one.event))
        assert repr(again) == repr(one.event)
        for i in at:
            assert again(outputs[i]) == mask[i], (str(one.event), outputs[i])


def values(feature, outputs):
    """Its value for each output; None where it has none."""
    numbers, codes = feature.columns(tabulate(outputs))
    assert numbers.dtype == np.float64
    assert codes.dtype == np.int64
    assert set(codes.tolist()) <= {NUMBER, ABSENT}
    return [x if code == NUMBER else None for x, code in zip(numbers, codes.tolist(), strict=True)]
