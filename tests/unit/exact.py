"""Calls of mechanisms, and what is known of their losses."""

from __future__ import annotations

import inspect

from pytest_dp.oracles.enumerated import eps_at, pair_probabilities
from pytest_dp.oracles.enumerating import enumerate_outputs
from pytest_dp.running.calling import Call
from pytest_dp.running.copies import Pristine
from pytest_dp.running.deadline import Deadline


def call_of(mechanism, **params):
    try:
        takes_rng = "rng" in inspect.signature(mechanism).parameters
    except ValueError:
        takes_rng = False
    rng = "rng" if takes_rng else None
    return Call(mechanism, params, rng, pristine=Pristine((mechanism, params)))


def distribution(mechanism, data=0, **params):
    return enumerate_outputs(call_of(mechanism, **params), data, Deadline(20.0))


def probabilities(mechanism, data=0, **params):
    known = distribution(mechanism, data, **params)
    return dict(zip(known.outcomes, known.weights, strict=True))


def loss(mechanism, data, data2, delta=0.0, **params):
    pair = pair_probabilities(
        distribution(mechanism, data, **params), distribution(mechanism, data2, **params)
    )
    return max(
        (eps_at(delta, pair), eps_at(delta, pair.other_direction)), key=lambda loss: loss.lower
    )
