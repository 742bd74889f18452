"""One piece of work: some runs of the mechanism on one input, with randomness of its own.

Pieces are the unit that is shared out between processes. How a draw is cut into pieces, and which
stream each one uses, depends on nothing but the draw itself, so the outputs are the same whichever
process runs them.
"""

from __future__ import annotations

import copy
import pickle
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pytest_dp.sampling.calling import Call, Outputs
from pytest_dp.sampling.hidden import Hidden
from pytest_dp.sampling.pickling import cloudpickle
from pytest_dp.sampling.streams import seeded, stream

MOST_A_PIECE = 512
MOST_A_VECTORIZED_PIECE = 32_768


@dataclass(frozen=True, slots=True)
class Piece:
    """So many runs, with the stream of this key."""

    count: int
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The outputs of a piece, the time it took, and whether the mechanism changed its input."""

    outputs: Outputs
    seconds: float
    changed_input: bool = False


def cut(count: int, key: tuple[int, ...], vectorized: bool) -> list[Piece]:
    """Cut a draw into pieces: several even for small draws, so that slow mechanisms share them."""
    most = MOST_A_VECTORIZED_PIECE if vectorized else MOST_A_PIECE
    size = min(most, max(1, -(-count // (4 if vectorized else 16))))
    size = max(size, min(count, 64)) if vectorized else size
    starts = range(0, count, size)
    return [Piece(min(size, count - start), (*key, i)) for i, start in enumerate(starts)]


class Input:
    """An input of the mechanism, kept safe from a mechanism that changes what it is given."""

    def __init__(self, data: Any) -> None:
        try:
            self.frozen: bytes | None = cloudpickle.dumps(data)
            self.live = pickle.loads(self.frozen)  # what was pickled a line above
            # Pickles of one value can differ (shared references); those of one object agree.
            self.frozen = cloudpickle.dumps(self.live)
        except Exception:  # an input that cannot be pickled is used as it is
            self.frozen, self.live = None, copy.deepcopy(data)

    def fresh(self) -> Any:
        """A copy that may be changed."""
        return copy.deepcopy(self.live) if self.frozen is None else pickle.loads(self.frozen)

    def unchanged(self) -> bool:
        """Whether the mechanism left the input alone; mends it if not."""
        if self.frozen is None or cloudpickle.dumps(self.live) == self.frozen:
            return True
        self.live = self.fresh()
        return False


def run(call: Call, given: Input, piece: Piece, seed: int, hidden: Hidden, copies: bool) -> Done:
    """Run one piece in this process."""
    if not copies:
        done = _timed(call, given.live, piece, seed, hidden)
        if given.unchanged():
            return done
    alone = Call(_OnCopies(call.mechanism, given), call.params, call.rng, call.size)
    return replace(_timed(alone, None, piece, seed, hidden), changed_input=True)


def _timed(call: Call, data: Any, piece: Piece, seed: int, hidden: Hidden) -> Done:
    with seeded(stream(seed, *piece.key), hidden) as generator:
        started = time.perf_counter()
        outputs = call.draw(data, piece.count, generator)
        return Done(outputs, time.perf_counter() - started)


class _OnCopies:
    """The mechanism, given a fresh copy of its input every time."""

    def __init__(self, mechanism: Any, given: Input) -> None:
        self.mechanism, self.given = mechanism, given

    def __call__(self, _: Any, **keywords: Any) -> Any:
        return self.mechanism(self.given.fresh(), **keywords)


def joined(parts: list[Outputs]) -> Outputs:
    """The outputs of several pieces in one sequence: an array where all of them are arrays."""
    if len(parts) == 1:
        return parts[0]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    shapes = {(array.shape[1:], array.dtype.kind) for array in arrays}
    if len(arrays) == len(parts) and len(shapes) == 1:
        return np.concatenate(arrays)
    return [output for part in parts for output in part]
