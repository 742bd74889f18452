"""Membership games without a claim: `membership_risk` estimates how well attacks do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.arrays import Floats
from pytest_dp.basics.errors import ClaimError, invalid
from pytest_dp.basics.reprs import SHORT_LENGTH, on_one_line
from pytest_dp.claiming.claim import Arguments, expand
from pytest_dp.claiming.method_settings import Membership
from pytest_dp.claiming.more_declarations import Riskiest
from pytest_dp.claiming.setting_fields import read_whole_number
from pytest_dp.claiming.settings import seed_of
from pytest_dp.data.equality import key
from pytest_dp.data.types import type_of
from pytest_dp.methods.membership import both_sides, draw_quantities, example_output
from pytest_dp.methods.membership_attacks import RAISED, cross_fitted_area, quantities_of
from pytest_dp.pairs import resolve_promise
from pytest_dp.pairs.resolving import resolve_data
from pytest_dp.pairs.targets import Target
from pytest_dp.running.calling import Call, prepare
from pytest_dp.running.chunks import Input
from pytest_dp.running.deadline import Deadline, OutOfTime, ended_if_hung
from pytest_dp.running.generators import Purpose, claim_seed
from pytest_dp.running.sampler import Sampler, SampleRequest

MIN_RUNS = 8
"""Runs of the training, at least. With fewer, half of them may hold no record."""
UNTESTED_AUC = 0.9
"""An AUC for the claim that reads the keywords; it is never tested."""

Areas = tuple[float, float]
"""An AUC and its standard error."""


@dataclass(frozen=True, slots=True)
class RecordRisk:
    """A record with the results of its membership games.

    Attributes
    ----------
    record : str
        Where it stands in the data: ``"record 17"``.
    value : str
        The record, shortened.
    fixed : (float, float)
        The AUC of the model-seeded game, R_MS, and its standard error: the data stays as it is.
    drawn : (float, float) or None
        The same of the traditional game, R_T: other records are drawn anew for each run. None
        without a population. It is for comparison only: an average over data that nobody released.
    """

    record: str
    value: str
    fixed: Areas
    drawn: Areas | None = None


@dataclass(frozen=True, slots=True)
class MembershipRisk:
    """A list of records with the results of their games; made by `membership_risk`.

    Attributes
    ----------
    records : tuple of RecordRisk
    runs : int
        Outputs with each record, and the same number without, in each game.
    """

    records: tuple[RecordRisk, ...]
    runs: int

    def __str__(self) -> str:
        """Return a line for each record, the most at risk first."""
        lines = [f"{'record':>12}  {'R_MS':>12}  {'R_T':>12}"]
        for one in sorted(self.records, key=lambda one: -one.fixed[0]):
            shown = [_write_area(one.fixed), "-" if one.drawn is None else _write_area(one.drawn)]
            lines.append(f"{one.record:>12}  {shown[0]:>12}  {shown[1]:>12}  {one.value}")
        return "\n".join(lines)

    def _read_both_games(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return R_MS, its errors, R_T and its errors; raise ClaimError if R_T is missing."""
        if any(one.drawn is None for one in self.records):
            raise ClaimError(
                "There is no traditional game to compare with. Write population=, the data that "
                "other datasets are drawn from."
            )
        rows = [(*one.fixed, *one.drawn) for one in self.records if one.drawn is not None]
        fixed, error, drawn, other = np.array(rows).T
        return fixed, error, drawn, other

    @property
    def rmsd(self) -> Areas:
        """The root mean squared deviation of R_T from R_MS, and its standard error.

        The errors of the estimates are subtracted: with 300 runs, they alone would look like .035.
        The standard error assumes independent records, though their games share the outputs without
        any of them, or with all. It is a little too small, and unreliable for a few records.
        """
        fixed, error, drawn, other = self._read_both_games()
        squares = (fixed - drawn) ** 2 - error**2 - other**2
        mean = float(squares.mean())
        spread = float(squares.std(ddof=1) / math.sqrt(len(squares))) if len(squares) > 1 else 1.0
        root = math.sqrt(max(mean, 0.0))
        return root, math.sqrt(max(mean, 0.0) + spread) - root

    def miss_rate(self, threshold: float) -> MissRate:
        """Count records with an R_MS of the threshold or more, and those with an R_T below it.

        Raises ClaimError without a population.
        """
        fixed, _, drawn, _ = self._read_both_games()
        high = fixed >= threshold
        return MissRate(int((high & (drawn < threshold)).sum()), int(high.sum()))


