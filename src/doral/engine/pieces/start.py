"""A thrifty, balanced start: every arm is tried a few times before it can be passed over, whatever it costs.

Before there are answers an arm is worth its bonus, and what little is known of one may be bad luck, or features that
mislead: some arms would never be tried, the dear ones first of all. So each is tried in turn, by whoever arrives, until

    n_a  =  4 noise / (c_a r)^2        r: what a unit of budget has brought so far

tries are made: then twice the standard error of its mean is what its cost has to bring, and an arm of no worth is known
not to be worth it. Where answers tell much, that is one try; where conversions are rare, it is many. All arms together
may take `start_share` of the budget for it, and where that does not pay for a try of each, there is no such start.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral._kernel import kernel, rare
from doral.engine.choice import PLAYED_FIRST, SKIPPED_PACED, UNDECIDED, Choice
from doral.engine.hooks import on_weighed, rate
from doral.engine.pieces.pace.lp import flip
from doral.engine.state import State
from doral.errors import InvalidValue
from doral.estimators.shrinkage import COUNT, DOUBT, MEAN_SQUARE, REWARD
from doral.pacing import NO_ARM, cost_of

MAX_TRIES = 10**9
FIRST_TRIES = 4.0  # before any answer has come: then it is known how many are enough

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem


class StartMemory(NamedTuple):
    share: float  # of the budget
    at_least: float  # tries, whatever answers tell
    tries: Floats  # (A,) made so far, planned or not
    enough: Floats  # (A,) tries that are wanted
    is_open: Floats  # (1,) 1: some arm may still need a try


@dataclass(frozen=True, kw_only=True)
class StartOptions:
    """How arms are tried at first."""

    start_share: float = 0.0
    start_tries: int = 0


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    """A race tries every arm first anyway."""
    return options.start_share > 0.0 and options.screening == "none"


def check(options: PolicyOptions) -> None:
    share = _check.finite_number("start_share", options.start_share, at_least=0, at_most=1)
    tries = _check.whole_number("start_tries", options.start_tries, at_least=0, at_most=MAX_TRIES)
    _check.set_fields(options, start_share=share, start_tries=tries)
    if share > 0.0 and options.prior == "fixed":
        raise InvalidValue("start_share", share, "rests on measured noise: needs prior='noise', 'shared' or 'cells'")


def memory(blueprint: Blueprint) -> StartMemory:
    n_arms, tries = blueprint.problem.n_arms, float(blueprint.options.start_tries)
    share, first = blueprint.options.start_share, max(FIRST_TRIES, tries)
    return StartMemory(share, tries, np.zeros(n_arms), np.full(n_arms, first), np.ones(1))


@kernel
def first_try(state: State, context: int, restricted: bool) -> Choice:
    if state.start.is_open[0] == 0.0:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, UNDECIDED)
    return _try(state, context, _untried(state, context, restricted))


@rare
def _try(state: State, context: int, arm: int) -> Choice:
    """No faster than the budget allows for."""
    if arm == NO_ARM:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, UNDECIDED)
    cost, rho = cost_of(state.hulls, context, arm), rate(state)
    probability = 1.0 if cost <= rho else rho / cost
    on_weighed(state, arm, probability)
    on_weighed(state, NO_ARM, 1.0 - probability)
    if flip(state, probability):
        return Choice(arm, probability, 0.0, 0.0, PLAYED_FIRST)
    return Choice(NO_ARM, 1.0 - probability, 0.0, 0.0, SKIPPED_PACED)


@rare
def _untried(state: State, context: int, restricted: bool) -> int:
    """The arm with the fewest tries, of those that need one; of several the one with the fewest here."""
    barrier, tries, chosen = state.barrier[state.contexts.size], state.start.tries, NO_ARM
    most = _affordable_tries(state)
    is_open = False
    for a in range(tries.size):
        if barrier[a] == 0.0 and tries[a] < min(state.start.enough[a], most):
            is_open = True
            if restricted and state.allowed[a] == 0:
                continue
            if (
                chosen == NO_ARM
                or tries[a] < tries[chosen]
                or (tries[a] == tries[chosen] and _tried_here(state, context, a) < _tried_here(state, context, chosen))
            ):
                chosen = a
    if not is_open and state.prior.scale[MEAN_SQUARE] > 0.0:
        state.start.is_open[0] = 0.0
    return chosen


@kernel
def _affordable_tries(state: State) -> float:
    """Of every arm in play, from the share of the budget."""
    total = 0.0
    for a in range(state.start.tries.size):
        if state.barrier[state.contexts.size, a] == 0.0:
            total += _usual_cost(state, a)
    return math.floor(state.start.share * state.now[0].budget / total) if total > 0.0 else 0.0


@kernel
def _usual_cost(state: State, arm: int) -> float:
    """Over contexts."""
    total, n_rows = 0.0, state.hulls.costs.shape[0]
    for row in range(n_rows):
        total += state.hulls.costs[row, arm]
    return total / n_rows


@kernel
def _tried_here(state: State, context: int, arm: int) -> float:
    """Open decisions included."""
    return state.ridge.weight[state.ridge.weight.shape[0] - state.contexts.size + context, arm]


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    state.start.tries[arm] += 1.0


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    state.start.tries[arm] = max(0.0, state.start.tries[arm] - 1.0)
    state.start.is_open[0] = 1.0


@rare
def renew(state: State) -> None:
    """How many tries are enough, in the light of the answers so far."""
    if state.start.is_open[0] == 0.0 or not state.prior.scale[MEAN_SQUARE] > 0.0:
        return
    brought, paid = 0.0, 0.0
    for j in range(state.tally.shape[1]):
        for a in range(state.start.tries.size):
            brought += state.tally[REWARD, j, a]
            paid += state.tally[COUNT, j, a] * cost_of(state.hulls, j, a)
    per_cost = abs(brought) / paid if paid > 0.0 else 0.0
    for a in range(state.start.tries.size):
        worth = per_cost * _usual_cost(state, a)
        enough = 4.0 * state.prior.scale[DOUBT] / (worth * worth) if worth > 0.0 else math.inf
        state.start.enough[a] = max(enough, state.start.at_least)
