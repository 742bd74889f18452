"""Faults in how audits are wired: samples, shares of alpha, verdicts."""

from __future__ import annotations

from faults import Fault

WIRING = "unit/test_auditors_wiring.py::"

FAULTS = (
    Fault(
        "each-record-has-all-of-alpha",
        "methods/membership.py",
        "alpha = session.budget.alpha / len(promise.games.records)",
        "alpha = session.budget.alpha",
        "The more records a claim is about, the more often it is red by chance.",
        "unit/test_membership.py::test_each_record_has_its_share_of_alpha",
    ),
    Fault(
        "bets-with-one-key",
        "auditors/pair_state.py",
        "key = purpose, state.number, *rest",
        "key = purpose, state.number",
        "Every batch is the one before: bets know what they are settled on.",
        WIRING + "test_no_random_numbers_are_drawn_twice",
    ),
    Fault(
        "tested-on-what-was-searched",
        "auditors/held_out.py",
        "(Purpose.TEST, i, side, *batch))",
        "(Purpose.BET, 0, 0, side))",
        "Events are counted on the samples that chose them: selection inflates bounds.",
        WIRING + "test_no_random_numbers_are_drawn_twice",
    ),
    Fault(
        "restart-at-all-of-alpha",
        "auditors/sequential.py",
        "bets = start(session, Purpose.RESTART, 1 - COUPLED_SHARE,",
        "bets = start(session, Purpose.RESTART, 1.0,",
        "A game that starts again may spend alpha once more.",
        WIRING + "test_a_game_that_starts_again_has_only_the_share_that_is_left",
    ),
    Fault(
        "restart-on-the-same-samples",
        "auditors/sequential.py",
        "bets = start(session, Purpose.RESTART,",
        "bets = start(session, Purpose.BET,",
        "The second game bets on samples that the first has seen.",
        WIRING + "test_a_game_that_starts_again_has_only_the_share_that_is_left",
    ),
    Fault(
        "beyond-for-nothing",
        "methods/dpfinder.py",
        "result = _audit_pairs(session, inside, 1 - OUTSIDE_SHARE, session.pairs)",
        "result = _audit_pairs(session, inside, 1.0, session.pairs)",
        "What is told beside the verdict is tested at alpha once more.",
        WIRING + "test_what_is_told_beside_the_verdict_of_dpfinder_has_its_own_share",
    ),
    Fault(
        "imports-that-agree-with-each-other",
        "auditors/fresh_starts.py",
        "zip(here, *drawn, strict=True)",
        "zip(*drawn, strict=True)",
        "A coin that is thrown at the import, and falls alike in all others, is red.",
        "unit/test_importing_anew.py::"
        "test_what_all_new_imports_drew_alike_is_held_against_the_first",
    ),
    Fault(
        "counts-cut-off-for-nothing",
        "auditors/held_out.py",
        "proof(guarantee).bound(tested.counts, tested.share * alpha)",
        "proof(guarantee).bound(tested.counts, 2 * alpha)",
        "Counts that are shown spend more than alpha.",
        WIRING + "test_all_that_is_shown_spends_alpha_once",
    ),
    Fault(
        "one-way-proof-turned-by-its-counts",
        "auditors/held_out.py",
        "proof(guarantee).bound(tested.counts, tested.share * alpha)",
        "proof(guarantee).bound(max(tested.counts, tested.counts.inputs_swapped, "
        "key=lambda one: one.c1), tested.share * alpha)",
        "A test that is one way spends twice its alpha.",
        WIRING + "test_proofs_get_counts_as_the_search_turned_them",
    ),
    Fault(
        "red-at-the-claim",
        "methods/two_stage.py",
        "violated = lower > claimed",
        "violated = lower >= claimed",
        "A bound that equals the claim is called a violation of it.",
        WIRING + "test_a_bound_at_the_claim_does_not_break_it",
    ),
    Fault(
        "red-without-wealth",
        "auditors/betting_audit.py",
        "return self.refuted_before or self.ledger.is_refuted",
        "return self.refuted_before or self.ledger.log_e_value > 0",
        "Any gain turns a claim red.",
        WIRING + "test_red_is_wealth_of_one_over_alpha",
    ),
    Fault(
        "p-value-of-a-whole-game",
        "auditors/betting_audit.py",
        "return self.ledger.p_value / self.share",
        "return self.ledger.p_value",
        "The p-value forgets what a game that was given up has lost.",
        WIRING + "test_what_is_lost_in_a_game_that_was_given_up_is_lost",
    ),
    Fault(
        "confirmation-skipped",
        "auditors/__init__.py",
        "finding = confirm_finding(session, refute_claim(session))",
        "finding = refute_claim(session)",
        "A cache passes for missing noise.",
        WIRING + "test_what_is_kept_from_run_to_run_is_no_violation",
    ),
    Fault(
        "blind-not-told",
        "auditors/sequential.py",
        "(advice_on_empty(bets.pool) or BLIND, hinders=True)\n        return True\n",
        "(advice_on_empty(bets.pool) or BLIND, hinders=True)\n",
        "An audit by which nothing is told apart gets a grade.",
        WIRING + "test_what_tells_no_inputs_apart_is_blind",
    ),
    Fault(
        "blind-not-told-of-fixed-tests",
        "methods/two_stage.py",
        "if fisher_p_value(counts.hits, counts.runs) < CHANCE_ALPHA "
        "or not can_detect_half_noise(bets):",
        "if True:",
        "The same, of audits that search and then test.",
        WIRING + "test_what_tells_no_inputs_apart_is_blind",
    ),
    Fault(
        "any-grade-is-enough",
        "plugin/check.py",
        "GRADES.index(result.strength) >= GRADES.index(at_least)",
        "GRADES.index(result.strength) >= GRADES.index(at_least) - 9",
        "A pass that is worth less than a claim asks for is green.",
        "unit/test_failure_shown.py::test_a_pass_below_the_floor_of_its_claim_is_red",
    ),
)
