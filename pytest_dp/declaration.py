"""Decorators for production code: ``@dp_claim``, ``queries`` and ``values``.

Production code imports this module, so it stays on the cheapest corner of the standard library and
never raises: a claim is only recorded here. It is validated (`claiming.claim`) when it is audited,
so that a mistake in a claim turns a test red and never breaks an import in production.
"""

from __future__ import annotations

import sys
from _weakref import ref  # `weakref` itself would load more

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from pytest_dp import (
        DPFinder,
        DPSniper,
        OneRun,
        PrivacyProfile,
        RenyiDP,
        Sequential,
        StatDP,
        TradeOff,
    )

    F = TypeVar("F", bound=Callable[..., Any])
    Unit = str | int | Callable[[Any], Any] | None

UNNAMED = "*"
"""Keyword under which something given without one is recorded, to be refused later."""

OPEN: Any = ...
"""The value of a setting that a claim says nothing of: a profile, an ini file may. What is written
holds, also where it equals the default.
"""

ATTRIBUTE = "__dp_claims__"
"""Where the declarations of a mechanism are kept: a tuple, topmost decorator first."""


class Declaration:
    """The keywords of one ``@dp_claim`` and the place where it stands.

    If that is inside a function that a module calls while it is imported, such as a factory of
    mechanisms elsewhere, `made_at` is the file and line of the call; else None.
    """

    __slots__ = ("file", "keywords", "line", "made_at")

    def __init__(
        self,
        keywords: dict[str, Any],
        file: str,
        line: int,
        made_at: tuple[str, int] | None = None,
    ) -> None:
        self.keywords, self.file, self.line, self.made_at = keywords, file, line, made_at

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.keywords.items())
        return f"@{'risk' if 'auc' in self.keywords else 'dp'}_claim({inside})"


class Queries:
    """A family of query vectors in StatDP's patterns; made by `queries`."""

    __slots__ = ("lengths",)

    def __init__(self, lengths: tuple[Any, ...]) -> None:
        self.lengths = lengths

    def __repr__(self) -> str:
        return f"queries({', '.join(map(repr, self.lengths))})"


class Values:
    """A set of single inputs of which any two are neighbours; made by `values`."""

    __slots__ = ("options",)

    def __init__(self, options: tuple[Any, ...]) -> None:
        self.options = options

    def __repr__(self) -> str:
        return f"values({list(self.options)!r})"


class Neighbors:
    """A relation with its settings; made by `add_remove_one` and the like."""

    __slots__ = ("name", "said")

    def __init__(self, name: str, **said: Any) -> None:
        self.name = name
        self.said = {key: value for key, value in said.items() if value is not OPEN}

    def __repr__(self) -> str:
        said = [
            f"{'' if key == 'record' else f'{key}='}{getattr(value, '__name__', repr(value))}"
            for key, value in self.said.items()
        ]
        return f"{self.name}({', '.join(said)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Neighbors) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def queries(*lengths: int) -> Queries:
    """Return neighbouring vectors of counting-query answers, in the patterns of StatDP's Table 1.

    Parameters
    ----------
    *lengths : int
        Lengths of the vectors; ``queries()`` means lengths 5 and 10, as published.

    Returns
    -------
    Queries
        For ``inputs=``, with ``neighbors="all_queries"`` (the default: one record may move every
        answer by at most 1) or ``neighbors="one_query"`` (it moves one answer by at most 1).

    References
    ----------
    Ding et al., "Detecting Violations of Differential Privacy", CCS 2018, Table 1.
    """
    return Queries(lengths or (5, 10))


def values(options: Iterable[Any]) -> Values:
    """Return single inputs of which any two are neighbours, as in local differential privacy.

    Parameters
    ----------
    options : iterable
        The inputs, at least two.

    Returns
    -------
    Values
        For ``inputs=``, with ``neighbors="any_two"`` (the default for it).
    """
    try:
        return Values(tuple(options))
    except TypeError:  # one value, not several: said when the claim is audited
        return Values((options,))


def add_remove_one(*, unit: Unit = OPEN, rows: int | None = OPEN, group: int = OPEN) -> Neighbors:
    """Return neighbours of which one has a record more than the other.

    Parameters
    ----------
    unit : str, int or callable, optional
        Owner of records, if the promise covers all rows of a user: the name of a column, a key or
        an attribute of records, the index in tuples, or a function of a record. By default each
        record is a unit of its own.
    rows : int, optional
        The promise is only for data in which each unit has at most this number of rows.
    group : int, optional
        D and D' differ in this number of units, and each of them has the promise of the claim.

    Returns
    -------
    Neighbors
        For ``neighbors=``.
    """
    return Neighbors("add_remove_one", unit=unit, rows=rows, group=group)


def replace_one(*, unit: Unit = OPEN, rows: int | None = OPEN, group: int = OPEN) -> Neighbors:
    """Return neighbours of which one has another record in place of a record of the other.

    It takes the parameters of ``add_remove_one``.
    """
    return Neighbors("replace_one", unit=unit, rows=rows, group=group)


