"""Calls of a mechanism: which argument takes the data, the generator and the number of draws.

Each output is copied as it comes, as the mechanism may reuse the object. Rows of a vectorised call
that share their noise are one run, not two: ``np.repeat(noise, 2)`` and antithetic noise (z and -z)
look right row by row. Rows that agree by chance agree in other calls as well.
"""

from __future__ import annotations

import inspect
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from pytest_dp.basics import clocks
from pytest_dp.basics.arrays import Floats, Outputs, copy_data
from pytest_dp.basics.errors import CannotRun, ClaimError, MechanismError
from pytest_dp.claiming.claim import Arguments
from pytest_dp.data.relations import WithParams
from pytest_dp.outputs.raised import Raised, read_out
from pytest_dp.running.copies import CannotCopy, Pristine
from pytest_dp.running.generators import NO_GENERATORS, Captured, find_generators

MIN_ROWS = 16
"""Smallest call that is checked for shared noise. Fewer: chance looks like shared noise."""
CHECK_CALLS = 8
"""Further calls that decide whether noise is shared. More take longer; fewer: chance decides."""
CHECK_ROWS = 64
"""Draws of each of these calls. More take longer; fewer: chance decides."""
MAX_LOOKS = 2
"""Checks by further calls. More take longer; fewer miss noise shared on one input alone."""
MIN_EQUAL = 16
"""Equal outputs within calls that show shared noise. Fewer may be chance; more are seen later."""
MAX_LOOKED = 1_000
"""Draws after which large calls are not checked. Fewer miss noise that is shared late."""


@dataclass(slots=True)
class RunCounter:
    """Counts the runs of a mechanism and of its copies, for any purpose."""

    runs: int = 0
    looks: int = 0
    """How often further calls were made, as rows seemed to share their noise."""
    watch: clocks.Stopwatch = field(default_factory=clocks.Stopwatch, compare=False)
    """The effort since the last call of the mechanism began, by which an alarm sees what hangs."""


