"""Notes at the end of an audit by bets: where pairs came from, and what was not done."""

from __future__ import annotations

from collections.abc import Sized

from pytest_dp.auditors.betting_audit import BettingAudit
from pytest_dp.auditors.held_out import CUT_OFF
from pytest_dp.auditors.pair_state import PairState
from pytest_dp.auditors.presentation import movement_sentence
from pytest_dp.basics.reprs import plural
from pytest_dp.pairs.unreached import lines_in_words
from pytest_dp.report import numbers

LONG_DATASET = 300
"""Records from which a slow audit is advised to take fewer. Larger and smaller: advice alone."""


def note_if_late(bets: BettingAudit) -> None:
    """Note that an audit was cut off, and what it has not come to."""
    session = bets.session
    if (
        bets.late
        and session.budget.report_deadline is not None
        and session.budget.seconds_before_limit > 0
    ):
        session.sampler.note(CUT_OFF)
    elif bets.late:
        session.sampler.note(
            f"cut off after max_seconds={session.settings.max_seconds:g}, with "
            f"{session.sampler.runs:,} of {session.budget.max_samples:,} samples{_undone(bets)}"
        )
        needed = bets.runs_needed
        if session.sampler.runs < needed / 4:
            about = round(needed, 1 - len(str(needed)))
            takes = numbers.format_seconds(session.budget.work(about))
            refusal = bets.known.refusal
            traced = f"No loss was found by tracing a few runs ({refusal}). " if refusal else ""
            session.sampler.note(
                f"the margin takes about {about:,} runs, {takes} of work in one process. {traced}"
                f"What may help: {_quicker(bets)}"
            )


def _undone(bets: BettingAudit) -> str:
    """Return which pairs and searches a stopped audit left undone, in words; empty if none."""
    queue = bets.queue
    unseen = queue.claimed - len([s for s in queue.seen_given if s.binnings])
    left = [f"{unseen:,} of {plural(queue.claimed, 'pair')} not looked at well"] * (unseen > 0)
    left += ["the search for further inputs not finished"] * (not queue.source.exhausted)
    return "".join(f"; {part}" for part in left)


def _quicker(bets: BettingAudit) -> str:
    """Return what makes audits of such a mechanism quicker."""
    sizes = (len(s.pair.d1) for s in bets.seen if isinstance(s.pair.d1, Sized))
    longest = max(sizes, default=0)
    ways = {
        "vectorized=, if one call can give many outputs": bets.session.call.size is None,
        f"inputs of fewer than {longest:,} records": longest > LONG_DATASET,
        "composes=, if parts of it have claims of their own": True,
        "a larger max_seconds, for runs at night": True,
    }
    return "; ".join(way for way, is_apt in ways.items() if is_apt)


def note_origin(bets: BettingAudit, broken: PairState, shown: PairState) -> None:
    """Note where the pair comes from that broke the claim, if it was proposed by what it shows."""
    same = broken.pair is shown.pair
    which = "this pair" if same else "the pair that this one was simplified from"
    screened = bets.session.screened
    is_largest = screened.screened > 1 and broken.pair.content == screened.pairs[0].content
    if is_largest and not movement_sentence(screened, bets.session.guarantee):  # which says more
        tried = f"of {screened.screened:,} pairs that were run without noise"
        bets.session.sampler.note(f"{tried}, the answer moves most on {which}")
    if broken.pair.origin:
        bets.session.sampler.note(f"a search proposed {which}: {broken.pair.origin}")


def note_searched(bets: BettingAudit) -> None:
    """Note how many pairs a search proposed, and what it could not do."""
    proposed = bets.queue.source.proposed_by
    if proposed:
        parts = ", ".join(f"{count:,} by {name}" for name, count in proposed.items())
        total = sum(proposed.values())
        bets.session.sampler.note(f"a search proposed {plural(total, 'more pair')}: {parts}")
    for note in bets.queue.source.notes():
        bets.session.sampler.note(note)


def note_unreached(bets: BettingAudit) -> tuple[str, ...]:
    """Return places in the mechanism's code that no input reached, with a note."""
    places = bets.queue.source.screener.unreached()
    if places:
        bets.session.sampler.note(lines_in_words(places), hinders=True)
    return tuple(map(str, places))
