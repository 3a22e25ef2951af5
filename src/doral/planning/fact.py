"""What every answer has in common: plain fields, and a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

YesNo = Literal["yes", "no", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something that a log says; `sentence` says it in plain English, and why where it cannot be said."""

    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: what is not finite is None."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self) if not one.name.startswith("_")}


def _plain(value: Any) -> Any:
    if isinstance(value, Fact):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def percent(share: float) -> str:
    """A share in words.

    >>> percent(0.963), percent(0.0042), percent(0.0)
    ('96%', '0.42%', '0%')
    """
    hundred = 100.0 * share
    if hundred == 0.0 or 1.0 <= abs(hundred) <= 99.0 or hundred == 100.0:
        return f"{hundred:.0f}%"
    return f"{hundred:.2g}%" if abs(hundred) < 1.0 else f"{hundred:.4g}%"


def number(value: float) -> str:
    """A number in words: three digits are enough to decide.

    >>> number(1234567.0), number(31.42), number(0.01234)
    ('1,234,567', '31.4', '0.0123')
    """
    return f"{value:,.0f}" if abs(value) >= 1_000.0 else f"{value:.3g}"


def named(names: tuple[str, ...], at_most: int = 5) -> str:
    """A list in words: the first few, and how many more there are.

    >>> named(("a", "b", "c"), at_most=2)
    'a, b and 1 more'
    """
    if len(names) > at_most:
        return f"{', '.join(names[:at_most])} and {len(names) - at_most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
