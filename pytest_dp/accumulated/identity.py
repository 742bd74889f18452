"""Which audits are the same: evidence against one says nothing about another."""

from __future__ import annotations

from typing import Any

from pytest_dp.claim import Arguments, Promise
from pytest_dp.committed.texts import text_of
from pytest_dp.identity import digest, of_modules


def identity(
    promise: Promise, arguments: Arguments, mechanism: Any, *, beyond: bool = False
) -> str:
    """A digest of the claim, its inputs and all code that may matter: evidence is about these.

    The promise has its inputs looked up. The mechanism may be a text that stands for it, and was
    made before its first run. If bets on inputs beyond what the claim gives count, it is another
    claim.
    """
    said: list[Any] = [promise.guarantee, promise.relation]
    said += [arguments.params, arguments.vectorized, arguments.drawn]
    inputs = of_modules(promise.relation, promise.inputs, promise.pairs, *arguments.drawn.values())
    code = (
        mechanism if isinstance(mechanism, str) else of_modules(mechanism, dict(arguments.params))
    )
    return digest("\n".join([*map(text_of, said), inputs, code, *["beyond"] * beyond]))
