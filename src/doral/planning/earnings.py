"""What each policy would earn, over truths that the log leaves possible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.evaluation.targets import STATUS_QUO
from doral.planning.earning import Played
from doral.planning.fact import Fact, number

_ROUNDING = 1e-9
KNOWS_TRUTH = "oracle"  # nobody can be it: the best that can be had is another


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
    oracle_share: float | None  # of what is earned by somebody who knows each truth
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
    left_out: tuple[str, ...]  # sentences: policies that cannot play this problem, and why

    def of(self, policy: str) -> Earning:
        return next(one for one in self.policies if one.policy == policy)

    def pair(self, first: str, second: str) -> Pair:
        """How much more the first earns."""
        for one in self.pairs:
            if (one.first, one.second) == (first, second):
                return one
            if (one.first, one.second) == (second, first):
                return _pair(first, second, Spread(-one.more, -one.high, -one.low))
        raise KeyError((first, second))


class Spread(NamedTuple):
    """A mean, and what 95% of the truths lie between."""

    mean: float
    low: float
    high: float


def spread(draws: Floats) -> Spread:
    """Of one more draw, where so many are known (Student); of what is never below 0, on the scale of logarithms."""
    if draws.size < 2 or not bool((draws > 0.0).all()):
        return _around(draws)
    _, low, high = _around(np.log(draws))
    return Spread(float(draws.mean()), math.exp(low), math.exp(high))


def _around(draws: Floats) -> Spread:
    mean = float(draws.mean())
    if draws.size < 2:
        return Spread(mean, -math.inf, math.inf)
    from scipy.stats import t  # here: it takes long to start

    error = float(draws.std(ddof=1)) * math.sqrt(1.0 + 1.0 / draws.size)
    width = float(t.ppf(0.975, draws.size - 1)) * error
    return Spread(mean, mean - width, mean + width)


def difference(first: Floats, second: Floats) -> Spread:
    """Truth by truth; what only rounding tells apart is the same."""
    gap = first - second
    return _around(np.where(np.abs(gap) <= _ROUNDING * np.abs(first), 0.0, gap))


def earnings_of(
    found: Mapping[str, Sequence[Played | None]],
    *,
    arrivals: float,
    budget: float,
    unit: str,
    left_out: tuple[str, ...] = (),
) -> Earnings:
    """From what every policy earned in every truth."""
    worth = {name: np.array([math.nan if one is None else one.worth for one in all_]) for name, all_ in found.items()}
    best_of = np.array([one.best for one in found[STATUS_QUO] if one is not None])
    made = [_earning(name, found[name], worth[STATUS_QUO], best_of) for name in found]
    policies = tuple(sorted(made, key=lambda one: -one.worth))
    order = [one.policy for one in policies]
    pairs = []
    for first, second in combinations(order, 2):
        both = ~np.isnan(worth[first] + worth[second])
        pairs.append(_pair(first, second, difference(worth[first][both], worth[second][both])))
    best = next((one for one in policies if one.policy != KNOWS_TRUTH), policies[0])
    return Earnings(
        policies=policies,
        pairs=tuple(pairs),
        status_quo=STATUS_QUO,
        arrivals=arrivals,
        budget=budget,
        unit=unit,
        left_out=left_out,
        sentence=f"{best.policy} earns most: {number(best.worth)} {unit} [{number(best.low)}, {number(best.high)}].",
    )


def _earning(name: str, played: Sequence[Played | None], usual: Floats, best_of: Floats) -> Earning:
    did = np.array([one is not None for one in played])
    some = [one for one in played if one is not None]
    worth = np.array([one.worth for one in some])
    best, mine = float(np.mean([one.best for one in some])), spread(worth)
    more = None if name == STATUS_QUO else difference(worth, usual[did])
    if not did.all() and best > 0.0:
        # Who played only some of the truths keeps the share of what could be had: these may be richer than the others.
        mine = _scaled(mine, float(best_of.mean()) / best)
        if more is not None:
            more = _moved(more, mine.mean - float(usual.mean()))
    return Earning(
        policy=name,
        worth=mine.mean,
        low=mine.low,
        high=mine.high,
        more=None if more is None else more.mean,
        more_low=None if more is None else more.low,
        more_high=None if more is None else more.high,
        oracle_share=float(worth.mean()) / best if best > 0.0 else None,
        spend=float(np.mean([one.spend for one in some])),
        truths=len(some),
        sentence=_said(name, mine, more),
    )


def _scaled(one: Spread, by: float) -> Spread:
    return Spread(one.mean * by, one.low * by, one.high * by)


def _moved(one: Spread, mean: float) -> Spread:
    return Spread(mean, one.low + mean - one.mean, one.high + mean - one.mean)


def _said(name: str, mine: Spread, more: Spread | None) -> str:
    said = f"{name} would earn {number(mine.mean)} [{number(mine.low)}, {number(mine.high)}]"
    if more is None:
        return f"{said}: what is done today."
    if more.low <= 0.0 <= more.high:
        return f"{said}; the log cannot tell it from what is done today."
    way = "more" if more.mean > 0.0 else "less"
    ends = sorted((abs(more.low), abs(more.high)))
    return f"{said}: {number(abs(more.mean))} {way} than today [{number(ends[0])}, {number(ends[1])}]."


def _pair(first: str, second: str, gap: Spread) -> Pair:
    is_equal = gap.low <= 0.0 <= gap.high
    if is_equal:
        said = f"the log cannot tell {first} from {second}"
    else:
        ahead, behind = (first, second) if gap.mean > 0.0 else (second, first)
        ends = sorted((abs(gap.low), abs(gap.high)))
        said = f"{ahead} earns {number(abs(gap.mean))} more than {behind} [{number(ends[0])}, {number(ends[1])}]"
    return Pair(
        first=first, second=second, more=gap.mean, low=gap.low, high=gap.high, is_equal=is_equal, sentence=said + "."
    )