@dataclass(frozen=True, slots=True)
class Call:
    """A mechanism with everything but its data, its generator and the number of draws."""

    mechanism: Callable[..., Any]
    params: dict[str, Any]
    """Further keyword arguments."""
    rng: str | None = None
    """Parameter that takes a generator; None if the mechanism has none."""
    size: str | None = None
    """Parameter that takes the number of draws; None for one draw a call."""
    input: Callable[[], Any] | None = None
    """Returns a new copy of the input for each run; None if all runs share the input."""
    pristine: Pristine | None = None
    """The snapshot of the mechanism and its params; None if there are to be no copies."""
    captured: Captured = NO_GENERATORS
    """The generators in the mechanism and its params."""
    made: RunCounter = field(default_factory=RunCounter, compare=False)

    def with_mechanism(self, mechanism: Callable[..., Any], params: dict[str, Any]) -> Call:
        """Return the call of another mechanism, with the generators that it and `params` hold."""
        captured = find_generators(mechanism, params)
        return replace(self, mechanism=mechanism, params=params, captured=captured)

    def call_signature(self) -> tuple[str, dict[str, Any], str | None, str | None]:
        """Return the arguments that make this call by `with_signature`, to be sent to a process."""
        method = self.mechanism.__name__ if isinstance(self.mechanism, types.MethodType) else ""
        return method, self.params, self.rng, self.size

    def with_signature(
        self, method: str, params: dict[str, Any], rng: str | None, size: str | None
    ) -> Call:
        """Return the call of this mechanism, or of a `method` of its object, by these keywords."""
        mechanism: Any = self.mechanism
        mechanism = getattr(mechanism.__self__, method) if method else mechanism
        return replace(self, rng=rng, size=size).with_mechanism(mechanism, params)

    def copy(self, *inputs: Any) -> tuple[Call, list[Any]]:
        """Copy the mechanism as it was before its first run; return its call, and the inputs.

        Objects in the inputs become objects of the copied classes. The copy's generators are found,
        so that runs seed them. Raises CannotCopy if there can be no copy.
        """
        copied, data = self.copy_unseeded(*inputs)
        return self.with_mechanism(copied.mechanism, copied.params), data

    def copy_unseeded(self, *inputs: Any) -> tuple[Call, list[Any]]:
        """Copy as `copy` does, but do not find generators in the copy: they are not seeded."""
        if self.pristine is None:
            raise CannotCopy("is not to be copied")
        (mechanism, params), data = self.pristine.copy(*inputs)
        return replace(self, mechanism=mechanism, params=params), data

    def reusable_copy(self, data: Any) -> tuple[Call, Any]:
        """Return the call of the copy that all checks of this process share, and the input for it.

        Makes the copy at the first call. Raises CannotCopy if there can be no copy.
        """
        assert self.pristine is not None
        (mechanism, params), data = self.pristine.reusable_copy(data)
        if self.captured.generators:
            return self.with_mechanism(mechanism, params), data
        return replace(self, mechanism=mechanism, params=params), data

    def draw(
        self,
        data: Any,
        count: int,
        generator: np.random.Generator,
        before: Callable[[int], None] | None = None,
    ) -> Outputs:
        """Run the mechanism, and return `count` outputs: a list, or an array with runs first.

        A run that raises gives a `Raised`. Where there is one draw a call, `before` is called with
        the number of the run ahead of each. Raises CannotRun; and of a vectorised mechanism,
        MechanismError if it raises, and ClaimError if it returns another number of outputs, or rows
        that share their noise.
        """
        keywords = self._keywords(generator)
        if self.size is not None:
            outputs = self._draw_vectorized(data, count, keywords)
            self._refuse_shared_noise(data, outputs, keywords)
            return outputs
        run_once = self._call(data, keywords)
        if self.input is not None:
            fresh = self.input
            run_once = lambda: self._call(fresh(), keywords)()  # noqa: E731
        return self._collect(run_once, count, before)

    def draw_one(self, data: Any, generator: np.random.Generator) -> Any:
        """Run the mechanism once and return the output; errors are those of `draw`."""
        (output,) = (self.draw if self.size is None else self.draw_rows)(data, 1, generator)
        return output

    def draw_rows(self, data: Any, count: int, generator: np.random.Generator) -> Outputs:
        """Run one vectorised call as `draw` does, without a check for shared noise."""
        return self._draw_vectorized(data, count, self._keywords(generator))

    def _call(self, data: Any, keywords: dict[str, Any]) -> Callable[[], Any]:
        """Return a function without arguments that calls the mechanism.

        If the data are a `WithParams`, its parameters replace `keywords` of the same names.
        """
        if isinstance(data, WithParams):
            return partial(self.mechanism, data.data, **{**keywords, **data.params})
        return partial(self.mechanism, data, **keywords)

    def _fresh_input(self, data: Any) -> Any:
        return data if self.input is None else self.input()

    def _keywords(self, generator: np.random.Generator) -> dict[str, Any]:
        return {**self.params, self.rng: generator} if self.rng else dict(self.params)

    def _collect(
        self,
        run_once: Callable[[], Any],
        count: int,
        before: Callable[[int], None] | None,
    ) -> list[Any]:
        """Call `run_once` `count` times and return copies of the outputs; errors are `Raised`.

        Raises CannotRun, and exceptions that end a process or a run. Only the first output has a
        trace.
        """
        outputs: list[Any] = []
        self.made.runs += count
        self.made.watch = clocks.Stopwatch()
        append = outputs.append
        while len(outputs) < count:
            try:
                for run in range(len(outputs), count):
                    if before is not None:
                        before(run)
                    append(copy_data(read_out(run_once())))
            except BaseException as error:
                if _ends_all(error):
                    raise
                trace = "" if outputs else _trace(error)
                append(Raised.from_error(error, trace))  # an output like any other
        return outputs

    def _draw_vectorized(self, data: Any, count: int, keywords: dict[str, Any]) -> Outputs:
        """Run one call of `count` draws, and return a copy of the outputs.

        Raises MechanismError if the call raises, ClaimError if it does not return `count` outputs.
        """
        keywords[self.size or ""] = count
        self.made.runs += count
        self.made.watch = clocks.Stopwatch()
        try:
            outputs = self._call(self._fresh_input(data), keywords)()
        except BaseException as error:
            if _ends_all(error):
                raise
            raise MechanismError(
                f"The vectorised mechanism raised {type(error).__name__} when asked for "
                f"{self.size}={count}:\n{_trace(error)}"
            ) from None
        # A copy: the next call may reuse the memory.
        listed = isinstance(outputs, list | tuple)
        outputs = copy_data(list(outputs)) if listed else np.array(outputs)
        single = isinstance(outputs, np.ndarray) and outputs.ndim == 0
        if single or len(outputs) != count:
            got = "a single value" if single else f"{len(outputs)} outputs"
            raise ClaimError(
                f"vectorized={self.size!r}: the mechanism returned {got} for {self.size}={count}. "
                f"It must return {count} independent outputs along the first axis; leave "
                "vectorized out if it makes one draw a call."
            )
        return outputs

    def _refuse_shared_noise(self, data: Any, outputs: Outputs, keywords: dict[str, Any]) -> None:
        """Raise ClaimError if rows seem to share their noise, and further calls confirm it.

        Calls of few rows are not checked, nor any once `MAX_LOOKS` checks were made.
        """
        count = len(outputs)
        is_looked_at = self.made.looks < MAX_LOOKS and not count > MAX_LOOKED < self.made.runs
        if count < MIN_ROWS or not is_looked_at or not has_few_distinct_rows(row_keys(outputs)):
            return
        self.made.looks += 1
        self.made.runs += CHECK_CALLS * CHECK_ROWS
        calls = [
            self._call(self._fresh_input(data), {**keywords, self.size or "": CHECK_ROWS})()
            for _ in range(CHECK_CALLS)
        ]
        if is_noise_shared([row_keys(call) for call in calls]):
            raise ClaimError(
                f"vectorized={self.size!r}: outputs of one call are the same, or mirror each "
                "other, and they differ between calls, so the draws of a call share their noise. "
                f"Draw noise of shape ({self.size}, ...)."
            )


