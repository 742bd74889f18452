"""Faults."""

from __future__ import annotations

from faults import Fault

FAULTS: tuple[Fault, ...] = ()
