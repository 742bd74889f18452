"""Real generators, of every kind that there are stand-ins for."""

from __future__ import annotations

import base64
import random
from typing import Any

import numpy as np
from numpy.random import MT19937, Generator, Philox, RandomState

from pytest_dp.randomness.requests import Request


def plain(kind: type, words: bytes) -> Any:
    """A generator of a kind, with 32 bytes as its seed."""
    if kind is Generator:
        return Generator(Philox(np.frombuffer(words, np.uint32)))
    if kind is RandomState:
        return RandomState(MT19937(np.frombuffer(words, np.uint32)))
    return _PythonGenerator(words)


class _PythonGenerator(random.Random):
    """A generator with the functions of `secrets` and ``os.urandom`` as well."""

    def randbelow(self, bound: int) -> int:
        return self.randrange(bound)

    randbits = random.Random.getrandbits
    urandom = random.Random.randbytes

    def token_bytes(self, size: int | None = None) -> bytes:
        return self.randbytes(size or 32)

    def token_hex(self, size: int | None = None) -> str:
        return self.token_bytes(size).hex()

    def token_urlsafe(self, size: int | None = None) -> str:
        return base64.urlsafe_b64encode(self.token_bytes(size)).rstrip(b"=").decode()


def answered(generator: Any, request: Request) -> Any:
    """The answer of a generator to a request."""
    return getattr(generator, request.method)(*request.args, **request.keywords)
