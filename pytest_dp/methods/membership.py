"""Membership games: one record in the data or not, only the seed drawn anew, and bets on the AUC.

All games share the outputs on the data itself; each game has outputs on the data without its
record. An attack that was learned from earlier outputs only scores the next batch, and the scores
are bet on (`pytest_dp.statistics.guessing_bounds`). Each record has an equal share of alpha.

Source: Krco, Guepin, Meeus, Kulynych, de Montjoye, "Lost in the Averages: Reassessing
Record-Specific Privacy Risk Evaluation", 2024 (the model-seeded game).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_dp.auditors.budget import agree_with_verdict
from pytest_dp.auditors.session import AuditFinding, Session
from pytest_dp.basics.errors import ClaimError, MechanismError
from pytest_dp.data import describe_record
from pytest_dp.data.conversion import length
from pytest_dp.data.equality import equality_key
from pytest_dp.methods.membership_attacks import (
    ASKED,
    FIRST_QUANTITY,
    RAISED,
    LearnedAttack,
    Quantities,
    cross_fitted_area,
    learn_attack,
    quantities_of,
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
from pytest_dp.statistics.guessing_bounds import AreaBets, area_resolution, estimate_area

MAX_RECORD_LENGTH = 500
"""Characters of a record in a result. More hide other lines; fewer may not identify it."""
RESERVED_TIME = 0.1
"""Share of the time kept for the result. Larger: fewer games; smaller: none may be left."""
BATCH_GROWTH = 0.2
"""Next batch, as a share of games played. Larger: attacks learn later; smaller: slower."""
MAX_GAMES = 20_000
"""Games of a record, at most. More take longer, and hardly tell more."""
FIRST_ATTEMPTS = 8
"""Runs that may raise at first. More: slow to fail; fewer: one that often raises is lost."""
MIN_BATCH = 4
"""Pairs of outputs in a batch, at least. More: attacks win later; fewer teach nothing."""
RELEARNED = 3
"""Times as many outputs before an attack is learned again. More: later; fewer: slower."""


class RecordGame:
    """A game of one record: an attack, outputs to learn from, and bets on the attack's scores."""

    def __init__(self, target: Target, claimed: float, alpha: float) -> None:
        self.target, self.alpha = target, alpha
        self.attack: LearnedAttack | None = None
        """The present attack; None before there is one, and then batches are not bet on."""
        self.bets = AreaBets(claimed)
        """Bets on the scores of all attacks."""
        self.latest_bets = AreaBets()
        """Bets on the scores of the present attack, for its interval."""
        self.attacks = 1
        """How many attacks there were."""
        self.outputs: tuple[list[Any], list[Any]] = ([], [])
        """All outputs with the record, and without it."""
        self._learned_from = 0

    @property
    def is_violated(self) -> bool:
        """True if the claim is refuted for this record."""
        return self.bets.p_value <= self.alpha

    def relearn(self, labels: tuple[str, ...], classifier: Any, seed: int) -> None:
        """Learn an attack from all outputs, if there are `RELEARNED` times as many as last time.

        A new attack begins new bets. Outputs with labels are scored by their first quantity until a
        learned score is better.
        """
        count = len(self.outputs[0])
        if not count or count < RELEARNED * self._learned_from:
            return
        inside, outside = (np.stack(rows) if labels else rows for rows in self.outputs)
        teaching = inside, outside, labels, classifier, seed
        self._learned_from = count
        attack = FIRST_QUANTITY
        if labels:
            first_area, _ = estimate_area(attack.score(inside), attack.score(outside))
        if not labels or cross_fitted_area(*teaching)[0] > first_area:
            attack = learn_attack(*teaching)
        if attack is not self.attack:
            self.attack, self.latest_bets = attack, AreaBets()
            self.attacks += 1
            self.bets.begin_anew()

    def settle(self, inside: Any, outside: Any) -> None:
        """Bet on the attack's scores of a batch, if there is an attack, and keep the outputs."""
        if self.attack is not None:
            scores = self.attack.score(inside), self.attack.score(outside)
            self.bets.settle(*scores)
            self.latest_bets.settle(*scores)
        for known, new in zip(self.outputs, (inside, outside), strict=True):
            known.extend(new)

    def risk(self, labels: tuple[str, ...]) -> Risk:
        """Return how well attacks recognised the record; an AUC of 0.5 if nothing was scored."""
        scores = [np.concatenate(side) for side in self.latest_bets.scores if side]
        level = SHOWN_ALPHA / (self.attacks * (self.attacks + 1)) / 2
        lower = self.bets.lower(self.alpha)
        told_by = "" if self.attack is None else self.attack.told_by
        return Risk(
            self.target.text,
            describe_record(self.target.record, MAX_RECORD_LENGTH),
            estimate_area(*scores)[0] if scores else 0.5,
            (self.latest_bets.lower(level), self.latest_bets.upper(level)),
            lower if lower > 0.5 else 0.0,
            self.bets.p_value,
            self.bets.pairs,
            self.latest_bets.pairs,
            labels[0] if self.attack is FIRST_QUANTITY else told_by,
        )


