"""Who is served: decisions by a feature of those whom they were for, so that unfair proxies show."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.errors import UnknownName
from doral.live.events.event import IS_CANCELLED, IS_RETURNED, STATE_NAMES
from doral.live.views.decision import Decision
from doral.person import Category, Feature

MAX_BINS = 100
MOST_GROUPS = 20  # that a report prints
NOT_KNOWN = "not known"  # missing, or forgotten


@dataclass(frozen=True, kw_only=True)
class Served:
    """What was done for one group.

    Attributes:
        feature: By which people are grouped.
        group: A level, or from which to which number.
        arrivals: How many came.
        served: Of these: got an arm, and were not cancelled.
        spend: Reserved or paid.
        answers: In time.
        reward: Of these, in units of reward.
    """

    feature: str
    group: str
    arrivals: int
    served: int
    spend: float
    answers: int
    reward: float

    @property
    def share(self) -> float:
        """Of those who came."""
        return self.served / self.arrivals if self.arrivals else 0.0

    @property
    def mean_reward(self) -> float:
        """Of an answer."""
        return self.reward / self.answers if self.answers else 0.0

    def __str__(self) -> str:
        return (
            f"{self.feature} {self.group}: {self.served:,} of {self.arrivals:,} served ({self.share:.1%}), "
            f"spend {self.spend:.6g}, mean reward {self.mean_reward:.3g} of {self.answers:,} answers"
        )


class ServedTables:
    """Counts while decisions of the campaign itself are read, once for all features; one that is read again takes the
    place of what it was.
    """

    def __init__(self, person: tuple[Feature, ...]) -> None:
        self.person = person
        self._sequences = array("q")  # of decisions, in their order
        self._values = [array("d") for _ in person]  # numbers, or places of levels
        self._levels: list[dict[str, int]] = [{} for _ in person]  # in the order in which they came
        self._facts = array("d")  # served, spend, answers, reward

    def read(self, decisions: Iterable[Decision]) -> ServedTables:
        for one in decisions:
            if one.is_recorded:  # others have decided that
                continue
            sequence = int(one.id.rpartition("-")[2])
            row = bisect_left(self._sequences, sequence)
            if row < len(self._sequences):  # it was read before: later ones stand behind it
                self._facts[4 * row : 4 * row + 4] = array("d", _facts(one))
                continue
            self._sequences.append(sequence)
            for place, feature in enumerate(self.person):
                value = None if one.features is None else one.features[feature.name]
                self._values[place].append(self._number(place, feature, value))
            self._facts.extend(_facts(one))
        return self

    @property
    def n_bytes(self) -> int:
        """Memory that the rows take."""
        return 8 * (len(self._sequences) + len(self._facts) + sum(map(len, self._values)))

    def _number(self, place: int, feature: Feature, value: float | str | None) -> float:
        if isinstance(feature, Category):
            levels = self._levels[place]
            return float(levels.setdefault(NOT_KNOWN if value is None else str(value), len(levels)))
        return math.nan if value is None else float(value)

    def table(self, feature: str, bins: int) -> tuple[Served, ...]:
        names = [one.name for one in self.person]
        if not _check.is_among(feature, names):
            raise UnknownName("feature", feature, names)
        bins = _check.whole_number("bins", bins, at_least=1, at_most=MAX_BINS)
        place = names.index(feature)
        values = np.array(self._values[place], dtype=np.float64)
        if isinstance(self.person[place], Category):
            labels, group = list(self._levels[place]), values.astype(np.int64)
        else:
            labels, group = _ranges(values, bins)
        facts = np.array(self._facts, dtype=np.float64).reshape(-1, 4)
        found = []
        for number, label in enumerate(labels):
            some = facts[group == number]
            served, spend, answers, reward = some.sum(axis=0).tolist()
            found.append(
                Served(
                    feature=feature,
                    group=label,
                    arrivals=len(some),
                    served=int(served),
                    spend=spend,
                    answers=int(answers),
                    reward=reward,
                )
            )
        return tuple(found)


def _facts(one: Decision) -> tuple[float, ...]:
    is_served = one.arm is not None and one.state != STATE_NAMES[IS_CANCELLED]
    spend = one.cost if one.actual_cost is None else one.actual_cost
    is_answered = one.state == STATE_NAMES[IS_RETURNED] and one.reward is not None
    return float(is_served), spend, float(is_answered), one.reward or 0.0 if is_answered else 0.0


def _ranges(numbers: Floats, bins: int) -> tuple[list[str], np.ndarray]:
    """Bins that hold equal shares of those who came, as far as equal numbers let them."""
    known = numbers[~np.isnan(numbers)]
    labels: list[str] = []
    group = np.full(numbers.size, -1, dtype=np.int64)
    if known.size:
        edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, bins + 1), method="inverted_cdf"))
        upper = edges[1:] if edges.size > 1 else edges
        group = np.where(np.isnan(numbers), -1, np.minimum(np.searchsorted(upper, numbers), upper.size - 1))
        for number in range(upper.size):
            inside = numbers[group == number]
            labels.append(f"{inside.min():g} to {inside.max():g}" if inside.size else f"to {upper[number]:g}")
    if known.size < numbers.size:
        group = np.where(np.isnan(numbers), len(labels), group)
        labels.append(NOT_KNOWN)
    return labels, group
