"""DD-Search: the pair, the direction and the attack with the largest lower bound to expect.

Algorithm 2 of the paper trains a classifier for every pair and direction on samples of its own, and
picks the witness with the largest estimated power. Here pairs are compared by successive halving:
each round draws more, scores each half of it by a model of the other half, and keeps the better
half of the pairs. Both directions of a pair, and pairs with an input in common, share their
samples; where a mechanism is fit for it, all inputs are run with the same random numbers, so that
they differ by the data alone. With a fixed `c`, the search is that of the paper. Nothing found here
is evidence: what comes out is tested on held-out samples.

Source: Bichsel, Steffen, Bogunovic, Vechev, "DP-Sniper", IEEE S&P 2021, Algorithms 1 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pytest_dp.arrays import Bools, Floats, Outputs
from pytest_dp.attacks import Posterior, check_by_itself, fit, quantities
from pytest_dp.attacks.expected_bounds import choice_of, likelier_first, rough_bounds
from pytest_dp.attacks.scores import Intervals, Profile, Profiles, Tally, counted, scores
from pytest_dp.attacks.threshold import best_cut, cuts_for, fixed
from pytest_dp.auditors.context import Context
from pytest_dp.auditors.pool import Contender, Pool, draw_up_to, line_up
from pytest_dp.auditors.witness import Witness, readable, with_examples, witness_of
from pytest_dp.evidence.event_test import event_test
from pytest_dp.limits import (
    ENOUGH,
    MAX_BATCH,
    MILLION,
    NEARLY,
    RESERVE,
    SAMPLES_SHARE,
    SEVERAL,
    STEPS,
)
from pytest_dp.outputs.event_search import Rank
from pytest_dp.outputs.feature import Feature
from pytest_dp.outputs.table import Table, tabulate
from pytest_dp.sampling.deadline import OutOfTime
from pytest_dp.sampling.per_run import CannotCouple
from pytest_dp.sampling.sampler import Draw
from pytest_dp.sampling.streams import Purpose

PUBLISHED_SEARCH_SHARE = 0.35
"""Of all samples, about what is spent before the last step: given by the paper."""


@dataclass(slots=True, eq=False)
class Rival(Contender):
    """A pair in the search: the bound to expect, and how much a model gains, on unseen samples."""

    expected: float = -math.inf
    gain: float = -math.inf


def find_witness(context: Context, pool: Pool) -> tuple[list[Rival], Witness | None]:
    """The pairs that took part, and the witness to test, or None if nothing is worth a test.

    Raises OutOfTime if time ran out before there was a witness, and ClaimError if the user's
    classifier or features cannot be used.
    """
    budget = SAMPLES_SHARE * context.max_samples
    everyone = line_up(context, pool, budget, Rival)
    if context.method.c is not None:
        return everyone, _as_published(context, pool, everyone, context.method.c)
    pool.coupled = context.method.coupled and all(
        context.sampler.can_couple(pool.inputs[r.input1], pool.inputs[r.input2], context.deadline)
        for r in everyone
    )
    try:
        witness = _witness(context, pool, _best_pair(context, pool, everyone, budget))
    except CannotCouple as reason:
        context.sampler.note(f"started again without shared random numbers, as {reason}")
        witness = None
    if witness is None and pool.coupled:  # too many outputs may agree for anything to be learned
        pool.agree = all(map(pool.alike, everyone))
        pool.start_again()
        witness = _witness(context, pool, _best_pair(context, pool, everyone, budget))
    return everyone, witness


def _best_pair(context: Context, pool: Pool, rivals: list[Rival], budget: float) -> Rival:
    deadline = context.deadline.sooner(2 * SAMPLES_SHARE)
    a_round = budget / (math.ceil(math.log2(len(rivals))) + 1)
    runs = 0
    draw_up_to(context, pool, rivals, 2 * SEVERAL, deadline)
    max_runs = _max_kept(pool)
    while True:
        before, inputs = runs, {i for r in rivals for i in (r.input1, r.input2)}
        runs = min(runs + max(1, int(a_round / len(inputs))), max_runs)
        try:
            draw_up_to(context, pool, rivals, runs, deadline)
        except OutOfTime as out:
            if out.stack or not before:
                raise
            break
        if len(rivals) == 1:
            break
        for rival in rivals:
            _appraise(context, pool, rival, runs)
        rivals = sorted(rivals, key=lambda r: (-max(r.expected, 0.0), -r.gain, r.number))
        rivals = rivals[: max(1, len(rivals) // 2)]
    return rivals[0]


def _max_kept(pool: Pool) -> int:
    """How many samples of an input may be kept: fewer, the more leaves they have."""
    leaves = max(1.0, float(np.mean(pool.drawn[0][0].sizes[: 2 * SEVERAL])))
    return int(min(MAX_BATCH, (10 * MILLION) / leaves))


def _appraise(context: Context, pool: Pool, rival: Rival, runs: int) -> None:
    """What the pair is worth, by models that each score the half that they did not learn from."""
    half = runs // 2
    odds, sides = [], []
    for known, held_out in (((0, half), (half, runs)), ((half, runs), (0, half))):
        learned = known[0], min(known[1], known[0] + 2 * STEPS)
        model = _learn(context, pool, rival, *pool.table(rival, *learned))[0]
        table, on_d = pool.table(rival, *held_out)
        odds.append(scores(model, table))
        sides.append(on_d)
    score, on_d = np.concatenate(odds), np.concatenate(sides)
    rival.gain = float(np.log(2) - np.logaddexp(0, np.where(on_d, -score, score)).mean())
    cuts = cuts_for(score, min(half, 2 * STEPS))
    between = np.searchsorted(cuts.at, score)
    width = len(cuts.levels)
    profile1, profile2, lower = counted(between[on_d], between[~on_d], width, coupled=pool.coupled)
    plan = context.plan((1 - SAMPLES_SHARE) * context.max_samples)
    choice = best_cut(profile1, profile2, cuts, plan, lower=lower)
    rival.expected = -math.inf if choice is None else choice.expected


def _learn(
    context: Context, pool: Pool, rival: Rival, table: Table, on_d: Bools
) -> tuple[Posterior, list[Feature]]:
    about = quantities(context.settings, table, rival.references, on_d)
    classifier = context.method.classifier
    return fit(classifier, table, on_d, about, context.seed, paired=pool.coupled), about


def _check(context: Context, model: Posterior, about: list[Feature], table: Table) -> None:
    """Refuse the user's classifier or features if they make an event of several outputs."""
    if context.method.classifier is not None or context.settings.features is not None:
        check_by_itself(model, about, table)


