"""Durations for people, who want a unit that fits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from doral.log.clock import SECONDS, Clock


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
