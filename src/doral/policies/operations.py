"""What a live campaign asks of the engine beyond its three events.

`Calls` runs events quickly, one or many. The other operations change a state that is in use: a decision is cancelled, a
reward corrected, budget given back or added, the horizon moved, an arm added or retired. All are deterministic, so a
log of them can be replayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from doral._arrays import Bits, Floats, Ints
from doral._jit import jit, jit_inner, jit_rare
from doral.estimators.median_of_means import close_pull
from doral.estimators.ridge import refactor, update
from doral.estimators.shrinkage import COUNT, REWARD, SQUARE, calibrate
from doral.estimators.survival import WHOLE_ARM, return_probability
from doral.policies.choice import PLAYED_RACING
from doral.policies.engine import decide, is_full, observe, tick
from doral.policies.learning import count_fate, remembered
from doral.policies.state import (
    LEARN_SCALED,
    LEARN_THINNED,
    PRIOR_SHARED,
    RESERVED,
    SPENT,
    TAU_ESTIMATED,
    Rules,
    State,
    grown,
    mark_stale,
)
from doral.racing import ACCEPTED, KAPLAN_MEIER, MIN_AGE, REJECTED

# Columns of what `arrive` writes.
ARM, REASON, ROUND, NUMBER = 0, 1, 2, 3
PROBABILITY, VALUE, PRICE = 0, 1, 2

_STANDINGS = {ACCEPTED: "accepted", REJECTED: "rejected"}


@jit
def _arrive(
    state: State,
    rules: Rules,
    contexts: Ints,
    available: Bits,
    clocks: Floats,
    whole: Ints,
    real: Floats,
    start: int,
) -> int:
    for i in range(start, contexts.size):
        if is_full(state):
            return i
        choice = decide(state, rules, contexts[i], available[i], clocks[i])
        whole[i, ARM], whole[i, REASON] = choice.arm, choice.reason
        whole[i, ROUND], whole[i, NUMBER] = state.now[0].round, state.now[0].next - 1
        real[i, PROBABILITY], real[i, VALUE], real[i, PRICE] = choice.probability, choice.value, choice.price
    return contexts.size


@jit
def _answer(
    state: State, rules: Rules, numbers: Ints, rewards: Floats, clocks: Floats, outcomes: Ints, start: int
) -> int:
    for i in range(start, numbers.size):
        if is_full(state):
            return i
        outcomes[i] = observe(state, rules, numbers[i], rewards[i], clocks[i])
    return numbers.size


class Calls:
    """Quick calls into compiled code for one state.

    Numba looks up the types of all arguments in every call: ten microseconds for a state of fifty arrays, and an event
    takes one. The types of a state never change while it is in use, so they are looked up once, here.
    """

    __slots__ = ("_answer", "_arrive", "rules", "state")

    def __init__(self, state: State, rules: Rules) -> None:
        self.state, self.rules = state, rules
        self._arrive: Callable[..., int] | None = None
        self._answer: Callable[..., int] | None = None

    def arrive(self, contexts: Ints, available: Bits, clocks: Floats, whole: Ints, real: Floats) -> None:
        """Arrivals in their order. `available` is (n, A), or (n, 0) where all arms are; the choices are written into
        `whole` (n, 4: arm, reason, round, number of the decision) and `real` (n, 3: probability, value, price).
        """
        if self._arrive is None:
            self._arrive = _entry(_arrive, self.state, self.rules, contexts, available, clocks, whole, real, 0)
        done = self._arrive(self.state, self.rules, contexts, available, clocks, whole, real, 0)
        while done < contexts.size:
            self.state = grown(self.state)
            done = _arrive(self.state, self.rules, contexts, available, clocks, whole, real, done)

    def answer(self, numbers: Ints, rewards: Floats, clocks: Floats, outcomes: Ints) -> None:
        """Answers in their order; what became of each is written into `outcomes`."""
        if self._answer is None:
            self._answer = _entry(_answer, self.state, self.rules, numbers, rewards, clocks, outcomes, 0)
        done = self._answer(self.state, self.rules, numbers, rewards, clocks, outcomes, 0)
        while done < numbers.size:
            self.state = grown(self.state)
            done = _answer(self.state, self.rules, numbers, rewards, clocks, outcomes, done)


def _entry(function: Any, *arguments: Any) -> Callable[..., int]:
    """The compiled function for exactly these types; it must never be called with others."""
    types = tuple(numba.typeof(argument) for argument in arguments)
    function.compile(types)
    entry: Callable[..., int] = function.overloads[types].entry_point
    return entry


def pass_time(state: State, rules: Rules, clock: float) -> State:
    """Time has passed and nobody has arrived."""
    if is_full(state):
        state = grown(state)
    tick(state, rules, clock)
    return state


@jit_rare
def cancel(state: State, rules: Rules, number: int, context: int, arm: int, in_race: bool, clock: float) -> None:
    """A decision that has no answer is taken back: its cost is free again and it is forgotten as far as possible.

    Undone: the reservation; its place among the pulls of its context (the bonus) and of its arm (the race); its risk
    in the return curves; what the pull itself taught the `thinned` learner, or the silence the `scaled` one; its place
    among decisions that are expected to be answered.
    Not undone: it stays in the bias window until it is older than the cut-off, where `scaled` then takes it for a
    silence; a `min_age` race keeps the pull with the age that it had; what was decided meanwhile was decided with it.
    """
    now = state.now[0]
    n_contexts = state.contexts.size
    give_back(state, context, state.hulls.costs[arm])
    state.contexts[context].pulls = max(0.0, state.contexts[context].pulls - 1.0)
    if in_race and now.racing != 0:
        now.race_spend -= state.hulls.costs[arm]
        if rules.race.censoring != MIN_AGE:  # there the pull keeps its place in the record of delays
            state.race.arms[arm].pulls -= 1
    _forget_risk(state, rules, number, context, arm)
    trained = rules.race_trains or not in_race
    slot = number & (state.ring.size - 1)
    if rules.counts_pending and number >= now.first:
        count_fate(state, rules, slot, 0.0)
        refactor(state.ridge, n_contexts + context)
    if rules.learner == LEARN_THINNED and trained:
        state.ridge.weight[context, arm] = max(0.0, state.ridge.weight[context, arm] - 1.0)
        refactor(state.ridge, context)
    elif rules.learner == LEARN_SCALED and trained and number < now.settled:
        thin = state.thinning[context, arm]
        state.tally[COUNT, context, arm] = max(0.0, state.tally[COUNT, context, arm] - 1.0)
        state.ridge.weight[context, arm] = thin * thin * state.tally[COUNT, context, arm]
        refactor(state.ridge, context)
    if number >= now.first:
        if in_race and now.racing != 0 and rules.race.censoring == MIN_AGE:
            age = clock - state.ring[slot].time
            close_pull(state.race.delays, arm, state.ring[slot].position, state.ring[slot].time, age)
        state.ring[slot].answer_age = math.nan  # neither answered nor at risk: every comparison with it is false
    mark_stale(state, context)


@jit_inner
def _forget_risk(state: State, rules: Rules, number: int, context: int, arm: int) -> None:
    """Take an unanswered decision out of every age of the return curves that it has passed."""
    if rules.tau == TAU_ESTIMATED or (rules.races and rules.race.censoring == KAPLAN_MEIER):
        curves = state.curves
        n_arms = curves.arm_at_risk.shape[0]
        group = arm
        if curves.at_risk.shape[0] > n_arms:
            group += n_arms * context
        for g in range(curves.ages.size):
            if number < curves.cursor[g]:
                curves.at_risk[group, g] = max(0.0, curves.at_risk[group, g] - 1.0)


@jit_rare
def correct(state: State, rules: Rules, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    """A reward that was learned turns out to be another one; V stays, G moves.

    With a half-life it moves by what is still remembered of the answer, and not at all once the decision is too old to
    be watched. With `outcome_split`, ages that the decision has passed stay counted for the outcome as it was.
    """
    difference = reward - previous
    thin, weight = 1.0, 1.0
    slot = number & (state.ring.size - 1)
    if rules.learner == LEARN_SCALED:
        if number >= state.now[0].settled:  # not learned yet: it waits in the ring
            state.ring[slot].reward = reward
            return
        thin = state.thinning[context, arm]
    is_watched = number >= state.now[0].first
    if rules.splits_outcomes and is_watched:
        weight = state.ring[slot].weight
        state.ring[slot].reward = reward
    if math.isfinite(rules.half_life):
        if not is_watched:
            return
        weight = remembered(state, rules, slot)
    if rules.learner == LEARN_THINNED:
        update(state.ridge, context, arm, 0.0, weight * difference)
    else:
        state.tally[REWARD, context, arm] += weight * difference
        state.tally[SQUARE, context, arm] += weight * (reward * reward - previous * previous)
        update(state.ridge, context, arm, 0.0, weight * thin * difference)
    mark_stale(state, context)


def is_learned(rules: Rules, reason: int) -> bool:
    """Whether an answer inside the cut-off trained the rewards, for a decision played for this reason."""
    return rules.race_trains or reason != PLAYED_RACING


@jit
def give_back(state: State, context: int, amount: float) -> None:
    """Give back what a decision turned out not to cost (or, below 0, take what a corrected cost adds)."""
    state.now[0].budget_left += amount
    state.tiers[SPENT, state.depths[context]] -= amount


def top_up(state: State, amount: float) -> None:
    """More budget. The race's share of it grows too, and so does what is reserved."""
    state.tiers[RESERVED] *= 1.0 + amount / state.now["budget"][0]
    state.now["budget"] += amount
    state.now["budget_left"] += amount


