"""What attacks learn from samples of a mechanism, beside exact log odds."""

from __future__ import annotations

import math

import numpy as np

from pytest_dp import Sequential
from pytest_dp.betting.binning import joint_counts
from pytest_dp.betting.models import fit, quantities
from pytest_dp.claiming.settings import Settings
from pytest_dp.outputs.table import tabulate


def learned(outputs, first, classifier=None, features=None, seed=0):
    """A model of these outputs, from the quantities that an audit would show it."""
    settings = Settings(method=Sequential(classifier=classifier), features=features)
    table = tabulate(outputs)
    return fit(classifier, table, first, quantities(settings, table, first), seed)


def both(draw, runs, seed):
    """Outputs on D (0) and on D' (1), and which are on D."""
    rng = np.random.default_rng(seed)
    sides = [draw(d, rng, runs) for d in (0, 1)]
    joined = [*sides[0], *sides[1]] if isinstance(sides[0], list) else np.concatenate(sides)
    return joined, np.arange(2 * runs) < runs


def gain(odds, first):
    """Nats per output by which log odds predict the input better than a coin."""
    return math.log(2) - float(np.logaddexp(0, np.where(first, -odds, odds)).mean())


def compared(draw, exact, runs, seed, classifier=None):
    """Log odds on fresh outputs: as learned, exact; and which outputs are on D."""
    model = learned(*both(draw, runs, seed), classifier)
    fresh, first = both(draw, 10_000, 1_000 + seed)
    return model.log_odds(tabulate(fresh)), exact(fresh), first


def count_batch(binnings, on_d, on_d2):
    """Counts of a batch, one table for each binning, from its bins on both inputs."""
    return [
        joint_counts(first, second, binning.width)
        for binning, first, second in zip(binnings, on_d, on_d2, strict=True)
    ]