@dataclass(frozen=True, slots=True)
class MissRate:
    """A count of high-risk records, and of those that the traditional game takes for low risks.

    Attributes
    ----------
    missed, high : int
        How many records the traditional game misses, and how many are at high risk.
    """

    missed: int
    high: int

    @property
    def share(self) -> float:
        """The miss rate; NaN if no record is at high risk."""
        return self.missed / self.high if self.high else math.nan


@ended_if_hung
def membership_risk(  # noqa: PLR0913  each is a keyword that a user may write
    mechanism: Callable[..., Any],
    *,
    data: Any,
    records: Riskiest | Sequence[Any],
    population: Any = None,
    runs: int = 300,
    score: Callable[[Any, Any], Any] | None = None,
    features: Callable[[Any], Any] | None = None,
    classifier: Any = None,
    params: Mapping[str, Any] | None = None,
    rng: str = "rng",
    seed: int | str | None = None,
    n_jobs: int = 1,
    max_seconds: float = 3_600.0,
) -> MembershipRisk:
    """Estimate how well an attack tells whether records are in the data, with error bars.

    Each game is played by half of the outputs with an attack that was learned from the other half,
    both ways round. Unlike an audit of `risk_claim`, it takes all of its runs, and proves nothing.

    Parameters
    ----------
    mechanism : callable
        ``synthesise(data, rng)`` or ``train(data, rng)``.
    data, records, score, features, params, rng : optional
        As of `risk_claim`.
    population : dataset, callable or str, optional
        Data from which datasets of the same size are drawn for the traditional game. Targets that
        are in it are left out.
    runs : int, optional
        Outputs with each record, and the same number without. All games share the outputs without a
        record, or with all of them: n records take ``runs * (n + 1)`` trainings, and the
        traditional game takes the same number again.
    classifier : object, optional
        As of `Membership`.
    seed : int or str, optional
        Repeats the estimate.
    n_jobs : int, optional
        Processes.
    max_seconds : float, optional
        For all of it: what takes longer is an error.

    Returns
    -------
    MembershipRisk

    Raises
    ------
    ClaimError
        If a keyword makes no sense, a model cannot be asked, or it takes too long.
    MechanismError
        If every run raises.

    Examples
    --------
    >>> from pytest_dp import membership_risk
    >>> data = [[20, 1], [30, 0], [40, 1], [95, 7]]
    >>> def resampled(data, rng):
    ...     return [data[i] for i in rng.integers(len(data), size=20)]
    >>> found = membership_risk(resampled, data=data, records=[3], runs=40, seed=1)
    >>> found.records[0].fixed[0] > 0.9
    True
    """
    read_whole_number("runs", runs, f" of at least {MIN_RUNS}, such as 300", MIN_RUNS)
    read_whole_number("n_jobs", n_jobs, " of processes, 1 or more")
    said = {"data": data, "records": records, "score": score, "features": features, "rng": rng}
    said |= {"params": params, "max_seconds": max_seconds, "method": Membership(classifier)}
    claims = expand({**said, "auc": UNTESTED_AUC})  # of which nothing is tested
    if len(claims) > 1:
        raise ClaimError(
            f"params gives {len(claims)} mechanisms; membership_risk() takes one. Call it in a "
            "loop."
        )
    promise, effort = resolve_promise(claims[0].promise), claims[0].effort
    assert promise.games is not None
    found, targets = promise.inputs, promise.games.records
    call, chosen = prepare(mechanism, claims[0].arguments), seed_of(seed)
    plan = _Plan(
        (found, [(target.at, target.record, target.without) for target in targets]),
        (promise.games.score, features, effort["method"].classifier),
        claim_seed("risk", mechanism) if chosen is None else chosen,
        runs,
        n_jobs,
        Deadline(effort["max_seconds"]),
    )
    games: list[tuple[Call, Sequence[Any], int]] = []
    games.append((call, [found, *(target.without for target in targets)], 1))
    if population is not None:
        others = _without_targets(resolve_data(population, None), found, targets)
        drawing = prepare(_Drawing(call, others, found), Arguments())
        games.append((drawing, [-1, *(target.at for target in targets)], -1))
    try:
        played = [_play_games(*game, plan) for game in games]
    except OutOfTime:
        raise ClaimError(
            f"runs={runs} of {len(games) * (len(targets) + 1)} inputs did not end within "
            f"max_seconds={max_seconds:g}. Write a smaller number, or a longer time."
        ) from None
    fixed, drawn = (played[0], played[-1] if population is not None else [None] * len(targets))
    return MembershipRisk(
        tuple(
            RecordRisk(target.text, on_one_line(target.record, SHORT_LENGTH), one, other)
            for target, one, other in zip(targets, fixed, drawn, strict=True)
        ),
        runs,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """A set of settings that all games share."""

    about: tuple[Any, Sequence[tuple[int, Any, Any]]]
    """The data, and the targets as `quantities_of` takes them."""
    attack: tuple[Any, Any, Any]
    """The user's score, features and classifier."""
    seed: int
    runs: int
    n_jobs: int
    deadline: Deadline


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A mechanism whose data is drawn from a population for each run, but for the target record.

    Its input is the position of the target record, or -1 for data without a target.
    """

    call: Call
    population: Any
    data: Any

    @property
    def __name__(self) -> str:
        return getattr(self.call.mechanism, "__name__", "the mechanism")

    def __call__(self, at: int, rng: np.random.Generator) -> Any:
        kind = type_of(self.data)
        assert kind is not None
        size, many = kind.length(self.data) - 1, kind.length(self.population)
        chosen = rng.choice(many, size, replace=many < size).tolist()
        rows = kind.join_rows([self.population, self.data])
        given = kind.take_rows(rows, chosen if at < 0 else [*chosen, many + at])
        more = {} if self.call.rng is None else {self.call.rng: rng}
        return self.call.mechanism(given, **self.call.params, **more)


def _without_targets(population: Any, data: Any, targets: Sequence[Target]) -> Any:
    """Return the population without targets; raise ClaimError for another type or an empty rest."""
    kind, own = type_of(population), type_of(data)
    if kind is None or kind is not own or kind.detail(population) != kind.detail(data):
        raise invalid("population", population, "Allowed: a dataset of the type of data=.")
    wanted = {key(target.record) for target in targets}
    rest = [at for at, one in enumerate(kind.records(population)) if key(one) not in wanted]
    if not rest:
        raise invalid("population", population, "It holds only the target records.")
    return kind.take_rows(kind.join_rows([population]), rest)


def _play_games(call: Call, inputs: Sequence[Any], sign: int, plan: _Plan) -> list[Areas]:
    """Run the mechanism, and return the AUC of the game of each target with its standard error.

    The first of `inputs` is for all games, each of the others for one. `sign` is 1 if the first
    input has the records, and -1 if it has none of them. Raises OutOfTime, MechanismError if runs
    raise, and ClaimError if a model cannot be asked.
    """
    (data, targets), (score, features, classifier) = plan.about, plan.attack
    items = list(map(Input, inputs))
    sampler = Sampler(call, plan.seed, plan.n_jobs, plan.n_jobs > 1)
    with closing(sampler):
        sampler.warm_up(items[0], plan.deadline)
        example = example_output(sampler, items, plan.deadline)
        shown = quantities_of(example, data, targets, plan.seed, score, features)
        draws = [SampleRequest(item, plan.runs, (Purpose.BET, at)) for at, item in enumerate(items)]
        drawn = draw_quantities(sampler, shown, draws, plan.deadline)
    labels = () if shown is None else (*shown.labels, RAISED)
    found = []
    for at in range(len(targets)):
        inside, outside = both_sides(drawn, at, shown)[::sign]
        found.append(cross_fitted_area(inside, outside, labels, classifier, plan.seed))
    return found


def _write_area(found: Areas) -> str:
    """Return an AUC and its standard error as text."""
    return f"{found[0]:.3f} +- {found[1]:.3f}"
