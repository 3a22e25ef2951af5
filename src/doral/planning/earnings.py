"""What each policy would earn, over truths that the log leaves possible."""

from __future__ import annotations

from dataclasses import dataclass

from doral.planning.fact import Fact


@dataclass(frozen=True, kw_only=True)
class Earning(Fact):
    """What a policy earns over the planned horizon, in expectation, with all that comes within the deadline.

    The interval is one of 95% over truths that the log leaves possible: it holds what the log does not tell, and not
    only the luck of a simulation. Differences are taken truth by truth.
    """

    policy: str
    worth: float
    low: float
    high: float
    more: float | None  # than the status quo; None for itself
    more_low: float | None
    more_high: float | None
    oracle_share: float | None  # of what the oracle earns, which knows each truth
    spend: float  # on average
    truths: int  # that it played


@dataclass(frozen=True, kw_only=True)
class Pair(Fact):
    """Two policies, truth by truth."""

    first: str
    second: str
    more: float  # that the first earns
    low: float  # 95%
    high: float
    is_equal: bool  # the interval holds 0: the log cannot tell them apart


@dataclass(frozen=True, kw_only=True)
class Earnings(Fact):
    """All policies, the best first."""

    policies: tuple[Earning, ...]
    pairs: tuple[Pair, ...]  # all of them, in the order of the policies
    status_quo: str
    arrivals: float  # over the planned horizon, on average
    budget: float
    unit: str  # of the worth, in words: "positives" where successes are all 1, "reward" otherwise
