"""Silent feedback, learned as it comes: what is learned is by the deadline, so that tau is 1, but for the end."""

from __future__ import annotations

from doral._kernel import kernel, rare
from doral.engine.answer_limit import answer_limit
from doral.engine.hooks import rebuild_rewards
from doral.engine.pieces.returns.estimated import watched
from doral.engine.state import State, clock_passed
from doral.estimators.positives import mean_age, set_shares, share_by, trials
from doral.estimators.shrinkage import COUNT

__all__ = ["read_returns", "relearn", "watched"]


@rare
def read_returns(state: State) -> None:
    """How much of a trial every decision is by now; and which share of answers can still come before the end."""
    early, ages = state.early, state.curves.ages
    set_shares(early.counts, ages, early.shares)
    for j in range(state.contexts.size):
        deadline = min(state.contexts[j].deadline, ages[ages.size - 1])
        limit = min(answer_limit(state, j), deadline)
        for a in range(state.allowed.size):
            state.tally[COUNT, j, a] = trials(early.passed[j, a], early.shares, ages, a, deadline)
            whole = share_by(early.shares, ages, a, deadline)
            state.tau[j, a] = 1.0 if limit >= deadline else min(share_by(early.shares, ages, a, limit) / whole, 1.0)
            state.tau_error[j, a] = 0.0
    now = state.now[0]
    if state.limits.until_end and clock_passed(state) > 0.0:  # what is decided so near the end mostly earns nothing
        now.lost_rounds = int(mean_age(early.counts, ages, early.shares) * now.round / clock_passed(state))


@kernel
def relearn(state: State) -> None:
    """Trials have grown."""
    rebuild_rewards(state)
