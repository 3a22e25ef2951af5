"""All that a page of a campaign shows, as plain values: whoever draws or sends it needs neither log nor engine.

Times are as the campaign's clock has them for people: seconds since 1970, or rounds. Amounts are in the unit of the
budget, values in units of reward, worth in units of reward times the weight of the context. None stands for what is
not known, and where there is none.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from doral.live.views.decision import Decision
from doral.live.views.groups import Served


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where the money was at one moment."""

    at: float  # arrivals so far, or the time, as `Spending.axis` says
    spent: float
    reserved: float


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that somebody did to the campaign."""

    at: float  # on the axis of `Spending`
    time: float
    kind: str  # "topped up", "extended", "arm added", ..., "closed"
    words: str


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What was spent and reserved, against spending the budget evenly until the end."""

    axis: str  # "arrivals", or "time" where the end is a date
    start: float
    now: float
    end: float
    points: tuple[Point, ...]
    plan: tuple[tuple[float, float], ...]  # (at, spent by then), from the start to the end, a corner where it changed
    budget: tuple[tuple[float, float], ...]  # (since when, how much)
    planned: float  # that should be used by now
    changes: tuple[Change, ...]
    pace: str  # "not begun", "too early", "on plan", "ahead of plan", "behind plan", "used up" or "over"
    gap: float  # between used and planned, as a share of the planned
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Period:
    """A day, or several where there are many."""

    begins: float
    ends: float
    reward: float
    answers: int
    arrivals: int


@dataclass(frozen=True, kw_only=True)
class Mix:
    """What the policy did with the arrivals of a while, on the axis of `Spending`."""

    begins: float
    ends: float
    arrivals: int
    skipped: int
    arms: dict[str, int]  # arrivals by arm, of arms that were used


@dataclass(frozen=True, kw_only=True)
class ArmFacts:
    """One arm, over all contexts."""

    name: str
    status: str  # active, paused or retired
    standing: str  # racing, accepted or rejected
    is_control: bool  # what those get who are skipped
    cost_low: float
    cost_high: float
    plays: int
    answers: int
    reward: float
    ages: tuple[float, ...]
    returned: tuple[float, ...]  # which share is answered by each age
    returned_low: tuple[float, ...]  # of a 95% interval
    returned_high: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class ContextFacts:
    """Who came, and what was done for them."""

    name: str
    share: float  # of arrivals, as it is thought
    weight: float
    deadline: float | None
    arrivals: int  # of the campaign itself
    served: int  # of these: got an arm, and were not cancelled
    answers: int  # that came in time
    reward: float  # that counts
    spend: float  # spent or reserved
    nothing: float | None  # what doing nothing is thought to bring
    recent: dict[str, int]  # of the latest arrivals, how many got each arm; "" for a skip


@dataclass(frozen=True, kw_only=True)
class PairFacts:
    """One arm in one context."""

    context: str
    arm: str
    status: str  # of the arm; "out" where it is certain that another is better
    cost: float
    plays: int
    answers: int
    reward: float
    value: float | None  # what an answer is thought to bring; None while nothing is known of the arm
    returns: float | None  # the chance that an answer comes in time
    brings: float | None  # what a use is thought to bring: both together
    low: float | None  # of a 95% interval of that
    high: float | None
    per_unit: float | None  # what a unit of budget brings with it: weighed, over the cost


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Some of the open decisions."""

    words: str
    decisions: int
    reserved: float


@dataclass(frozen=True, kw_only=True)
class Pending:
    """Open decisions: how old they are, and when they expire."""

    decisions: int
    reserved: float
    overdue: int  # expired already, if somebody calls `expire`
    oldest_age: float | None
    middle_age: float | None
    next_expiry: float | None  # a time, or a round
    by_age: tuple[Waiting, ...]
    by_expiry: tuple[Waiting, ...]


@dataclass(frozen=True, kw_only=True)
class CampaignFacts:
    """A campaign at one moment."""

    name: str
    tag: str  # with which the identifiers of its decisions begin
    policy: str
    currency: str  # what the budget is counted in; "" where it is not said
    outcome: str  # what a reward of 1 is; "" where it is not said
    clock: str  # "seconds" or "rounds"
    state: str  # "open", "racing", "paused" or "closed"
    made_at: float  # the moment, in seconds since 1970
    began_at: float
    last_at: float  # of the last event
    ends_at: float | None  # where the end is a date
    arrivals: int
    horizon: int  # where the end is a date: as it is forecast
    time_share: float
    total: float
    spent: float
    reserved: float
    left: float
    released: float
    spent_share: float
    reward: float
    late_reward: float
    states: dict[str, int]  # decisions by state
    reasons: dict[str, int]
    cutoff: float | None
    price: float | None  # of a unit of budget, at the latest decision that had one
    spending: Spending
    mix: tuple[Mix, ...]  # options over time
    periods: tuple[Period, ...]  # empty where the clock counts rounds
    arms: tuple[ArmFacts, ...]
    contexts: tuple[ContextFacts, ...]
    pairs: tuple[PairFacts, ...]  # those used most
    n_pairs: int  # that there are
    certificates: tuple[str, ...]
    notes: tuple[str, ...]  # what else a report says, in sentences
    warnings: tuple[str, ...]
    pending: Pending
    groups: tuple[Served, ...]  # who is served, by features of people
    latest: tuple[Decision, ...]  # the newest first

    def to_dict(self) -> dict[str, Any]:
        """Plain values, fit for JSON: what is not finite is None."""
        found: dict[str, Any] = _plain(dataclasses.asdict(self))
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
