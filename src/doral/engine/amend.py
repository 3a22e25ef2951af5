"""Changes to a state that is in use, beyond the events: a decision is cancelled, a reward corrected, budget given back
or added, the horizon moved, an arm added or retired. All are deterministic, so a log of them can be replayed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from doral._arrays import Floats
from doral._kernel import position, rare
from doral.engine.events import AFTER_CUTOFF, LEARNED, REPEATED, commit, count_arrival, learn, tick
from doral.engine.hooks import (
    admit,
    learn_correction,
    learn_recalled,
    on_answer,
    on_cancel,
    on_paid,
    on_recall,
    on_renewed,
    refresh_prior,
    watch,
)
from doral.engine.leaves import leaves, replace_leaves
from doral.engine.lessons import is_learnable, slot_of
from doral.engine.purse import add_budget, added, decimal_rest, rest_of
from doral.engine.state import RESERVED, SPENT, State, has, is_racing, mark_stale
from doral.estimators.ridge import refactor_rows
from doral.racing import ACCEPTED

WATCH_EVERY = 512  # decisions that were made elsewhere


@rare
def record(
    state: State,
    context: int,
    traits: Floats,
    weight: float,
    deadline: float,
    arm: int,
    cost: float,
    time: float,
    clock: float,
    is_arrival: bool,
) -> None:
    """A decision that was made elsewhere teaches as one of ours does. It is an arrival only if it is one of those that
    are expected; `cost` is what it takes from the budget, and the arm is below 0 for a skip.
    """
    now = state.now[0]
    tick(state, clock)
    if is_arrival:
        now.round += 1
    elif now.round == 0:
        now.opened = clock
    row = position(admit(state, context, traits, weight, deadline))
    state.contexts[row].arrivals += 1.0
    if state.limits.learns_shares:
        count_arrival(state, row)
    if arm >= 0:
        commit(state, row, arm, cost, time)
        now.read_at = min(now.read_at, now.round)  # whoever arrives next is to know it
        if now.next % WATCH_EVERY == 0:  # nobody arrives who would take stock: the ring must not hold all of a log
            watch(state)


@rare
def recall(state: State, number: int, context: int, arm: int, reward: float, age: float) -> int:
    """Hear an answer that came long ago: what silence has taught meanwhile is taken back."""
    now = state.now[0]
    if number >= now.first:
        slot = position(number & (state.ring.size - 1))
        if state.ring[slot].answer_age < math.inf:
            return REPEATED
        state.ring[slot].answer_age = age
        on_answer(state, slot, reward, age)
    on_recall(state, number, context, arm, reward, age)
    if not is_learnable(state, slot_of(state, number), context, age):
        return AFTER_CUTOFF
    return LEARNED


@rare
def learn_late(state: State, number: int, context: int, arm: int, trains: bool, reward: float) -> None:
    """What such an answer teaches, if it came inside the cut-off."""
    if number >= state.now[0].settled:
        learn(state, number, reward)
    elif trains:
        learn_recalled(state, number, context, arm, reward)


@rare
def cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """A decision that has no answer is taken back: its cost is free again and it is forgotten as far as possible.

    Undone: the reservation; its place among the pulls of its context (the bonus) and of its arm (the race); its risk
    in the return curves; what the pull itself taught the `thinned` learner, or the silence the `scaled` one; its place
    among decisions that are expected to be answered.
    Not undone: it stays in the bias window until it is older than the cut-off, where `scaled` then takes it for a
    silence; a `min_age` race keeps the pull with the age that it had; what was decided meanwhile was decided with it.
    """
    now = state.now[0]
    add_budget(state, cost, rest_of(state, context, arm, cost))
    state.tiers[SPENT, state.demand.depth[context]] -= cost
    state.contexts[context].pulls = max(0.0, state.contexts[context].pulls - 1.0)
    on_cancel(state, number, context, arm, cost, in_race, clock)
    if number >= now.first:
        # neither answered nor at risk: every comparison with it is false
        state.ring[number & (state.ring.size - 1)].answer_age = math.nan
    mark_stale(state, context)


@rare
def correct(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    """A reward that was learned turns out to be another one.

    What was learned is then what it would be had the answer been right at once, however wrong it was. What was measured
    on it follows with the next arrival; in a large problem, when stock is taken. With a half-life the answer moves by
    what is still remembered of it, and not at all once the decision is too old to be watched. With `outcome_split`,
    ages that the decision has passed stay counted for the outcome as it was.
    """
    learn_correction(state, number, context, arm, previous, reward)


@rare
def pay(state: State, number: int, context: int, arm: int, age: float, change: float) -> None:
    """A decision costs this share of its list price, or by so much more of it than was said before (age below 0)."""
    on_paid(state, number, context, arm, age, change)


@rare
def recompute(state: State) -> None:
    """After `widened`: whatever follows from the sums."""
    refresh_prior(state)
    if not state.chosen.people:
        refactor_rows(state.ridge, 0, state.ridge.weight.shape[0])
    on_renewed(state)


def set_clock(state: State, clock: float) -> None:
    """The clock was wrong, and shows this: whatever seems to have been decided later was decided now at the latest."""
    now = state.now
    now["clock"] = clock
    now["opened"] = np.minimum(now["opened"], clock)
    watched = np.arange(now["first"][0], now["next"][0]) & (state.ring.size - 1)
    state.ring["time"][watched] = np.minimum(state.ring["time"][watched], clock)


def give_back(state: State, context: int, amount: float) -> None:
    """Give back what a decision turned out not to cost (or, below 0, take what a corrected cost adds)."""
    _add_budget(state, amount)
    state.tiers[SPENT, state.demand.depth[context]] -= amount


def _add_budget(state: State, amount: float) -> None:
    now = state.now[0]
    left, rest, dust = (float(now[name]) for name in ("budget_left", "budget_rest", "budget_dust"))
    now["budget_left"], now["budget_rest"], now["budget_dust"] = added(left, rest, dust, amount, decimal_rest(amount))


def top_up(state: State, amount: float) -> None:
    """More budget. The race's share of it grows too, and so does what is reserved."""
    state.tiers[RESERVED] *= 1.0 + amount / state.now["budget"][0]
    state.now["budget"] += amount
    _add_budget(state, amount)


