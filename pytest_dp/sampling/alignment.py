"""Vectorised calls on one stream: row i of the outputs depends on row i of the noise, or else.

Two inputs can share their random numbers in a vectorised mechanism if both ask for the same noise
and each draw uses only its own row. What is asked is logged; rows of noise are replaced by others
to see whether any other row of the outputs moves.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_dp.sampling.calling import Call, Outputs, same
from pytest_dp.sampling.deadline import Deadline, OutOfTime
from pytest_dp.sampling.hidden import Hidden, state_of
from pytest_dp.sampling.restarting import CHECKS, NOTHING, CannotCouple, Runs
from pytest_dp.sampling.streams import child, stream

FREE = frozenset(
    (
        *("laplace", "normal", "gumbel", "logistic", "exponential", "uniform", "lognormal"),
        *("rayleigh", "multivariate_normal"),
    )
)
"""Methods that take the same numbers from the stream whatever location and scale they are given.

Each transforms uniform, standard normal or standard exponential variates (numpy's distributions.c).
"""
BOUND = frozenset(
    (
        *("random", "standard_normal", "standard_exponential", "standard_cauchy", "standard_t"),
        *("standard_gamma", "gamma", "chisquare", "beta", "weibull", "dirichlet", "multinomial"),
        *("integers", "choice", "geometric", "binomial", "negative_binomial", "poisson"),
    )
)
"""Methods whose rows are independent, but whose arguments have to agree."""

AGAIN = 0.05
"""Share of the pieces that are run again, on a copy, with other noise in some rows."""
FIRST = 4
"""Draws in each call of a first trial: one may take a second."""
LARGER = 16
"""Calls that are so many times larger than any that was tried are tried first."""

UNLIKE = "the two inputs ask for different noise"


class Log:
    """What a mechanism asks of its generator in one call.

    Parameters
    ----------
    source : Generator
        Where the noise comes from.
    rows : int
        Number of draws.
    replaced : array of bool, optional
        Rows whose noise comes from `other` instead.
    other : Generator, optional
    """

    def __init__(
        self,
        source: np.random.Generator,
        rows: int,
        replaced: npt.NDArray[np.bool_] | None = None,
        other: np.random.Generator | None = None,
    ) -> None:
        self._source, self._rows, self._replaced, self._other = source, rows, replaced, other
        self._calls = hashlib.sha256()
        self._asked = False
        self._refused = ""
        self._unused = _UNUSED.state
        self.recorder = _Recorder(self)

    def attribute(self, name: str) -> Any:
        """What the mechanism gets for an attribute of its generator."""
        if name in FREE or name in BOUND:
            return lambda *args, **keywords: self._noise(name, args, keywords)
        self._refuse(f"it uses rng.{name}")
        return getattr(self._source, name)

    def _noise(self, name: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        values = getattr(self._source, name)(*args, **keywords)
        if not isinstance(values, np.ndarray) or values.shape[:1] != (self._rows,):
            self._refuse("it draws noise whose first axis is not the number of draws")
            return values
        if name == "choice" and not keywords.get("replace", args[2] if args[2:] else True):
            self._refuse("it calls rng.choice with replace=False")
        if "out" in keywords:
            self._refuse(f"it calls rng.{name} with out=")
        self._asked = True
        self._calls.update(f"{name} {values.shape} {values.dtype}".encode())
        if name in BOUND:
            self._calls.update(pickle.dumps((args, keywords)))
        if self._replaced is not None:
            values[self._replaced] = getattr(self._other, name)(*args, **keywords)[self._replaced]
        return values

    def _refuse(self, reason: str) -> None:
        self._refused = self._refused or reason

    def digest(self) -> bytes:
        """What identifies the noise that was asked for.

        Raises
        ------
        CannotCouple
            If it cannot be told which draw used which noise.
        """
        if self._refused:
            raise CannotCouple(self._refused)
        if _UNUSED.state != self._unused:
            raise CannotCouple("it takes numbers past the methods of rng")
        if not self._asked:
            raise CannotCouple(NOTHING)
        self._calls.update(pickle.dumps(state_of(self._source)))
        return self._calls.digest()


_UNUSED = np.random.PCG64(0)
"""Of all recorders: what they give comes from elsewhere."""


class _Recorder(np.random.Generator):
    """A generator that logs what is asked of it."""

    def __init__(self, log: Log) -> None:
        super().__init__(_UNUSED)
        self.log = log

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return super().__getattribute__(name)
        return super().__getattribute__("log").attribute(name)


def draw_aligned(
    call: Call, data: Any, count: int, sequence: np.random.SeedSequence, hidden: Hidden
) -> tuple[Outputs, bytes]:
    """The outputs of a piece, and a digest of the noise in it: to be the same on every input.

    Raises
    ------
    CannotCouple
        If a draw uses more than its row of the noise, or if that cannot be told.
    """
    choose = np.random.default_rng(child(sequence, CHECKS))
    with _on_rng_alone(sequence, hidden) as runs:
        outputs, digest = _drawn(call, data, count, runs)
    if choose.random() < AGAIN:
        copied, data, hidden = call.spare(data)
        with _on_rng_alone(sequence, hidden) as runs:
            _check_rows(copied, data, outputs, runs, choose)
    return outputs, digest


def tried_aligned(
    calls: Sequence[tuple[Call, Any]],
    seed: int,
    key: tuple[int, ...],
    hidden: Hidden,
    deadline: Deadline,
    count: int = FIRST,
) -> None:
    """Try whether two inputs ask for the same noise, and draws use only their rows of it.

    Parameters
    ----------
    calls : sequence of (Call, data)
        For each of two inputs; of a copy that is used for nothing else.
    seed : int
    key : tuple of int
    hidden : Hidden
        The generators of the copy.
    deadline : Deadline
    count : int
        Draws in each call.

    Raises
    ------
    CannotCouple
        If not.
    OutOfTime
        If the deadline passes first.
    """
    sequence = stream(seed, *key, count)
    choose = np.random.default_rng(child(sequence, CHECKS))
    with _on_rng_alone(sequence, hidden) as runs:
        drawn = [_drawn(call, data, count, runs) for call, data in calls]
        if drawn[0][1] != drawn[1][1]:
            raise CannotCouple(UNLIKE)
        for (call, data), (outputs, _) in zip(calls, drawn, strict=True):
            if deadline.remaining() <= 0:
                raise OutOfTime
            every_other = np.arange(count) % 2 == 0
            _check_rows(call, data, outputs, runs, choose, every_other if count == FIRST else None)


def _on_rng_alone(sequence: np.random.SeedSequence, hidden: Hidden) -> Runs:
    return Runs(sequence, 1, hidden, frozenset(range(1, 3 + len(hidden.generators))))


def _drawn(call: Call, data: Any, count: int, runs: Runs, *noise: Any) -> tuple[Outputs, bytes]:
    log = Log(runs.rng, count, *noise)
    runs.restart(0)
    outputs = call.rows(data, count, log.recorder)
    if not runs.are_idle():
        raise CannotCouple("its vectorised calls draw on more than rng")
    return outputs, log.digest()


def _check_rows(
    call: Call,
    data: Any,
    outputs: Outputs,
    runs: Runs,
    choose: np.random.Generator,
    replaced: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Draw again with other noise in some rows, half of them by default: others have to stay."""
    if replaced is None:
        replaced = choose.permutation(len(outputs)) < (len(outputs) + 1) // 2
    again, _ = _drawn(call, data, len(outputs), runs, replaced, choose)
    if not _agree(outputs, again, ~replaced):
        raise CannotCouple("a draw depends on the noise of others, or on earlier calls")


def _agree(one: Outputs, other: Outputs, rows: npt.NDArray[np.bool_]) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return same(one[rows], other[rows])
    return all(same(one[row], other[row]) for row in np.flatnonzero(rows).tolist())