def audit(session: Session) -> AuditFinding:
    """Play the games of a claim about membership, until one record refutes it or effort runs out.

    The result is ``violated`` exactly if the p-value, which holds at any time, is at most alpha,
    and ``inconclusive`` if no AUC would have been refuted yet.

    Raises ClaimError if models cannot be asked about the records, and MechanismError if the runs
    tried first all raise, or if outputs depend on the data alone.
    """
    games = _Games(session)
    try:
        session.sampler.warm_up(games.inputs[0], session.budget.deadline)
        games.play()
    except OutOfTime as out:
        session.budget.refuse_hung(out)
    return _summarize_games(session, games)


class _Games:
    """The games of all records of a claim, batch by batch."""

    def __init__(self, session: Session) -> None:
        promise = session.claim.promise
        assert promise.games is not None
        self.session, self.promise = session, promise
        alpha = session.budget.alpha / len(promise.games.records)
        claimed = session.guarantee.claimed
        self.games = [RecordGame(target, claimed, alpha) for target in promise.games.records]
        self.inputs = [
            Input(data) for data in (promise.inputs, *(game.target.without for game in self.games))
        ]
        """The data itself, and the data without the record of each game."""
        self.shown: Quantities | None = None
        """The quantities of outputs; None if whole outputs are compared."""
        self.labels: tuple[str, ...] = ()
        self.batch = self.pairs = 0
        """Batches so far, and pairs of outputs so far in each game."""

    def play(self) -> None:
        """Run the mechanism batch after batch until a claim is refuted or effort runs out.

        Also ends once noise `margin` times too small would be caught. Raises OutOfTime, and as
        `audit`.
        """
        session, settings = self.session, self.session.settings
        deadline = session.budget.deadline.with_reserve(1 - RESERVED_TIME)
        self._choose_quantities()
        enough = session.guarantee.with_noise_over(settings.margin)
        while not any(game.is_violated for game in self.games):
            caught = self.resolution
            session.sampler.caught = caught if math.isfinite(caught) else None
            is_enough = settings.margin > 1 and caught <= enough
            size = self._next_size()
            if not size or is_enough or not deadline.remaining() > 0:
                return
            self._play_batch(size, deadline)

    @property
    def resolution(self) -> float:
        """The smallest AUC at which any record would have been refuted by now; infinite if none."""
        fewest = min(game.bets.pairs for game in self.games)
        return area_resolution(self.session.guarantee.claimed, fewest, self.games[0].alpha)

    def _next_size(self) -> int:
        """Return how many pairs the next batch has; 0 if no samples are left."""
        left = self.session.budget.to_test // len(self.inputs)
        fewest = min(game.bets.fewest_pairs_to_refute(game.alpha) for game in self.games)
        wanted = max(MIN_BATCH, int(BATCH_GROWTH * self.pairs))
        return min(max(min(wanted, fewest), 1), left, MAX_GAMES - self.pairs)

    def _choose_quantities(self) -> None:
        """Run the mechanism, and set which quantities of outputs attacks see.

        Sets `shown`, `labels` and the first attack of each game. If outputs have no quantities,
        `shown` stays None and whole outputs are compared. Adds a note if all outputs are equal.

        Raises MechanismError if all first runs raise, or if outputs depend on the data alone.
        Raises ClaimError if outputs have no quantities and cannot be compared, or if a user's
        function fails.
        """
        session, sampler, games = self.session, self.session.sampler, self.promise.games
        assert games is not None
        self._refuse_unseeded()
        example = example_output(sampler, self.inputs, session.budget.deadline)
        targets = [(game.target.at, game.target.record, game.target.without) for game in self.games]
        about = session.seed, games.score, session.settings.features
        self.shown = quantities_of(example, self.promise.inputs, targets, *about)
        if self.shown is not None:
            self.labels = (*self.shown.labels, RAISED)
            for game in self.games:
                game.attack = FIRST_QUANTITY
        elif hidden := opaque_types(tabulate([example]).levels):
            raise ClaimError(
                f"outputs of type {' and '.join(hidden)} cannot be read, and have no "
                f"{', '.join(ASKED)}. Write score=, a function of an output and a record that "
                "returns a number, such as the loss of a model."
            )

    def _refuse_unseeded(self) -> None:
        """Run a mechanism without draws; raise MechanismError if outputs depend on the data alone.

        Add a note if all outputs are equal.
        """
        sampler = self.session.sampler
        if sampler.draws:
            return
        draws = [SampleRequest(one, 2, (Purpose.SEARCH, at)) for at, one in enumerate(self.inputs)]
        drawn = sampler.draw(draws, self.session.budget.deadline)
        contents = [_distinct_contents(list(outputs)) for outputs in drawn]
        if any(len(distinct) > 1 for distinct in contents):
            return
        if contents.count(contents[0]) < len(contents):
            raise MechanismError(
                f"{self.session.sampler.name} gives the same output whenever it gets the same "
                "data, and makes no use of its random generator, so a membership game has no "
                "chance in it. If it has a seed of its own, such as random_state=0, take it from "
                "rng. If nothing in it is random, an attacker who knows the other records always "
                "recognises whether a record was there, and no AUC below 1 can be claimed."
            )
        sampler.note("returned the same value in all runs, with each record and without")

    def _play_batch(self, size: int, deadline: Deadline) -> None:
        """Run the mechanism `size` times on each input, learn attacks, bet, and keep outputs."""
        self.batch += 1
        draws = [
            SampleRequest(item, size, (Purpose.BET, at, self.batch))
            for at, item in enumerate(self.inputs)
        ]
        drawn = draw_quantities(self.session.sampler, self.shown, draws, deadline)
        settings = self.session.settings
        for at, game in enumerate(self.games):
            game.relearn(self.labels, settings.method.classifier, self.session.seed)
            game.settle(*both_sides(drawn, at, self.shown))
        self.pairs += size


