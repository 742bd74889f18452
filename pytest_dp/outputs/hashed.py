"""Outputs read through a hash that the mechanism calls: whether an answer is that of an input.

Under local hashing an output has the seed of a hash function and an answer, which is the hash of
the input under that function, or now and then another one. By themselves both say nothing. So calls
of a library's hash functions, seen in runs on an input, are made again with the seed of each
output: does that give its answer? What is called has no effects, and depends on its arguments
alone.

Source of the mechanisms: Wang, Blocki, Li, Jha, "Locally Differentially Private Protocols for
Frequency Estimation", USENIX Security 2017.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from numbers import Integral
from typing import Any, Literal

import numpy as np

from pytest_dp.arrays import Bools, Floats, Outputs
from pytest_dp.limits import FEW, MANY, STANDS_OUT, STEPS
from pytest_dp.outputs.outcome import Raised
from pytest_dp.outputs.table import Table

HASHES: Mapping[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "xxhash": "xxh32 xxh64 xxh3_64 xxh3_128",
        "mmh3": "hash hash_from_buffer",
        "zlib": "crc32 adler32",
        "binascii": "crc32",
        "hashlib": "md5 sha1 sha224 sha256 sha384 sha512 blake2b blake2s",
    }.items()
}
"""Functions of libraries that are looked out for, by module."""
DIGESTS = ("intdigest", "hexdigest", "digest")
"""Methods of what some of them return, which give the hash."""
Path = tuple[Any, ...]
"""Where a value stands in an output: positions and keys, from the outside inward."""


def _first(size: int, order: Literal["big", "little"], digest: bytes) -> int:
    return int.from_bytes(digest[:size] if size else digest, order)


READ: dict[type, dict[str, Callable[[Any], int]]] = {
    int: {"{}": int},
    str: {"int({}, 16)": partial(int, base=16)},
    bytes: {
        "{}[0]": partial(_first, 1, "big"),
        "int.from_bytes({})": partial(_first, 0, "big"),
        **{
            f"int.from_bytes({{}}{cut}, {order!r})": partial(_first, size, order)
            for size, cut in ((4, "[:4]"), (8, "[:8]"), (0, ""))
            for order in ("big", "little")
            if size or order == "little"
        },
    },
}
"""How a hash is read as a number, in Python and as a function, by its type."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Stands for the seed in an argument: alone, or inside of a text or of bytes."""

    before: Any = None
    after: Any = None

    def filled(self, seed: Any) -> Any:
        """The argument with a seed."""
        if self.before is None:
            return seed
        if isinstance(self.before, str):
            return f"{self.before}{seed}{self.after}"
        inner = seed if isinstance(seed, bytes) else str(seed).encode()
        return self.before + inner + self.after

    def text(self, place: str) -> str:
        """The argument in Python, with a seed that stands at a place."""
        if self.before is None:
            return place
        inner = f"str({place})"
        if isinstance(self.before, bytes):
            inner = f"str({place}).encode()"
        return " + ".join(filter(None, (_shown(self.before), inner, _shown(self.after))))


def _shown(part: Any) -> str:
    return repr(part) if part else ""


@dataclass(frozen=True, slots=True)
class HashCall:
    """A call of a hash function: arguments, what it was then updated with, and what was asked."""

    module: str
    name: str
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...] = ()
    updates: tuple[Any, ...] = ()
    asked: str = ""
    """The method that gave the hash; empty if the call itself did."""

    def made(self, fill: Callable[[Any], Any]) -> HashCall:
        """The call with other arguments."""
        return replace(
            self,
            arguments=tuple(map(fill, self.arguments)),
            keywords=tuple((name, fill(value)) for name, value in self.keywords),
            updates=tuple(map(fill, self.updates)),
        )

    @property
    def values(self) -> tuple[Any, ...]:
        """All arguments."""
        return (*self.arguments, *(value for _, value in self.keywords), *self.updates)

    def result(self, seed: Any) -> Any:
        """The hash, with a seed in its place."""

        def fill(value: Any) -> Any:
            return value.filled(seed) if isinstance(value, Slot) else value

        function = getattr(sys.modules[self.module], self.name)
        keywords = {name: fill(value) for name, value in self.keywords}
        made = function(*map(fill, self.arguments), **keywords)
        for update in self.updates:
            made.update(fill(update))
        return getattr(made, self.asked)() if self.asked else made

    def text(self, place: str) -> str:
        """The call in Python, with a seed that stands at a place."""

        def written(value: Any) -> str:
            return value.text(place) if isinstance(value, Slot) else repr(value)

        first = b"".join(self.updates) if all(isinstance(u, bytes) for u in self.updates) else None
        arguments = list(map(written, self.arguments))
        if self.updates and not arguments and first is None:
            arguments = [" + ".join(map(written, self.updates))]
        elif self.updates:
            arguments.append(repr(first))
        arguments += [f"{name}={written(value)}" for name, value in self.keywords]
        call = f"{self.module}.{self.name}({', '.join(arguments)})"
        return f"{call}.{self.asked}()" if self.asked else call


@dataclass(frozen=True, slots=True)
class Template:
    """A call of a hash on one input, with the seed that stands at a place of the output."""

    call: HashCall
    seed: Path

    def digests(self, outputs: Outputs) -> list[Any]:
        """The hash under the seed of each output; None where there is no such seed."""
        return [self._digest(at(output, self.seed)) for output in outputs]

    def _digest(self, seed: Any) -> Any:
        if isinstance(seed, np.integer):
            seed = int(seed)
        try:
            return None if seed is None else self.call.result(seed)
        except Exception:  # another output has something else there
            return None


