"""Where the pairs of an audit come from: those that the claim gives, and what a search proposes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from pytest_dp.basics.errors import ClaimError
from pytest_dp.data.ordering import accept_until
from pytest_dp.data.relations import Pair, Relation
from pytest_dp.pairs.examples import EVERYTHING, Bounds

if TYPE_CHECKING:  # with Hypothesis, which not all claims load
    from pytest_dp.pairs.generated import Generated

MAX_PROPOSALS = 1_000
"""Proposals in a row of which none is of use. With fewer, what is rare is not found."""


class Proposer(Protocol):
    """A search that proposes pairs of neighbouring inputs."""

    def propose(self) -> Iterable[Pair]:
        """Return pairs to look at next; empty if there are none.

        It is called again once these pairs are used up.
        """
        ...


@dataclass(frozen=True, slots=True)
class Proposing:
    """A proposer by its name and the function that proposes."""

    name: str
    propose: Callable[[], Iterable[Pair]]


def proposer_name(proposer: Proposer) -> str:
    """Return the `name` of a proposer, or the name of its class if it has none."""
    return str(getattr(proposer, "name", type(proposer).__name__))


def sift_proposals(
    proposer: Proposer, *sieves: Callable[[Iterable[Pair]], Iterable[Pair]]
) -> Proposing:
    """Return a proposer of another proposer's pairs that pass each sieve, a function of pairs."""

    def propose() -> Iterable[Pair]:
        pairs = proposer.propose()
        for sieve in sieves:
            pairs = sieve(pairs)
        return pairs

    return Proposing(proposer_name(proposer), propose)


def mark_pairs(
    pairs: Iterable[Pair], bounds: Bounds, *, wanted: bool, keep_origin: bool = False
) -> Iterator[Pair]:
    """Yield the pairs, each with `beyond` set to what of it is outside of the claim, in words.

    Pairs outside are left out unless they are `wanted`. Pairs inside lose their `origin`, unless
    `keep_origin`.
    """
    for pair in pairs:
        beyond = bounds.beyond(pair)
        if wanted or not beyond:
            yield replace(pair, beyond=beyond, origin=pair.origin if beyond or keep_origin else "")


def check_pairs(
    pairs: Iterable[Pair], relation: Relation | None, inside: Callable[..., bool] | None
) -> Iterator[Pair]:
    """Yield the pairs that are neighbours, and that a function `inside`, if given, accepts.

    Pairs of large datasets count as neighbours; pairs that raise ClaimError are left out. Ends
    after `MAX_PROPOSALS` other pairs in a row.
    """

    def accept(pair: Pair) -> Pair | None:
        try:
            fits = inside is None or inside(pair.d1, pair.d2)
            if fits and relation is not None and not pair.is_large:  # which are made as neighbours
                fits = not relation.fault(pair.d1, pair.d2)
        except ClaimError:  # such as records that nobody owns, under unit=
            return None
        return pair if fits else None

    return accept_until(pairs, accept, MAX_PROPOSALS)


@dataclass(frozen=True, slots=True)
class Movement:
    """How far apart the noiseless answers of two inputs are, by estimate."""

    loss: float
    """Estimated loss: by Laplace noise the sum of moves over scales, by Gaussian noise the root of
    their squares. Infinite where something differs that no noise covers."""
    answer: float = 0.0
    """The largest difference of a number of the output."""
    scale: float = 0.0
    """Of the noise of that number, if it is one draw on the whole line; 0 where it is not."""
    kind: Hashable = ()
    """What moves: equal for pairs that show the same."""

    @property
    def order(self) -> tuple[float, float]:
        """The key by which larger movements come first when sorted downwards.

        Losses that differ by rounding are equal; among infinite ones the answer counts.
        """
        return float(f"{self.loss:.9g}"), self.answer if math.isinf(self.loss) else 0.0


@dataclass(frozen=True, slots=True)
class Moved:
    """A pair, and how far the noiseless answer moves on it."""

    pair: Pair
    movement: Movement


