"""Draws of Python's generators, `secrets` and the operating system, as lazy values."""

from __future__ import annotations

import random
from typing import Any, Self

from pytest_dp.exact.choices import Choices
from pytest_dp.exact.domains import EXPONENTIAL, NORMAL, UNIFORM


class PythonDraws(random.Random):
    """The methods of Python's generators, on lazy values.

    Methods that Python writes in terms of uniform and whole numbers are inherited.
    """

    def __new__(cls, instrument: Choices) -> Self:  # noqa: ARG004
        return super().__new__(cls)

    def __init__(self, instrument: Choices) -> None:
        super().__init__(0)
        self._choices = instrument

    def random(self) -> Any:
        return self._choices.value_from(UNIFORM)

    def getrandbits(self, k: int, /) -> Any:
        return self._choices.integer(1 << k) if k else 0

    randbits = getrandbits

    def _randbelow(self, n: int) -> Any:
        if n <= 0:
            raise ValueError("Upper bound must be positive.")
        return self._choices.integer(n)

    randbelow = _randbelow

    def randbytes(self, n: int) -> bytes:
        return self._choices.random_bytes(n)

    urandom = randbytes

    def token_bytes(self, nbytes: int | None = None) -> bytes:
        return self.randbytes(32 if nbytes is None else nbytes)

    def token_hex(self, nbytes: int | None = None) -> str:
        return self.token_bytes(nbytes).hex()

    def token_urlsafe(self, nbytes: int | None = None) -> str:
        import base64

        return base64.urlsafe_b64encode(self.token_bytes(nbytes)).rstrip(b"=").decode()

    def expovariate(self, lambd: float = 1.0) -> Any:
        return self._choices.value_from(EXPONENTIAL) / lambd

    def gauss(self, mu: float = 0.0, sigma: float = 1.0) -> Any:
        return mu + self._choices.value_from(NORMAL) * sigma

    normalvariate = gauss
