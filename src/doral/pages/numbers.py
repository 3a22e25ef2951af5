"""Numbers for people, on pages and on terminals."""

from __future__ import annotations

import math

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"


def number(value: float | None, digits: int = 0, *, signed: bool = False) -> str:
    """A number with thousands separated and a real minus; a dash where it is not known."""
    if value is None or not math.isfinite(value):
        return DASH
    text = f"{abs(value):,.{digits}f}"
    is_zero = not any(character in "123456789" for character in text)
    sign = "" if is_zero else MINUS if value < 0 else "+" if signed else ""
    return sign + text


def spread(low: float | None, high: float | None, digits: int = 0, *, signed: bool = False) -> str:
    """An interval in brackets; one without an upper end says so."""
    if low is not None and math.isfinite(low) and high == math.inf:
        return f"[{number(low, digits, signed=signed)}, \N{INFINITY})"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "no interval"
    return f"[{number(low, digits, signed=signed)}, {number(high, digits, signed=signed)}]"


def count(many: int, one: str, several: str) -> str:
    """So many of something.

    >>> count(1, "policy", "policies"), count(3, "policy", "policies")
    ('1 policy', '3 policies')
    """
    return f"{many} {one if many == 1 else several}"
