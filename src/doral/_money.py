"""Money: decimals that are never rounded. A float stands for the decimal that is written for it: 0.1 is one tenth."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact
from functools import lru_cache

# A float's shortest decimal has at most 17 digits, somewhere between 1e308 and 1e-324: no sum of them needs more.
_EXACT = Context(prec=2_000, traps=[Inexact])


@lru_cache(maxsize=4_096, typed=True)  # costs and rewards take few values
def exact(amount: float) -> Decimal:
    """Return the decimal that a float stands for.

    >>> exact(0.1) + exact(0.2)
    Decimal('0.3')
    """
    return Decimal(repr(amount if amount else abs(amount)))  # a negative zero is a zero


# Sums, differences and products of amounts: the context's own methods, for each decision needs several.
plus, minus, product = _EXACT.add, _EXACT.subtract, _EXACT.multiply
times = _EXACT.multiply  # an amount, several times
