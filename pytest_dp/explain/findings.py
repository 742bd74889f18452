"""Findings: what holds of a line, in words that are short, and as in code."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_dp.basics.reprs import LABEL_LENGTH, SHORT_LENGTH
from pytest_dp.basics.whose_code import is_project_file
from pytest_dp.explain.runs import ABSENT, Leaf
from pytest_dp.running.generator_stand_ins import Request, Site


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
    advice: str = ""
    """Advice for this finding alone, in place of the advice for its kind."""

    @property
    def remedy(self) -> str:
        """Advice on what to change; empty if that is unknown."""
        if not self.advice and self.kind == "too little noise" and math.isinf(self.loss):
            return OTHER_NOISE
        return self.advice or _REMEDIES.get(self.kind, "")


_REMEDIES = {
    "too little noise": (
        "let one record move the answer less, such as by a clip; or use more noise; or claim the "
        "larger loss"
    ),
    "shared noise": "draw new noise for each number that is released",
    "seeded": "leave the seed to the caller, so that each run has new noise",
    "too far apart": "make this outcome more equally likely on D and D', or claim the larger loss",
    "passing": "run this line less often, or by a noisy decision; or claim the larger loss",
}
"""By kind of finding."""
OTHER_NOISE = (
    "use noise that can give every output on both inputs, with tails at least as heavy as "
    "Laplace noise; or claim a delta"
)


def find_caller(stack: Sequence[Site], loss: float) -> Iterator[Finding]:
    """Yield the project's line that asks for the noise which a line of another function draws."""
    sites = [site for site in stack if is_project_file(site.file)]
    for site in [site for site in sites if site.line != sites[0].line][:1]:
        text = f"this line asks for the noise of line {sites[0].line}, in {sites[0].function}"
        yield Finding("called", site, text, loss=loss)


def format_draw(request: Request) -> str:
    """Return a draw as in code: ``rng.laplace(scale=1.0)``."""
    arguments = [_format_argument(value) for value in request.args]
    arguments += [
        f"{name}={_format_argument(value)}"
        for name, value in request.keywords.items()
        if name != "size"
    ]
    text = f"{request.source.name}.{request.method}({', '.join(arguments)})"
    return text if len(text) <= SHORT_LENGTH else f"{request.source.name}.{request.method}(...)"


def _format_argument(value: Any) -> str:
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, float):
        return format_number(value)
    return repr(value) if isinstance(value, bool | int | str) else "..."


def format_number(value: float) -> str:
    """Return a number to four digits: ``2.0``, ``0.3333``."""
    text = f"{value:.4g}"
    return text if set(text) & set(".einf") else f"{text}.0"


def format_leaf(leaf: Leaf | None) -> str:
    """Return the value of a part of an output."""
    if isinstance(leaf, float):
        return format_number(leaf)
    if leaf is None or leaf == ABSENT:
        return "not there"
    text = repr(leaf[1]) if leaf[0] == "str" else " ".join(map(str, leaf[1:])) or str(leaf[0])
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 3]}..."


def format_places(places: Sequence[str]) -> str:
    """Return places as text, such as ``output[0], output[1] and 8 more``."""
    if len(places) <= 2:
        return " and ".join(places)
    return f"{places[0]}, {places[1]} and {len(places) - 2} more"


def together_with(lines: Sequence[Site]) -> str:
    """Return lines as text, such as ``, together with line 3``; empty for no lines."""
    numbers = sorted({line.line for line in lines})
    noun = "line" if len(numbers) == 1 else "lines"
    return f", together with {noun} {', '.join(map(str, numbers[:4]))}" if numbers else ""
