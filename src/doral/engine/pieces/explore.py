"""Now and then somebody gets one of their options at random, so that the log tells what else would have brought.

With probability `explore` an arrival is treated in one of n ways, all equally likely: with any arm that is available
and can be paid, or with none. What the policy would do is weighed first, so that the probability of what was done is

    (1 - explore) * (probability that the policy does it)  +  explore / n

whoever chose it. That is at least explore / n for every option, and an average of rewards, each divided by the
probability of what was done, is right for any other policy. Where exploring that often would spend more than the rate
of the policy itself, it is as often as that rate allows. The hard budget holds: what cannot be paid is no option.

What this costs is counted as it happens: what the policy would have brought after its cost, less what is thought to
come instead. Cost is in units of what budget is worth: the price of LP_m, and where there is none, what the policy gets
for a unit on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from doral import _check
from doral._arrays import Record
from doral._kernel import kernel, rare
from doral._kernel.philox import COIN, philox, to_uniform
from doral.engine.choice import PLAYED_EXPLORING, PLAYED_RACING, SKIPPED_EXPLORING, SKIPPED_WORTHLESS, Choice
from doral.engine.hooks import baseline, control, odds_of, rate
from doral.engine.state import State
from doral.pacing import NO_ARM, cost_of

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

_LANE = 1  # of the policy's coin: its own toss is lane 0

EXPLORED = np.dtype(
    [
        ("share", np.float64),  # of arrivals
        ("arrivals", np.int64),  # that got one of their options at random
        ("loss", np.float64),  # what that is thought to have cost
        ("worth", np.float64),  # of what the policy itself has chosen so far
        ("cost", np.float64),  # of that
    ],
    align=True,
)


@dataclass(frozen=True, kw_only=True)
class ExploreOptions:
    """How much is tried out for those who will learn from the log."""

    explore: float = 0.0


def check(options: PolicyOptions) -> None:
    _check.set_fields(options, explore=_check.finite_number("explore", options.explore, at_least=0, at_most=1))


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.explore > 0.0


def memory(blueprint: Blueprint) -> Record:
    """(1,) of EXPLORED."""
    explored = np.zeros(1, dtype=EXPLORED)
    explored["share"] = blueprint.options.explore
    return explored


@kernel
def try_out(state: State, context: int, restricted: bool, choice: Choice) -> Choice:
    n_options, cost = 1, 0.0
    for a in range(state.allowed.size):
        if _is_option(state, a, restricted):
            n_options += 1
            cost += cost_of(state.hulls, context, a)
    share = min(state.explore[0].share, max(0.0, rate(state)) * n_options / cost if cost > 0.0 else 1.0)
    which, option, _, _ = philox(
        state.coin.seed, state.coin.run, np.uint64(state.now[0].round), np.uint64(COIN), np.uint64(_LANE)
    )
    if to_uniform(which) < share:
        return _tried(state, context, restricted, choice, share, n_options, int(to_uniform(option) * n_options))
    if choice.arm != NO_ARM:
        state.explore[0].worth += _worth(state, context, choice.arm, 0.0)
        state.explore[0].cost += cost_of(state.hulls, context, choice.arm)
    probability = (1.0 - share) * choice.probability + share / n_options
    return Choice(choice.arm, probability, choice.value, choice.price, choice.reason)


@kernel
def _is_option(state: State, arm: int, restricted: bool) -> bool:
    """Whether the arm can be had, also if it has lost the race; not if it is retired, or stands for doing nothing."""
    if restricted and state.allowed[arm] == 0:
        return False
    if state.chosen.race:  # the barrier is also that of its losers; who is retired is not available either
        return arm != control(state)
    return state.barrier[state.contexts.size, arm] == 0.0


@rare
def _tried(
    state: State, context: int, restricted: bool, choice: Choice, share: float, n_options: int, option: int
) -> Choice:
    """The option of this number: arms in their order, then none."""
    arm = NO_ARM
    for a in range(state.allowed.size):
        if _is_option(state, a, restricted):
            if option == 0:
                arm = a
            option -= 1
    price = _price(state, choice)
    state.explore[0].arrivals += 1
    state.explore[0].loss += _worth(state, context, choice.arm, price) - _worth(state, context, arm, price)
    probability = (1.0 - share) * odds_of(state, arm) + share / n_options
    if arm == NO_ARM:
        return Choice(NO_ARM, probability, choice.value, choice.price, SKIPPED_EXPLORING)
    reason = PLAYED_RACING if state.now[0].racing != 0 else PLAYED_EXPLORING
    return Choice(arm, probability, _worth(state, context, arm, 0.0), choice.price, reason)


@kernel
def _price(state: State, choice: Choice) -> float:
    """What a unit of budget is worth; who plans a first try does not ask for it."""
    explored = state.explore[0]
    is_first = choice.price == 0.0 and choice.value == 0.0 and choice.reason != SKIPPED_WORTHLESS
    if state.chosen.pace_lp and state.now[0].racing == 0 and not is_first:
        return choice.price
    return max(0.0, explored.worth / explored.cost) if explored.cost > 0.0 else 0.0


@kernel
def _worth(state: State, context: int, arm: int, price: float) -> float:
    """What an arm is thought to bring after its cost, beyond doing nothing; nothing for none."""
    if arm == NO_ARM:
        return 0.0
    worth = state.contexts[context].weight * state.tau[context, arm] * state.ridge.estimate[context, arm]
    return worth - baseline(state, context) - price * cost_of(state.hulls, context, arm)
