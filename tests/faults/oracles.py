"""Faults in alignments of draws, in the screening of pairs and in the search for events."""

from __future__ import annotations

from faults import Fault

ORACLES = "unit/test_oracles.py::"
LEAKS = ORACLES + "test_mechanisms_that_leak_have_no_alignment"

FAULTS = (
    Fault(
        "gaussian-shifts-added",
        "oracles/shifts.py",
        "squares += float(np.square(steps).sum())",
        "squares += float(np.abs(steps).max()) ** 2",
        "Of many Gaussian draws the one that moves farthest counts alone.",
        ORACLES + "test_gaussian_noise_is_bounded_by_mu",
    ),
    Fault(
        "largest-step-of-an-array",
        "oracles/shifts.py",
        "np.where(moved > 0, up, down)).sum())",
        "np.where(moved > 0, up, down)).mean())",
        "Of an array of Laplace draws, the mean of the losses is taken for their sum.",
        ORACLES + "test_noise_loses_what_is_known",
    ),
    Fault(
        "renyi-without-order",
        "oracles/shifts.py",
        "max(order * self.mu**2 / 2 / unit",
        "max(self.mu**2 / 2 / unit",
        "The divergence of a large order is bounded by that of order 1.",
        "unit/test_aligned_audits.py::"
        "test_bounds_on_renyi_divergences_are_those_of_gaussian_draws_alone",
    ),
    Fault(
        "scales-by-draws",
        "oracles/checking.py",
        "if before.law is not None and not before.has_law_of(each):",
        "if before.law is not None and before.law != each.law:",
        "The scale of a draw may depend on others that are not moved alike.",
        LEAKS,
    ),
    Fault(
        "identifiers-are-rounded",
        "oracles/checking.py",
        "small and not (_is_whole(left) and _is_whole(right))",
        "small",
        "Long identifiers of two records are taken for one number but for rounding.",
        LEAKS,
    ),
    Fault(
        "moves-of-the-cheapest-replay",
        "oracles/shifts.py",
        "max(bounds, key=lambda bound: bound.pure + bound.mu).replay,",
        "min(bounds, key=lambda bound: bound.pure + bound.mu).replay,",
        "Draws are said to move as far as in the replay with the smallest loss.",
        "unit/test_oracles.py::test_losses_of_lines_add_up_to_that_of_the_pair",
    ),
    Fault(
        "no-draws-from-tails",
        "oracles/alignment.py",
        "tails = int(TAIL_SHARE * each)",
        "tails = 0",
        "What noise far out selects is not looked at.",
        LEAKS,
    ),
    Fault(
        "kept-between-replays",
        "oracles/alignment.py",
        "        direction.check_repeatable(shifts.replays[-1])",
        "        direction.outputs(shifts.replays)",
        "A mechanism that keeps its first answer is aligned with any other.",
        LEAKS,
    ),
    Fault(
        "turned-shift-not-turned",
        "oracles/direction.py",
        "back = {number: -moved for number, moved in shift.items()}",
        "back = dict(shift)",
        "A shift upwards of one-sided noise is taken for one downwards as well.",
        ORACLES + "test_shift_of_one_sided_noise_does_not_bound_the_other_direction",
    ),
    Fault(
        "quantiles-left-to-chance",
        "oracles/handing_out.py",
        "u = (strata + generator.uniform(1e-9, 1, strata.shape)) / max(self.from_laws, 1)",
        "u = generator.uniform(1e-9, 1, strata.shape)",
        "A branch that is taken in 1 of 60 runs is missed by 60 replays in one case of three.",
        ORACLES + "test_replays_reach_each_quantile_of_each_draw",
    ),
    Fault(
        "few-pairs-are-enough",
        "proposers/by_movement.py",
        "is_all or done + more >= wanted",
        "is_all or done + more >= 1",
        "A pass rests on the loss of a pair that is the largest of a few.",
        "unit/test_sensitivity_screening.py::test_a_pass_on_too_few_screened_pairs_does_not_rest_on_them",
    ),
)