@dataclass(frozen=True, slots=True)
class Fits:
    """Whether the answer of an output is the hash of an input, 1.0 or 0.0."""

    template: Template
    read: str
    """A key of `READ`."""
    answer: Path
    answers: tuple[int, ...]
    """What is answered to each remainder."""

    def values(self, table: Table) -> Floats:
        """For every output, shape (n,); NaN where it has no seed or answer."""
        outputs = table.raw
        return self.of(self.template.digests(outputs), [at(o, self.answer) for o in outputs])

    def of(self, digests: Sequence[Any], answers: Sequence[Any]) -> Floats:
        """The same of digests and answers."""
        fits = np.full(len(digests), np.nan)
        for row, (digest, answer) in enumerate(zip(digests, answers, strict=True)):
            number = _number(digest, self.read)
            if number is not None and answer is not None:
                fits[row] = self.answers[number % len(self.answers)] == answer
        return fits

    def __str__(self) -> str:
        call = self.template.call.text(place(self.template.seed))
        left = f"{self.read.format(call)} % {len(self.answers)}"
        if self.answers[0] == 0 and self.answers[-1] == len(self.answers) - 1:
            return f"{left} == {place(self.answer)}"
        return f"{list(self.answers)}[{left}] == {place(self.answer)}"


def _number(digest: Any, read: str) -> int | None:
    kind = bytes if isinstance(digest, bytes) else type(digest)
    function = READ.get(kind, {}).get(read)
    return None if function is None else function(digest)


def place(path: Path) -> str:
    """A path as Python."""
    return "output" + "".join(f"[{step!r}]" for step in path)


def at(output: Any, path: Path) -> Any:
    """What stands in an output at a path; None if nothing does."""
    try:
        for step in path:
            output = output[step]
    except (LookupError, TypeError):
        return None
    return output


def leaves(output: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Whole numbers, texts and bytes in an output, in containers up to a few levels deep."""
    if isinstance(output, Integral | str | bytes):
        yield path, int(output) if isinstance(output, Integral) else output
        return
    if len(path) == FEW or isinstance(output, Raised):
        return
    if isinstance(output, dict):
        inside: Any = output.items()
    elif isinstance(output, list | tuple) or (isinstance(output, np.ndarray) and output.ndim):
        inside = enumerate(output)
    else:
        return
    for _, (step, value) in zip(range(MANY), inside, strict=False):
        yield from leaves(value, (*path, step))


def templates(calls: Sequence[HashCall], output: Any) -> Iterator[Template]:
    """The calls of a run in which something stands that its output has too."""
    found = [(path, leaf) for path, leaf in leaves(output) if _is_seed(leaf)]
    for call, (path, leaf) in product(dict.fromkeys(calls), found):
        made = call.made(partial(_with_slot, leaf))
        if made != call:
            yield Template(made, path)


def has_seed(output: Any) -> bool:
    """Whether something beside another number may be the seed of a hash."""
    found = [leaf for _, leaf in leaves(output)]
    return len(found) > 1 and any(map(_is_seed, found))


def _is_seed(leaf: Any) -> bool:
    """Whether it is not as short as any constant may be."""
    return len(str(leaf)) >= FEW


def _with_slot(seed: Any, value: Any) -> Any:
    """An argument with a slot for the seed, if it is there or inside."""
    if isinstance(value, Integral | str | bytes) and type(value) is type(seed) and value == seed:
        return Slot()
    if isinstance(value, str):
        before, found, after = value.partition(str(seed))
        return Slot(before, after) if found else value
    if isinstance(value, bytes):
        part = seed if isinstance(seed, bytes) else str(seed).encode()
        ahead, there, behind = value.partition(part)
        return Slot(ahead, behind) if there else value
    return value


def fitting(wanted: Sequence[Template], table: Table, on_d: Bools) -> list[Fits]:
    """For each of two inputs, D and D', whether outputs fit its hash; empty if no answer does.

    What is read, and from which answer, is what fits most clearly on the input's own outputs.
    """
    if not wanted:
        return []
    best: tuple[float, str, Path, tuple[int, ...]] = STANDS_OUT, "", (), ()
    for template, side in zip(wanted, (on_d, ~on_d), strict=True):
        rows = np.flatnonzero(side)[:STEPS]
        outputs = [table.raw[row] for row in rows.tolist()]
        digests = template.digests(outputs)
        for path, answers in _answers(outputs, template.seed):
            given = [at(output, path) for output in outputs]
            kind = next((type(digest) for digest in digests if digest is not None), int)
            for read in READ.get(kind, {}):
                fits = Fits(template, read, path, answers).of(digests, given)
                stands_out = _stands_out(fits, len(answers))
                best = max(best, (stands_out, read, path, answers))
    _, read, path, answers = best
    return [Fits(template, read, path, answers) for template in wanted] if read else []


def _answers(outputs: Sequence[Any], seed: Path) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """Places where few different whole numbers stand, and these."""
    first = next((output for output in outputs if not isinstance(output, Raised)), None)
    for path, _ in leaves(first):
        found = {at(output, path) for output in outputs} - {None} if path != seed else set()
        if 1 < len(found) <= MANY and all(isinstance(value, Integral) for value in found):
            answers = sorted(map(int, found))
            least = answers[0] if answers[0] in (0, 1) else None
            if least is not None:  # of those that follow each other, one may not have come
                answers = list(range(least, answers[-1] + 1))
            yield path, tuple(answers)


def _stands_out(fits: Floats, answers: int) -> float:
    """By how many standard errors more outputs fit than would by chance."""
    known = fits[~np.isnan(fits)]
    chance = 1 / answers
    if not len(known):
        return 0.0
    errors = np.sqrt(chance * (1 - chance) / len(known))
    return float((known.mean() - chance) / errors)
