"""The rows of a log as they are valued: what came within the deadline, what was paid, and of whom that is known."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral._cached import cached_property
from doral.errors import InvalidValue
from doral.logs.log import SKIPPED, Log
from doral.problem import NOTHING

# Without a deadline, the longest wait for which so many were watched: nobody counts for more than two.
WATCHED_SHARE = 0.5
# Rows at the end in which nothing was done are chance unless this is how rarely chance does so.
CHANCE = 1e-3


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Everybody who is valued. Options are the arms and, last, doing nothing."""

    contexts: tuple[str, ...]
    options: tuple[str, ...]
    context: Ints
    option: Ints
    time: Floats
    value: Floats  # what came within the deadline; 0 where that is not known
    is_complete: Flags  # whether it is known
    paid: Floats
    is_paid_at_once: bool  # what is paid is known of everybody; otherwise only where the row is complete
    age: Floats  # of complete rows: when it was known
    watched: Floats
    probability: Floats  # as it was told
    deadline: float
    nothing_is_known: bool  # doing nothing was never answered: it brings 0 and costs 0
    n_closed: int  # rows at the end of the log, when nothing was done any more: left out

    def __len__(self) -> int:
        return int(self.option.size)

    @property
    def nothing(self) -> int:
        return len(self.options) - 1

    @property
    def cell(self) -> Ints:
        return self.context * len(self.options) + self.option

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.contexts), len(self.options)

    def counts(self) -> Ints:
        """(J, A + 1) how often what was done."""
        counts: Ints = np.bincount(self.cell, minlength=math.prod(self.shape)).reshape(self.shape)
        return counts

    @property
    def served(self) -> Flags:
        """Rows whose outcome has to be learned: all but those in which nothing was done and that is worth nothing."""
        return self.option != self.nothing if self.nothing_is_known else np.ones(len(self), dtype=bool)

    @cached_property
    def too_new(self) -> Flags:
        """(A + 1,) options with open rows of which nobody was watched until the deadline.

        Those known so far do not stand for the rest: it is the quick answers, and with silent feedback the good ones.
        """
        n_options = len(self.options)
        still_open = np.bincount(self.option[~self.is_complete], minlength=n_options)
        through = np.bincount(self.option[self.watched >= self.deadline], minlength=n_options)
        return np.asarray((still_open > 0) & (through == 0))


def longest_deadline(log: Log) -> float:
    """The longest that a log supports: until its last answer, or as long as half of the rows were watched."""
    answered = log.delay[log.is_answered]
    last = float(answered.max()) if answered.size else 0.0
    return min(last, float(np.quantile(log.watched, 1.0 - WATCHED_SHARE, method="lower")))


def check_deadline(log: Log, deadline: float) -> None:
    """Refuse a deadline for which no open decision of the log was watched: nothing is known of it."""
    is_open = ~(log.delay <= deadline) & (log.is_served | log.skips_are_answered)
    if is_open.any() and not (log.watched >= deadline).any():
        half = log.clock.shown(longest_deadline(log))
        remedy = f"no decision was watched for so long; half of them were for {half}"
        raise InvalidValue("deadline", log.clock.shown(deadline), remedy)


def rows_of(log: Log, *, deadline: float) -> Rows:
    """The rows of a log, valued at a deadline on its clock."""
    nothing = len(log.arms)
    nothing_is_known = not log.skips_are_answered
    n = len(log) - _n_closed(log)
    arm, delay, watched = log.arm[:n], log.delay[:n], log.watched[:n]
    option = np.where(arm == SKIPPED, nothing, arm)
    is_known_zero = (option == nothing) & nothing_is_known
    came = (delay <= deadline) & ~is_known_zero
    is_complete = came | (watched >= deadline) | np.isfinite(delay) | is_known_zero
    reward = log.reward[:n]
    paid, cost = log.paid[:n], log.cost[:n]
    at_once = log.paid_when == "always"
    paid = np.where(np.isnan(paid), cost if at_once else np.where(came, cost, 0.0), paid)
    return Rows(
        contexts=log.contexts,
        options=(*log.arms, NOTHING),
        context=log.context[:n],
        option=option,
        time=log.time[:n],
        value=np.where(came & ~np.isnan(reward), reward, 0.0),
        is_complete=is_complete,
        paid=paid if at_once else np.where(came, paid, 0.0),
        is_paid_at_once=at_once,
        age=np.where(is_known_zero, 0.0, np.minimum(delay, deadline)),
        watched=np.where(np.isfinite(delay), np.maximum(watched, delay), watched),
        probability=log.probability[:n],
        deadline=deadline,
        nothing_is_known=nothing_is_known,
        n_closed=len(log) - n,
    )


def part_of(log: Log, places: Ints) -> Log:
    """Some rows of a log, in their order."""
    arrays = ("time", "context", "arm", "reward", "delay", "watched", "cost", "paid", "probability")
    taken: dict[str, Any] = {name: getattr(log, name)[places] for name in arrays}
    key = tuple(log.key[one] for one in places.tolist()) if log.key else ()
    return dataclasses.replace(log, **taken, key=key)


def _n_closed(log: Log) -> int:
    """How many rows at the end were not served, more than by chance: as if the budget was spent."""
    served = np.flatnonzero(log.is_served)
    if served.size == 0:
        return 0
    last = int(served[-1]) + 1
    tail = len(log) - last
    is_told = tail > 0 and bool((log.probability[last:] == 1.0).all())
    share_skipped = 1.0 - served.size / last
    by_chance = tail * math.log(share_skipped) if share_skipped > 0.0 else -math.inf if tail else 0.0
    return tail if is_told or by_chance < math.log(CHANCE) else 0
