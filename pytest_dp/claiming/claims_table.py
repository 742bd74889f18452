"""Tables of claims: each entry of one is a test, as for the mechanisms of a library."""

from __future__ import annotations

import sys

from pytest_dp.declaration import Declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


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
    """Claims by name; made by `claims`, which was called at `site`."""

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