def _witness(context: Context, pool: Pool, rival: Rival) -> Witness | None:
    """The attack, or the readable event, to test on the pair that was picked."""
    table, on_d = pool.table(rival)
    model, about = _learn(context, pool, rival, table, on_d)
    _check(context, model, about, table)
    score = scores(model, table)
    cuts = cuts_for(score, len(on_d) // 2)
    left = _samples_left(context)

    def rank_of(searched: int) -> Rank:
        return lambda c1, c2: 100 * rough_bounds(c1, c2, searched, context.plan(left))

    event = readable(rival, table, on_d, about, rank_of, NEARLY)
    runs = max(1, int(min(RESERVE * context.max_samples, left / 2, 2 * MILLION) / 2))
    profile = Profile(model, cuts.at, event)
    places = _score_intervals(context, pool, rival, profile, runs)
    profiles = Profiles.of(places[0], places[1], len(cuts.levels), coupled=pool.coupled)
    plan = context.plan(_samples_left(context))
    reading = None
    if event is not None:
        c1, c2 = profiles.inside
        reading = choice_of(c1, runs, c2, runs, plan, profiles.both)
    favoured = 0 if reading is None else reading.sign
    profile1, profile2, lower = profiles.by_score
    attack = best_cut(profile1, profile2, cuts, plan, favoured, lower)
    witness = witness_of(rival, model, attack, event, reading)
    return None if witness is None else with_examples(witness, table)


def _samples_left(context: Context) -> float:
    return max(2.0, min(context.to_test, context.affordable()))


def _score_intervals(
    context: Context, pool: Pool, rival: Rival, profile: Profile, runs: int
) -> list[Intervals]:
    key = Purpose.CHOICE, rival.input1, rival.input2
    draws = [
        Draw(pool.inputs[i], runs, key if pool.coupled else (*key, i), pool.coupled)
        for i in (rival.input1, rival.input2)
    ]
    return [
        np.concatenate(part) for part in context.sampler.measure(draws, profile, context.deadline)
    ]


@dataclass(frozen=True, slots=True)
class _Scores:
    model: Posterior

    def __call__(self, outputs: Outputs) -> Floats:
        return scores(self.model, tabulate(outputs))


def _as_published(context: Context, pool: Pool, rivals: list[Rival], c: float) -> Witness | None:
    """Algorithm 2 of the paper: equal effort for all pairs, the same `c` for all attacks."""
    runs = max(2, int(PUBLISHED_SEARCH_SHARE * context.max_samples / len(rivals) / 6))
    if c * runs < ENOUGH:
        context.sampler.note(
            f"c={c:g} of {runs:,} samples leaves too few to place a threshold: raise max_samples "
            "or c, or leave c out",
            hinders=True,
        )
    best: tuple[float, Witness] | None = None
    for rival in rivals:
        draw_up_to(context, pool, [rival], 2 * SEVERAL, context.deadline)
        draw_up_to(context, pool, [rival], min(runs, _max_kept(pool)), context.deadline)
        table, on_d = pool.table(rival)
        model, about = _learn(context, pool, rival, table, on_d)
        _check(context, model, about, table)
        sides = tuple(enumerate((rival.input1, rival.input2)))
        drawn = context.sampler.measure(
            [Draw(pool.inputs[i], runs, (Purpose.CHOICE, rival.number, i, s)) for s, i in sides],
            _Scores(model),
            context.deadline,
        )
        for sign, rarer_side in ((1, 1), (-1, 0)):  # D' makes an attack for D the rarer
            attack = fixed(model, sign, np.concatenate(drawn[rarer_side]), c)
            counts = context.sampler.measure(
                [
                    Draw(pool.inputs[i], runs, (Purpose.POWER, rival.number, i, s, rarer_side))
                    for s, i in sides
                ],
                Tally(attack, None),
                context.deadline,
            )
            sums = [np.sum(part, axis=0) for part in counts]
            p = [float((s[1] + attack.tie * s[2]) / s[0]) for s in sums]
            likelier, rarer = likelier_first(sign, *p)
            # As in the paper, probabilities below c are not told from c.
            chances = np.array(max(likelier, c)), np.array(max(rarer, c))
            power = float(event_test(context.guarantee).shows(*chances))
            if best is None or power > best[0]:
                witness = Witness(rival, attack, None, sign, max(likelier, c), max(rarer, c))
                best = power, with_examples(witness, table)
    return best[1] if best is not None else None
