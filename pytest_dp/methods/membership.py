"""Membership games: one record in the data or not, only the seed drawn anew, and bets on the AUC.

All games share the outputs on the data itself; each has outputs on the data without its record.
An attack scores them that has learned from earlier ones only, and the next batch is bet on
(`pytest_dp.statistics.guessing_bounds`). Each record has its share of alpha.

Source: Krco, Guepin, Meeus, Kulynych, de Montjoye, "Lost in the Averages: Reassessing
Record-Specific Privacy Risk Evaluation", 2024 (the model-seeded game).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pytest_dp.auditors.budget import agree_with_verdict
from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.data import describe_record
from pytest_dp.data.conversion import length
from pytest_dp.data.equality import equality_key
from pytest_dp.methods.membership_attacks import (
    ASKED,
    RAISED,
    Learned,
    Shown,
    first,
    learn_attack,
    shown_of,
)
from pytest_dp.outputs.leaves import opaque_types
from pytest_dp.outputs.raised import Raised
from pytest_dp.outputs.table import hashes, tabulate
from pytest_dp.pairs.targets import Target
from pytest_dp.results.outcome import Risk
from pytest_dp.results.result import Verdict
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime
from pytest_dp.running.generators import Purpose
from pytest_dp.running.sampler import Sampler, SampleRequest
from pytest_dp.statistics.clopper_pearson import SHOWN_ALPHA
from pytest_dp.statistics.guessing_bounds import AreaBets, area, area_resolution

MAX_RECORD_LENGTH = 500
"""Characters of a record in a result. Longer ones hide what else is said; shorter ones may not
show which record it is."""
RESERVED_TIME = 0.1
"""Share of the time that is kept for the result. Larger: fewer games are played; smaller: slow
games may leave none."""
BATCH_GROWTH = 0.2
"""The next batch, as a share of the games played. Larger: attacks learn later; smaller: more time
goes into learning."""
MAX_GAMES = 20_000
"""Games of a record, at most. More take longer, and hardly tell more."""
FIRST_ATTEMPTS = 8
"""Runs that may raise before none is expected to end. More: broken mechanisms take longer; fewer:
one that often raises is given up."""

FIRST = 8 // 2
"""Pairs of outputs in a batch, at least."""
RELEARNED = 3
"""Times as many outputs teach the attack anew; its interval begins anew as well."""


class RecordGame:
    """The game of one record: an attack, what it has learned from, and the bets on it."""

    def __init__(self, target: Target, claimed: float, alpha: float) -> None:
        self.target, self.alpha = target, alpha
        self.bets = AreaBets(claimed)
        self.now = AreaBets(claimed)
        """Bets on the attack as it is now."""
        self.attacks = 1
        """How many there were."""
        self.learned: Learned | None = None
        self.seen: tuple[list[Any], list[Any]] = ([], [])
        self._from = 0
        self._gain = 0.0
        """By how many pairs what was learned last has won more than the first quantity."""
        self._by: Learned | None = None
        """What `now` is about; None for the first quantity."""
        self._next: Learned | None = None
        """What the next batch is bet on by."""

    @property
    def violated(self) -> bool:
        """Return whether the claim is refuted for this record."""
        return self.bets.p_value <= self.alpha

    def settle(self, inside: Any, outside: Any, *, has_first: bool) -> None:
        """Bet on a batch by what was known before, and keep it.

        Until something was learned that has told better, the first quantity is the score, if there
        is one.
        """
        if self._next is not self._by:
            self._by, self.now, self.attacks = self._next, AreaBets(), self.attacks + 1
            self.bets.begin_anew()
        scored: list[tuple[Learned | None, Floats, Floats]] = []
        if has_first:
            scored.append((None, first(inside), first(outside)))
        if self.learned is not None:
            scored.append((self.learned, self.learned.score(inside), self.learned.score(outside)))
        for by, *scores in scored:
            if by is self._by:
                self.bets.settle(*scores)
                self.now.settle(*scores)
        if len(scored) == 2:
            self._gain += len(inside) * (area(*scored[1][1:])[0] - area(*scored[0][1:])[0])
        for known, new in zip(self.seen, (inside, outside), strict=True):
            known.extend(new)

    def relearn(self, labels: tuple[str, ...], classifier: Any, seed: int) -> None:
        """Learn anew if enough has come since the last time."""
        count = len(self.seen[0])
        if count < RELEARNED * self._from:
            return
        inside, outside = (np.stack(rows) if labels else rows for rows in self.seen)
        self.learned, self._from = learn_attack(inside, outside, labels, classifier, seed), count
        self._next = self.learned if self._gain > 0 or not labels else None
        self._gain = 0.0

    def risk(self, labels: tuple[str, ...]) -> Risk:
        """Return what was found of the record."""
        scores = [np.concatenate(side) for side in self.now.scores if side]
        level = SHOWN_ALPHA / (self.attacks * (self.attacks + 1)) / 2
        shown = self.bets.lower(self.alpha)
        told_by = labels[0] if self._by is None and labels else ""
        return Risk(
            self.target.text,
            describe_record(self.target.record, MAX_RECORD_LENGTH),
            area(*scores)[0] if scores else 0.5,
            (self.now.lower(level), self.now.upper(level)),
            shown if shown > 0.5 else 0.0,
            self.bets.p_value,
            self.bets.pairs,
            self.now.pairs,
            told_by if self._by is None else self._by.told_by,
        )


def audit(session: Session) -> AuditFinding:
    """Play the games of a claim about membership, until one record refutes it or effort runs out.

    The result is ``violated`` exactly if the p-value, which holds at any time, is at most alpha.

    Raises ClaimError if models cannot be asked about the records, and MechanismError if every run
    raises, or if outputs never vary though only the seed is chance.
    """
    games = _Games(session)
    try:
        session.sampler.warm_up(games.data, session.budget.deadline)
        games.play()
    except OutOfTime as out:
        session.budget.refuse_hung(out)
    return _conclude(session, games)


class _Games:
    """All games of a claim."""

    def __init__(self, session: Session) -> None:
        promise = session.claim.promise
        assert promise.games is not None
        self.session, self.promise = session, promise
        alpha = session.budget.alpha / len(promise.games.records)
        self.games = [
            RecordGame(t, session.guarantee.claimed, alpha) for t in promise.games.records
        ]
        self.data = Input(promise.inputs)
        self.inputs = [self.data, *(Input(game.target.without) for game in self.games)]
        self.shown: Shown | None = None
        self.labels: tuple[str, ...] = ()
        self.batch = 0
        self.pairs = 0

    def play(self) -> None:
        """Play batch after batch."""
        session = self.session
        deadline = session.budget.deadline.sooner(1 - RESERVED_TIME)
        self._look()
        while not any(game.violated for game in self.games):
            size = self._size()
            caught = self.resolution
            session.sampler.caught = caught if math.isfinite(caught) else None
            enough = session.guarantee.with_noise_over(session.settings.margin)
            margin = session.settings.margin
            if not size or not deadline.remaining() > 0 or (margin > 1 and caught <= enough):
                return
            self._play(self._draw_batch(size, deadline))

    @property
    def resolution(self) -> float:
        """Return the smallest AUC that any of the records would have been caught at by now."""
        fewest = min(game.bets.pairs for game in self.games)
        return area_resolution(self.session.guarantee.claimed, fewest, self.games[0].alpha)

    def _size(self) -> int:
        """Return how many pairs the next batch has, at most what is left or may do to win."""
        left = self.session.budget.to_test // len(self.inputs)
        soonest = min(game.bets.soonest(game.alpha) for game in self.games)
        wanted = max(FIRST, int(BATCH_GROWTH * self.pairs))
        return min(max(min(wanted, soonest), 1), left, MAX_GAMES - self.pairs)

    def _look(self) -> None:
        """Decide by an output that is not bet on what is looked at in outputs."""
        session, sampler = self.session, self.session.sampler
        self._refuse_unseeded()
        for attempt in range(FIRST_ATTEMPTS):
            at = attempt % len(self.inputs)
            draw = SampleRequest(self.inputs[at], 1, (Purpose.SEARCH, at, attempt))
            (example,) = sampler.draw([draw], session.budget.deadline)[0]
            if not isinstance(example, Raised):
                break
        else:
            raise MechanismError(
                f"{session.sampler.name} raised in all of {FIRST_ATTEMPTS} runs, so there is "
                f"nothing to audit. The last time:\n{example.trace}"
            )
        assert self.promise.games is not None
        self.shown = shown_of(
            example,
            self.promise.inputs,
            [(game.target.at, game.target.record, game.target.without) for game in self.games],
            session.seed,
            self.promise.games.score,
            session.settings.features,
        )
        if self.shown is not None:
            self.labels = (*self.shown.labels, RAISED)
        elif hidden := opaque_types(tabulate([example]).levels):
            raise ClaimError(
                f"outputs of type {' and '.join(hidden)} cannot be read, and have no "
                f"{', '.join(ASKED)}. Write score=, a function of an output and a record that "
                "returns a number, such as the loss of a model."
            )

    def _refuse_unseeded(self) -> None:
        """Refuse what has a seed of its own: outputs that differ by the data alone."""
        sampler = self.session.sampler
        if sampler.draws:
            return
        draws = [SampleRequest(one, 2, (Purpose.SEARCH, at)) for at, one in enumerate(self.inputs)]
        drawn = sampler.draw(draws, self.session.budget.deadline)
        marks = [_contents(list(outputs)) for outputs in drawn]
        if any(len(mark) > 1 for mark in marks):
            return
        if marks.count(marks[0]) < len(marks):
            raise MechanismError(
                f"{self.session.sampler.name} gives the same output whenever it gets the same "
                "data, and makes no use of its random generator, so a membership game has no "
                "chance in it. If it has a seed of its own, such as random_state=0, take it from "
                "rng. If nothing in it is random, an attacker who knows the other records always "
                "recognises whether a record was there, and no AUC below 1 can be claimed."
            )
        sampler.note("returned the same value in all runs, with each record and without")

    def _draw_batch(self, size: int, deadline: Deadline) -> list[Any]:
        """Return what attacks see of a new batch of releases.

        Item 0 is of the data without changes, with an entry for each game; a further item for each
        game has one entry.
        """
        sampler = self.session.sampler
        self.batch += 1
        draws = [
            SampleRequest(item, size, (Purpose.BET, at, self.batch))
            for at, item in enumerate(self.inputs)
        ]
        drawn = seen_of(sampler, self.shown, draws, deadline)
        if self.shown is None:
            return [[drawn[0]] * len(self.games), *([outputs] for outputs in drawn[1:])]
        return [np.moveaxis(table, 1, 0) for table in drawn]

    def _play(self, rows: list[Any]) -> None:
        for at, game in enumerate(self.games):
            game.settle(rows[0][at], rows[at + 1][0], has_first=self.shown is not None)
        self.pairs = len(self.games[0].seen[0])
        settings = self.session.settings
        for game in self.games:
            game.relearn(self.labels, settings.method.classifier, self.session.seed)


def seen_of(
    sampler: Sampler, shown: Shown | None, draws: list[SampleRequest], deadline: Deadline
) -> list[Any]:
    """Return what attacks see of outputs: the first draw for all games, the others for one each.

    Tables with a column for each game; the outputs themselves where nothing is `shown` of them.
    """
    if shown is None:
        return [list(outputs) for outputs in sampler.draw(draws, deadline)]
    looks = [shown, *map(shown.only, range(len(draws) - 1))]
    measured = (
        sampler.measure([draw], look, deadline) for draw, look in zip(draws, looks, strict=True)
    )
    return [np.concatenate(parts) for (parts,) in measured]


def _conclude(session: Session, games: _Games) -> AuditFinding:
    every = games.games
    risks = tuple(game.risk(games.labels) for game in every)
    violated = any(game.violated for game in every)
    worst = min(range(len(every)), key=lambda at: (risks[at].p_value, -risks[at].auc))
    fewest, caught = min(game.bets.pairs for game in every), games.resolution
    verdict: Verdict = "violated" if violated else "no violation"
    if violated:
        session.budget.start_reporting()
    elif math.isinf(caught):
        verdict = "inconclusive"
        each = f"{fewest} pairs of runs" + (" for each record" if len(every) > 1 else "")
        more = "raise max_samples or max_seconds, or name fewer records"
        session.sampler.note(f"{each} could have refuted no AUC at all: {more}", hinders=True)
    total = length(session.claim.promise.inputs)
    session.sampler.note(
        f"about {len(every)} of {total:,} records, and the attacks that were tried: others may be "
        "at more risk"
    )
    told_by = f", by {risks[worst].told_by}" if risks[worst].told_by else ""
    wealth = [game.bets.log_e_value for game in every]
    p_value = min(len(every) * risks[worst].p_value, 1.0)
    result = session.result(
        verdict,
        lower=_lower(risks),
        p_value=agree_with_verdict(p_value, session.budget.alpha, violated=violated),
        e_value=float(np.exp(np.logaddexp.reduce(wealth) - math.log(len(wealth)))),
        bet_samples=2 * sum(game.bets.pairs for game in every),
        resolution=max(caught, _lower(risks)),
        pairs=(len(every), len(every)),
        strongest=f"{risks[worst].record}: AUC {risks[worst].auc:.3g}{told_by}",
        risks=risks,
    )
    return AuditFinding(result, session.pairs[worst])


def _lower(risks: tuple[Risk, ...]) -> float:
    return max(risk.lower for risk in risks)


def _contents(outputs: list[Any]) -> set[Any]:
    """Return what tells outputs apart; of models all that they hold, as tables do not show it."""
    table = tabulate(outputs)
    if opaque_types(table.levels):
        return set(map(equality_key, outputs))
    return set(hashes(table).tolist())
