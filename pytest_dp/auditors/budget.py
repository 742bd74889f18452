"""The budget of an audit: time, runs of the mechanism, and alpha.

No other module of the kernel reads a clock, or divides alpha and samples. Samples depend on counts
and outputs alone: a deadline only cuts off work that takes longer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from pytest_dp.basics import clocks
from pytest_dp.basics.clocks import QUIET_SECONDS, Stopwatch
from pytest_dp.basics.errors import MechanismError
from pytest_dp.claiming.settings import Settings
from pytest_dp.running.deadline import Deadline, OutOfTime, within
from pytest_dp.running.sampler import Sampler

# Shares of alpha
COUPLED_SHARE = 0.95
"""Share of alpha for bets on coupled draws; what is left is for a start without them."""
DIVERGENCE_SHARE = 0.5
"""Share of alpha for a divergence shown beside events. Larger: events need more samples."""
SHARE_OF_FEW = 0.02
"""Share of alpha for counts that time has ended. Larger: all counts show less."""

# Shares of the samples
RESERVE = 0.1
"""Share of the samples kept to count an event and run copies. Smaller: bounds are wider."""
OUTSIDE_RESERVE = 0.05
"""Share of the samples kept for pairs outside of the declared inputs. Larger: fewer bets inside."""
OUTSIDE_SHARE = 0.25
"""Share of the samples for such pairs at most. Smaller: small violations are missed."""
MAX_CONFIRMING_RUNS = 2_048
"""Runs kept to confirm a violation, at most. Fewer: large efforts confirm little."""
MIN_CONFIRMING_RUNS = 80
"""The same at least, up to a seventh of the effort: 32 copied runs on either input, and some
more."""
SHOWN_RUNS = 16_000
"""Runs that show a violation that was soon found. More take longer; fewer: bounds are wider."""
TIMES_SHOWN = 2
"""Runs that show a violation, by the runs that refuted the claim. Fewer: bounds are wider."""

# Time
OVERTIME = 0.05
"""Share of the time for conclusions after its end. Smaller: nothing is concluded."""
CONFIRMING_TIME = 0.5
"""Share of the time left that confirms a violation. Larger: less is shown of slow mechanisms."""
SHOWN_SECONDS = 5.0
"""Seconds to show a violation that was soon found. More: a red build waits."""
SHOWN_SHARE = 0.2
"""The same as a share of the time spent, where that is more."""
MIN_SECONDS = 0.25
"""Seconds of each step that confirms a violation, in any case. More: audits end later."""
BLAME_SECONDS = 3.0
"""Seconds in which lines are blamed. Fewer: no line is named for slow mechanisms."""
MIN_BLAME_SECONDS = 0.1
"""Seconds that are left for it in any case. Fewer: nothing is named where time is up."""

T = TypeVar("T")


def start_watch() -> Stopwatch:
    """Return a new stopwatch that is running."""
    return Stopwatch()


def compute_within(seconds: float, function: Callable[[], T]) -> T:
    """Run a function and return its value; raise OutOfTime if it takes longer than `seconds`."""
    return within(seconds, function)


class Budget:
    """The time, runs of the mechanism, and alpha that an audit may spend, and the rest of each.

    Time counts from the start of `watch`. Once the claim is refuted (`start_reporting`),
    `shown_runs` is the number of runs that show the violation, and `report_deadline` is the time at
    which its report is cut off; None before.
    """

    def __init__(self, settings: Settings, sampler: Sampler, watch: Stopwatch) -> None:
        self.alpha, self.max_samples = settings.alpha, settings.max_samples
        self.max_seconds = float(settings.max_seconds)
        self._sampler, self._started = sampler, clocks.seconds()
        self.deadline = Deadline(self.max_seconds, watch=watch)
        self._end = Deadline((1 + OVERTIME) * self.max_seconds, watch=watch)
        self.report_deadline: Deadline | None = None
        self.shown_runs = SHOWN_RUNS

    # Samples

    @property
    def runs_used(self) -> int:
        """The number of runs so far, with traced runs and replays, on which nothing is bet."""
        return self._sampler.runs + self._sampler.looked

    @property
    def runs_left(self) -> int:
        """The number of runs that are left; negative if more were made than allowed."""
        return self.max_samples - self.runs_used

    @property
    def to_test(self) -> int:
        """The number of runs left for a test, without the runs that confirm a violation; or 0."""
        return max(int(self.runs_left - min(self._reserve, MAX_CONFIRMING_RUNS)), 0)

    @property
    def _reserve(self) -> float:
        """The number of runs kept to count and confirm a violation; not whole."""
        least = min(MIN_CONFIRMING_RUNS, self.max_samples / 7)
        return max(RESERVE * self.max_samples, least)

    def most_bet(self, for_outside: float = 0.0) -> float:
        """Return the number of runs of the whole audit at which bets end; not whole.

        Keeps the share `for_outside` of the samples for pairs outside of the declared inputs.
        """
        return (1 - for_outside) * self.max_samples - self._reserve

    def limit_samples(self, most: int) -> None:
        """Set `max_samples` to `most` if it is larger."""
        self.max_samples = min(self.max_samples, most)

    def runs_in_time(self, share: float, *, quickest: bool = False) -> float:
        """Return how many runs fit into a share of the time left; infinite before the first run.

        Counts with the mean time of a run, or with that of the `quickest` run.
        """
        sampler = self._sampler
        cost = sampler.quickest_run if quickest else sampler.seconds_a_run or 0.0
        return share * max(self.deadline.remaining(), 0) / cost if cost else math.inf

    @property
    def most_outside(self) -> float:
        """The number of runs of the audit at which bets outside of the declared inputs end."""
        return self.runs_used + OUTSIDE_SHARE * self.max_samples

    # Time

    @property
    def seconds(self) -> float:
        """Wall-clock seconds since the budget was made."""
        return clocks.seconds() - self._started

    @property
    def run_text(self) -> str:
        """The mean time of a run as text, such as ``2.1 ms`` or ``0.3 s``."""
        cost = self._sampler.time_a_run or 0.0
        return f"{1e3 * cost:.2g} ms" if cost < 0.0995 else f"{cost:.2g} s"

    def deadline_in(self, seconds: float) -> Deadline:
        """Return a deadline `seconds` seconds from now."""
        return Deadline(seconds)

    def bets_deadline(self) -> Deadline:
        """Return the deadline of bets, which leaves a tenth of the time to show a violation."""
        return self.deadline.with_reserve(1 - RESERVE)

    def has_time(self, deadline: Deadline, runs: float = 0.0) -> bool:
        """Return whether `runs` runs end before a deadline; for 0, whether that is to come."""
        left, cost = deadline.remaining(), self._sampler.seconds_a_run or 0.0
        return runs * cost <= left if runs else left > 0

    def compute(self, function: Callable[[], T], deadline: Deadline, share: float = 1.0) -> T:
        """Return `function()`; raise OutOfTime after a share of the time until the deadline."""
        return within(share * deadline.remaining(), function)

    def conclude(self, function: Callable[[], T]) -> T:
        """Return `function()`; raise OutOfTime after the audit's time and its overtime."""
        return within(self.seconds_to_conclude, function)

    @property
    def seconds_to_conclude(self) -> float:
        """Seconds left of the time of the audit and its overtime; negative afterwards."""
        return self._end.remaining()

    @property
    def seconds_before_limit(self) -> float:
        """Seconds left of `max_seconds`, without overtime; negative afterwards."""
        return self.max_seconds - self._end.effort_seconds()

    # A violation, from when the claim is refuted

    def start_reporting(self) -> None:
        """Set `shown_runs`, `report_deadline` and `deadline` for the report of a refuted claim."""
        spent, left = self._end.effort_seconds(), self.seconds_to_conclude
        self.shown_runs = max(SHOWN_RUNS, TIMES_SHOWN * self._sampler.runs)
        self.report_deadline = Deadline(min(max(SHOWN_SECONDS, SHOWN_SHARE * spent), left))
        self.deadline = Deadline((1 - CONFIRMING_TIME) * left)

    @property
    def seconds_to_report(self) -> float:
        """Seconds until `report_deadline`; `seconds_to_conclude` if the claim is not refuted."""
        if self.report_deadline is None:
            return self.seconds_to_conclude
        return self.report_deadline.remaining()

    def confirming_deadline(
        self, runs: int, *, at_most_end: bool = False, more: float = 0.0
    ) -> Deadline:
        """Return the deadline of a step that confirms a violation by `runs` runs.

        The step lasts until `report_deadline`, or until the overtime ends if `at_most_end`; at
        least as long as the runs should take, and 0.25 s. `more` seconds are added.
        """
        least = max(runs * (self._sampler.seconds_a_run or 0.0), MIN_SECONDS)
        seconds = self.seconds_to_conclude if at_most_end else self.seconds_to_report
        return Deadline(max(seconds, least) + more)

    def counting_deadline(self, least: float) -> Deadline:
        """Return the deadline for counting a violation, at least `least` seconds from now."""
        return max(self.report_deadline or self.deadline, Deadline(least), key=Deadline.remaining)

    @property
    def seconds_to_explain(self) -> float:
        """Seconds that one explainer may take to find leaking lines: 3 at most, 0.1 at least."""
        left = max(self.seconds_to_report, min(QUIET_SECONDS, self.seconds_before_limit))
        return min(BLAME_SECONDS, max(left, MIN_BLAME_SECONDS))

    def refuse_hung(self, out: OutOfTime) -> None:
        """Raise MechanismError if time was up because the mechanism does not return.

        `out.stack` then has the place in its code. Otherwise does nothing.
        """
        if out.stack:
            raise MechanismError(
                f"{self._sampler.name} hangs: a run, or the reading of its output, did not end "
                f"within max_seconds={self.max_seconds:g}. It was here:\n{out.stack}"
            ) from None


def agree_with_verdict(p_value: float, alpha: float, *, violated: bool) -> float:
    """Return the p-value, at most alpha if the claim is `violated`, else raised above alpha."""
    return min(p_value, alpha) if violated else max(p_value, math.nextafter(alpha, 1))
