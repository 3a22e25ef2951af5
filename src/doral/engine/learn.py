"""What an answer changes: the learners of stage 2, the prior they share, pending decisions, corrections.

    RETURNED  V and G grow when an answer returns: right where a return can be seen and the delay does not depend on the
              reward
    THINNED   V grows with every pull and G with every answer: the printed ridge, the OTFLinUCB of Vernade et al. (2020)
    SCALED    V and G take tau_a f_a and the thinned reward when a decision settles: right also when "no news" and
              "zero" look the same. An answer waits in the ring until then
    EARLY     silent feedback learned as it comes: G grows with the answers, V with fractions of a trial (`returns`)

Pending decisions narrow the bonus as if they were answered as expected (`has_pending`): otherwise, while answers are
late, the same arm would be tried again and again because nothing is known of it. More rows of the ridge hold these
norms. A pending decision enters with tau, its chance to be answered, and leaves when its fate is known. The sums change
at once and the norms at the next refresh.

Where arrivals have features, the line of the arm takes the place of the ridge (`people`).
"""

from __future__ import annotations

import math

from doral._arrays import Floats
from doral.compiled import kernel, position, rare
from doral.engine.people import (
    expect_answer,
    rebuild_lines,
    reteach_line,
    reweigh_line,
    settle_arrival,
    settle_expected,
    teach_line,
)
from doral.engine.returns import answers_seen, outcome_weight
from doral.engine.state import (
    CELLS,
    EARLY,
    FACTORS,
    FIXED,
    GONE_SLOT,
    LINES,
    NOISE_ONLY,
    RETURNED,
    SCALED,
    SHARED,
    THINNED,
    State,
    kept,
    mark_stale,
    norm_row,
    remembered,
    slot_of,
    unit_at,
)
from doral.estimators.cells import calibrate_cells
from doral.estimators.outcomes import HIGH, LOW, count_answer
from doral.estimators.ridge import (
    COUNT,
    REWARD,
    REWARDS,
    SQUARE,
    SQUARES,
    Ridge,
    add_exactly,
    add_reward_exactly,
    add_to_tally,
    add_weight,
    exact_sum,
    narrow,
    refactor,
    refactor_rows,
    update,
)
from doral.estimators.shrinkage import ANEW, IS_SET, calibrate, measure_noise, rebuild
from doral.estimators.survival import ReturnCurves, is_by_context

REFRESH_ROUNDS = 32  # return curves move slowly: they are read once in so many rounds,
REFRESH_SHARE, REFRESH_MOST = 32, 512  # and curves by context, which cost more, once in a share of the rounds so far
CALIBRATE_SHARE = 10  # the prior is moved when a tenth more has been learned,
CALIBRATE_FEWEST, CALIBRATE_MOST = 10, 2_000  # but never more, nor less, often than this
WITH_READING = 2**62
MOST_HALF_LIVES = 256.0

# --- a pull ----------------------------------------------------------------------------------------------------------


@kernel
def learn_pull(state: State, slot: int, row: int, arm: int) -> None:
    """Enter what a decision teaches before its answer: V of THINNED, a trial of EARLY, the norms of pending ones."""
    rules, context = state.rules, position(state.ring[slot].context)
    if rules.learner == THINNED:
        _teach(state, slot, context, arm, 1.0, 0.0)
    elif rules.learner == EARLY:
        state.silence.passed[context, arm, 0] += 1.0
    if rules.has_pending:
        if rules.has_people:
            expect_answer(state, slot, row, arm)
        else:
            decision = state.ring[slot]
            decision.expected, decision.reading = min(state.tau[row, arm], 1.0), state.now[0].read_last
            narrow(state.ridge, state.contexts.size + row, arm, decision.expected)
    if rules.has_window:
        state.window[context, arm] += 1.0


