"""What is due now and then, in one place: everything that takes long and is rare."""

from __future__ import annotations

import math

from doral._jit import jit_rare
from doral.estimators.shrinkage import calibrate
from doral.policies.dropping import certify
from doral.policies.learning import follow_answers, forget, renew_pending, rethin
from doral.policies.returning import REFRESH_ROUNDS, read_curves, set_next_reading, watch, watch_outcomes
from doral.policies.state import LEARN_SCALED, PRIOR_SHARED, TAU_ESTIMATED, Rules, State, mark_stale


@jit_rare
def take_stock(state: State, rules: Rules, watches: bool) -> None:
    """The prior follows the answers, return curves grow, tau is read off them, and arms are examined anew."""
    now = state.now[0]
    has_moved = now.learned >= now.calibrate_at
    if has_moved:
        follow_answers(state, rules)
    is_due = now.round >= now.read_at
    if is_due and watches:
        if rules.splits_outcomes:
            watch_outcomes(state, rules, now.clock)
        watch(state, now.clock)
        now.first = min(now.settled, state.curves.cursor[state.curves.cursor.size - 1])
    forgets = math.isfinite(rules.half_life)
    reads = rules.tau == TAU_ESTIMATED or rules.until_end or rules.drops or forgets
    if now.racing == 0 and ((is_due and reads) or now.must_read != 0):
        if forgets and now.round > now.read_last:
            keep = 0.5 ** ((now.round - now.read_last) / rules.half_life)
            forget(state.tally, state.ridge, state.curves, keep)
        now.read_last, now.must_read = now.round, 0
        set_next_reading(state, rules)
        read_curves(state, rules)
        if rules.learner == LEARN_SCALED or rules.splits_outcomes:  # tau, or weights, enter V and G
            if rules.prior == PRIOR_SHARED:
                calibrate(state.prior, state.ridge, state.tally, state.thinning)
            else:
                rethin(state.ridge, state.tally, state.thinning)
        if rules.drops:
            certify(state, rules)
        has_moved = True
    elif is_due:
        now.read_at = (now.round // REFRESH_ROUNDS + 1) * REFRESH_ROUNDS
    if has_moved:
        renew_pending(state.ridge, state.contexts.size)
        for j in range(state.contexts.size):
            mark_stale(state, j)
