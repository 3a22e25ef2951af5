"""PR-SAR, patient racing (Algorithm 1): which arms answer soonest, from delays that may be heavy tailed.

A Hoeffding race on delays, where smaller is better. After each full pass over the arms still racing, an arm is accepted
when it is surely faster than enough of its rivals, and rejected when enough of them are surely faster than it. "Surely"
means intervals of relative width 2/sqrt(n), a heuristic that fits a realistic budget, not a proven bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from doral._arrays import Ints, Record
from doral._kernel import kernel, rare
from doral.estimators.median_of_means import DelayRecord, median_of_means, new_delay_record
from doral.estimators.survival import ReturnCurves, restricted_mean

# Standing of an arm.
RACING, ACCEPTED, REJECTED = 0, 1, 2
# How delays that are not known yet are treated (`censoring`).
CENSOR_RETURNED, CENSOR_MIN_AGE, CENSOR_KAPLAN_MEIER, CENSOR_INSTANT = 0, 1, 2, 3


class RaceRules(NamedTuple):
    """The compiled options of a race."""

    accept: int  # A', how many arms to accept
    delta: float
    tail_exponent: float  # alpha of the paper's assumption on tails
    width_constant: float  # 2 log(16 / (1 - B^-alpha))
    censoring: int
    min_answers: int  # below this many answers an arm is neither accepted nor rejected
    printed_baskets: bool
    printed_acceptance: bool  # accepts the slowest, and rejects none


# What a race knows of one arm.
RUNNER = np.dtype(
    [
        ("standing", np.int64),
        ("pulls", np.int64),
        ("answers", np.int64),
        ("estimate", np.float64),  # d^M
        ("lower", np.float64),  # LCB
        ("upper", np.float64),  # UCB
    ],
    align=True,
)


class Race(NamedTuple):
    """The state of a race."""

    arms: Record  # (A,) of RUNNER
    delays: DelayRecord


def new_race(n_arms: int, rules: RaceRules, capacity: int) -> Race:
    """All arms racing."""
    arms = np.zeros(n_arms, dtype=RUNNER)
    arms["estimate"], arms["lower"], arms["upper"] = np.inf, -np.inf, np.inf
    return Race(arms=arms, delays=new_delay_record(n_arms, capacity, rules.delta, rules.censoring == CENSOR_MIN_AGE))


def width_constant(budget: float, tail_exponent: float) -> float:
    """2 log(16 / (1 - B^-alpha)), the constant under the first root of the width."""
    return 2.0 * math.log(16.0 / (1.0 - max(budget, 2.0) ** -tail_exponent))


@rare
def set_bounds(race: Race, rules: RaceRules, curves: ReturnCurves, arm: int, clock: float) -> None:
    """Eqs. (UCB) and (LCB), with the plug-in d^M for the unknown mean delay."""
    n = race.delays.held[arm] if rules.censoring == CENSOR_MIN_AGE else race.arms[arm].answers
    if rules.censoring == CENSOR_KAPLAN_MEIER:
        estimate = restricted_mean(curves, arm)
    else:
        estimate = median_of_means(race.delays, arm, clock, rules.delta, rules.printed_baskets)
    race.arms[arm].estimate = estimate
    if n < max(rules.min_answers, 1) or estimate == math.inf:
        race.arms[arm].lower, race.arms[arm].upper = -math.inf, math.inf
        return
    width = math.sqrt(rules.width_constant / n) + 2.0 * estimate * n ** -min(rules.tail_exponent, 0.5)
    race.arms[arm].lower = estimate - width
    race.arms[arm].upper = estimate + width


@rare
def judge(race: Race, rules: RaceRules, curves: ReturnCurves, clock: float) -> None:
    """The end of a pass: new bounds for the arms still racing, then acceptances and rejections."""
    n_arms = race.arms.size
    racing = 0
    accepted = 0
    for a in range(n_arms):
        if race.arms[a].standing == RACING:
            racing += 1
            set_bounds(race, rules, curves, a, clock)
        elif race.arms[a].standing == ACCEPTED:
            accepted += 1
    for a in range(n_arms):
        if race.arms[a].standing != RACING or accepted >= rules.accept:
            continue
        surely_slower = 0
        surely_faster = 0
        for other in range(n_arms):
            if other != a and race.arms[other].standing == RACING:
                surely_slower += race.arms[a].upper < race.arms[other].lower
                surely_faster += race.arms[a].lower > race.arms[other].upper
        missing = rules.accept - accepted
        if rules.printed_acceptance:
            accept, reject = surely_faster > missing, False
        else:
            accept, reject = surely_slower >= racing - missing, surely_faster >= missing
        if accept:
            race.arms[a].standing = ACCEPTED
            accepted += 1
            racing -= 1
        elif reject:
            race.arms[a].standing = REJECTED
            racing -= 1


@rare
def is_over(race: Race, rules: RaceRules) -> bool:
    """Whether A' arms are accepted."""
    accepted = 0
    for a in range(race.arms.size):
        accepted += race.arms[a].standing == ACCEPTED
    return accepted >= rules.accept


@rare
def fill_with_smallest(race: Race, rules: RaceRules, curves: ReturnCurves, clock: float) -> None:
    """At the cap on stage 1's budget: accept the arms with the smallest estimates until A' are accepted."""
    for a in range(race.arms.size):
        if race.arms[a].standing == RACING:
            set_bounds(race, rules, curves, a, clock)
    while not is_over(race, rules):
        best = -1
        for a in range(race.arms.size):
            if race.arms[a].standing == RACING and (best < 0 or race.arms[a].estimate < race.arms[best].estimate):
                best = a
        if best < 0:
            return
        race.arms[best].standing = ACCEPTED


@rare
def close_race(race: Race, rules: RaceRules, curves: ReturnCurves, clock: float, over_all: bool) -> float:
    """Reject the rest; m = the largest UCB over accepted (or all) arms, infinite where none has one."""
    cutoff = 0.0
    for a in range(race.arms.size):
        if race.arms[a].standing == RACING:
            race.arms[a].standing = REJECTED
        if over_all or race.arms[a].standing == ACCEPTED:
            set_bounds(race, rules, curves, a, clock)
            if race.arms[a].upper < math.inf:
                cutoff = max(cutoff, race.arms[a].upper)
    return cutoff if cutoff > 0.0 else math.inf


@kernel
def next_pull(race: Race, allowed: Ints) -> int:
    """The racing and allowed arm with the fewest pulls (lowest index on ties), or -1."""
    best = -1
    for a in range(race.arms.size):
        fewer = best < 0 or race.arms[a].pulls < race.arms[best].pulls
        if fewer and race.arms[a].standing == RACING and allowed[a] != 0:
            best = a
    return best
