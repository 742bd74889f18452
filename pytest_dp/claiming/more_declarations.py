"""Declarations beside ``@dp_claim``: ``@risk_claim``, tables of claims, ranges of arguments.

As cheap to import as `pytest_dp.declaration`, and like it never raises.
"""

from __future__ import annotations

import sys

from pytest_dp.declaration import OPEN, Declaration, record_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from pytest_dp import Membership

    F = TypeVar("F", bound=Callable[..., Any])

_ADAPTERS = "pytest_dp.libraries."
"""Modules that make entries for whoever calls them."""


class Claimed:
    """A mechanism with its claim, as an entry of `claims`.

    Parameters
    ----------
    mechanism : callable
        Whatever can be called: a function, or an object of a library.
    marks : mark or iterable of marks, optional
        As of ``pytest.param``: ``pytest.mark.slow``.
    **claim
        Keywords of `dp_claim`.
    """

    __slots__ = ("declaration", "marks", "mechanism")

    def __init__(self, mechanism: Any, /, *, marks: Any = (), **claim: Any) -> None:
        site = sys._getframe(1)  # noqa: SLF001  inspect would cost 7 ms
        while site.f_back and str(site.f_globals.get("__name__")).startswith(_ADAPTERS):
            site = site.f_back
        self.declaration = Declaration(claim, site.f_code.co_filename, site.f_lineno)
        self.mechanism, self.marks = mechanism, marks


class Claims:
    """A table of claims by name, and the place where `claims` was called."""

    __slots__ = ("entries", "site")
    __dp_claims__ = ()  # by which tests are collected

    def __init__(self, entries: Any, site: tuple[str, int]) -> None:
        self.entries, self.site = entries, site


def claims(entries: Mapping[str, Claimed]) -> Claims:
    """Return a table of claims, each of which is a test: those on a library, say.

    Written as ``laplace = claims({"scale 1": Claimed(noise, eps=1.0, pairs=[(0, 1)]), ...})`` in a
    module of tests, it gives a test ``laplace[scale 1]`` for each entry, and one for each of its
    parameters.

    Parameters
    ----------
    entries : mapping of str to Claimed
        Claims by the names that stand in the ids of the tests.

    Returns
    -------
    Claims
        To be given a name in the module. A mistake in it turns a test red.
    """
    site = sys._getframe(1)  # noqa: SLF001  inspect would cost 7 ms
    return Claims(entries, (site.f_code.co_filename, site.f_lineno))


class Riskiest:
    """A number of records that look most at risk; made by `riskiest`."""

    __slots__ = ("count",)

    def __init__(self, count: int) -> None:
        self.count = count

    def __repr__(self) -> str:
        return f"riskiest({self.count!r})"


def riskiest(count: int) -> Riskiest:
    """Return records with rare values and without close neighbours.

    A heuristic: attacks often recognise such records best, but others may be at more risk. For a
    claim about all records write ``records=range(len(data))``.

    Parameters
    ----------
    count : int
        How many.

    Returns
    -------
    Riskiest
        For ``records=`` of `risk_claim`.
    """
    return Riskiest(count)


def risk_claim(  # noqa: PLR0913  each is a keyword that a user may write
    *,
    auc: float | None = None,
    data: Any = None,
    records: Riskiest | Sequence[Any] | None = None,
    score: Callable[[Any, Any], Any] | None = None,
    params: Mapping[str, Any] | None = None,
    rng: str | None = None,
    alpha: float | None = OPEN,
    max_samples: int | None = OPEN,
    max_seconds: float | None = OPEN,
    margin: float | None = OPEN,
    method: Membership | None = OPEN,
    features: Callable[[Any], Any] | None = OPEN,
    at_least: str = OPEN,
    **unknown: Any,
) -> Callable[[F], F]:
    """Promise that attacks seldom recognise from an output whether a record was in the data.

    Each target record has a game: the data stays the same, with the record or without it, and only
    the seed changes. An attack scores each output; its AUC is how often an output with the record
    is scored above one without it, ties counting one half. The claim is broken for a record if bets
    against its AUC being `auc` at most win. It does not cover other records, other data, or attacks
    that were not tried.

    The decorator returns the same function. A claim that makes no sense fails when it is audited.

    Parameters
    ----------
    auc : float
        The largest AUC that any attack on a target record may have, above 0.5 and below 1.
    data : dataset, callable or str
        The data, with the records in it: a list, an array, a DataFrame, a function of no arguments
        that returns one, or ``"module:attribute"`` naming one.
    records : Riskiest or sequence
        The target records: ``riskiest(5)``, positions in the data (whole numbers), or records of
        the data.
    score : callable, optional
        ``score(model, record)`` gives a number, or a list of constant length for each model: a
        loss, a confidence, the norm of a gradient. By default tables are compared with the record,
        models with ``predict_proba``, ``score_samples``, ``decision_function`` or ``predict`` score
        it, and other outputs are features themselves.
    params, rng : optional
        As of `dp_claim`.
    alpha : float, optional
        Probability of a false alarm, over all records together.
    max_samples, max_seconds : optional
        Effort: trainings in all, and seconds for the audit.
    margin : float or None, optional
        An audit of a claim that holds ends once it would have caught noise ``margin`` times too
        small; see ``dp_claim``.
    method : Membership, optional
        ``Membership(classifier=...)`` gives the attack a classifier of scikit-learn's kind.
    features : callable, optional
        ``features(output)`` gives the numbers that the attack sees of an output, in place of the
        default.
    at_least : {"inconclusive", "weak", "fair", "strong"}, optional
        As of `dp_claim`.

    Examples
    --------
    >>> from pytest_dp import risk_claim
    >>> @risk_claim(auc=0.6, data=[[20, 1], [30, 0], [95, 1]], records=[2])
    ... def resampled(data, rng):
    ...     return [data[i] for i in rng.integers(len(data), size=len(data))]

    References
    ----------
    Krco, Guepin, Meeus, Kulynych, de Montjoye, "Lost in the Averages: Reassessing Record-Specific
    Privacy Risk Evaluation", 2024 (the model-seeded game).
    """
    given = dict(locals())
    unknown, usual = given.pop("unknown"), risk_claim.__kwdefaults__ or {}
    said = {name: value for name, value in given.items() if value is not usual[name]}
    return record_claim({"auc": auc, **said, **unknown})


class NumberRange:
    """A range of numbers for an argument; made by `between`."""

    __slots__ = ("high", "low")

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"between({self.low!r}, {self.high!r})"


def between(low: float, high: float) -> NumberRange:
    """Return a range of numbers for an argument in ``params=``; whole numbers if both ends are.

    The claim is for all of them. The ends are tried first; ``search="symbolic"`` chooses the number
    with the least noise, on which D and D' take different branches most often.

    Parameters
    ----------
    low, high : float
        Finite numbers, the first below the second; otherwise the claim is refused as it is read.

    Returns
    -------
    NumberRange
        For ``params={"threshold": between(0, 10)}``.

    References
    ----------
    Ding et al., "Detecting Violations of Differential Privacy", CCS 2018, section 4: arguments are
    chosen by symbolic execution and MaxSMT.
    """
    return NumberRange(low, high)
