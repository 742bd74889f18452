"""Faults in how audits are wired: samples, shares of alpha, verdicts."""

from __future__ import annotations

from faults import Fault

WIRING = "unit/test_auditors_wiring.py::"

FAULTS = (
    Fault(
        "bets-with-one-key",
        "auditors/pair_state.py",
        "key = purpose, self.number, *rest",
        "key = purpose, self.number",
        "Every batch is the one before: bets know what they are settled on.",
        WIRING + "test_no_random_numbers_are_drawn_twice",
    ),
    Fault(
        "tested-on-what-was-searched",
        "auditors/held_out.py",
        "Draw(pool.inputs[i], common, (Purpose.TEST, i, side))",
        "Draw(pool.inputs[i], common, (Purpose.SEARCH, i, side))",
        "Events are counted on the samples that chose them: selection inflates bounds.",
        WIRING + "test_no_random_numbers_are_drawn_twice",
    ),
    Fault(
        "restart-at-all-of-alpha",
        "auditors/sequential.py",
        "game = Game(context, Purpose.RESTART, 1 - COUPLED_SHARE,",
        "game = Game(context, Purpose.RESTART, 1.0,",
        "A game that starts again may spend alpha once more.",
        WIRING + "test_a_game_that_starts_again_has_only_the_share_that_is_left",
    ),
    Fault(
        "restart-on-the-same-samples",
        "auditors/sequential.py",
        "game = Game(context, Purpose.RESTART,",
        "game = Game(context, Purpose.BET,",
        "The second game bets on samples that the first has seen.",
        WIRING + "test_a_game_that_starts_again_has_only_the_share_that_is_left",
    ),
    Fault(
        "recount-at-all-of-alpha",
        "auditors/held_out.py",
        "return None if tested is None else replace(tested, share=1 - PAIRED_SHARE)",
        "return tested",
        "Who counts again spends alpha twice.",
        WIRING + "test_who_counts_again_has_only_the_share_that_is_left",
    ),
    Fault(
        "event-at-all-of-alpha",
        "auditors/held_out.py",
        '"event": alpha * (1 - ATTACK_SHARE if both else 1.0)',
        '"event": alpha',
        "Shares of an attack and of an event beside it sum to more than one.",
        WIRING + "test_an_attack_and_an_event_share_alpha",
    ),
    Fault(
        "divergence-for-nothing",
        "auditors/concluding.py",
        "share=tested.share * (1 - ALPHA_SHARE)",
        "share=tested.share",
        "A divergence is shown beside events that have spent all of alpha.",
        WIRING + "test_all_that_is_shown_spends_alpha_once",
    ),
    Fault(
        "red-at-the-claim",
        "auditors/dpsniper.py",
        "violated = lower > claimed",
        "violated = lower >= claimed",
        "A bound that equals the claim is called a violation of it.",
        WIRING + "test_a_bound_at_the_claim_does_not_break_it",
    ),
    Fault(
        "red-without-wealth",
        "auditors/game.py",
        "return self.refuted_before or self.ledger.refuted",
        "return self.refuted_before or self.ledger.log_e_value > 0",
        "Any gain turns a claim red.",
        WIRING + "test_red_is_wealth_of_one_over_alpha",
    ),
    Fault(
        "p-value-of-a-whole-game",
        "auditors/game.py",
        "return self.ledger.p_value / self.share",
        "return self.ledger.p_value",
        "The p-value forgets what a game that was given up has lost.",
        WIRING + "test_what_is_lost_in_a_game_that_was_given_up_is_lost",
    ),
    Fault(
        "confirmation-skipped",
        "auditors/__init__.py",
        "result = confirmed(context, audit_by(context))",
        "result = audit_by(context)",
        "A cache passes for missing noise.",
        WIRING + "test_what_is_kept_from_run_to_run_is_no_violation",
    ),
    Fault(
        "ledgers-mixed",
        "auditors/game.py",
        "return self.ledger_beyond if self.context.only_told(state.pair) else self.ledger",
        "return self.ledger",
        "What is found beyond the examples turns the claim red.",
        WIRING + "test_what_is_broken_beyond_the_examples_alone_is_told_beside_the_verdict",
    ),
    Fault(
        "blind-not-told",
        "auditors/concluding.py",
        "        sampler.note(BLIND, hinders=True)\n        return True\n",
        "        sampler.note(BLIND, hinders=True)\n",
        "An audit by which nothing is told apart gets a grade.",
        WIRING + "test_what_tells_no_inputs_apart_is_blind",
    ),
    Fault(
        "blind-not-told-of-fixed-tests",
        "auditors/two_stage.py",
        "if told_apart(apart) or not would_show(game.context.guarantee, runs, len(apart)):",
        "if True:",
        "The same, of audits that search and then test.",
        WIRING + "test_what_tells_no_inputs_apart_is_blind",
    ),
)
