"""How numbers are written, the same everywhere.

A bound is never rounded to the side that would promise more than was shown: `format_lower` and
``format_probability(…, "down")`` round down, `format_upper` and ``format_probability(…, "up")``
round up. Rounding acts on the shortest decimal that denotes the float, so that 1.89 stays 1.89.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import wraps
from typing import Concatenate, Literal, ParamSpec

Rounding = Literal["nearest", "down", "up"]

P = ParamSpec("P")


def _unknown_for_nan(
    write: Callable[Concatenate[float, P], str],
) -> Callable[Concatenate[float, P], str]:
    """Return a formatting function that returns ``"unknown"`` for NaN."""

    @wraps(write)
    def written(value: float, /, *args: P.args, **options: P.kwargs) -> str:
        return "unknown" if math.isnan(value) else write(value, *args, **options)

    return written


_MODES = {"nearest": ROUND_HALF_EVEN, "down": ROUND_FLOOR, "up": ROUND_CEILING}


def format_count(n: int) -> str:
    """Return a count with commas, such as ``10,012``."""
    return f"{int(n):,}"


@_unknown_for_nan
def format_probability(p: float, rounding: Rounding = "nearest") -> str:
    """Return a probability as ``0.501`` or ``1.2e-05``; "0" only for 0, "1" for 1 or rounded up."""
    value = _as_decimal(p)
    if value <= 0:
        return "0"
    if value >= 1:
        return "1"
    if value < Decimal("0.01"):
        return _round_to_digits(value, 2, rounding)
    if value <= Decimal("0.999"):
        return _with_commas(_round_to_places(value, 3, rounding))
    rest = 1 - value
    places = 1 - rest.adjusted()
    if places > 6:
        return "1" if rounding == "up" else "0.999999"
    return _with_commas(_round_to_places(value, places, rounding))


@_unknown_for_nan
def format_claimed(eps: float) -> str:
    """Return a claimed ε as its author wrote it; in six digits if that has over 8 characters."""
    text = repr(float(eps))
    return text if len(text) <= 8 else _round_to_digits(_as_decimal(eps), 6, "nearest")


@_unknown_for_nan
def format_lower(eps: float, above: float | None = None) -> str:
    """Return a lower bound on ε, rounded down to three digits, or to more to exceed `above`."""
    if math.isinf(eps):
        return "infinity"
    value = _as_decimal(eps)
    if value <= 0:
        return "0"
    for digits in range(3, 18):
        text = _round_to_digits(value, digits, "down")
        if above is None or _number_in(text) > above:
            return text
    return repr(float(eps))


@_unknown_for_nan
def format_upper(eps: float) -> str:
    """Return an upper bound on ε, rounded up to three digits; "0" or "infinity" at the ends."""
    if math.isinf(eps):
        return "infinity"
    value = _as_decimal(eps)
    return "0" if value <= 0 else _round_to_digits(value, 3, "up")


def format_claim_and_bound(eps: float, bound: float) -> tuple[str, str]:
    """Return a claimed ε and a larger lower bound as texts, of which the second reads as larger."""
    shown = format_claimed(eps)
    text = format_lower(bound, above=max(eps, float(shown)))
    if _number_in(text) > float(shown):
        return shown, text
    return repr(float(eps)), repr(float(bound))


@_unknown_for_nan
def format_ratio(value: float, rounding: Rounding = "nearest", digits: int = 3) -> str:
    """Return a ratio of probabilities, ``7.41`` or ``infinite``; near 1, digits of the excess."""
    if math.isinf(value):
        return "infinite"
    number = _as_decimal(value)
    excess = abs(number - 1)
    if excess and excess < 1:
        places = digits - 1 - min(excess.adjusted() + 1, 0)
        return _with_commas(_round_to_places(number, min(places, 15), rounding))
    return _round_to_digits(number, digits, rounding)


@_unknown_for_nan
def format_exp_ratio(eps: float, rounding: Rounding = "nearest", digits: int = 3) -> str:
    """Return e^ε as a ratio; above ε = 50 as a power: ``e^60``."""
    if math.isinf(eps):
        return format_ratio(eps)
    if eps > 50:
        text = format_lower(eps) if rounding == "down" else format_claimed(eps)
        return f"e^{text}"
    return format_ratio(math.exp(eps), rounding, digits)


@_unknown_for_nan
def format_confidence(alpha: float) -> str:
    """Return 1 - alpha in percent, rounded down: ``99.9999 %``; ``> 99.9999999 %`` at most."""
    value = _as_decimal(alpha)
    if value < Decimal("1e-9"):
        return "> 99.9999999 %"
    up = Decimal(_round_to_places(value, 1 - value.adjusted(), "up"))
    return f"{_with_commas(100 - 100 * up, trim=True)} %"


@_unknown_for_nan
def format_p_value(p: float) -> str:
    """Return a p-value, rounded up: ``3e-212``; ``< 1e-300`` for smaller ones."""
    if p < 1e-300:
        return "< 1e-300"
    value = _as_decimal(p)
    if value >= 1:
        return "1"
    if value >= Decimal("1e-4"):
        return _with_commas(_round_to_places(value, 1 - value.adjusted(), "up"), trim=True)
    return _round_to_digits(value, 1, "up")


@_unknown_for_nan
def format_e_value(e: float) -> str:
    """Return an e-value, rounded down: ``4e9``; ``> 1e300`` for larger ones."""
    if e > 1e300:
        return "> 1e300"
    value = _as_decimal(e)
    return _round_to_digits(value, 2 if value < 1_000_000 else 1, "down") if value > 0 else "0"


@_unknown_for_nan
def format_seconds(value: float, compact: bool = False) -> str:
    """Return seconds as text, ``0.8 s`` or ``2 min 5 s``; with `compact` without minutes."""
    if math.isinf(value):
        return "infinity"
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    if value < 9.95 or (value < 59.95 and not compact):
        return f"{value:.1f} s"
    seconds_shown = round(value)
    if compact:
        return f"{seconds_shown} s"
    minutes, rest = divmod(seconds_shown, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def format_seed(value: int) -> str:
    """Return a seed as ``--dp-seed`` takes it, such as ``8f2c``."""
    return format(int(value), "x")


def _number_in(text: str) -> float:
    return float(text.replace(",", ""))


def _as_decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))


def _round_to_places(value: Decimal, places: int, rounding: Rounding) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), rounding=_MODES[rounding])


def _with_commas(value: Decimal, trim: bool = False) -> str:
    text = f"{value:,f}"
    return text.rstrip("0").rstrip(".") if trim and "." in text else text


def _round_to_digits(value: Decimal, digits: int, rounding: Rounding) -> str:
    """Return `digits` significant digits, and all left of the point; from 1e6 an exponent."""
    exponent = value.adjusted()
    if exponent < -3 or exponent >= 6:
        scaled = _round_to_places(value.scaleb(-exponent), digits - 1, rounding)
        if scaled >= 10:
            scaled, exponent = _round_to_places(scaled / 10, digits - 1, rounding), exponent + 1
        sign = f"-{-exponent:02d}" if exponent < 0 else str(exponent)
        return f"{scaled:f}e{sign}"
    rounded = _round_to_places(value, max(digits - 1 - exponent, 0), rounding)
    if rounded.adjusted() > exponent:  # 0.9996 is 1.00 to three digits
        rounded = _round_to_places(rounded, max(digits - 2 - exponent, 0), rounding)
    return _with_commas(rounded)


def format_rarity(p: float) -> str:
    """Return the n of "1 in n" for a probability p, as text: ``4,100`` for p = 1 / 4150.

    n is 1 / p rounded down to two digits, so that 1 / n is never below p. A p below 1e-15 counts as
    1e-15.
    """
    often = math.floor(1 / max(p, 1e-15))
    unit = 10 ** max(len(str(often)) - 2, 0)
    return format_count(often // unit * unit)


def format_known(value: float, error: float) -> str:
    """Return a value with the decimals that `error` leaves certain, at most six; or "infinity"."""
    if math.isinf(value):
        return "infinity"
    return f"{value:.{6 if error <= 1e-6 else max(0, int(-math.log10(error)))}f}"


def parameter_text(parameter: str, number: str, sign: str = "=") -> str:
    """Return ``eps = 1.7``, or ``loss = 1.7 times the claim`` for a claim by a curve."""
    if parameter == "scale":
        return f"loss {sign} {number} times the claim"
    return f"{parameter} {sign} {number}"


def unseen_text(share: float) -> str:
    """Return a sentence that what happens in fewer than this share of runs may go unseen."""
    return f"what happens in fewer than 1 of {format_count(int(1 / share))} runs may go unseen"