@kernel
def settle(state: State, slot: int) -> None:
    """Enter what a decision teaches when it grows older than the cut-off."""
    rules = state.rules
    if rules.has_window:
        context = position(state.ring[slot].context)
        state.window[context, position(state.ring[slot].arm)] -= 1.0
        mark_stale(state, context)
    if rules.has_pending:
        if rules.has_people:
            settle_expected(state, slot)
        else:
            _resolve_pending(state, slot, _settled_weight(state, slot))
    if rules.has_people:
        settle_arrival(state, slot)
    if rules.learner == SCALED:
        _learn_settled(state, slot)


@kernel
def _settled_weight(state: State, slot: int) -> float:
    """Return what a decision that leaves the cut-off counts for in the norms of pending ones."""
    learner = state.rules.learner
    if learner == EARLY:  # a whole trial, unless it was cancelled
        return 0.0 if math.isnan(state.ring[slot].answer_age) else 1.0
    if learner == SCALED:
        thin = state.thinning[position(state.ring[slot].context), position(state.ring[slot].arm)]
        return thin * thin
    return 0.0


@kernel
def _resolve_pending(state: State, slot: int, answered: float) -> None:
    """Replace a decision's chance to be answered in the norms by its fate: answered (1), not (0), or settled."""
    decision = state.ring[slot]
    if decision.expected >= 0.0 or answered > 0.0:  # an answer: the cut-off may have grown again after it left it
        counted = max(decision.expected, 0.0) * remembered(state, slot)
        context = position(decision.context)
        add_weight(state.ridge, state.contexts.size + context, position(decision.arm), answered - counted)
        decision.expected = -1.0
        if state.ridge.features.shape[1] == 0:
            mark_stale(state, context)


@rare
def _learn_settled(state: State, slot: int) -> None:
    """SCALED: enter a reward with mean thin * <theta_j, f_a>; 0 if nothing came."""
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    reward, thin = state.ring[slot].reward, state.thinning[j, a]
    _enter(state, j, a, reward, 1.0)
    state.ring[slot].weight = float(state.now[0].read_last)  # `reading` is that of the decision
    _teach(state, slot, j, a, thin * thin, thin * reward)
    _count_learned(state)
    mark_stale(state, j)


# --- an answer -------------------------------------------------------------------------------------------------------


@kernel
def learn_answer(state: State, slot: int, reward: float) -> None:
    """Enter an answer inside the cut-off."""
    learner = state.rules.learner
    j, a = position(state.ring[slot].context), position(state.ring[slot].arm)
    state.ring[slot].reward = reward
    if learner == RETURNED:
        mark_stale(state, j)
        weight = 1.0
        if state.rules.has_outcomes:
            weight = outcome_weight(state, slot, state.ring[slot].answer_age)
            state.ring[slot].weight = weight
        if state.rules.has_pending:
            if state.rules.has_people:
                settle_expected(state, slot)
            else:
                _resolve_pending(state, slot, 1.0)
        _enter(state, j, a, reward, weight)
        _teach(state, slot, j, a, weight, weight * reward)
        _count_learned(state)
        state.ring[slot].reading = state.now[0].read_last  # from now on it is the answer that is forgotten
    elif learner == THINNED:
        mark_stale(state, j)
        _teach(state, slot, j, a, 0.0, reward)
        add_reward_exactly(state.exact, j, a, reward, unit_at(state, state.now[0].read_last))
        state.ring[slot].reading = state.now[0].read_last
    elif learner == EARLY:
        _enter_positive(state, slot, j, a, reward)
        state.ring[slot].weight = float(state.now[0].read_last)  # `reading` is that of the decision
    else:  # SCALED: it waits in the ring
        mark_stale(state, j)


@kernel
def _teach(state: State, slot: int, context: int, arm: int, weight: float, target: float) -> None:
    """V += weight f f^T and G += target f, or the same for the line of the arm."""
    if state.rules.has_people:
        teach_line(state, slot, arm, weight, target)
    else:
        update(state.ridge, context, arm, weight, target)


@kernel
def _enter(state: State, context: int, arm: int, reward: float, weight: float) -> None:
    """Add a reward to the sums."""
    add_to_tally(state.tally, context, arm, reward, weight)
    enter_exactly(state, context, arm, reward, weight)


