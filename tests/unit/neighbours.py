"""Neighbouring pairs of a claim, and what it is refused with."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from pytest_dp import ClaimError
from pytest_dp.claiming.claim import expand
from pytest_dp.data.neighbours import MAX_PAIRS
from pytest_dp.data.relations import RELATIONS
from pytest_dp.pairs import make_pair_source, resolve_promise

ADD_REMOVE, REPLACE = "add_remove_one", "replace_one"


def pairs(root=None, **keywords):
    """All pairs that a claim gives, and what follows from its inputs."""
    of = source(root, **keywords)
    return [*of.given, *islice(of.following, MAX_PAIRS - len(of.given))]


def source(root=None, *, notes=None, beyond=True, **keywords):
    """Where the pairs of a claim come from."""
    claim = expand({"eps": 1.0, **keywords})[0]
    claim = replace(claim, promise=resolve_promise(claim.promise, root))
    return make_pair_source(claim, 1, "inputs=...", notes=notes, beyond=beyond)


def fault(d1, d2, relation):
    """What keeps two inputs from being neighbours under the relation of this name."""
    return RELATIONS[relation]().fault(d1, d2)


def plain(found):
    return [(pair.d1, pair.d2) for pair in found]


def refusal(root=None, **keywords):
    with pytest.raises(ClaimError) as caught:
        pairs(root, **keywords)
    return str(caught.value)
