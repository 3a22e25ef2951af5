"""Stage 1 inside the policy: pull, compare, and hand over to stage 2."""

from __future__ import annotations

import math

from doral._jit import jit_inner, jit_rare_inner
from doral.pacing import NO_ARM
from doral.policies.choice import PLAYED_RACING, SKIPPED_UNAVAILABLE, Choice
from doral.policies.state import Rules, State
from doral.racing import ACCEPTED, RACING, close_race, fill_with_smallest, is_over, judge, next_pull


@jit_inner
def race_step(state: State) -> Choice:
    """One pull of Algorithm 1."""
    arm = next_pull(state.race, state.allowed)
    if arm == NO_ARM:
        return Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)
    state.now[0].pass_left -= 1
    return Choice(arm, 1.0, 0.0, 0.0, PLAYED_RACING)


@jit_rare_inner
def judge_race(state: State, rules: Rules, clock: float) -> None:
    """Before a pull: at the end of a pass compare bounds; at the cap fill up; when A' are accepted, end."""
    now = state.now[0]
    race = state.race
    if now.pass_left <= 0:
        judge(race, rules.race, state.curves, clock)
        for a in range(race.arms.size):
            now.pass_left += race.arms[a].standing == RACING
    dearest = 0.0
    for a in range(race.arms.size):
        if race.arms[a].standing == RACING:
            dearest = max(dearest, state.hulls.costs[a])
    if not is_over(race, rules.race) and now.race_spend + dearest > rules.race_budget_share * now.budget:
        fill_with_smallest(race, rules.race, state.curves, clock)
        now.race_capped = 1
    if is_over(race, rules.race):
        _end_race(state, rules, clock)


@jit_inner
def _end_race(state: State, rules: Rules, clock: float) -> None:
    """S is complete: fix the cut-off m and start stage 2."""
    now = state.now[0]
    cutoff = close_race(state.race, rules.race, state.curves, clock, rules.cutoff_over_all)
    if not math.isnan(rules.cutoff):
        cutoff = rules.cutoff
    elif not rules.has_deadline or math.isinf(cutoff):
        cutoff = min(cutoff, state.curves.ages[-1])
    now.cutoff = max(cutoff, 1.0)
    for a in range(state.race.arms.size):
        for row in range(state.barrier.shape[0]):
            state.barrier[row, a] = 0.0 if state.race.arms[a].standing == ACCEPTED else -math.inf
    now.racing = 0
    now.race_ended = now.round + 1
    now.must_read = 1
