"""What fills a slot where no piece of a policy does."""

from __future__ import annotations

from doral._arrays import Floats
from doral._kernel import kernel, rare
from doral.engine.choice import SKIPPED_UNAVAILABLE, UNDECIDED, Choice
from doral.engine.state import State
from doral.estimators.ridge import refactor, refactor_rows, update
from doral.estimators.shrinkage import rebuild
from doral.pacing import NO_ARM, share_of

ENOUGH = 2**62


@kernel
def pull(state: State) -> Choice:
    """Nobody races."""
    return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)


@kernel
def admit(state: State, context: int, traits: Floats, weight: float, deadline: float) -> int:
    """All of a context are alike."""
    return context


@kernel
def class_of(state: State, row: int) -> int:
    return row


@kernel
def whose(state: State, row: int) -> int:
    return row


@kernel
def set_tau(state: State, row: int, context: int) -> None:
    """As for all of the context."""
    if row != context:
        for a in range(state.allowed.size):
            state.tau[row, a], state.tau_error[row, a] = state.tau[context, a], state.tau_error[context, a]


@kernel
def kin(state: State, row: int) -> float:
    """All of the same context."""
    return share_of(state.demand, row) * state.now[0].horizon


@kernel
def teach(state: State, slot: int, context: int, arm: int, weight: float, target: float) -> None:
    update(state.ridge, context, arm, weight, target)


@kernel
def reteach(state: State, slot: int, context: int, arm: int, change: float, total: float) -> None:
    state.ridge.target[context, arm] = total
    refactor(state.ridge, context)


@kernel
def deadline_of(state: State, slot: int, context: int) -> float:
    return state.contexts[context].deadline


@kernel
def are_levels_full(state: State) -> bool:
    return False


@kernel
def draws(state: State) -> int:
    return 0


@kernel
def odds_of(state: State, arm: int) -> float:
    """Nobody asks."""
    return 0.0


@kernel
def try_out(state: State, context: int, restricted: bool, choice: Choice) -> Choice:
    """What the policy has chosen."""
    return choice


@kernel
def control(state: State) -> int:
    return NO_ARM


@kernel
def baseline(state: State, context: int) -> float:
    return 0.0


@kernel
def is_promising(state: State, context: int, restricted: bool) -> bool:
    return True


@kernel
def refunds(state: State) -> float:
    """Nobody knows."""
    return 0.0


@kernel
def credit(state: State) -> float:
    """The budget holds whatever is paid."""
    return 0.0


@kernel
def first_try(state: State, context: int, restricted: bool) -> Choice:
    return Choice(NO_ARM, 1.0, 0.0, 0.0, UNDECIDED)


@kernel
def stretch(state: State, context: int, norm: float) -> float:
    return 1.0


@kernel
def stretched(state: State, context: int, arm: int, norm: float) -> float:
    return norm


@kernel
def trial_part(state: State, arm: int, g: int) -> float:
    """Nobody asks."""
    return 0.0


@kernel
def unknowns(state: State) -> int:
    """theta_j."""
    return state.ridge.features.shape[1]


@kernel
def window_bias(state: State, context: int) -> float:
    return 0.0


@kernel
def norm_row(state: State, context: int) -> int:
    return context


@kernel
def answer_weight(state: State, slot: int) -> float:
    return 1.0


@kernel
def settled_weight(state: State, slot: int) -> float:
    return 0.0


@kernel
def remembered(state: State, slot: int) -> float:
    return 1.0


@kernel
def correction_weight(state: State, number: int, reward: float) -> float:
    return 1.0


@kernel
def unit_at(state: State, reading: int) -> float:
    return 1.0


@kernel
def kept(state: State) -> float:
    return 1.0


@kernel
def thins(state: State) -> bool:
    return False


@kernel
def noise_variance(state: State) -> float:
    return 1.0


@kernel
def watched(state: State) -> int:
    """Nothing has to be watched."""
    return ENOUGH


@kernel
def is_record_full(state: State) -> bool:
    return False


@rare
def rebuild_rewards(state: State) -> None:
    """Under the prior as it is."""
    rebuild(state.ridge, state.tally, state.thinning)
    refactor_rows(state.ridge, 0, state.tally.shape[1])
