"""Faults in `auditing`: which pair is next, what is learned of outputs, what is bet on."""

from __future__ import annotations

from faults import Fault

LOOP = "unit/test_auditing_betting_loop.py::"
DETECTOR = "unit/test_auditing_detector.py::"
QUEUE = "unit/test_auditing_pair_queue.py::"
SCORE = "unit/test_auditing_additive_score.py::"

FAULTS = (
    Fault(
        "new-loop-bets-on-what-it-saw",
        "auditing/betting_loop.py",
        "            self.ledger.settle(portfolio, batch)\n",
        "            seen = status.record.with_batch(batch)\n"
        "            self.ledger.settle(self.ledger.stake(seen, prior), batch)\n",
        "Bets that have seen the batch they are settled on win by hindsight.",
        LOOP + "test_bets_are_fixed_before_their_batch_is_drawn",
    ),
    Fault(
        "detector-counts-what-it-learned-from",
        "auditing/detector.py",
        "halves = (early, ~early), (~early, early)",
        "halves = (early, early), (~early, ~early)",
        "Bets are weighted by counts that flatter them, and lose.",
        DETECTOR + "test_counts_of_outputs_that_tell_nothing_are_not_flattered",
    ),
    Fault(
        "weights-without-their-penalty",
        "auditing/additive_score.py",
        "change = steps[k] @ (surplus - penalties[k] @ weights[k])",
        "change = steps[k] @ surplus",
        "Few outputs are learned by heart.",
        SCORE + "test_weights_are_those_of_the_penalised_likelihood",
    ),
    Fault(
        "queue-takes-the-least-promising",
        "auditing/pair_queue.py",
        "best = max(open_pairs,",
        "best = min(open_pairs,",
        "Outputs are drawn on pairs that cannot win.",
        QUEUE + "test_the_largest_bound_is_next_once_all_were_looked_at",
    ),
)
