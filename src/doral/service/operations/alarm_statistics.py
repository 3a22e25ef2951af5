"""What alarms need of a campaign's past, and chances of error shared out over many tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

from doral.live.events.event import Answered, Cancelled, Decided, Event, Expired, Recorded, Settled

FALSE_ALARMS = 0.01  # of one rule, over the whole life of a campaign
_GROWTH = 1.15  # from one look to the next: as much more has happened


def chance_of_test(look: int) -> float:
    """What the look of this number, from 1, may use up: all of them together use up `FALSE_ALARMS`."""
    return FALSE_ALARMS * 6.0 / (math.pi**2 * look**2)


def number_of_test(count: int, first: int) -> int:
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


MOST_LIVES = 4_000  # decisions of one arm that are kept
MOST_POINTS = 2_048  # of spending
FIRST_READ = 100_000  # events: of a log that was never read here, only so much of its end


class Lives(NamedTuple):
    """Decisions of one arm, the oldest first."""

    made: NDArray[np.float64]  # on the campaign's clock
    context: NDArray[np.int64]
    delay: NDArray[np.float64]  # until the answer, as it was told; NaN: there is none
    heard: NDArray[np.float64]  # when it was heard of, on the campaign's clock; NaN

    def where(self, chosen: NDArray[np.bool_]) -> Lives:
        """Some of them."""
        return Lives(self.made[chosen], self.context[chosen], self.delay[chosen], self.heard[chosen])


class Past:
    """Of one campaign."""

    def __init__(self, sequence: int = 0) -> None:
        self.sequence = sequence
        self._lives: dict[int, dict[int, list[float]]] = {}  # arm -> sequence of the decision -> its life
        self.last_heard = 0.0  # of an answer, to whichever arm, on the campaign's clock
        self._used = 0.0
        self._arrivals = 0
        self._stride = 1
        self._points: list[float] = [0.0]  # what was used, net, after every `_stride` arrivals that were read

    def read(self, events: Sequence[Event]) -> None:
        """The next ones."""
        for event in events:
            if isinstance(event, Decided):
                self._decided(event)
            elif isinstance(event, Settled):
                self._settled(event)
            elif isinstance(event, Recorded):  # it says nothing of how answers come in here; what it cost does count
                self._used += event.choice.cost
                if event.is_ours:
                    self._arrived()
            elif isinstance(event, Expired) and event.is_released:
                self._used -= sum(cost * count for _, cost, count in event.counts)
        if events:
            self.sequence = events[-1].sequence

    def _arrived(self) -> None:
        self._arrivals += 1
        if self._arrivals % self._stride == 0:
            self._points.append(self._used)
            if len(self._points) > MOST_POINTS:
                self._points = self._points[::2]
                self._stride *= 2

    def _decided(self, event: Decided) -> None:
        if event.choice.arm is not None:
            self._used += event.choice.cost
            lives = self._lives.setdefault(event.choice.arm, {})
            lives[event.sequence] = [event.own, float(event.arrival.context), math.nan, math.nan]
            if len(lives) > MOST_LIVES:
                del lives[next(iter(lives))]
        self._arrived()

    def _settled(self, event: Settled) -> None:
        self._used -= event.settlement.previous_cost - event.settlement.cost
        lives = self._lives.get(event.about.arm, {})
        life = lives.get(event.about.decision)
        if isinstance(event, Cancelled):
            lives.pop(event.about.decision, None)
        elif isinstance(event, Answered) and life is not None and event.delay is not None:
            life[2], life[3] = event.delay, event.clock
            self.last_heard = max(self.last_heard, event.clock)

    def lives(self, arm: int) -> Lives:
        """Those that are kept."""
        table = np.array(list(self._lives.get(arm, {}).values()), dtype=float).reshape(-1, 4)
        return Lives(table[:, 0], table[:, 1].astype(np.int64), table[:, 2], table[:, 3])

    @property
    def arms(self) -> list[int]:
        """Those with decisions."""
        return sorted(self._lives)

    @property
    def arrivals(self) -> int:
        """That were read."""
        return self._arrivals

    def rates(self, n_blocks: int) -> tuple[NDArray[np.float64], int] | None:
        """What an arrival has cost on average, in so many equal blocks of the last third of arrivals, and how many of
        these there are; None: too few were read.
        """
        per_block = (len(self._points) - 1) // 3 // n_blocks
        if per_block < 1:
            return None
        edges = np.array(self._points)[len(self._points) - 1 - per_block * n_blocks :: per_block]
        return np.diff(edges) / (per_block * self._stride), per_block * n_blocks * self._stride
