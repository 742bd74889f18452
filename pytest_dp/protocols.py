"""Protocols of the optional parts of an audit, which `pytest_dp.registry` finds by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pytest_dp.claiming.claim import Promise
    from pytest_dp.claiming.settings import Settings
    from pytest_dp.data.relations import Pair, Relation
    from pytest_dp.outputs.feature import Feature
    from pytest_dp.outputs.features import Sample
    from pytest_dp.pairs.sources import PairSource
    from pytest_dp.privacy.guarantees import Guarantee
    from pytest_dp.results.outcome import Blame
    from pytest_dp.running.calling import Call


class AuditMethod(Protocol):
    """A method that audits a claim: that of `auditors.sequential`, or the test of a paper."""

    def __call__(self, session: Any) -> Any:
        """Run the audit of a `pytest_dp.auditors.session.Session`; return its `AuditFinding`.

        Raises ClaimError if the method is not for the claim, and MechanismError if the mechanism
        always raises or hangs.
        """


class Search(Protocol):
    """A search for inputs on which a claim may be broken, and for small ones among these."""

    def compared_values(self, call: Call, promise: Promise, settings: Settings) -> list[Any]:
        """Return constants that the mechanism's code compares values with, to make inputs of."""

    def widen_source(
        self, source: PairSource, promise: Promise, call: Call, settings: Settings
    ) -> PairSource:
        """Return a source of the given pairs, followed by those that the search proposes."""

    def shrink_records(
        self, pair: Pair, relation: Relation, breaks: Callable[[Pair], bool], *, mixes: bool
    ) -> None:
        """Call `breaks` on ever smaller pairs, starting from each for which it returned True.

        `mixes` says whether records may mix fields of several records. The caller keeps the
        smallest pair. `breaks` may raise OutOfTime, which ends the search without an error.
        """


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken claim to explain: its pair, event and bound, and further inputs of the claim."""

    call: Call
    pair: Pair
    """The counterexample's inputs."""
    claim: Guarantee
    lower: float
    """Lower bound on the claim's parameter."""
    event: Callable[[Any], Any] | None
    """The event that is too likely on D; None if there is no single one."""
    others: Sequence[tuple[Any, Any]]
    """Further inputs of the claim, in pairs."""
    examples: Sequence[Any]
    """Datasets of the claim."""
    root: Path | None
    """Folder that files are shown relative to; None is the current one."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation of why a claim is broken."""

    lines: tuple[Blame, ...] = ()
    """Lines of code, the most telling first."""
    idle: tuple[Hashable, ...] = ()
    """Fields in which both inputs differ, and which change nothing."""


class Explainer(Protocol):
    """A function that explains why a claim is broken; the verdict stays as it is."""

    def __call__(self, violation: Violation, seconds: float) -> Explanation:
        """Return an explanation within about `seconds` seconds; may run the mechanism."""


class OutputReader(Protocol):
    """A reader of further features of outputs, such as the numbers in a text."""

    def __call__(self, sample: Sample) -> Sequence[Feature]:
        """Return features of outputs like those in a sample, chosen by `sample.on_d` alone."""
