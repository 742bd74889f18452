"""Faults in runs of the mechanism: inputs, random numbers, time; and in what is learned of them."""

from __future__ import annotations

from faults import Fault

STREAMS = "unit/test_sampling_streams.py::"
DEADLINES = "unit/test_sampling_deadlines.py::"
MEASURE = "unit/test_sampling_measure.py::"

SYMBOLIC = "unit/test_symbolic.py::"

FAULTS = (
    Fault(
        "branch-as-its-other-side",
        "proposers/trace.py",
        "return self.condition if self.held else z3.Not(self.condition)",
        "return z3.Not(self.condition) if self.held else self.condition",
        "Inputs are asked for that never come to the branch that they are for.",
        SYMBOLIC + "test_arithmetic[branches-whole]",
    ),
    Fault(
        "params-louder",
        "proposers/proposing.py",
        "values = self._questions.solve_least(runs.facts, total)",
        "values = self._questions.solve_least(runs.facts, -total)",
        "Arguments are tried at which the noise hides what leaks.",
        SYMBOLIC + "test_arguments_are_those_of_least_noise_on_which_answers_part",
    ),
    Fault(
        "chunks-with-one-key",
        "running/chunks.py",
        "return [Chunk(runs, (*draw.key, i), draw.shared)",
        "return [Chunk(runs, (*draw.key, 0), draw.shared)",
        "All chunks of a draw, in whichever worker, repeat the first one's outputs.",
        MEASURE + "test_chunks_are_small_and_cover_a_draw_in_order",
    ),
    Fault(
        "seed-whatever-the-code",
        "running/generators.py",
        'digest = hashlib.sha256(f"{name}\\0{source}".encode()).digest()',
        'digest = hashlib.sha256(f"{name}".encode()).digest()',
        "A bug that one seed misses is missed for ever.",
        STREAMS + "test_seeds_come_from_name_and_source",
    ),
    Fault(
        "use-of-a-source-unseen",
        "running/generators.py",
        "_comparable(state_of(self._sources[k])) == before for k, before in self._before.items()",
        "before is not None for k, before in self._before.items()",
        "Runs that draw on numpy's global generator are taken for functions of their stream.",
        "unit/test_sampling_coupled.py::test_a_source_that_is_used_is_not_idle",
    ),
    Fault(
        "time-out-swallowed",
        "running/deadline.py",
        '            raise OutOfTime(up.stack if is_hung else "") from None',
        "            return",
        "What was interrupted passes for what has ended.",
        DEADLINES + "test_a_computation_is_given_up",
    ),
    Fault(
        "changed-input-kept",
        "running/chunks.py",
        "return replace(call, input=dataset.fresh) if self.copies else call",
        "return call",
        "A mechanism that changes its input is audited on other inputs.",
        "unit/test_sampling_calls.py::test_a_changed_input_is_given_afresh",
    ),
    Fault(
        "noise-not-compared",
        "running/sampler.py",
        "if summary.noise and self._noises.setdefault(chunk, summary.noise) != summary.noise:",
        "if False:",
        "Two inputs are taken to share random numbers that they do not share.",
        "unit/test_sampling_aligned.py::test_the_noise_of_two_inputs_is_compared_over_several_calls",
    ),
    Fault(
        "group-ignored-by-the-promise",
        "claiming/claim.py",
        "return of_group(promised, relation.group) if isinstance(relation, OfRecords)",
        "return promised if isinstance(relation, OfRecords)",
        "A group is promised what one unit is.",
        "unit/test_claim.py::test_every_notion_of_privacy",
    ),
    Fault(
        "neighbours-two-records-apart",
        "data/record_relations.py",
        "if len(steps) <= self.group else self._too_far(steps)",
        "if len(steps) <= self.group + 1 else self._too_far(steps)",
        "A right mechanism is called broken on inputs that are no neighbours.",
        "unit/test_relations.py::test_neighbours_differ_in_no_more_records_than_their_group",
    ),
    Fault(
        "one-tail-for-two",
        "statistics/count_tests.py",
        "2 * math.exp(min(log_tail(*first, *other), log_tail(*other, *first)))",
        "math.exp(min(log_tail(*first, *other), log_tail(*other, *first)))",
        "Independent runs are refused twice as often as said.",
        "unit/test_evidence.py::test_two_samples_are_compared_as_by_fisher",
    ),
    Fault(
        "share-of-ties-ignored",
        "methods/dpsniper.py",
        "return Attack(model, sign, threshold, (c * n - above) / at)",
        "return Attack(model, sign, threshold, 1.0)",
        "An attack of DP-Sniper is likelier than c, on which its bound rests.",
        "unit/test_attacks_models.py::test_a_fixed_share_is_covered_exactly",
    ),
    Fault(
        "an-answer-asked-for-twice",
        "black_boxes/boxes.py",
        "raise ConnectionLost(type(error).__name__) from None",
        'return "" if "again" in params else self._ask(sent, {**params, "again": 1})',
        "A service that crashes on one person's data looks sound: its crash is asked away.",
        "unit/test_black_boxes.py::test_what_a_service_answers_is_never_asked_for_twice",
    ),
    Fault(
        "a-log-as-an-output",
        "black_boxes/boxes.py",
        '__slots__ = ("stderr",)',
        "__slots__ = ()",
        "A program is called broken for what it writes to its log.",
        "unit/test_black_boxes.py::test_an_exit_code_is_an_output_and_a_log_is_shown_only",
    ),
    Fault(
        "no-answer-as-an-output",
        "running/calling.py",
        "not isinstance(error, Exception | SystemExit) or isinstance(error, CannotRun)",
        "not isinstance(error, Exception | SystemExit)",
        "A program is called broken because it is slow, or because its service went down.",
        "unit/test_black_boxes.py::test_what_says_nothing_of_privacy_ends_an_audit",
    ),
    Fault(
        "draws-outside-unseen",
        "running/modules.py",
        "    if event in _OUTSIDE:",
        "    if False:",
        "What another process draws is taken for no randomness: `exact`, and wrong.",
        "unit/test_exact_draws.py::test_refused_with_a_reason",
    ),
)