def example_output(sampler: Sampler, inputs: Sequence[Input], deadline: Deadline) -> Any:
    """Run until a run returns, and return the output; raise MechanismError if none returns."""
    for attempt in range(FIRST_ATTEMPTS):
        at = attempt % len(inputs)
        draw = SampleRequest(inputs[at], 1, (Purpose.SEARCH, at, attempt))
        (example,) = sampler.draw([draw], deadline)[0]
        if not isinstance(example, Raised):
            return example
    raise MechanismError(
        f"{sampler.name} raised in all of {FIRST_ATTEMPTS} runs, so there is nothing to audit. The "
        f"last time:\n{example.trace}"
    )


def draw_quantities(
    sampler: Sampler, shown: Quantities | None, draws: list[SampleRequest], deadline: Deadline
) -> list[Any]:
    """Run the mechanism, and return the outputs of each draw as attacks see them.

    The first draw is for all games, each of the others for one game. An array of quantities for
    each draw, shape (runs, games of the draw, quantities); lists of outputs if `shown` is None.
    """
    if shown is None:
        return [list(outputs) for outputs in sampler.draw(draws, deadline)]
    looks = [shown, *map(shown.for_target, range(len(draws) - 1))]
    measured = (
        sampler.measure([draw], look, deadline) for draw, look in zip(draws, looks, strict=True)
    )
    return [np.concatenate(parts) for (parts,) in measured]


def both_sides(drawn: Sequence[Any], at: int, shown: Quantities | None) -> tuple[Any, Any]:
    """Return the first draw and that of game number `at`, both of one target's quantities."""
    if shown is None:
        return drawn[0], drawn[at + 1]
    return drawn[0][:, at], drawn[at + 1][:, 0]


def _summarize_games(session: Session, games: _Games) -> AuditFinding:
    """Add notes, and return the verdict with the risk of each record."""
    every = games.games
    risks = tuple(game.risk(games.labels) for game in every)
    violated = any(game.is_violated for game in every)
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
    lower = max(risk.lower for risk in risks)
    wealth = [game.bets.log_e_value for game in every]
    p_value = min(len(every) * risks[worst].p_value, 1.0)
    result = session.result(
        verdict,
        lower=lower,
        p_value=agree_with_verdict(p_value, session.budget.alpha, violated=violated),
        e_value=float(np.exp(np.logaddexp.reduce(wealth) - math.log(len(wealth)))),
        bet_samples=2 * sum(game.bets.pairs for game in every),
        resolution=max(caught, lower),
        pairs=(len(every), len(every)),
        strongest=f"{risks[worst].record}: AUC {risks[worst].auc:.3g}{told_by}",
        risks=risks,
    )
    return AuditFinding(result, session.pairs[worst])


def _distinct_contents(outputs: list[Any]) -> set[Any]:
    """Return a key for each distinct output; unreadable outputs count by all that they hold."""
    table = tabulate(outputs)
    if opaque_types(table.levels):
        return set(map(equality_key, outputs))
    return set(hashes(table).tolist())
