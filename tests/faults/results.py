"""Faults in what is said, and in what lasts: reports, claims on record, evidence, identity."""

from __future__ import annotations

from faults import Fault

FILES = "unit/test_report_files.py::"
CHANGED = "unit/test_records.py::test_what_has_changed"
ACCUMULATED = "unit/test_accumulated.py::"
IDENTITY = "unit/test_code_identity.py::"

FAULTS = (
    Fault(
        "infinite-told-as-0",
        "report/record.py",
        "return None if lower == math.inf else _finite(lower) or 0.0",
        "return _finite(lower) or 0.0",
        "A mechanism without any noise is told to lose nothing.",
        FILES + "test_an_infinite_bound_is_told_as_infinite",
    ),
    Fault(
        "violation-dropped-from-sarif",
        "report/alarms.py",
        "told = (told for record in records if",
        "told = (told for record in records[1:] if",
        "Code scanning never hears of a violation.",
        FILES + "test_sarif_has_what_alarms",
    ),
    Fault(
        "expected-ones-alone-in-gitlab",
        "report/alarms.py",
        "if record.status in ALARMS and not told.expected",
        "if record.status in ALARMS and told.expected",
        "A merge request never hears of a violation.",
        FILES + "test_gitlab_has_what_alarms",
    ),
    Fault(
        "bound-written-rounded-up",
        "report/numbers.py",
        'text = _significant(value, digits, "down")',
        'text = _significant(value, digits, "up")',
        "The bound that people read is more than was shown.",
        "unit/test_report_numbers.py::test_bounds_on_eps_round_to_the_honest_side",
    ),
    Fault(
        "p-value-written-rounded-down",
        "report/numbers.py",
        'return _significant(value, 1, "up")',
        'return _significant(value, 1, "down")',
        "The p-value that people read is less than it is.",
        "unit/test_report_numbers.py::test_numbers",
    ),
    Fault(
        "pass-of-other-code",
        "records/passes.py",
        "if known != (VERSION, claim, identity):",
        "if known[:2] != (VERSION, claim):",
        "A claim whose code has changed is told to be unchanged.",
        ACCUMULATED + "test_a_pass_is_found_by_the_same_claim_and_identity_alone",
    ),
    Fault(
        "fair-called-strong",
        "results/result.py",
        "is_strong = below(self.resolution) <= STRONG *",
        "is_strong = below(self.resolution) <= FAIR *",
        "A pass is given a better grade than it is worth.",
        "unit/test_report_records.py::test_the_strength_of_a_pass",
    ),
    Fault(
        "weaker-counts-as-stronger",
        "records/comparing.py",
        "verdict = STRONGER if forth else WEAKER if back else OTHER",
        "verdict = STRONGER if forth or back else OTHER",
        "A claim on record becomes weaker, and nobody is told.",
        CHANGED,
    ),
    Fault(
        "less-effort-counts-as-more",
        "records/comparing.py",
        "return STRONGER if after > before else WEAKER\n\n\ndef _falling",
        "return STRONGER\n\n\ndef _falling",
        "An audit looks less hard than on record, and nobody is told.",
        CHANGED,
    ),
    Fault(
        "smaller-group-counts-as-stronger",
        "records/comparing.py",
        '    "group": _rising,\n',
        '    "group": lambda before, after: STRONGER,\n',
        "A group gets smaller, and nobody is told.",
        CHANGED,
    ),
    Fault(
        "seed-counts-twice",
        "records/evidence.py",
        "others = [run for run in runs if run.seed != seed]",
        "others = list(runs)",
        "Evidence of one run multiplies with itself.",
        ACCUMULATED + "test_a_seed_counts_once",
    ),
    Fault(
        "evidence-whatever-the-claim",
        "records/evidence.py",
        "said: list[Any] = [promise.guarantee, promise.relation]",
        "said: list[Any] = [promise.relation]",
        "Evidence against one claim counts against another.",
        ACCUMULATED + "test_evidence_is_about_one_promise",
    ),
    Fault(
        "refuted-and-forgotten",
        "records/evidence.py",
        "        if everything.refutes(alpha):\n            return everything\n",
        "",
        "A later run takes back what an earlier one has refuted.",
        ACCUMULATED + "test_once_refuted_stays_refuted_in_each_short_history",
    ),
    Fault(
        "constants-of-modules-ignored",
        "records/code.py",
        'text = digest(repr((space.get("__name__"), code, held)))',
        'text = digest(repr((space.get("__name__"), held)))',
        "Evidence of old code is kept though a constant changed.",
        IDENTITY + "test_an_edit_is_new",
    ),
    Fault(
        "imports-ignored",
        "records/code.py",
        "            ahead += module.reached\n",
        "",
        "Evidence of old code is kept though a module that it imports changed.",
        IDENTITY + "test_an_edit_is_new",
    ),
    Fault(
        "source-not-compared",
        "datasets/source.py",
        "return code if key(made) == key(value) else None",
        "return code",
        "The file of a pair holds other data than those which broke the claim.",
        "unit/test_datasets_source.py::test_what_cannot_be_written_is_left_out",
    ),
    Fault(
        "fields-equal-one-by-one",
        "blame/idle.py",
        "alike([*idle, *some], TRIAL_RUNS)",
        "alike(some, TRIAL_RUNS)",
        "Of two fields of which either suffices, both are said to change nothing, or none.",
        "unit/test_blame_idle.py::test_they_change_nothing_together",
    ),
    Fault(
        "records-mixed-inside-a-claim",
        "search/shrinking.py",
        "if not mixes and len(columns) > 1:",
        "if False:",
        "A wide table is shrunk to records that no example holds: minutes, and nothing is shown.",
        "unit/test_search_shrinking.py::test_inside_a_claim_records_stay_those_that_it_gives",
    ),
)