def replace_special(
    record: Any = OPEN, *, unit: Unit = OPEN, rows: int | None = OPEN, group: int = OPEN
) -> Neighbors:
    """Return neighbours of which one has the null record in place of a record of the other.

    It also takes the parameters of ``add_remove_one``.

    Parameters
    ----------
    record : object, optional
        The null record: what stands in the data for somebody who takes no part. For rows of tables
        a dict by columns, or a tuple. By default a missing value: None, NaN, NaT.
    """
    return Neighbors("replace_special", record=record, unit=unit, rows=rows, group=group)


DECLARED: dict[str, tuple[Any, list[tuple[Declaration, str, Any]]]] = {}
"""By module, its spec, and the declarations of its last import: each with the name of its mechanism
and a weak reference to the mechanism (or the mechanism). By this, pytest finds claims that were
declared and then lost. Declarations after the import add none."""


def _site(
    mechanism: object,
) -> tuple[tuple[str, int, tuple[str, int] | None], dict[str, Any] | None]:
    """Return the file, line and `made_at` of a declaration, and the namespace of its module.

    `made_at` is the file and line at which an imported module called a helper; None without a
    helper. The namespace is None for helpers and once the import is over.
    """
    frame = applied = sys._getframe(2)  # noqa: SLF001  inspect would cost 7 ms
    while frame.f_code.co_flags & 1 and frame.f_back is not None:  # CO_OPTIMIZED: a function
        frame = frame.f_back
    imported = None if frame.f_code.co_flags & 1 else frame.f_globals
    made_at = None
    if frame.f_globals.get("__name__") != getattr(mechanism, "__module__", None):
        if frame.f_globals is not applied.f_globals:
            if imported is not None:
                made_at = frame.f_code.co_filename, frame.f_lineno
            imported = None
        frame = applied  # inside a function of its own
    return (frame.f_code.co_filename, frame.f_lineno, made_at), imported


def _remember(declaration: Declaration, mechanism: object, module: dict[str, Any]) -> None:
    """Add a declaration of a module that is being imported to `DECLARED`; none of a script."""
    name, spec = module.get("__name__"), module.get("__spec__")
    if not isinstance(name, str) or name == "__main__":  # a script, which may run for long
        return
    known = DECLARED.get(name)
    if known is None or known[0] is not spec:  # it is imported anew, or once more
        known = DECLARED[name] = (spec, [])
    try:
        reference: Any = ref(mechanism)
    except TypeError:  # such as an object with slots
        reference = mechanism
    called = getattr(mechanism, "__qualname__", None) or getattr(mechanism, "__name__", "")
    known[1].append((declaration, called if isinstance(called, str) else "", reference))


def record_claim(keywords: dict[str, Any]) -> Callable[[F], F]:
    """Return a decorator that records a claim of these keywords on a mechanism.

    It returns the mechanism, and raises ClaimError for one that takes no attributes.
    """

    def record(mechanism: F) -> F:
        place, imported = _site(mechanism)
        declaration = Declaration(keywords, *place)
        earlier = getattr(mechanism, ATTRIBUTE, ())
        try:
            setattr(mechanism, ATTRIBUTE, (declaration, *earlier))
        except (AttributeError, TypeError):
            from pytest_dp.basics.errors import ClaimError

            raise ClaimError(
                f"A claim cannot be attached to {mechanism!r}, which takes no attributes. "
                "Put it on a function of your own that calls it."
            ) from None
        if imported is not None:
            _remember(declaration, mechanism, imported)
        return mechanism

    return record