@kernel
def enter_exactly(state: State, context: int, arm: int, reward: float, weight: float) -> None:
    """Add a reward to the sums that corrections go by, and to no other."""
    add_exactly(state.exact, context, arm, reward, weight * unit_at(state, state.now[0].read_last))


@kernel
def _enter_positive(state: State, slot: int, context: int, arm: int, reward: float) -> None:
    """EARLY: add a reward; its trial counts by its age."""
    state.tally[REWARD, context, arm] += reward
    state.tally[SQUARE, context, arm] += reward * reward
    enter_exactly(state, context, arm, reward, 1.0)
    more = max(0.0, answers_seen(state, context, arm) - state.tally[COUNT, context, arm])
    state.tally[COUNT, context, arm] += more
    _teach(state, slot, context, arm, more, reward)
    _count_learned(state)
    mark_stale(state, context)


@kernel
def _count_learned(state: State) -> None:
    """Count a reward that has entered V and G, where the prior follows rewards."""
    if state.rules.prior != FIXED:
        state.now[0].learned += 1


# --- ages, for outcomes whose delays differ ---------------------------------------------------------------------------


@rare
def reweigh_answer(state: State, slot: int, g: int, age: float) -> None:
    """Count an answered decision that has passed the grid age g for its outcome, and weight its answer anew."""
    decision, ages = state.ring[slot], state.curves.ages
    if decision.answer_age <= ages[g]:
        kind = HIGH if decision.reward > state.rules.outcome_split else LOW
        count_answer(state.outcomes, ages, kind, decision.arm, g, decision.answer_age)
        if decision.weight > 0.0:
            weight = outcome_weight(state, slot, age)
            context, arm = position(decision.context), position(decision.arm)
            add_to_tally(state.tally, context, arm, decision.reward, weight - decision.weight)
            enter_exactly(state, context, arm, decision.reward, -decision.weight)
            enter_exactly(state, context, arm, decision.reward, weight)
            if state.rules.has_people:
                reweigh_line(state, slot, arm, decision.reward, weight - decision.weight)
            decision.weight = weight


# --- answers that are recorded late, and corrections ------------------------------------------------------------------


@rare
def learn_recalled(state: State, number: int, context: int, arm: int, reward: float) -> None:
    """Enter an answer inside the cut-off that is recorded after its decision has left it."""
    learner = state.rules.learner
    if learner == SCALED:  # its silence was learned when it settled: V stays, G moves
        if number >= state.now[0].first:
            state.ring[number & (state.ring.size - 1)].reward = reward
        learn_correction(state, number, context, arm, 0.0, reward)
    elif number >= state.now[0].first:
        learn_answer(state, position(number & (state.ring.size - 1)), reward)
    elif learner == RETURNED:
        mark_stale(state, context)
        if state.rules.has_pending and not state.rules.has_people:  # it left the norms when it settled
            add_weight(state.ridge, state.contexts.size + context, arm, 1.0)
        _enter(state, context, arm, reward, 1.0)
        _teach(state, GONE_SLOT, context, arm, 1.0, reward)
        _count_learned(state)
    elif learner == THINNED:  # V has it since it was played
        _teach(state, GONE_SLOT, context, arm, 0.0, reward)
        add_reward_exactly(state.exact, context, arm, reward, unit_at(state, state.now[0].read_last))
        mark_stale(state, context)
    else:
        _enter_positive(state, GONE_SLOT, context, arm, reward)


