"""Findings: what holds of a line, in words that are short, and as in code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.blame.runs import ABSENT, Leaf
from pytest_dp.limits import EQUAL, LABEL, SHORT_TEXT
from pytest_dp.randomness.requests import Request, Site


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that holds, and the line that it is about."""

    kind: str
    """As in `Blame`."""
    line: Site
    text: str
    certain: bool = False
    """No claim of any size could be kept with it."""
    loss: float = 0.0
    """In the claim's parameter, where it is known."""
    mend: str = ""
    """What mends it, if that is not what mends others of its kind."""
    times: float = 0.0
    """How many times as much noise this pair needs, where that is known; else 0."""

    def remedy(self, farthest: Callable[[], float | None]) -> str:
        """What may mend it; empty if that is unknown.

        `farthest` tells how many times as far another pair moves the answers; None if unknown.
        """
        if self.mend or self.kind != "too little noise":
            return self.mend or _REMEDIES.get(self.kind, "")
        if math.isinf(self.loss):
            return _OTHER_NOISE
        ratio = farthest() if self.times > 1 else None
        return _more_noise(self.times * ratio if ratio is not None else 0.0)


def _more_noise(times: float) -> str:
    """What mends too little noise, of which so many times as much is needed, rounded up."""
    much = ""
    if times > 1:
        step = 10.0 ** (math.floor(math.log10(times)) - 1)
        up = math.ceil(times / step * (1 - EQUAL)) * step
        much = f" (about {format_number(up)} times as much, or more)"
    return f"more noise{much}, or less for it to hide; or claim what it loses"


_REMEDIES = {
    "no noise": "add noise to it, or do not put it out",
    "shared noise": "draw new noise for each number that is put out",
    "coarse noise": "round the noisy answer, not the noise",
    "noise depends on data": "draw the same noise, and as much of it, whatever the data are",
    "seeded": "leave the seed to the caller, so that each run has new noise",
    "too far apart": "bring both probabilities closer together; or claim what it loses",
    "parting": "decide the way through the code by a noisy value, or take the same for all data",
    "passing": "come by here less often, or with noise; or claim what it loses",
}
"""By kind of finding."""
_OTHER_NOISE = (
    "noise that gives every output on either input, and falls off no faster than Laplace noise; "
    "or claim a delta"
)


def format_draw(request: Request) -> str:
    """A draw as in code: ``rng.laplace(scale=1.0)``."""
    arguments = [_format_argument(value) for value in request.args]
    arguments += [
        f"{name}={_format_argument(value)}"
        for name, value in request.keywords.items()
        if name != "size"
    ]
    text = f"{request.source.name}.{request.method}({', '.join(arguments)})"
    return text if len(text) <= SHORT_TEXT else f"{request.source.name}.{request.method}(...)"


def _format_argument(value: Any) -> str:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, float):
        return format_number(value)
    return repr(value) if isinstance(value, bool | int | str) else "..."


def format_number(value: float) -> str:
    """A number to four digits: ``2.0``, ``0.3333``."""
    text = f"{value:.4g}"
    return text if set(text) & set(".einf") else f"{text}.0"


def format_leaf(leaf: Leaf | None) -> str:
    """The value of a part of an output."""
    if isinstance(leaf, float):
        return format_number(leaf)
    if leaf is None or leaf == ABSENT:
        return "not there"
    text = repr(leaf[1]) if leaf[0] == "str" else " ".join(map(str, leaf[1:])) or str(leaf[0])
    return text if len(text) <= LABEL else f"{text[: LABEL - 3]}..."


def format_places(places: Sequence[str]) -> str:
    """``output[0], output[1] and 8 more``."""
    if len(places) <= 2:
        return " and ".join(places)
    return f"{places[0]}, {places[1]} and {len(places) - 2} more"


def together_with(lines: Sequence[Site]) -> str:
    """``, together with line 3``; empty for no lines."""
    numbers = sorted({line.line for line in lines})
    noun = "line" if len(numbers) == 1 else "lines"
    return f", together with {noun} {', '.join(map(str, numbers[:4]))}" if numbers else ""
