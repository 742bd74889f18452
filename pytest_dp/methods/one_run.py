"""Training that is run once: canaries in or out by coins, and guesses from the output which.

Canaries are records that are each added to the data or not by a coin. Each gets a score: the larger
it is, the more the output looks as if the canary was in. Canaries with the largest scores are
guessed to be in, those with the smallest to be out, and the others are not guessed. How many are
guessed is decided before the first run. The number of right guesses has a p-value
(`pytest_dp.statistics.guessing_bounds`). The guesses of several runs, each with coins of its own,
are added up. The p-value is computed after each run until the claim is refuted; all these looks
share alpha.

Source: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pytest_dp.auditors.budget import agree_with_verdict
from pytest_dp.auditors.session import AuditFinding, AuditResult, Session
from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.bisection import smallest
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.basics.reprs import plural
from pytest_dp.claiming.method_settings import OneRun
from pytest_dp.data import describe_record, records_of
from pytest_dp.data.fields import cells_of, fields_of
from pytest_dp.methods.membership_attacks import ASKED, Asking
from pytest_dp.outputs.raised import Raised
from pytest_dp.pairs.targets import Canaries
from pytest_dp.results.result import Verdict
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import OutOfTime
from pytest_dp.running.generators import Purpose, stream
from pytest_dp.statistics import clopper_pearson
from pytest_dp.statistics import guessing_bounds as evidence
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA

FIRST_TIMES = 1.25
"""Multiple of the claimed loss that is tried first. Larger and smaller: the search takes longer."""
MAX_TIMES = 1e6
"""Multiple of the claim beyond which nothing is found. Larger ones are as good as no privacy."""
STEP_ERROR = 1e-3
"""Relative error of the multiple. Larger: the limit is less exact; smaller: it takes longer."""

NO_BETTER = (
    "the scores separate canaries inside and outside the data no better than coins: write "
    "OneRun(score=...), or canaries that stand out more"
)

TOO_FEW = "one_run was stopped before its guesses could show anything: raise max_seconds, or runs="
MAX_NUMBERS = 1_000_000
"""Numbers that are compared at a time. More take memory; fewer take longer."""


def audit(session: Session) -> AuditFinding:
    """Run the training to audit one claim by guessing which canaries were in the data.

    The result is ``violated`` if the p-value is at most alpha; ``inconclusive`` if scores do not
    separate canaries, or if time was up before a run ended. Raises ClaimError if the claim is not
    about single records, if parameters are drawn, if there are too few canaries to show anything,
    or if they cannot be scored; MechanismError if a run raises.
    """
    guessing = _Guessing(session)
    try:
        while guessing.runs < guessing.method.runs and not guessing.is_refuted:
            guessing.play()
    except OutOfTime as out:
        if not guessing.runs:
            session.budget.refuse_hung(out)
        session.sampler.note(
            f"stopped after {guessing.runs} of {guessing.method.runs} runs: raise max_seconds="
            f"{session.settings.max_seconds:g}",
            hinders=True,
        )
    return AuditFinding(guessing.result())


class _Guessing:
    """A series of runs with canaries and a count of right guesses; raises ClaimError as `audit`."""

    def __init__(self, session: Session) -> None:
        assert isinstance(session.method, OneRun)
        self.session, self.method = session, session.method
        self.sticks, self.alpha = evidence.sticks_of(session.guarantee), session.budget.alpha
        if session.claim.arguments.drawn:
            raise ClaimError("one_run draws no parameters: give each of params= a value or a list.")
        inputs = session.claim.promise.inputs  # of large ones, pairs have a part
        base = inputs[0] if isinstance(inputs, list | tuple) else session.pairs[0].d1
        self.canaries = Canaries(base, self.method.canaries, session.seed)
        self.level = self.alpha / self.method.runs
        planned = evidence.plan_guesses(len(self.canaries), self.sticks, self.level)
        self.guesses: tuple[int, int] = self.method.guesses or planned  # type: ignore[assignment]
        self.each = sum(self.guesses)
        """How many guesses each run has."""
        self._check_enough()
        self.runs = self.right = 0
        """Runs so far, and how many of their guesses are right."""
        self.best = (math.inf, 0, 0)
        """The smallest p-value of a look, the right guesses so far, and the runs so far."""

    def play(self) -> None:
        """Throw coins, run the training once, and count right guesses.

        Raises MechanismError if the run raises, ClaimError if canaries cannot be scored, and
        OutOfTime.
        """
        session, m = self.session, len(self.canaries)
        rng = np.random.default_rng(stream(session.seed, Purpose.COINS, self.runs))
        inside, order = rng.random(m) < 0.5, rng.permutation(m)
        data = Input(self.canaries.add_canaries(inside))
        output = session.sampler.run_untried(
            data, (Purpose.BET, self.runs), session.budget.deadline
        )
        if isinstance(output, Raised):
            raise MechanismError(f"{session.sampler.name} {output!r}\n{output.trace}".rstrip())
        scores = canary_scores(self.method.score, output, self.canaries.dataset, self.canaries.base)
        ranked = inside[order][np.argsort(scores[order], kind="stable")]
        self.runs, self.right = (
            self.runs + 1,
            self.right + evidence.count_right(ranked, self.guesses),
        )
        reached = evidence.tail_chances(self.each, m, self.sticks, self.runs)[self.right]
        self.best = min(self.best, (float(reached), self.right, self.runs))

    @property
    def p_value(self) -> float:
        """The smallest p-value of a look, times the largest number of looks."""
        return min(1.0, self.method.runs * self.best[0])

    @property
    def is_refuted(self) -> bool:
        """True if the p-value is at most alpha."""
        return self.p_value <= self.alpha

    @property
    def lower(self) -> float:
        """The lower bound by the look with the smallest p-value, in the claim's parameter, or 0."""
        _, right, runs = self.best
        m, guarantee = len(self.canaries), self.session.guarantee
        return (
            evidence.lower_bound(right, self.each, m, guarantee, self.level, runs) if runs else 0.0
        )

    def result(self) -> AuditResult:
        """Return the verdict with the detection limit; add notes if nothing could be detected."""
        session, guarantee = self.session, self.session.guarantee
        said: dict[str, Any] = {"strongest": self._describe_guesses()} if self.runs else {}
        lower, alpha = self.lower, session.budget.alpha
        p_value = agree_with_verdict(self.p_value, alpha, violated=self.is_refuted)
        if self.is_refuted:
            lower = max(lower, math.nextafter(guarantee.claimed, math.inf))
            return session.result("violated", lower=lower, p_value=p_value, **said)
        times = self._times_to_find() if self.runs else math.inf
        caught = guarantee.with_noise_over(times) if math.isfinite(times) else math.inf
        verdict: Verdict = "no violation" if math.isfinite(caught) else "inconclusive"
        return session.result(verdict, lower=lower, p_value=p_value, resolution=caught, **said)

    def _times_to_find(self) -> float:
        """Return the multiple of the claimed loss that 19 of 20 such audits would refute.

        Infinite, with a note, if right guesses may be chance, as less noise may then change
        nothing, or if no multiple is refuted. The mechanism that ran may already lose more than its
        claim, which the multiple includes.
        """
        total, m = self.runs * self.each, len(self.canaries)
        if clopper_pearson.lower(self.right, total, SHOWN_ALPHA) <= 0.5:
            self.session.sampler.note(NO_BETTER, hinders=True)
            return math.inf
        share = (self.right + 1) / (total + 2)
        needed = evidence.fewest_right_guesses(self.each, m, self.sticks, self.level, self.runs)
        power = 1 - SHOWN_ALPHA

        def is_found(times: float) -> bool:
            return needed is not None and evidence.is_found(share, times, total, needed, power)

        times = smallest(is_found, 1.0, FIRST_TIMES, MAX_TIMES, STEP_ERROR)
        if math.isinf(times):
            self.session.sampler.note(TOO_FEW, hinders=True)
        return times * evidence.odds_above_claim(share, self.each, m, self.sticks)

    def _describe_guesses(self) -> str:
        """Return sentences on canaries, and on how many guesses were right and are allowed."""
        m = len(self.canaries)
        each = "" if self.runs == 1 else f", in each of {self.runs} runs"
        at_most = evidence.fewest_right_guesses(self.each, m, self.sticks, SHOWN_ALPHA, self.runs)
        return (
            f"There are {m:,} canaries, each in the data or not by a coin{each}. "
            f"{self.guesses[0]:,} were guessed to be in and {self.guesses[1]:,} to be out: "
            f"{self.right:,} of these {self.runs * self.each:,} guesses are right"
            + (
                f"; the claim allows {at_most:,} of them in 1 of {1 / SHOWN_ALPHA:.0f} runs"
                if at_most
                else ""
            )
        )

    def _check_enough(self) -> None:
        """Raise ClaimError if right guesses could not refute the claim, or exceed the canaries."""
        m, guessed, runs = len(self.canaries), self.each, self.method.runs
        if guessed > m:
            raise ClaimError(f"guesses={self.guesses} of {m:,} canaries: at most one of each.")
        at_least = evidence.runs_needed(guessed, m, self.sticks, self.alpha)
        if at_least <= runs:
            return
        ways = ["more canaries"]
        ways += [f"runs={max(at_least, 2)}"] if math.isfinite(at_least) else []
        ways += [] if self.alpha >= SHOWN_ALPHA else [f"alpha={SHOWN_ALPHA}"]
        raise ClaimError(
            f"{m:,} canaries, of which {guessed:,} are guessed in {plural(runs, 'run')}, can show "
            f"nothing against {self.session.guarantee} at alpha={self.alpha:g}, even if all "
            f"guesses were right. Allowed: {', or '.join(ways)}."
        )