@rare
def learn_correction(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    """Replace a reward that was learned by another one, with the weight that it has by now."""
    rules, is_here = state.rules, number >= state.now[0].first
    slot = number & (state.ring.size - 1)
    if rules.learner == SCALED and number >= state.now[0].settled:  # not learned yet: it waits in the ring
        state.ring[slot].reward = reward
        return
    weight = 1.0
    if rules.forgets and not is_here:
        weight = 0.0  # too old to say what is left of it
    elif rules.has_outcomes and is_here:  # ages that it has passed stay counted for the outcome as it was
        state.ring[slot].reward = reward
        weight = state.ring[slot].weight
    if weight == 0.0:
        return
    reading = 0
    if is_here:
        reading = state.ring[slot].reading
        if rules.learner == EARLY or rules.learner == SCALED:
            reading = int(state.ring[slot].weight)
        if rules.learner == EARLY:
            state.ring[slot].reward = reward
    _replace(state, slot_of(state, number), context, arm, previous, reward, weight, reading)


@rare
def _replace(
    state: State, slot: int, context: int, arm: int, previous: float, reward: float, weight: float, reading: int
) -> None:
    """Replace a reward that was entered with this weight, after this refresh, without a trace.

    Sums are set from the exact ones and the row is rebuilt from them: all is as if it had been the right one at once.
    V stays, G moves.
    """
    weight *= unit_at(state, reading)
    add_exactly(state.exact, context, arm, previous, -weight)
    add_exactly(state.exact, context, arm, reward, weight)
    unit = unit_at(state, state.now[0].read_last)
    total = exact_sum(state.exact, context, arm, REWARDS) / unit
    if state.rules.learner != THINNED:
        thin = state.thinning[context, arm]
        state.tally[REWARD, context, arm] = total
        state.tally[SQUARE, context, arm] = max(0.0, exact_sum(state.exact, context, arm, SQUARES) / unit)
        state.ridge.weight[context, arm] = thin * thin * state.tally[COUNT, context, arm]
        total *= thin
    if state.rules.has_people:
        reteach_line(state, slot, arm, weight / unit * (reward - previous))
    else:
        state.ridge.target[context, arm] = total
        refactor(state.ridge, context)
    mark_stale(state, context)
    if state.rules.prior != FIXED:  # what was measured on the wrong reward is measured anew at the next refresh
        state.prior.scale[IS_SET] = ANEW
        if state.now[0].calibrate_at != WITH_READING:
            state.now[0].calibrate_at = state.now[0].learned
    if state.rules.returns == FACTORS and state.limits.refresh_rounds == 0 and state.now[0].racing == 0:
        state.now[0].must_read = 1  # factors are fitted to rewards: anew with the next arrival


@rare
def cancel_learned(state: State, number: int, context: int, arm: int) -> None:
    """Take back what a cancelled decision has taught so far."""
    rules, is_here = state.rules, number >= state.now[0].first
    if rules.learner == THINNED:  # the pull itself
        state.ridge.weight[context, arm] = max(0.0, state.ridge.weight[context, arm] - 1.0)
        refactor(state.ridge, context)
    elif rules.learner == SCALED and number < state.now[0].settled:  # its silence
        thin = state.thinning[context, arm]
        state.tally[COUNT, context, arm] = max(0.0, state.tally[COUNT, context, arm] - 1.0)
        state.ridge.weight[context, arm] = thin * thin * state.tally[COUNT, context, arm]
        refactor(state.ridge, context)
    if not rules.has_pending:
        return
    row = norm_row(state, context)
    if rules.learner == EARLY and number < state.now[0].settled:  # there it counts since it settled
        add_weight(state.ridge, row, arm, -1.0)
        refactor(state.ridge, row)
    if is_here and rules.has_people:
        settle_expected(state, number & (state.ring.size - 1))
    elif is_here:
        _resolve_pending(state, number & (state.ring.size - 1), 0.0)
        refactor(state.ridge, row)


# --- the prior, and when it moves -------------------------------------------------------------------------------------


@rare
def follow_answers(state: State) -> None:
    """Move the prior: measure the noise and, where contexts share strength, re-estimate what they share."""
    if state.rules.prior != FIXED:
        _set_next_calibration(state)
        if state.rules.prior == NOISE_ONLY:
            measure_noise(state.prior, state.tally, False)
        else:
            rebuild_rewards(state)


@rare
def rebuild_rewards(state: State) -> None:
    """Rebuild V and G from raw sums, around the prior that follows from them."""
    prior = state.rules.prior
    if prior == SHARED:
        calibrate(state.prior, state.ridge, state.tally, state.thinning)
    elif prior == CELLS:
        calibrate_cells(state.prior, state.ridge, state.tally, state.thinning)
    elif prior == LINES:
        rebuild_lines(state)
    else:
        rebuild(state.ridge, state.tally, state.thinning)
        refactor_rows(state.ridge, 0, state.tally.shape[1])


@rare
def renew_pending(state: State) -> None:
    """Rebuild the norms with pending decisions: the prior or the sums have moved."""
    if state.rules.has_pending and not state.rules.has_people:
        refactor_rows(state.ridge, state.contexts.size, state.ridge.weight.shape[0])


@kernel
def _wait(state: State, wait: int, so_far: int) -> int:
    """Return the rounds until the next refresh: not before it is paid for, but at twice as much seen."""
    return max(wait, min(state.limits.refresh_rounds, so_far))


@kernel
def set_next_reading(state: State) -> None:
    """Set the round in which return curves are read next."""
    now = state.now[0]
    wait = REFRESH_ROUNDS
    if is_by_context(state.curves):
        wait = max(REFRESH_ROUNDS, min(now.round // REFRESH_SHARE, REFRESH_MOST))
        if state.limits.until_end and now.horizon - now.round < 4 * REFRESH_MOST:
            wait = REFRESH_ROUNDS  # near the end tau changes with every round
    wait = _wait(state, wait, now.round)
    now.read_at = (now.round // wait + 1) * wait


@kernel
def set_next_look(state: State) -> None:
    """Set the round in which return curves grow next, while nothing is read off them."""
    now = state.now[0]
    wait = REFRESH_ROUNDS if now.racing != 0 else _wait(state, REFRESH_ROUNDS, now.round)
    now.read_at = (now.round // wait + 1) * wait


@kernel
def _set_next_calibration(state: State) -> None:
    """Set the number of answers at which the prior moves next; in a large problem only when curves are read."""
    now = state.now[0]
    wait = max(CALIBRATE_FEWEST, min(now.learned // CALIBRATE_SHARE, CALIBRATE_MOST))
    now.calibrate_at = now.learned + wait if state.limits.refresh_rounds == 0 else WITH_READING


@kernel
def is_calibration_due(state: State) -> bool:
    """Return whether enough has been learned for the prior to move."""
    now = state.now[0]
    if now.calibrate_at == WITH_READING:
        return now.round >= now.read_at
    return now.learned >= now.calibrate_at


# --- a half-life ------------------------------------------------------------------------------------------------------


@rare
def fade_rewards(state: State) -> None:
    """Discount rewards, widths and return curves by the rounds since the last refresh."""
    now = state.now[0]
    if now.round > now.read_last:
        _keep_units_small(state, float(math.floor(now.round / state.rules.half_life)))
        _discount(state.tally, state.ridge, state.curves, kept(state))
        if not state.rules.has_people:  # whose rows are no sums
            refactor_rows(state.ridge, 0, state.ridge.weight.shape[0])


@kernel
def _keep_units_small(state: State, half_lives: float) -> None:
    """Divide exact sums by a power of two before their units grow too large."""
    base = state.forgotten
    if half_lives - base[0] > MOST_HALF_LIVES:
        less = 2.0 ** (base[0] - half_lives)
        n_contexts, n_arms, n_sums = state.exact.shape
        for j in range(n_contexts):
            for a in range(n_arms):
                for which in range(n_sums):
                    state.exact[j, a, which] *= less
        base[0] = half_lives


@rare
def _discount(tally: Floats, ridge: Ridge, curves: ReturnCurves, keep: float) -> None:
    """Multiply all sums by what is kept."""
    _, n_contexts, n_arms = tally.shape
    for j in range(n_contexts):
        for a in range(n_arms):
            tally[COUNT, j, a] *= keep
            tally[REWARD, j, a] *= keep
            tally[SQUARE, j, a] *= keep
    for row in range(ridge.weight.shape[0]):
        for a in range(n_arms):
            ridge.weight[row, a] *= keep
            ridge.target[row, a] *= keep
    for group in range(curves.at_risk.shape[0]):
        for g in range(curves.ages.size):
            curves.at_risk[group, g] *= keep
            curves.returned[group, g] *= keep
