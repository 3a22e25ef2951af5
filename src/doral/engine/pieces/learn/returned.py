"""V and G grow when an answer returns: right where a return can be seen and the delay does not depend on the reward."""

from __future__ import annotations

from doral._kernel import kernel, position
from doral.engine.hooks import answer_weight, correction_weight, on_fate, on_learned, on_recalled, teach
from doral.engine.lessons import enter, replace, slot_of
from doral.engine.state import GUEST, State, mark_stale


@kernel
def learn_answer(state: State, slot: int, reward: float) -> None:
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    state.ring[slot].reward = reward
    mark_stale(state, j)
    weight = answer_weight(state, slot)
    on_fate(state, slot, 1.0)
    enter(state, j, a, reward, weight)
    teach(state, slot, j, a, weight, weight * reward)
    on_learned(state)
    state.ring[slot].reading = state.now[0].read_last  # from now on it is the answer that is forgotten


@kernel
def learn_recalled(state: State, number: int, context: int, arm: int, reward: float) -> None:
    """Nothing was learned of it so far."""
    if number >= state.now[0].first:
        learn_answer(state, position(number & (state.ring.size - 1)), reward)
        return
    mark_stale(state, context)
    on_recalled(state, context, arm)
    enter(state, context, arm, reward, 1.0)
    teach(state, GUEST, context, arm, 1.0, reward)
    on_learned(state)


@kernel
def learn_correction(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    weight = correction_weight(state, number, reward)
    if weight != 0.0:
        reading = state.ring[number & (state.ring.size - 1)].reading if number >= state.now[0].first else 0
        replace(state, slot_of(state, number), context, arm, previous, reward, weight, reading, True)
