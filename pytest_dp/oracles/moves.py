"""How far the draws of each line of code have to move on a pair, and what this loses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.oracles.checking import Pairing
from pytest_dp.oracles.handing_out import Run, Shift
from pytest_dp.oracles.numbers import Numbers
from pytest_dp.oracles.shift_loss import LossBound, loss_of_shift
from pytest_dp.running.requests import Request, Site


@dataclass(frozen=True, slots=True)
class Move:
    """How far the draws of one request have to move for the output on D' to be that on D."""

    stack: tuple[Site, ...]
    """The lines that lead to the request, innermost first."""
    request: Request
    distances: Floats
    """Of each draw."""
    scales: Floats
    """Of each draw."""
    loss: LossBound


def loss_in_replay(pairing: Pairing, numbers: Numbers, ours: Run, shift: Shift) -> LossBound:
    """Return the loss of a shift of the draws of a run, with what tells the replay again."""
    found = loss_of_shift(ours.drawn, shift, pairing.gaps)
    return replace(found, replay=(pairing, numbers, shift))


def moves_of(replay: Any) -> tuple[Move, ...]:
    """Return how far the draws of a replay move: its pairing, numbers and shift are given.

    Empty where no replay is known.
    """
    if replay is None:
        return ()
    pairing, numbers, shift = replay
    ours = pairing.on_source(numbers, tracked=True)
    return tuple(
        Move(
            each.stack,
            each.request,
            shift[each.number],
            each.scale,
            loss_of_shift([each], shift, pairing.gaps),
        )
        for each in ours.drawn
        if each.law is not None and np.any(shift.get(each.number, 0.0))
    )
