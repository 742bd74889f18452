"""The end of a sequential audit: the verdict, and the strongest attack as it is shown.

The verdict follows from the bets alone. The attack is counted once more, on held-out samples.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from pytest_dp.auditors import divergence, enumeration, held_out
from pytest_dp.auditors.arms import Arm
from pytest_dp.auditors.game import RESERVE, Game
from pytest_dp.auditors.picturing import attack_of, pictures_of, wealth_of
from pytest_dp.auditors.pool import cannot_be_read, never_varies, note_left_out
from pytest_dp.auditors.result import AuditResult
from pytest_dp.auditors.shrinking import smallest
from pytest_dp.auditors.stopping import runs_to_margin, tells_apart, would_catch
from pytest_dp.auditors.strongest import (
    MIN_SHOWN,
    Strongest,
    grows,
    seen_before,
    shorter,
    strongest,
)
from pytest_dp.evidence.counts import Bound
from pytest_dp.results.pictures import Pictures
from pytest_dp.results.result import Counterexample, Distance, Verdict
from pytest_dp.sampling.deadline import OutOfTime, within

T = TypeVar("T")

PAIRS_TO_CHOOSE, PAIRS_TO_COMPARE = 4_000, 400
"""Pairs of outputs by which the event to show is chosen, and losses on inputs are compared: more
take longer, fewer show an event that is not the best, or no difference. Chosen by hand."""
NO_DIFFERENCE = (
    "with the same random numbers, both inputs of every pair gave the same outputs: do the inputs "
    "differ in anything that the mechanism looks at?"
)
NOT_TOLD_APART = (
    "nothing that was tried tells the two inputs of any pair apart: the mechanism has far more "
    "noise than its claim needs, or leaks in a way that was not looked for"
)


def conclude(game: Game, enumerated: enumeration.Enumeration) -> AuditResult:
    """Count the strongest attack on held-out samples, and give the verdict of the bets."""
    context = game.context
    bets = _bets(game)
    known = [arm for arm in game.seen if arm.binnings]
    if not known:
        _note_if_late(game)
        return context.result("inconclusive", **bets)
    violated = game.refuted
    bets["estimate"], bets["not_exact"] = enumeration.estimate(
        context, enumerated, game.seen, violated
    )
    claimed = game.bandit.claimed
    caught = would_catch(known[:claimed], claimed, context.guarantee, game.share * context.alpha)
    shown_of = game
    if violated:
        broken = max(known, key=lambda arm: arm.earned)
        shown_of, winner = smallest(game, broken)
        _note_origin(game, broken, winner)
        known = [winner]
    else:
        _note_searched(game)
    shown = _shown_fields(shown_of, known, game)
    bets["pictures"] = replace(shown.pop("pictures", Pictures()), wealth=bets["pictures"].wealth)
    game.late |= shown_of.late
    if bets["estimate"] is None:  # last, as it may take some of the samples that are left
        bets["estimate"] = enumerated.analytic_estimate(context, game.pool, game.seen, violated)
    _note_if_late(game)
    verdict: Verdict = "violated" if violated else _not_refuted(game, known, caught, bets)
    return context.result(
        verdict,
        p_value=context.agreeing(min(game.p_value, 1.0), violated),
        resolution=caught,
        **bets,
        **shown,
    )


def _bets(game: Game) -> dict[str, Any]:
    """Fields of the result that tell of the bets; what was left out is noted."""
    context, claimed = game.context, game.bandit.claimed
    seen = min(len(game.seen), claimed)
    if seen < claimed > 1 and not game.refuted:
        note_left_out(context, seen)
    return {
        "e_value": game.e_value,
        "bet_samples": context.earlier.samples + (0 if game.refuted_before else 2 * game.drawn),
        "evidence": game.evidence if context.collects else None,
        "pairs": (seen, claimed),
        "proposed": len(game.seen) - seen,
        "pictures": Pictures(wealth=wealth_of(game.trail)),
    }


def _not_refuted(game: Game, known: list[Arm], caught: float, bets: dict[str, Any]) -> Verdict:
    """The verdict on a claim that stands, with notes on what it is worth.

    It is inconclusive if no violation would have been caught, and if outputs never vary: then
    nothing else is worth telling, and no estimate is left in `bets`.
    """
    context = game.context
    if never_varies(context, game.pool):  # which notes it
        bets["estimate"] = None
        return "inconclusive"
    _note_if_alike(game, known, caught)
    if math.isinf(caught):
        return "inconclusive"
    if game.satisfied:
        context.sampler.note(
            f"stopped at the margin: noise {context.settings.margin:g} times too small would have "
            "been caught"
        )
    return "no violation"


def _shown_fields(game: Game, known: list[Arm], played: Game) -> dict[str, Any]:
    """Fields of the result: the strongest attack, counted on held-out samples, and the bound.

    Parameters
    ----------
    game : Game
        That of the pair to show, if the claim was refuted.
    known : list of Arm
        The pairs in question; only one of them if the claim was refuted.
    played : Game
        The one that decided the verdict.
    """
    context, violated = game.context, played.refuted
    outcome: dict[str, Any] = {"lower": played.ledger.lower}
    bet = known[0].outputs.pairs
    distance = _in_time(game, partial(_divergence, game, known[0])) if violated else None
    if distance is not None:
        outcome["lower"] = max(outcome["lower"], distance.lower)
    best = _in_time(game, partial(_strongest, game, known))
    if best is None:
        return outcome
    witness, tested = best.witness, best.tested
    if violated and tested is not None:
        held_out.check_independent(context, witness, tested)
    if tested is not None and distance is not None:
        tested = replace(tested, share=tested.share * (1 - divergence.ALPHA_SHARE))
    bounded = [] if tested is None else held_out.bounds(context, tested)
    if bounded:
        outcome["strongest"] = held_out.described(bounded[0], witness)
        outcome["loss"] = bounded[0].loss
    if violated:
        with contextlib.suppress(OutOfTime):
            example = _counterexample(game, best, bounded, bet)
            longer = _length_note(game) if game is played else ""
            diagnosis = (*example.diagnosis, longer) if longer else example.diagnosis
            outcome["counterexample"] = replace(example, divergence=distance, diagnosis=diagnosis)
        outcome["lower"] = max([outcome["lower"], *(bound.lower for bound in bounded)])
    outcome["pictures"] = _pictures(game, best, bounded, outcome.get("counterexample"))
    return outcome


def _pictures(
    game: Game, best: Strongest, bounded: list[Bound], example: Counterexample | None
) -> Pictures:
    """What there is to draw of the strongest attack, and of the event that breaks the claim."""
    shown = held_out.shown(bounded, game.context.guarantee.claimed) if bounded else None
    pictures = pictures_of(game.context, best.witness, shown, example, best.arm.outputs.table)
    joint = best.arm.record.joint
    return replace(pictures, attack=attack_of(joint[0], best.witness.sign)) if joint else pictures


def _note_if_alike(game: Game, known: list[Arm], caught: float) -> None:
    """Say so if nothing tells the inputs of any pair apart."""
    if tells_apart(known) or cannot_be_read(game.pool):
        return
    if all(arm.outputs.alike() for arm in known):
        game.context.sampler.note(NO_DIFFERENCE, hinders=True)
    elif math.isfinite(caught):
        game.context.sampler.note(NOT_TOLD_APART, hinders=True)


def _note_origin(game: Game, broken: Arm, shown: Arm) -> None:
    """Where the pair comes from that broke the claim, if it holds what the claim does not give."""
    if broken.pair.origin:
        same = broken.pair == shown.pair
        which = "this pair" if same else "the pair that this one was made smaller from"
        game.context.sampler.note(f"a search proposed {which}: {broken.pair.origin}")


def _note_searched(game: Game) -> None:
    """How many pairs were searched, and from where they came."""
    proposed = game.bandit.source.proposed_by
    if proposed:
        parts = ", ".join(f"{count:,} by {name}" for name, count in proposed.items())
        total = sum(proposed.values())
        pairs = f"{total:,} more pair{'' if total == 1 else 's'}"
        game.context.sampler.note(f"a search proposed {pairs}: {parts}")


def _counterexample(game: Game, best: Strongest, bounded: list[Bound], bet: int) -> Counterexample:
    """The counterexample that is shown; `bet` pairs of outputs were bet on."""
    witness = best.witness
    shown = held_out.shown(bounded, game.context.guarantee.claimed) if bounded else None
    seen = partial(seen_before, best.arm, witness, pairs=bet)
    show = partial(held_out.counterexample, game.context, game.pool, witness, shown, seen)
    return within(game.context.to_conclude(), show)


def _note_if_late(game: Game) -> None:
    context = game.context
    if game.late:
        context.sampler.note(
            f"stopped after max_seconds={context.settings.max_seconds:g}, with "
            f"{context.sampler.runs:,} of {context.max_samples:,} samples"
        )
        alpha = game.share * context.alpha
        needed = runs_to_margin(
            len(context.pairs), context.guarantee, alpha, context.settings.margin
        )
        if context.sampler.runs < needed / 4:
            about = round(needed, 1 - len(str(needed)))
            context.sampler.note(f"the margin takes about {about:,} runs, {context.a_run} each")


def _length_note(game: Game) -> str:
    """Whether inputs that are shorter lose less, by a few more samples; empty if not."""
    known = [arm for arm in game.seen if arm.binnings]
    worst = max(known, key=lambda arm: arm.earned)
    others = shorter(known, worst)
    try:
        for arm in (worst, *others) if others else ():
            game.look_closer(arm, PAIRS_TO_COMPARE)
    except OutOfTime:  # it was only to say more
        return ""
    return grows(others, worst)


def _in_time(game: Game, compute: Callable[[], T]) -> T | None:
    """The outcome of a computation that is only shown; None if there is no time for it."""
    try:
        return compute()
    except OutOfTime as out:
        if not game.refuted:  # what is refuted stays so, shown or not
            game.context.refuse_hung(out)
        game.late = True
        return None


def _divergence(game: Game, winner: Arm) -> Distance | None:
    """How far apart the outputs on the pair that was bet on best are as a whole."""
    game.look_closer(winner, PAIRS_TO_CHOOSE)
    alpha = divergence.ALPHA_SHARE * game.context.alpha
    return divergence.count(game.context, game.pool, winner, alpha)


def _strongest(game: Game, known: list[Arm]) -> Strongest | None:
    """The strongest attack, on held-out samples."""
    left = game.context.max_samples
    if game.satisfied:
        left = max(MIN_SHOWN, int(RESERVE / (1 - RESERVE) * game.context.sampler.runs))
    return strongest(game.context, game.pool, known, game.refuted, left)
