"""The outcome of one policy in one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats, Ints
from doral.engine.certificates import Certificate

# Which rewards count, and the positions of their totals. Answers within the deadline, or the policy's cut-off, count
# whenever they come (unless the problem counts `by_end`), those `by_end` only up to the last arrival, however old.
METRICS = ("within_deadline", "by_end", "within_cutoff")
WITHIN_DEADLINE, BY_END, WITHIN_CUTOFF = 0, 1, 2
# How a policy went about it: its cut-off m, and the arms that a context has to choose from, on average.
COURSE_COLUMNS = ("cutoff", "arms_in_play")
CUTOFF, ARMS_IN_PLAY = 0, 1
CHECKPOINTS = 400


class _Compared:
    """Equal where all fields are, to the bit: arrays by their content, and what is not known is equal to itself."""

    def __eq__(self, other: object) -> bool:
        return _is_same_fields(self, other) if type(other) is type(self) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # arrays have none


def _is_same_fields(one: Any, other: Any) -> bool:
    return all(_is_same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, float) and isinstance(other, float):
        return float(one).hex() == float(other).hex()
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return list(one) == list(other) and all(_is_same(one[name], other[name]) for name in one)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_is_same(mine, yours) for mine, yours in zip(one, other, strict=True))
    if is_dataclass(one) and type(one) is type(other):
        return _is_same_fields(one, other)
    return bool(one == other)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DecisionLog(_Compared):
    """Every decision of a run, in order."""

    round: Ints
    context: Ints
    arm: Ints
    reward: Floats
    delay: Floats  # rounds, or units of the clock; infinite for never
    time: Floats  # what the clock showed
    paid: Floats  # the share of its list price that is paid for it; empty: all of it, for every decision
    person: Ints | None = None  # the number of who it was for, where people have features
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # theirs, by name

    def __repr__(self) -> str:
        return f"<DecisionLog: {self.round.size:,} decisions>"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ArrivalLog(_Compared):
    """All arrivals of a run, in order: the first in round 1."""

    context: Ints
    arm: Ints  # -1: none
    probability: Floats  # of exactly that; NaN where the policy does not say
    time: Floats  # what the clock showed; the number of the round where there is none
    costs: Floats  # (contexts, arms) list prices; one row where they are the same in all contexts
    contexts: tuple[str, ...]  # the names of what `context` and `arm` number
    arms: tuple[str, ...]
    person: Ints | None = None
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<ArrivalLog: {self.arm.size:,} arrivals, {int((self.arm < 0).sum()):,} skipped>"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Outcome(_Compared):
    """What one policy did in one run of a scenario.

    Attributes:
        scenario: Its name.
        policy: Its name.
        run: Its number.
        oracle: Expected reward of the best policy that knows what every arm is worth.
        rewards: What was earned, by metric: within the deadline, by the end, within the policy's cut-off.
        expected: Expected worth of the arms that were chosen.
        rounds: The rounds at which `curve` and `course` were noted.
        curve: Cumulative rewards at these, one column for each metric.
        course: The cut-off and the arms in play at these.
        decisions: How many were served.
        spend: What was paid for them.
        race_rounds: Rounds of the race between arms, of which some policies have one.
        race_spend: What was spent in it.
        race_ended: The round in which it ended; 0: there was none.
        race_capped: Whether it ended because it had lasted long enough.
        accepted: The names of the arms that were left.
        cutoff: The age of decisions up to which the policy waited at the end; infinite: for ever.
        certificates: Why arms were out at the end.
        log: Decisions with their answers, as numbers; None unless decisions were kept.
        explored: Arrivals that got one of their options at random.
        explored_loss: What that is thought to have cost.
        arrivals: All arrivals, as numbers; None unless decisions were kept.
        oracle_error: The standard error of `oracle`, where people are a sample of a law.
    """

    scenario: str
    policy: str
    run: int
    oracle: float
    rewards: tuple[float, ...]  # by metric
    expected: float  # expected worth of the arms that were chosen: the mean of `within_deadline`
    rounds: Ints  # checkpoints
    curve: Floats  # (checkpoints, metrics) cumulative reward, of what has come by then
    course: Floats  # (checkpoints, COURSE_COLUMNS)
    decisions: int
    spend: float
    race_rounds: int
    race_spend: float
    race_ended: int  # round in which stage 1 ended; 0: there was none
    race_capped: bool
    accepted: tuple[str, ...]
    cutoff: float
    certificates: tuple[Certificate, ...] = ()  # of the arms that were out at the end
    log: DecisionLog | None = None
    explored: int = 0  # arrivals that got one of their options at random
    explored_loss: float = 0.0  # what that is thought to have cost
    arrivals: ArrivalLog | None = None
    oracle_error: float = 0.0  # its standard error, where people are a sample of a law

    def __repr__(self) -> str:
        earned = f"reward {self.rewards[WITHIN_DEADLINE]:,.1f} of {self.oracle:,.1f}"
        who = f"{self.policy[:60]} on {self.scenario[:60]}, run {self.run}"
        return f"<Outcome: {who}: {earned}, {self.decisions:,} served>"


def checkpoints(horizon: int) -> Ints:
    """The rounds at which cumulative rewards are noted: evenly spaced, the last one included."""
    n = min(CHECKPOINTS, horizon)
    return np.unique(np.round(np.linspace(horizon / n, horizon, n)).astype(np.int64))
