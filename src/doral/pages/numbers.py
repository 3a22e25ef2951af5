"""Numbers in words, for pages and terminals."""

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


def figure(value: float | None, digits: int = 4) -> str:
    """A number with so many digits that matter, thousands separated; whole ones are never rounded below a million.

    >>> figure(85_000.0), figure(0.123456), figure(12_345.678), figure(-0.5)
    ('85,000', '0.1235', '12,346', '\\u22120.5')
    """
    if value is None or not math.isfinite(value):
        return DASH
    size = abs(value)
    if size >= 1e15 or 0.0 < size < 1e-6:
        text = f"{size:.{digits}g}"
    elif size >= 10.0 ** (digits - 1) or size == round(size):
        text = f"{size:,.0f}"
    else:
        whole = math.floor(math.log10(size)) if size else 0
        text = f"{size:,.{max(0, digits - 1 - whole)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return MINUS + text if value < 0 and any(one in "123456789" for one in text) else text


def money(value: float | None, currency: str = "", digits: int = 6) -> str:
    r"""Return an amount of budget with its unit: a code stands before it, any other word behind it.

    >>> money(126.5, "EUR"), money(2_500.0, "kits"), money(20.0)
    ('EUR\xa0126.50', '2,500\xa0kits', '20\xa0units')
    """
    if value is None or not math.isfinite(value):
        return DASH
    if (len(currency) == 3 and currency.isupper()) or (len(currency) == 1 and not currency.isalpha()):
        words = number(value, 2) if value != round(value) and 0.005 <= abs(value) < 10_000 else figure(value, digits)
        return f"{currency}\N{NO-BREAK SPACE}{words}"
    return f"{figure(value, digits)}\N{NO-BREAK SPACE}{currency or 'units'}"


def spread(low: float | None, high: float | None, digits: int = 0, *, signed: bool = False) -> str:
    """An interval in brackets; one without an upper end says so."""
    if low is not None and math.isfinite(low) and high == math.inf:
        return f"[{number(low, digits, signed=signed)}, \N{INFINITY})"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return "no interval"
    return f"[{number(low, digits, signed=signed)}, {number(high, digits, signed=signed)}]"


def count(many: int, one: str, several: str) -> str:
    """So many of something.

    >>> count(1, "policy", "policies"), count(3_000, "policy", "policies")
    ('1 policy', '3,000 policies')
    """
    return f"{many:,} {one if many == 1 else several}"