def row_keys(outputs: Any) -> Floats:
    """Return a weighted sum of each row, NaN as 0; a hash of its text if rows are no numbers."""
    try:
        table = np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError):  # of other types, or of several lengths
        return np.array([hash(repr(output)) for output in outputs], np.float64)
    table = np.nan_to_num(table.reshape(len(table), -1))
    weights = np.random.default_rng(0).random(table.shape[1])
    sums: Floats = (table * weights).sum(axis=1)
    return sums


def has_few_distinct_rows(row_keys: Floats) -> bool:
    """Return whether at most half as many distinct keys of rows as rows occur.

    True also if that holds for the distances of keys from their mean, as in rows that mirror
    others.
    """
    return any(
        2 * len(np.unique(values)) <= len(values) for values in _values_and_distances(row_keys)
    )


def is_noise_shared(calls: list[Floats]) -> bool:
    """Return whether equal rows are most often of one call; `calls` are the row keys of each call.

    There have to be `MIN_EQUAL` pairs of equal rows within calls, and more of them than between
    calls. The distances of keys from their mean are compared, too.
    """
    sizes = [len(call) for call in calls]
    for values in _values_and_distances(np.concatenate(calls)):
        together = _count_equal_pairs(values)
        within = sum(_count_equal_pairs(part) for part in np.split(values, np.cumsum(sizes)[:-1]))
        if within >= MIN_EQUAL and 2 * within > together:
            return True
    return False


def _values_and_distances(row_keys: Floats) -> list[Floats]:
    """Return the keys minus their mean, and their absolute values, both scaled and rounded."""
    apart = row_keys - row_keys.mean()
    spread = float(np.abs(apart).max()) or 1.0
    rounded = np.round(apart / spread, 9)
    return [rounded, np.abs(rounded)]


