"""What one policy did in one run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats, Ints
from doral.engine.view import Certificate

# Which rewards count, and the positions of their totals. Answers within the deadline, or the policy's cut-off, count
# whenever they come (unless the problem counts `by_end`), those `by_end` only up to the last arrival, however old.
METRICS = ("within_deadline", "by_end", "within_cutoff")
WITHIN_DEADLINE, BY_END, WITHIN_CUTOFF = 0, 1, 2
# How a policy went about it: its cut-off m, and the arms that a context has to choose from, on average.
COURSE_COLUMNS = ("cutoff", "arms_in_play")
CUTOFF, ARMS_IN_PLAY = 0, 1
CHECKPOINTS = 400


@dataclass(frozen=True, kw_only=True)
class DecisionLog:
    """Every decision of a run, in order."""

    round: Ints
    context: Ints
    arm: Ints
    reward: Floats
    delay: Floats  # rounds, or units of the clock; infinite for never
    time: Floats  # what the clock showed
    person: Ints | None = None  # the number of who it was for, where people have features
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # theirs, by name


@dataclass(frozen=True, kw_only=True)
class ArrivalLog:
    """Everybody who arrived in a run, in order: the first in round 1."""

    context: Ints
    arm: Ints  # -1: none
    probability: Floats  # of exactly that; NaN where the policy does not say
    person: Ints | None = None
    features: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one policy did in one run of a scenario."""

    scenario: str
    policy: str
    run: int
    clairvoyant: float
    rewards: tuple[float, ...]  # by metric
    expected: float  # worth of the arms that were chosen, whatever luck made of it: the mean of `within_deadline`
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
    clairvoyant_error: float = 0.0  # its standard error, where people are a sample of a law


def checkpoints(horizon: int) -> Ints:
    """The rounds at which cumulative rewards are noted: evenly spaced, the last one included."""
    n = min(CHECKPOINTS, horizon)
    return np.unique(np.round(np.linspace(horizon / n, horizon, n)).astype(np.int64))