def extend(state: State, rounds: int) -> None:
    """More arrivals are expected; the end, as far as it was in view, is not any more."""
    state.now["horizon"] += rounds
    state.now["must_read"] = 1


def retire(state: State, arm: int) -> None:
    """Take an arm out of stage 2 for good: it is not offered, and no longer counts in the price of the budget."""
    if state.barrier[-1, arm] != -np.inf:
        # who was ruled out because of this arm is back, and what is gone needs no certificate
        void = (state.certificates["round"] > 0) & (state.certificates["rival"] == arm)
        state.barrier[:-1, : void.shape[1]][void] = 0.0
        state.certificates["round"][void] = 0
        state.certificates["round"][:, arm : arm + 1] = 0
        state.barrier[:, arm] = -np.inf
        state.now["must_read"] = 1  # all arms are examined anew
        _mark_all_stale(state)


def _mark_all_stale(state: State) -> None:
    """What every context is worth has changed."""
    state.contexts["is_stale"] = 1
    state.stale[:] = np.arange(state.stale.size)[::-1]
    state.now["n_stale"] = state.stale.size


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of a state with their names, such as ("ridge.weight", array)."""
    for name, value in zip(tree._fields, tree, strict=True):
        if hasattr(value, "_fields"):
            yield from leaves(value, f"{path}{name}.")
        else:
            yield path + name, value


def replace_leaves(tree: Any, arrays: dict[str, Any], path: str = "") -> Any:
    """The same tree with these arrays in place of its own."""
    return type(tree)(
        *(
            replace_leaves(value, arrays, f"{path}{name}.") if hasattr(value, "_fields") else arrays[path + name]
            for name, value in zip(tree._fields, tree, strict=True)
        )
    )


def widened(state: State, rules: Rules, before: State, after: State) -> State:
    """The state with one more arm, about which nothing is known.

    `before` and `after` are first states without and with the arm; an axis on which they differ has one entry per arm.
    What is known of the other arms stays. A new arm joins a race that still runs; after it, it is accepted at once.
    """
    arrays: dict[str, Any] = {}
    for (name, now), (_, narrow), (_, wide) in zip(leaves(state), leaves(before), leaves(after), strict=True):
        if name.startswith("hulls."):
            arrays[name] = wide  # derived: built anew from the values below
        elif name in ("curves.at_risk", "curves.returned"):  # rows of contexts by arms, in one axis
            n_rows = narrow.shape[0] // (after.allowed.size - 1)
            split = now.reshape(n_rows, -1, now.shape[1])
            arrays[name] = _wider(split, narrow.reshape(split.shape), wide.reshape(n_rows, -1, now.shape[1]))
            arrays[name] = arrays[name].reshape(-1, now.shape[1])
        else:
            arrays[name] = _wider(now, narrow, wide)
    arrays["ridge.features"], arrays["ridge.features_by_row"] = after.ridge.features, after.ridge.features_by_row
    wider: State = replace_leaves(state, arrays)
    new = wider.allowed.size - 1
    is_racing = bool(wider.now["racing"][0])
    wider.barrier[:, new] = -np.inf if is_racing else 0.0
    if not is_racing:
        wider.race.arms["standing"][new] = ACCEPTED
    if rules.prior == PRIOR_SHARED:  # what the new arm is thought to bring follows from the others
        calibrate(wider.prior, wider.ridge, wider.tally, wider.thinning)
    for row in range(wider.ridge.weight.shape[0]):
        refactor(wider.ridge, row)
    _mark_all_stale(wider)
    return wider


def _wider(now: Any, narrow: Any, wide: Any) -> Any:
    """What is there now, in the shape of `wide` on every axis on which that differs from `narrow`."""
    by_arm = [n != w for n, w in zip(narrow.shape, wide.shape, strict=True)]
    if not any(by_arm):
        return now
    shape = tuple(w if differs else n for n, w, differs in zip(now.shape, wide.shape, by_arm, strict=True))
    larger = np.zeros(shape, dtype=now.dtype)
    shared = tuple(slice(min(a, b)) for a, b in zip(shape, wide.shape, strict=True))
    larger[shared] = wide[shared]
    larger[tuple(slice(n) for n in now.shape)] = now
    return larger


@dataclass(frozen=True, kw_only=True)
class ArmView:
    """What the engine believes about one arm."""

    standing: str  # racing, accepted or rejected
    delay_lower: float  # bounds on the mean delay, from the race; infinite without data
    delay_upper: float
    return_ages: tuple[float, ...]
    return_curve: tuple[float, ...]  # probability of an answer by each age
    values: tuple[float, ...]  # estimated reward by context
    norms: tuple[float, ...]  # uncertainty by context


def view_arm(state: State, arm: int) -> ArmView:
    """One arm, for a report."""
    runner = state.race.arms[arm]
    curves = state.curves
    n_arms, n_contexts = curves.arm_at_risk.shape[0], state.contexts.size
    at_risk = curves.at_risk.reshape(-1, n_arms, curves.ages.size)[:, arm].sum(axis=0)
    ages = [age for age, watched in zip(curves.ages.tolist(), at_risk.tolist(), strict=True) if watched > 0.0]
    return ArmView(
        standing=_STANDINGS.get(int(runner["standing"]), "racing"),
        delay_lower=float(runner["lower"]),
        delay_upper=float(runner["upper"]),
        return_ages=tuple(ages),
        return_curve=tuple(float(return_probability(curves, WHOLE_ARM, arm, age)) for age in ages),
        values=tuple(state.ridge.estimate[:n_contexts, arm].tolist()),
        norms=tuple(state.ridge.norm[:n_contexts, arm].tolist()),
    )