def _count_equal_pairs(values: Floats) -> int:
    """Return the number of pairs of equal values."""
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _checked_name(mechanism: Any) -> str:
    """Return the name of a mechanism; raise ClaimError if it is not callable, or is async."""
    if not callable(mechanism):
        raise ClaimError(f"The mechanism is {mechanism!r}, which is not callable. Give a function.")
    name: str = getattr(mechanism, "__name__", repr(mechanism))
    inner = inspect.unwrap(mechanism)
    if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        raise ClaimError(f"{name} is async. Write a plain function that runs it: asyncio.run(...).")
    return name


def _has_open_keywords(signature: inspect.Signature) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())


def _takes(signature: inspect.Signature, parameter: str) -> bool:
    """Return whether a mechanism can be called with a keyword of this name."""
    declared = signature.parameters.get(parameter)
    by_keyword = declared is not None and declared.kind is not declared.POSITIONAL_ONLY
    return by_keyword or _has_open_keywords(signature)


def _generator_parameter(
    signature: inspect.Signature, arguments: Arguments, written: str
) -> str | None:
    """Return the parameter that takes a random generator; None if the mechanism has none.

    None also if the claim gives the parameter itself. Raises ClaimError if the claim names another
    parameter than `rng`, which the mechanism (`written`) does not have.
    """
    name, usual = arguments.rng, arguments.rng == "rng"
    if name in {*arguments.params, *arguments.drawn}:
        return None
    if name in signature.parameters:
        return name
    if _has_open_keywords(signature):
        return None if usual else name
    if not usual:
        raise ClaimError(f"rng={name!r}, but the mechanism is {written}: no such parameter.")
    return None


def prepare(mechanism: Any, arguments: Arguments) -> Call:
    """Return the call of a mechanism that a claim describes, without a run.

    Raises ClaimError if the mechanism is not a plain function of the data with the parameters that
    the claim names. Parameters of a mechanism without a readable signature are not checked.
    """
    name = _checked_name(mechanism)
    params = dict(arguments.params)
    try:
        signature = inspect.signature(mechanism)
    except (TypeError, ValueError):
        return Call(mechanism, params, None, arguments.vectorized)
    written = f"{name}{signature}"
    for parameter in (*params, *arguments.drawn):
        if not _takes(signature, parameter):
            raise ClaimError(f"params has {parameter!r}, but the mechanism is {written}.")
    if arguments.vectorized and not _takes(signature, arguments.vectorized):
        raise ClaimError(
            f"vectorized={arguments.vectorized!r}, but the mechanism is {written}: it has no such "
            "parameter to take the number of draws."
        )
    rng = _generator_parameter(signature, arguments, written)
    passed = [*arguments.drawn, *filter(None, (rng, arguments.vectorized))]
    keywords = {**params, **dict.fromkeys(passed)}
    try:
        signature.bind(object(), **keywords)
    except TypeError as error:
        raise ClaimError(
            f"The mechanism is {written}, but a claim calls it as "
            f"{name}(data{''.join(f', {key}=...' for key in keywords)}): {error}. Its first "
            "parameter takes the data; give the others in params={...}, or, if one takes a random "
            "generator, name it: rng='generator'."
        ) from None
    return Call(mechanism, params, rng, arguments.vectorized)


def _ends_all(error: BaseException) -> bool:
    """Return whether an error is no output but ends all runs: an alarm, or `CannotRun`."""
    return not isinstance(error, Exception | SystemExit) or isinstance(error, CannotRun)


def _trace(error: BaseException) -> str:
    """Return the traceback of an error as text, without the frames that called the mechanism."""
    inner: TracebackType | None = error.__traceback__
    while inner is not None and inner.tb_frame.f_code.co_filename == __file__ and inner.tb_next:
        inner = inner.tb_next
    return "".join(traceback.format_exception(type(error), error, inner)).rstrip()
