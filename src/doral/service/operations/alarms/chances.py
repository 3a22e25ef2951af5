"""Chances of error, shared out over many looks, and the tests that use them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

FALSE_ALARMS = 0.01  # of one rule, over the whole life of a campaign
_GROWTH = 1.15  # from one look to the next: as much more has happened


def chance_of_look(look: int) -> float:
    """What the look of this number, from 1, may use up: all of them together use up `FALSE_ALARMS`."""
    return FALSE_ALARMS * 6.0 / (math.pi**2 * look**2)


def look_number(count: int, first: int) -> int:
    """Which look is due after so many observations; 0: none yet."""
    return 0 if count < first else 1 + int(math.log(count / first) / math.log(_GROWTH) + 1e-9)


def chance_of_mean(sample: NDArray[np.float64], at_least: float) -> float:
    """With what chance the mean of such a sample is so large or larger, if the true one is `at_least` (Student's t)."""
    n = sample.size
    gap, spread = float(sample.mean()) - at_least, float(sample.std(ddof=1))
    if spread <= 1e-12 * max(abs(at_least), abs(float(sample.mean()))):
        return 0.0 if gap > 0.0 else 1.0
    return float(stdtr(n - 1, -gap / (spread / math.sqrt(n))))


class LogRank(NamedTuple):
    """Two groups compared, stratum by stratum; of the second group."""

    observed: float
    expected: float
    variance: float

    @property
    def chance(self) -> float:
        """With what chance they differ so much or more, if their curves are the same (both sides, normal)."""
        if self.variance <= 0.0:
            return 1.0
        return 2.0 * float(ndtr(-abs(self.observed - self.expected) / math.sqrt(self.variance)))

    def plus(self, other: LogRank) -> LogRank:
        return LogRank(self.observed + other.observed, self.expected + other.expected, self.variance + other.variance)


def log_rank(times: NDArray[np.float64], ended: NDArray[np.bool_], second: NDArray[np.bool_]) -> LogRank:
    """`times`: until the answer, or until it was last seen to be missing; `ended`: whether it is the former."""
    moments = np.unique(times[ended])
    ordered, ordered_second = np.sort(times), np.sort(times[second])
    at_risk = times.size - np.searchsorted(ordered, moments, side="left")
    at_risk_second = ordered_second.size - np.searchsorted(ordered_second, moments, side="left")
    events = np.bincount(np.searchsorted(moments, times[ended]), minlength=moments.size)
    events_second = np.bincount(np.searchsorted(moments, times[ended & second]), minlength=moments.size)
    share = at_risk_second / at_risk
    with np.errstate(divide="ignore", invalid="ignore"):
        ties = np.where(at_risk > 1, (at_risk - events) / (at_risk - 1), 0.0)
    return LogRank(
        float(events_second.sum()),
        float((events * share).sum()),
        float((events * share * (1.0 - share) * ties).sum()),
    )


class Hazard(NamedTuple):
    """The cumulative hazard of an answer by age (Nelson-Aalen), and on how many answers it rests."""

    ages: NDArray[np.float64]
    values: NDArray[np.float64]
    answers: int

    def at(self, ages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Nothing is known of ages that were never seen: no more is expected there."""
        if not self.ages.size:
            return np.zeros(ages.shape)
        place = np.searchsorted(self.ages, ages, side="right")
        return np.where(place > 0, self.values[np.maximum(place, 1) - 1], 0.0)


def hazard(times: NDArray[np.float64], ended: NDArray[np.bool_]) -> Hazard:
    """Of decisions that were followed for so long, until the answer or not."""
    moments = np.unique(times[ended])
    at_risk = times.size - np.searchsorted(np.sort(times), moments, side="left")
    events = np.bincount(np.searchsorted(moments, times[ended]), minlength=moments.size)
    return Hazard(moments, np.cumsum(events / np.maximum(at_risk, 1)), int(ended.sum()))