def dp_claim(  # noqa: PLR0913  each is a keyword that a user may write
    unnamed: Any = None,
    /,
    *,
    eps: float | str | None = None,
    delta: float | str | None = None,
    rho: float | str | None = None,
    mu: float | str | None = None,
    guarantee: RenyiDP | PrivacyProfile | TradeOff | None = None,
    composes: Iterable[Callable[..., Any]] | Mapping[Callable[..., Any], int] | None = None,
    neighbors: str | Neighbors | Callable[..., Any] | None = None,
    inputs: Any = None,
    pairs: Iterable[tuple[Any, Any]] | Callable[[], Any] | str | None = None,
    params: Mapping[str, Any] | None = None,
    vectorized: str | bool | None = None,
    rng: str | None = None,
    alpha: float | None = OPEN,
    max_samples: int | None = OPEN,
    max_seconds: float | None = OPEN,
    margin: float | None = OPEN,
    method: str | Sequential | StatDP | DPSniper | DPFinder | OneRun | None = OPEN,
    features: Callable[[Any], Any] | None = OPEN,
    search: Any = OPEN,
    floating_point: bool = OPEN,
    at_least: str = OPEN,
    beyond: str | None = OPEN,
    **unknown: Any,
) -> Callable[[F], F]:
    """Promise that a mechanism is differentially private; pytest audits the promise.

    The decorator returns the same function: no wrapper and no cost at run time. A claim that makes
    no sense fails when it is audited, not here. Several may be stacked on one mechanism.

    One of `eps`, `rho`, `mu` and `guarantee` says what is promised. In place of a number, the name
    of the mechanism's parameter that carries it may stand as well.

    Parameters
    ----------
    eps : float or str
        The claimed loss in nats.
    delta : float or str, optional
        Beside ``eps``: the probability that may exceed ``exp(eps)`` times the probability on a
        neighbour.
    rho : float or str
        Zero-concentrated differential privacy (ρ-zCDP).
    mu : float or str
        Gaussian differential privacy (µ-GDP).
    guarantee : RenyiDP, PrivacyProfile or TradeOff
        A promise of more than a number: ``RenyiDP({8: 0.5})``, a delta for every eps, or f-DP.
    composes : iterable of callable, or dict, optional
        Mechanisms with claims of their own that this one is made of; a dict says how often each is
        used. It is an error to claim less than their sum.
    neighbors : str, value or callable, optional
        Which inputs differ in one unit of privacy: ``"add_remove_one"``, ``"replace_one"``,
        ``"replace_special"``, ``"one_query"``, ``"all_queries"``, ``"any_two"``; one of the first
        three with settings, such as ``add_remove_one(unit="user_id", rows=3)``; a function of D
        that returns or yields its neighbours, or one of D and D' that says whether they are.
    inputs : optional
        Where neighbouring inputs come from: `queries`, `values`, a list of example datasets, a
        Hypothesis strategy for them, a function of no arguments that returns one of these or yields
        datasets, or ``"module:attribute"`` naming one.
    pairs : iterable of (D, D'), strategy, callable or str, optional
        The neighbouring inputs themselves, instead of `inputs`; or a function that returns or
        yields them, or its name.
    params : mapping, optional
        Further arguments of the mechanism. A list gives one audit for each of its elements; values
        of a Hypothesis strategy are drawn with the inputs.
    vectorized : str or True, optional
        Name of the parameter that takes the number of draws to return at once, first axis samples
        (``True`` means ``"size"``). Each must have noise of its own: independent of the others.
    rng : str, optional
        Name of the parameter that takes a `numpy.random.Generator`; by default ``"rng"``.
    alpha : float, optional
        Probability of a false alarm.
    max_samples : int, optional
        Effort: runs of the mechanism in all.
    max_seconds : float or None, optional
        Effort: processor seconds of the audit and its workers, or None; 4 times as many may pass.
    margin : float or None, optional
        An audit of a claim that holds ends as soon as it would have caught noise that is ``margin``
        times too small; under pure eps, a true loss of ``margin`` times the claim. By default 1.25;
        ``None`` uses all of the effort. For the sequential auditor.
    method : {"sequential", "statdp", "dpsniper", "dpfinder", "one_run"}, Sequential, ..., optional
        The auditor. The sequential one (the default) bets against the claim and stops as soon as
        the verdict is certain; the others are methods of papers. Objects have settings:
        ``Sequential(coupled=False)``, ``DPSniper(c=0.01, classifier="mlp")``, ``OneRun(canaries)``.
    features : callable, optional
        ``features(output)`` gives the number, or the sequence of numbers of constant length, that
        the classifier sees of an output. By default it follows from the outputs. Not for StatDP.
    search : optional
        Searches that propose further pairs beside ``inputs``. By default: ``"guided"`` (inputs that
        take another branch of the code, by the distances of comparisons, with constants of the code
        and texts that its regular expressions match). On request: ``"symbolic"`` (by z3; the extra
        ``z3``), ``"gradient"`` (numbers moved along the gradient of the loss), objects with
        ``propose(past)``. A list takes several; ``()`` none. For the sequential auditor.
    floating_point : bool, optional
        Look at the bits of floats too, where careless noise leaves its traces. Not for StatDP.
    at_least : {"inconclusive", "weak", "fair", "strong", "aligned", "exact"}, optional
        The minimum grade to pass, unless the run asks for a higher one.
    beyond : {"tell", "fail", "off"}, optional
        What to do with a violation outside the declared inputs. By default the report names it
        beside the verdict, which does not change; ``"fail"`` fails the test, ``"off"`` does not
        look for any. For the sequential auditor and DP-Finder.

    Examples
    --------
    >>> from pytest_dp import dp_claim
    >>> @dp_claim(eps=1.0, neighbors="add_remove_one", inputs=[[0], [0, 1]])
    ... def noisy_count(records, rng):
    ...     return len(records) + rng.laplace(scale=1.0)
    """
    given = dict(locals())
    unknown = given.pop("unknown")
    if given.pop("unnamed") is not None and not callable(unnamed):
        unknown[UNNAMED] = unnamed
    defaults = dp_claim.__kwdefaults__ or {}
    keywords = {name: value for name, value in given.items() if value is not defaults[name]}
    keywords.update(unknown)

    record = record_claim(keywords)
    return record(unnamed) if callable(unnamed) else record
