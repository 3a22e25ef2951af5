"""Silent feedback, learned as it comes: what is learned is by the deadline, so that tau is 1, but for the end."""

from __future__ import annotations

from doral._kernel import kernel, rare
from doral.engine.answer_limit import answer_limit
from doral.engine.hooks import rebuild_rewards
from doral.engine.pieces.returns.estimated import watched
from doral.engine.state import State, clock_passed
from doral.estimators.positives import mean_age, set_shares, share_by, trials
from doral.estimators.shrinkage import COUNT

__all__ = ["read_returns", "relearn", "set_tau", "watched"]


@rare
def read_returns(state: State) -> None:
    """How much of a trial every decision is by now; and which share of answers can still come before the end."""
    early, ages = state.early, state.curves.ages
    set_shares(early.counts, ages, early.shares)
    for j in range(state.tally.shape[1]):
        for a in range(state.allowed.size):
            state.tally[COUNT, j, a] = trials(early.passed[j, a], early.shares, ages, a, _learned_by(state, j))
        set_tau(state, j, j)
    now = state.now[0]
    if state.limits.until_end and clock_passed(state) > 0.0:  # what is decided so near the end mostly earns nothing
        now.lost_rounds = int(mean_age(early.counts, ages, early.shares) * now.round / clock_passed(state))


@kernel
def _learned_by(state: State, context: int) -> float:
    """The age by which what is learned has come."""
    deadline = state.contexts[context].deadline if state.limits.own_deadlines else state.limits.longest_deadline
    return min(deadline, state.curves.ages[state.curves.ages.size - 1])


@kernel
def set_tau(state: State, row: int, context: int) -> None:
    """Which share of that can come in time."""
    shares, ages, learned_by = state.early.shares, state.curves.ages, _learned_by(state, row)
    limit = min(answer_limit(state, row), learned_by)
    for a in range(state.allowed.size):
        whole = share_by(shares, ages, a, learned_by)
        state.tau[row, a] = 1.0 if limit >= learned_by else min(share_by(shares, ages, a, limit) / whole, 1.0)
        state.tau_error[row, a] = 0.0


@kernel
def relearn(state: State) -> None:
    """Trials have grown."""
    rebuild_rewards(state)