Field = tuple[Any, Any, Any]
"""A column of the output, of the canaries and of the base."""


def canary_scores(
    score: Callable[[Any, Any], Any] | None, output: Any, canaries: Any, base: Any
) -> Floats:
    """Return the score of each canary: larger if the output looks more as if it was in the data.

    `canaries` and `base` are datasets. Without a `score`, it depends on the output: an array of a
    canary's shape is scored by the inner product, a dataset like `base` by minus the distance of
    its closest record, and a model by how well it fits the canary. Raises ClaimError if `score`
    raises, returns no number or NaN, or if there is none and the output is none of these.
    """
    records = records_of(canaries)
    if score is not None:
        return np.array([_read_score(score, output, canary) for canary in records])
    answer, directions = _as_numbers(output), [_as_numbers(canary) for canary in records]
    if answer is not None and all(d is not None and d.shape == answer.shape for d in directions):
        return np.array([np.vdot(answer, direction) for direction in directions])  # type: ignore[arg-type]
    rows, sought, usual = map(cells_of, (output, canaries, base))
    if rows and sought and usual and rows.keys() == sought.keys():
        return -_closest_distances([(rows[name], sought[name], usual[name]) for name in rows])
    if any(callable(getattr(output, name, None)) for name in ASKED):
        return np.array([_read_score(_fit_of_model, output, canary) for canary in records])
    raise ClaimError(
        f"one_run cannot read canaries such as {describe_record(records[0])} from outputs such as "
        f"{describe_record(output)}. Write OneRun(score=...), a function of an output and a "
        "canary that is the larger the more it looks as if the canary was in, such as minus the "
        "loss on it."
    )


