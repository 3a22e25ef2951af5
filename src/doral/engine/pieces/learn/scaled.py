"""V and G take tau_a f_a and the thinned reward when a decision settles: right also when "no news" and "zero" look the
same. An answer waits in the ring until then.
"""

from __future__ import annotations

from doral._kernel import kernel, position, rare
from doral.engine.hooks import correction_weight, on_learned, rebuild_rewards, teach
from doral.engine.lessons import enter, replace, slot_of
from doral.engine.state import State, mark_stale
from doral.estimators.ridge import refactor
from doral.estimators.shrinkage import COUNT


@kernel
def thins(state: State) -> bool:
    return True


@kernel
def learn_answer(state: State, slot: int, reward: float) -> None:
    state.ring[slot].reward = reward
    mark_stale(state, position(state.ring[slot].context))


@kernel
def settled_weight(state: State, slot: int) -> float:
    thin = state.thinning[position(state.ring[slot].context), position(state.ring[slot].arm)]
    return thin * thin if state.ring[slot].trains != 0 else 0.0


@kernel
def on_settle(state: State, slot: int) -> None:
    if state.ring[slot].trains != 0:
        _learn_settled(state, slot)


@rare
def _learn_settled(state: State, slot: int) -> None:
    """A reward with mean thin * <theta_j, f_a>; 0 if nothing came."""
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    reward, thin = state.ring[slot].reward, state.thinning[j, a]
    enter(state, j, a, reward, 1.0)
    state.ring[slot].weight = float(state.now[0].read_last)  # `reading` is that of the decision, for those who count it
    teach(state, slot, j, a, thin * thin, thin * reward)
    on_learned(state)
    mark_stale(state, j)


@kernel
def relearn(state: State) -> None:
    """tau enters V and G, so they are rebuilt when it has changed."""
    rebuild_rewards(state)


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """The silence taught something, if the decision has settled."""
    if (not in_race or state.now[0].race_trains != 0) and number < state.now[0].settled:
        thin = state.thinning[context, arm]
        state.tally[COUNT, context, arm] = max(0.0, state.tally[COUNT, context, arm] - 1.0)
        state.ridge.weight[context, arm] = thin * thin * state.tally[COUNT, context, arm]
        refactor(state.ridge, context)


@kernel
def learn_recalled(state: State, number: int, context: int, arm: int, reward: float) -> None:
    """Its silence was learned when it settled: V stays, G moves."""
    if number >= state.now[0].first:
        state.ring[number & (state.ring.size - 1)].reward = reward
    learn_correction(state, number, context, arm, 0.0, reward)


@kernel
def learn_correction(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    """What is not learned yet waits in the ring."""
    if number >= state.now[0].settled:
        state.ring[number & (state.ring.size - 1)].reward = reward
        return
    weight = correction_weight(state, number, reward)
    if weight != 0.0:
        reading = int(state.ring[number & (state.ring.size - 1)].weight) if number >= state.now[0].first else 0
        replace(state, slot_of(state, number), context, arm, previous, reward, weight, reading, True)
