"""V grows with every pull and G with every answer: the printed ridge, the OTFLinUCB of Vernade et al. (2020)."""

from __future__ import annotations

from doral._kernel import kernel, position
from doral.engine.hooks import correction_weight, teach, unit_at
from doral.engine.lessons import replace, slot_of
from doral.engine.state import GUEST, State, mark_stale
from doral.estimators.exact_sums import add_reward_exactly
from doral.estimators.ridge import refactor


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    if state.ring[slot].trains != 0:
        teach(state, slot, position(state.ring[slot].context), arm, 1.0, 0.0)


@kernel
def learn_answer(state: State, slot: int, reward: float) -> None:
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    state.ring[slot].reward = reward
    mark_stale(state, j)
    teach(state, slot, j, a, 0.0, reward)
    add_reward_exactly(state.exact, j, a, reward, unit_at(state, state.now[0].read_last))
    state.ring[slot].reading = state.now[0].read_last  # from now on it is the answer that is forgotten


@kernel
def learn_recalled(state: State, number: int, context: int, arm: int, reward: float) -> None:
    """V has it since it was played, whether or not it is still watched."""
    if number >= state.now[0].first:
        learn_answer(state, position(number & (state.ring.size - 1)), reward)
    else:
        teach(state, GUEST, context, arm, 0.0, reward)
        add_reward_exactly(state.exact, context, arm, reward, unit_at(state, state.now[0].read_last))
        mark_stale(state, context)


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """The pull itself taught something."""
    if not in_race or state.now[0].race_trains != 0:
        state.ridge.weight[context, arm] = max(0.0, state.ridge.weight[context, arm] - 1.0)
        refactor(state.ridge, context)


@kernel
def learn_correction(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    weight = correction_weight(state, number, reward)
    if weight != 0.0:
        reading = state.ring[number & (state.ring.size - 1)].reading if number >= state.now[0].first else 0
        replace(state, slot_of(state, number), context, arm, previous, reward, weight, reading, False)
