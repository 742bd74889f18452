"""Faults in `auditing`: which pair is next, what is learned of outputs, what is bet on."""

from __future__ import annotations

from faults import Fault

AUDIT = "statistical/test_betting_audit.py::"
LOOP = "unit/test_auditing_betting_loop.py::"
SCORE = "unit/test_attacks_models.py::"

FAULTS = (
    Fault(
        "bets-on-what-it-saw",
        "betting/betting_loop.py",
        "            self.ledger.settle(portfolio, batch)\n",
        "            seen = status.record.with_batch(batch)\n"
        "            self.ledger.settle(self.ledger.stake(seen, prior), batch)\n",
        "Bets that have seen the batch they are settled on win by hindsight.",
        LOOP + "test_bets_are_fixed_before_their_batch_is_drawn",
    ),
    Fault(
        "detector-counts-what-it-learned-from",
        "betting/detector.py",
        "return (early, ~early), (~early, early)",
        "return (early, early), (~early, ~early)",
        "Bets are weighted by counts that flatter them, and lose.",
        LOOP + "test_counts_of_outputs_that_tell_nothing_are_not_flattered",
    ),
    Fault(
        "weights-without-their-penalty",
        "betting/additive.py",
        "change = steps[k] @ (surplus - penalties[k] @ weights[k])",
        "change = steps[k] @ surplus",
        "Few outputs are learned by heart.",
        SCORE + "test_weights_are_those_of_the_penalised_likelihood",
    ),
    Fault(
        "queue-takes-the-least-promising",
        "betting/betting_loop.py",
        "best = max(open_pairs,",
        "best = min(open_pairs,",
        "Outputs are drawn on pairs that cannot win.",
        LOOP + "test_the_largest_bound_is_next_once_all_were_looked_at",
    ),
    Fault(
        "pairs-outside-in-the-ledger-of-the-claim",
        "auditors/betting_audit.py",
        "            is_apart=session.is_report_only,\n",
        "",
        "What is found outside of the declared inputs turns the claim red.",
        AUDIT + "test_what_is_broken_outside_of_the_declared_inputs_is_told_beside_the_verdict",
    ),
    Fault(
        "pairs-outside-in-claims-that-look-for-none",
        "auditors/session.py",
        'self.settings.beyond != "fail"',
        'self.settings.beyond == "tell"',
        "A red build shows a pair outside of the declared inputs, and advises to look for none.",
        "statistical/test_beyond_the_examples.py::"
        "test_a_violation_inside_is_simplified_inside_whether_or_not_others_are_looked_for",
    ),
    Fault(
        "pairs-outside-on-the-samples-of-the-claim",
        "auditors/betting_audit.py",
        "known, key = self.known.of_pairs(session, pairs, found=False), Purpose.OUTSIDE",
        "known, key = self.known.of_pairs(session, pairs, found=False), Purpose.BET",
        "The second audit draws the random numbers of the first again.",
        AUDIT + "test_pairs_outside_are_audited_on_samples_of_their_own",
    ),
    Fault(
        "known-losses-need-no-runs",
        "auditors/betting_audit.py",
        "self.satisfied = not self.is_refuted and checks.accepts_pass()",
        "self.satisfied = not self.is_refuted and checks.is_within",
        "A pass rests on a computed loss that real runs refute.",
        AUDIT + "test_a_known_loss_that_real_runs_do_not_bear_out_is_no_pass_by_itself",
    ),
)
