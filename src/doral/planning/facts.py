"""What every answer has in common: plain fields, a sentence, and numbers in words."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from doral.inference.intervals import Estimate
from doral.logs.clock import SECONDS, Clock

YesNo = Literal["yes", "no", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Fact:
    """Something that a log says; `sentence` says it in plain English, and why where it cannot be said."""

    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: what is not finite is None."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self) if not one.name.startswith("_")}


def _plain(value: Any) -> Any:
    if isinstance(value, Fact | Estimate):
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


def between(estimate: Estimate, *, is_turned: bool = False) -> str:
    """An interval in words; `is_turned`: that of the negative number.

    >>> between(Estimate(15.0, 11.2, 19.0)), between(Estimate(-2.0, -3.0, 1.0), is_turned=True)
    ('(11.2 to 19)', '(-1 to 3)')
    """
    low, high = (-estimate.high, -estimate.low) if is_turned else (estimate.low, estimate.high)
    if not (math.isfinite(low) and math.isfinite(high)):
        return "(no interval)"
    return f"({number(low)} to {number(high)})"


def money(amount: float, currency: str | None) -> str:
    """An amount of budget in words.

    >>> money(1500.0, "EUR"), money(20.0, None)
    ('EUR 1,500', '20')
    """
    return f"{currency} {number(amount)}" if currency else number(amount)


def signed(value: float) -> str:
    """A difference in words, with its sign.

    >>> signed(12.0), signed(-0.5)
    ('+12', '-0.5')
    """
    return f"+{number(value)}" if value >= 0.0 else number(value)


def plural(noun: str) -> str:
    """Several of something that has an English name.

    >>> plural("booking"), plural("delivery"), plural("day"), plural("purchases")
    ('bookings', 'deliveries', 'days', 'purchases')
    """
    if noun.endswith("s"):
        return noun
    if noun.endswith("y") and noun[-2:-1].lower() not in ("", *"aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def named(names: tuple[str, ...], at_most: int = 5) -> str:
    """A list in words: the first few, and how many more there are.

    >>> named(("a", "b", "c"), at_most=2)
    'a, b and 1 more'
    """
    if len(names) > at_most:
        return f"{', '.join(names[:at_most])} and {len(names) - at_most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


@dataclass(frozen=True)
class Scale:
    """The unit of an axis: its size on the clock of a log, and its name."""

    size: float
    word: str


def scale_for(clock: Clock, longest: float) -> Scale:
    """The largest unit of which the longest duration has at least two.

    >>> scale_for(Clock("seconds", "days"), 30_000.0).word, scale_for(Clock("rounds", "rounds"), 5.0).word
    ('hours', 'rounds')
    """
    if clock.unit != "seconds":
        return Scale(1.0, clock.told)
    units = ("weeks", "days", "hours", "minutes") if clock.told == "weeks" else ("days", "hours", "minutes")
    word = next((one for one in units if longest >= 2.0 * SECONDS[one] and math.isfinite(longest)), "seconds")
    return Scale(SECONDS[word], word)