def extend(state: State, rounds: int) -> None:
    """More arrivals are expected; the end, as far as it was in view, is not any more."""
    state.now["horizon"] += rounds
    state.now["must_read"] = 1


def extend_until(state: State, clock: float) -> None:
    """The date of the end is moved; how many come until then is forecast with the next arrival."""
    state.now["until"] = clock
    state.now["must_read"] = 1


def retire(state: State, arm: int) -> None:
    """Take an arm out of stage 2 for good: it is not offered, and no longer counts in the price of the budget."""
    if state.barrier[-1, arm] != -np.inf:
        if has(state, "drop"):
            _void_certificates(state, arm)
        state.barrier[:, arm] = -np.inf
        state.now["must_read"] = 1  # all arms are examined anew
        all_stale(state)


def _void_certificates(state: State, arm: int) -> None:
    """Who was ruled out because of this arm is back, and what is gone needs no certificate."""
    certificates = state.drop.certificates
    void = (certificates["round"] > 0) & (certificates["rival"] == arm)
    state.barrier[:-1, : void.shape[1]][void] = 0.0
    certificates["round"][void] = 0
    certificates["round"][:, arm] = 0


def all_stale(state: State) -> None:
    """What every context is worth has changed."""
    state.contexts["is_stale"] = 1
    state.stale[:] = np.arange(state.stale.size)[::-1]
    state.now["n_stale"] = state.stale.size


def widened(state: State, before: State, after: State) -> State:
    """The state with one more arm, about which nothing is known; compiled code has to `recompute` it.

    `before` and `after` are first states without and with the arm; an axis on which they differ has one entry per arm.
    What is known of the other arms stays. A new arm joins a race that still runs; after it, it is accepted at once.
    """
    arrays: dict[str, Any] = {}
    rows = zip(leaves(state), leaves(before), leaves(after), strict=True)
    for (name, now), (_, narrow), (_, wide) in rows:
        if name.startswith("hulls.") and name != "hulls.floor":
            arrays[name] = wide  # derived: built anew from the values below
        elif name in ("curves.at_risk", "curves.returned"):  # rows of contexts by arms, in one axis
            n_rows = narrow.shape[0] // (after.allowed.size - 1)
            split = now.reshape(n_rows, -1, now.shape[1])
            arrays[name] = _wider(split, narrow.reshape(split.shape), wide.reshape(n_rows, -1, now.shape[1]))
            arrays[name] = arrays[name].reshape(-1, now.shape[1])
        else:
            arrays[name] = _wider(now, narrow, wide)
    arrays["ridge.features"], arrays["ridge.features_by_row"] = after.ridge.features, after.ridge.features_by_row
    arrays["ridge.reach"] = after.ridge.reach
    if has(after, "people"):
        arrays["people.line.arms"] = after.people.line.arms
    arrays["dearest"] = after.dearest  # of all arms: the budget must be able to pay for the new one, too
    wider: State = replace_leaves(state, arrays)
    if has(wider, "costs"):
        wider = wider._replace(costs=wider.costs._replace(dearest=after.costs.dearest))
    new = wider.allowed.size - 1
    wider.barrier[:, new] = -np.inf if is_racing(wider) else 0.0
    if not is_racing(wider) and has(wider, "race"):
        wider.race.field.arms["standing"][new] = ACCEPTED
    if has(wider, "start"):
        wider.start.is_open[0] = 1.0
    all_stale(wider)
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