@dataclass(frozen=True, slots=True)
class Screened:
    """The results of a screening of pairs."""

    screened: int = 0
    """Pairs inside the claim whose movement was computed."""
    is_enough: bool = False
    """Whether a pass may rest on the loss of the largest of these pairs: they are all that the
    claim gives, or many."""
    largest: tuple[Moved, ...] = ()
    """Pairs inside the claim, the largest movement first; one of each kind of movement."""
    urgent: tuple[Pair, ...] = ()
    """Pairs on which the answer moves farther than the claim allows, those inside of it first: they
    are bet on before all others."""
    note: str = ""
    """Why no pair was screened, or no more; empty where nothing stopped it."""

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs, the largest movement first."""
        return tuple(moved.pair for moved in self.largest)


class Screener:
    """A screening of how far the answer moves on pairs of a claim; this class screens none."""

    def screen(self) -> Screened:
        """Return how far the answer moves on pairs: nothing here; subclasses run the mechanism."""
        return Screened()

    def find_unreached_lines(self) -> list[Any]:
        """Return the lines that no input reached: none here, as nothing is run."""
        return []


class PairSource:
    """Pairs of neighbouring inputs: those that the claim gives first, then proposed ones in turn.

    At least one is given. `generated` made the pairs, if a strategy did, and can change and shrink
    them. `bounds` says which inputs are inside the claim. `notes` returns notes on searches.
    `following` are further pairs of examples, which a proposer reads too. `screener` runs many
    pairs without noise. Of large examples, `examples` are the rows that searches begin with, and
    `wholes` pairs of all rows.
    """

    def __init__(
        self,
        given: Sequence[Pair],
        proposers: Sequence[Proposer] = (),
        generated: Generated | None = None,
        bounds: Bounds = EVERYTHING,
        notes: Callable[[], list[str]] = list,
        following: Iterator[Pair] | None = None,
        screener: Screener | None = None,
    ) -> None:
        self.given, self.generated, self.bounds = tuple(given), generated, bounds
        self.examples: Sequence[Any] | None = None
        self.wholes: Iterator[Pair] = iter(())
        self.notes, self.screener = notes, Screener() if screener is None else screener
        self.following: Iterator[Pair] = iter(()) if following is None else following
        self.proposers = tuple(proposers)
        self.pairs = list(given)
        """Pairs that were given, and then those that were proposed so far."""
        self.proposed_by: Counter[str] = Counter()
        """How many pairs each proposer proposed, by its name."""
        self._waiting: list[tuple[Proposer, Iterator[Pair]]] = [(p, iter(())) for p in proposers]
        self._known = {pair.content for pair in self.given} if proposers else set()

    @property
    def is_exhausted(self) -> bool:
        """True if nothing more will be proposed."""
        return not self._waiting

    def propose_pair(self, name: str = "") -> Pair | None:
        """Ask the proposers in turn for a new pair, append it to `pairs`, and return it.

        With a name, only proposers of this name are asked. None if they propose no new pair; they
        are not asked again then. Counts the pair in `proposed_by`.
        """
        while waiting := [at for at in self._waiting if name in ("", proposer_name(at[0]))]:
            proposer, proposed = waiting[0]
            self._waiting.remove(waiting[0])
            pair = self._next_unknown(proposed)
            if pair is None:
                proposed = iter(proposer.propose())
                pair = self._next_unknown(proposed)
            if pair is not None:
                self._waiting.append((proposer, proposed))
                self.pairs.append(pair)
                self.proposed_by[proposer_name(proposer)] += 1
                return pair
        return None

    def _next_unknown(self, proposed: Iterator[Pair]) -> Pair | None:
        """Record and return the next new pair; None at the end or after too many known ones."""
        for _, pair in zip(range(MAX_PROPOSALS), proposed, strict=False):
            known = pair.content
            if known not in self._known:
                self._known.add(known)
                return pair
        return None