def _fit_of_model(model: Any, canary: Any) -> float:
    """Return how well a model fits a record, whose last field is the label if it takes none."""
    fields = fields_of(canary)
    return Asking(tuple(fields.values()), tuple(fields))(model)[0]


def _read_score(score: Callable[[Any, Any], Any], output: Any, canary: Any) -> float:
    """Return a score as a float; raise ClaimError if it raises, returns no number, or NaN."""
    try:
        value = score(output, canary)
        number = float(value)
    except Exception as error:
        raise ClaimError(
            f"score(output, canary) raised {type(error).__name__}: {error}. It was given "
            f"{describe_record(canary)}, and has to return a number."
        ) from error
    if math.isnan(number):
        raise ClaimError(
            f"score(output, canary) is not a number (NaN) for {describe_record(canary)}."
        )
    return number


def _as_numbers(value: Any) -> Floats | None:
    """Return a value as an array of finite numbers; None if it has others, or is none."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        return None
    return numbers if np.all(np.isfinite(numbers)) else None


def _closest_distances(fields: Sequence[Field]) -> Floats:
    """Return the distance (0 to 1) of each canary to the closest row, as a mean over the fields."""
    rows, canaries, _ = fields[0]
    step = max(1, MAX_NUMBERS // len(rows))
    parts = [slice(at, at + step) for at in range(0, len(canaries), step)]
    closest = [
        np.min(np.mean([_field_distances(f, some) for f in fields], axis=0), axis=0)
        for some in parts
    ]
    distances: Floats = np.concatenate(closest)
    return distances


def _field_distances(field: Field, some: slice) -> Floats:
    """Return the distances of one field, shape (rows, canaries of the slice).

    Of numbers, in standard deviations of the base, at most 1; of other values 0 if equal, else 1.
    """
    rows, chosen, base = field[0], field[1][some], field[2]
    if all(column.dtype.kind == "f" for column in field):
        scale = np.nanstd(base) or 1.0
        near: Floats = np.fmin(np.abs(rows[:, None] - chosen) / scale, 1.0)
        return near
    differ: Floats = (rows[:, None] != chosen).astype(float)
    return differ
