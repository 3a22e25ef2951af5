"""How a reward enters what was learned, and how it is replaced by another one without a trace."""

from __future__ import annotations

from doral._kernel import kernel, rare
from doral.engine.hooks import deadline_of, on_corrected, reteach, unit_at
from doral.engine.state import GUEST, State, mark_stale
from doral.estimators.exact_sums import REWARDS, SQUARES, add_exactly, exact_sum
from doral.estimators.shrinkage import COUNT, REWARD, SQUARE, add_to_tally


@kernel
def is_learnable(state: State, slot: int, context: int, age: float) -> bool:
    """Whether an answer of this age, to the decision in this slot, teaches something about rewards."""
    limits = state.limits
    if limits.own_deadlines and age > deadline_of(state, slot, context):
        return False
    return age <= state.now[0].cutoff and age <= limits.learnable_age


@kernel
def slot_of(state: State, number: int) -> int:
    """Where the decision of this number is in the ring; GUEST if it is not any more."""
    if number < state.now[0].first:
        return GUEST
    return number & (state.ring.size - 1)


@kernel
def enter(state: State, context: int, arm: int, reward: float, weight: float) -> None:
    """A reward that counts with this weight."""
    add_to_tally(state.tally, context, arm, reward, weight)
    enter_exactly(state, context, arm, reward, weight)


@kernel
def enter_exactly(state: State, context: int, arm: int, reward: float, weight: float) -> None:
    """Into the sums that corrections go by, and into no other."""
    add_exactly(state.exact, context, arm, reward, weight * unit_at(state, state.now[0].read_last))


@rare
def replace(
    state: State,
    slot: int,
    context: int,
    arm: int,
    previous: float,
    reward: float,
    weight: float,
    reading: int,
    is_tallied: bool,
) -> None:
    """A reward that was entered with this weight, after this reading, turns out to be another one.

    Sums are set from the exact ones and the row is rebuilt from them: all is as if it had been the right one at once.
    V stays, G moves.
    """
    weight *= unit_at(state, reading)
    add_exactly(state.exact, context, arm, previous, -weight)
    add_exactly(state.exact, context, arm, reward, weight)
    unit = unit_at(state, state.now[0].read_last)
    total = exact_sum(state.exact, context, arm, REWARDS) / unit
    if is_tallied:
        thin = state.thinning[context, arm]
        state.tally[REWARD, context, arm] = total
        state.tally[SQUARE, context, arm] = max(0.0, exact_sum(state.exact, context, arm, SQUARES) / unit)
        state.ridge.weight[context, arm] = thin * thin * state.tally[COUNT, context, arm]
        total *= thin
    reteach(state, slot, context, arm, weight / unit * (reward - previous), total)
    mark_stale(state, context)
    on_corrected(state)
