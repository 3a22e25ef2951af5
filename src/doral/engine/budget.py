"""The budget: what is left to the last decimal, what may be spent per round, and what is paid in the end.

**Exact to the decimal.** 0.3 buys three units of 0.1. A float is rarely the decimal that people mean, and differences
of floats are rounded. `budget_left` is such a float; `budget_rest` is its error, with what each cost lacks
(`cost_rest`) taken into account, and `budget_dust` what that has lost to rounding in its turn. Together they hold more
than 32 digits, and decimals of 17 do not come nearer to each other than that.

**Paid on answer.** Where a problem says `paid="on_answer"`, a decision reserves the list price, and what is paid of it
is known when its answer comes; one that lapses costs nothing. The share of the list price that is paid is learned like
a reward that comes late. A decision is counted at every age of the grid that it passes, so over decisions past age g,
what was paid between g - 1 and g is a plain mean:

    F_a(g) = sum of  paid in the interval / decisions that have passed its end     over intervals up to g
    n_ja   = sum of  decisions past g * (F_a(g) - F_a(g - 1)) / F_a(deadline)      what has passed, as whole decisions

Beyond the oldest decision payments go on at their pace so far, but no further than until all are answered. Shares of a
context are beta distributed around those of the arm, these around that of all arms, and that starts with one decision
paid in full; how much each level borrows follows from how far counts scatter more than binomially.

The pace counts on what is expected to be released. With `reserve` below 1, what will be released with that probability
can be spent again (Bernstein's bound on the sum of what pending decisions will cost, with the errors of the shares as
one more variance).
"""

from __future__ import annotations

import math
from decimal import Decimal

from doral._money import exact, minus
from doral.compiled import kernel, position, rare
from doral.engine.state import PERIOD, PRINTED_COIN, PRINTED_RATE, SPENT, Costs, State, kept
from doral.pacing import sort_costs

SLACK = 2.0**-80  # of the budget: more than the rounding of all that is ever spent, less than any decimal that is meant
DRIFTED = 1e-9  # of what is left, if anything is: then the float is set right, for policies divide by it
MOST_CONCENTRATED = 1e9
ROUNDING = 1e-9
# Of `Costs.totals`: expected releases, their variance, errors of shares; trials, paid, and what cells and arms borrow.
BACK, SPREAD, DOUBT, TRIALS, PAID, BORROWED, BORROWED_BY_ARM = 0, 1, 2, 3, 4, 5, 6


def decimal_rest(amount: float) -> float:
    """What a float lacks to be the decimal that a person means by it.

    >>> decimal_rest(0.5)
    0.0
    >>> decimal_rest(0.1)
    -5.551115123125783e-18
    """
    return float(minus(exact(amount), Decimal(amount)))


@kernel
def list_cost(state: State, context: int, arm: int) -> float:
    """What one use of this arm takes from the budget in this context, whatever of it comes back."""
    return state.list_costs[min(context, state.list_costs.shape[0] - 1), arm]


@kernel
def can_pay(state: State, context: int, arm: int) -> bool:
    """Whether one use of this arm can be paid in this context."""
    now, row = state.now[0], min(context, state.list_costs.shape[0] - 1)
    cost, cost_rest = state.list_costs[row, arm], state.cost_rest[row, arm]
    over = (now.budget_left - cost) + ((now.budget_rest - cost_rest) + now.budget_dust) + credit(state)
    return over >= -SLACK * now.budget


@kernel
def rest_of(state: State, context: int, arm: int, cost: float) -> float:
    """What this cost of an arm lacks: known for what it costs as a rule."""
    row = min(context, state.list_costs.shape[0] - 1)
    return state.cost_rest[row, arm] if cost == state.list_costs[row, arm] else 0.0


@kernel
def refund(state: State, context: int, arm: int, amount: float) -> None:
    """What a decision turned out not to cost comes back."""
    add_budget(state, amount, rest_of(state, context, arm, amount))
    state.tiers[SPENT, state.demand.depth[context]] -= amount


@kernel
def add_budget(state: State, amount: float, rest: float) -> None:
    """More budget is left, or less; `rest` is what the amount lacks."""
    now = state.now[0]
    now.budget_left, now.budget_rest, now.budget_dust = _added(
        now.budget_left, now.budget_rest, now.budget_dust, amount, rest
    )


def added(left: float, left_rest: float, dust: float, amount: float, rest: float) -> tuple[float, float, float]:
    """The three numbers after `amount` was added."""
    total = left + amount
    taken = total - left
    lost = ((left - (total - taken)) + (amount - taken)) + rest
    if lost == 0.0:  # whole numbers, mostly
        return total, left_rest, dust
    total_rest = left_rest + lost
    taken = total_rest - left_rest
    dust += (left_rest - (total_rest - taken)) + (lost - taken)
    right = total + total_rest
    if DRIFTED * abs(total) < abs(total_rest) < right:
        return right, total_rest - (right - total), dust
    return total, total_rest, dust


_added = kernel(added)


# --- rho: what may be spent per round ---------------------------------------------------------------------------------


@kernel
def rate(state: State) -> float:
    """Return rho, the budget per round from now on: what is left over the rounds left, unless printed or by period."""
    now, rules = state.now[0], state.rules
    left = now.budget_left + expected_refunds(state)
    if rules.rate == PERIOD:
        return _rate_of_period(state, left)
    if rules.rate == PRINTED_RATE:
        return left / now.round
    if rules.rate == PRINTED_COIN:
        return left / now.budget
    rounds_left = now.horizon - now.round + 1
    if state.limits.until_end:  # rounds at the end in which too little can return do not count
        rounds_left = max(1, rounds_left - now.lost_rounds)
    return left / rounds_left


@kernel
def _rate_of_period(state: State, left: float) -> float:
    """Return what is left of the period's equal share, and of those before it, per remaining round of the period."""
    now, rounds = state.now[0], state.rules.period_rounds
    if now.until < math.inf:  # periods are equally long; their arrivals are a part of the forecast
        length = now.until / state.rules.periods
        stop = min(now.until, (math.floor(now.clock / length) + 1.0) * length)
        part = 1.0 if now.until <= now.clock else (stop - now.clock) / (now.until - now.clock)
        saved = now.budget * (1.0 - stop / now.until)
        return max(0.0, left - saved) / max(1.0, part * (now.horizon - now.round + 1))
    end = min(now.horizon, ((now.round - 1) // rounds + 1) * rounds)
    return max(0.0, left - now.budget * (1.0 - end / now.horizon)) / (end - now.round + 1)


# --- paid on answer: claims and learned shares ------------------------------------------------------------------------


@kernel
def expected_refunds(state: State) -> float:
    """Return what is expected to be released of what is reserved."""
    if not state.rules.has_learned_costs:
        return 0.0
    return max(state.costs.totals[BACK], 0.0)


@kernel
def credit(state: State) -> float:
    """Return what will be released with the probability that the problem asks for: it can be spent."""
    costs, certainty = state.costs, state.rules.certainty_of_credit
    if certainty == 0.0:
        return 0.0
    doubt, totals = costs.totals[DOUBT], costs.totals
    spread = max(totals[SPREAD], 0.0) + doubt * doubt
    surely = totals[BACK] - math.sqrt(2.0 * certainty * spread) - certainty * state.rules.dearest / 3.0
    return max(surely, 0.0)


@kernel
def reserve(state: State, slot: int, arm: int, cost: float) -> None:
    """Enter the claim of a new decision."""
    context = position(state.ring[slot].context)
    costs, share = state.costs, state.costs.share[context, arm]
    claim = costs.claims[slot]
    claim.cost, claim.back, claim.spread = cost, cost * (1.0 - share), cost * cost * share * (1.0 - share)
    claim.paid, claim.paid_age = 0.0 if cost > 0.0 else math.nan, math.inf
    costs.totals[BACK] += claim.back
    costs.totals[SPREAD] += claim.spread
    costs.totals[DOUBT] += cost * costs.error[context, arm]


@kernel
def _settle_claim(costs: Costs, slot: int) -> None:
    """Remove the claim of a decision whose fate is known from the totals."""
    claim = costs.claims[slot]
    if claim.cost > 0.0:
        costs.totals[BACK] -= claim.back
        costs.totals[SPREAD] -= claim.spread
        claim.cost, claim.back, claim.spread = 0.0, 0.0, 0.0


@kernel
def lapse_claims(state: State) -> None:
    """Settle the claims of decisions that are older than their deadline."""
    costs, now, mask = state.costs, state.now[0], state.ring.size - 1
    for k in range(costs.deadlines.size):
        decision = max(costs.lapsed[k], now.first)
        while decision < now.next and now.clock - state.ring[decision & mask].time > costs.deadlines[k]:
            if costs.deadline_of[state.ring[decision & mask].context] == k:
                _settle_claim(costs, position(decision & mask))
            decision += 1
        costs.lapsed[k] = decision


@kernel
def settle_payment(state: State, number: int, context: int, arm: int, age: float, change: float) -> None:
    """Enter the share of its list price that a decision costs, known at this age; below 0: a correction of it."""
    costs, curves = state.costs, state.curves
    if number >= state.now[0].first:
        slot = position(number & (state.ring.size - 1))
        _settle_claim(costs, slot)
        costs.claims[slot].paid += change
        if age < 0.0:
            age = costs.claims[slot].paid_age
        costs.claims[slot].paid_age = age
        if math.isnan(costs.claims[slot].paid):
            return
    if age < 0.0:
        return  # the age of the payment is not known any more
    for g in range(costs.last_age[context] + 1):
        if age <= curves.ages[g]:
            if number < curves.cursor[g]:
                costs.paid[context, arm, g] += change
            return


@kernel
def count_payment(state: State, slot: int, g: int) -> None:
    """Count a decision that has passed the grid age g, with what was paid in the interval before it."""
    costs, ages, decision = state.costs, state.curves.ages, state.ring[slot]
    context, arm = position(decision.context), position(decision.arm)
    claim = costs.claims[slot]
    if g > costs.last_age[context] or math.isnan(claim.paid) or math.isnan(decision.answer_age):
        return
    start = ages[g - 1] if g > 0 else -math.inf
    costs.passed[context, arm, g] += 1.0
    costs.answered[arm, g] += 1.0 if (decision.answer_age > start) & (decision.answer_age <= ages[g]) else 0.0
    costs.paid[context, arm, g] += claim.paid if (claim.paid_age > start) & (claim.paid_age <= ages[g]) else 0.0


@kernel
def count_recalled_answer(state: State, number: int, context: int, arm: int, age: float) -> None:
    """Correct the ages that a decision has passed as pending before its answer was recorded."""
    curves = state.curves
    for g in range(state.costs.last_age[context] + 1):
        if age <= curves.ages[g]:
            if number < curves.cursor[g]:
                state.costs.answered[arm, g] += 1.0
            return


@kernel
def cancel_claim(state: State, number: int, context: int, arm: int) -> None:
    """Remove a cancelled decision from claims and counts."""
    costs = state.costs
    if number >= state.now[0].first:
        slot = position(number & (state.ring.size - 1))
        _settle_claim(costs, slot)
        costs.claims[slot].paid = math.nan
    for g in range(costs.last_age[context] + 1):
        if number < state.curves.cursor[g]:
            costs.passed[context, arm, g] = max(0.0, costs.passed[context, arm, g] - 1.0)


@kernel
def fade_costs(state: State) -> None:
    """Discount what was paid, with a half-life."""
    costs, keep = state.costs, kept(state)
    if keep < 1.0:
        n_contexts, n_arms, n_ages = costs.passed.shape
        for a in range(n_arms):
            for g in range(n_ages):
                costs.answered[a, g] *= keep
                for j in range(n_contexts):
                    costs.passed[j, a, g] *= keep
                    costs.paid[j, a, g] *= keep


@rare
def read_costs(state: State) -> None:
    """Re-estimate the shares that are paid, the planned costs, and what pending decisions will cost."""
    costs = state.costs
    for a in range(state.allowed.size):
        _read_arm(state, a)
    _pool_arms(costs)
    _set_borrowed(costs)
    for j in range(costs.share.shape[0]):
        for a in range(state.allowed.size):
            _read_cell(costs, j, a)
    set_planned_costs(state)
    _revalue_claims(state)


@kernel
def set_planned_costs(state: State) -> None:
    """Set the costs of the hulls: list price times the share that is paid."""
    for j in range(state.costs.share.shape[0]):
        row = min(j, state.list_costs.shape[0] - 1)
        for a in range(state.allowed.size):
            state.hulls.costs[j, a] = state.list_costs[row, a] * state.costs.share[j, a]
        sort_costs(state.hulls, j)


@kernel
def _read_arm(state: State, arm: int) -> None:
    """F_a, and what is answered at no cost, over all contexts."""
    costs, ages = state.costs, state.curves.ages
    come, answered, oldest, pace = 0.0, 0.0, 0.0, 0.0
    for g in range(ages.size):
        passed, paid = 0.0, 0.0
        for j in range(costs.share.shape[0]):
            passed += costs.passed[j, arm, g]
            paid += costs.paid[j, arm, g]
        if passed > 0.0:
            come += paid / passed
            answered += costs.answered[arm, g] / passed
            oldest, pace = ages[g], come / ages[g]
            costs.come[arm, g] = min(max(come, 0.0), 1.0)
        else:
            most = come + max(1.0 - max(answered, come), 0.0)
            costs.come[arm, g] = min(max(come, 0.0) + max(pace, 0.0) * (ages[g] - oldest), most)
        costs.unpaid[arm, g] = max(answered - come, 0.0)


@kernel
def _trials(costs: Costs, context: int, arm: int) -> tuple[float, float]:
    """How many whole decisions have passed, and what was paid for them."""
    last = costs.last_age[context]
    whole, before, trials, paid = costs.come[arm, last], 0.0, 0.0, 0.0
    for g in range(last + 1):
        step = costs.come[arm, g] - before
        before = costs.come[arm, g]
        if whole > 0.0:
            trials += costs.passed[context, arm, g] * step / whole
        paid += costs.paid[context, arm, g]
    if not whole > 0.0:  # nothing was ever paid: only the deadline tells
        trials = costs.passed[context, arm, last]
    return trials, min(max(paid, 0.0), trials)


@kernel
def _pool_arms(costs: Costs) -> None:
    """The share of each arm over all contexts, around that of all arms, which starts with one that was paid in full."""
    n_contexts, n_arms = costs.share.shape
    all_trials, all_paid = 1.0, 1.0
    for a in range(n_arms):
        costs.known[a, 0], costs.known[a, 1] = 0.0, 0.0
        for j in range(n_contexts):
            trials, paid = _trials(costs, j, a)
            costs.known[a, 0] += trials
            costs.known[a, 1] += paid
        all_trials += costs.known[a, 0]
        all_paid += costs.known[a, 1]
    share = all_paid / all_trials
    excess, possible = 0.0, 0.0
    for a in range(n_arms):
        more, most = _scatter(costs.known[a, 0], costs.known[a, 1], share, all_trials)
        excess += more
        possible += most
    borrowed = _concentration(excess, possible)
    for a in range(n_arms):
        trials, paid = costs.known[a, 0], costs.known[a, 1]
        costs.known[a, 1] = (paid + borrowed * share) / (trials + borrowed)
    costs.totals[TRIALS], costs.totals[PAID], costs.totals[BORROWED_BY_ARM] = all_trials, all_paid, borrowed


@kernel
def _set_borrowed(costs: Costs) -> None:
    """How many decisions of its arm a context borrows."""
    n_contexts, n_arms = costs.share.shape
    excess, possible = 0.0, 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            trials, paid = _trials(costs, j, a)
            more, most = _scatter(trials, paid, costs.known[a, 1], costs.known[a, 0])
            excess += more
            possible += most
    costs.totals[BORROWED] = _concentration(excess, possible)


@kernel
def _scatter(trials: float, paid: float, share: float, of: float) -> tuple[float, float]:
    """By how much a count scatters more than binomially around a share that `of` decisions tell; how much it might."""
    if not trials > 1.0 + ROUNDING:  # a single decision is a sum of fractions
        return 0.0, 0.0
    gap, variance = paid - trials * share, share * (1.0 - share)
    return gap * gap / trials - variance * max(1.0 - trials / of, 0.0), (trials - 1.0) * variance


@kernel
def _concentration(excess: float, possible: float) -> float:
    if excess <= 0.0 or possible <= 0.0:
        return MOST_CONCENTRATED
    return min(max(possible / excess - 1.0, 1.0), MOST_CONCENTRATED)


@kernel
def _read_cell(costs: Costs, context: int, arm: int) -> None:
    trials, paid = _trials(costs, context, arm)
    borrowed = costs.totals[BORROWED]
    share = (paid + borrowed * costs.known[arm, 1]) / (trials + borrowed)
    known = min(trials + borrowed, min(costs.known[arm, 0] + costs.totals[BORROWED_BY_ARM], costs.totals[TRIALS])) + 1.0
    costs.share[context, arm] = share
    costs.error[context, arm] = math.sqrt((share * (1.0 - share) + 1.0 / known) / known)


@kernel
def _revalue_claims(state: State) -> None:
    """What open decisions of their age will cost."""
    costs, now, ring = state.costs, state.now[0], state.ring
    costs.totals[BACK], costs.totals[SPREAD], costs.totals[DOUBT] = 0.0, 0.0, 0.0
    for a in range(state.allowed.size):
        costs.known[a, 0] = 0.0
    for decision in range(now.first, now.next):
        slot = position(decision & (ring.size - 1))
        claim = costs.claims[slot]
        if claim.cost > 0.0:
            context, arm = position(ring[slot].context), position(ring[slot].arm)
            share = _share_still_due(state, context, arm, now.clock - ring[slot].time)
            claim.back = claim.cost * (1.0 - share)
            claim.spread = claim.cost * claim.cost * share * (1.0 - share)
            costs.totals[BACK] += claim.back
            costs.totals[SPREAD] += claim.spread
            costs.known[arm, 0] += claim.cost * costs.error[context, arm]
    for a in range(state.allowed.size):
        costs.totals[DOUBT] += costs.known[a, 0] * costs.known[a, 0]
    costs.totals[DOUBT] = math.sqrt(costs.totals[DOUBT])


@kernel
def _share_still_due(state: State, context: int, arm: int, age: float) -> float:
    """That will be paid for a decision of this age which is open."""
    costs, ages = state.costs, state.curves.ages
    share, last = costs.share[context, arm], costs.last_age[context]
    low, high = 0, last + 1  # how many ages it has passed
    while low < high:
        middle = (low + high) // 2
        if age > ages[middle]:
            low = middle + 1
        else:
            high = middle
    whole = costs.come[arm, last]
    if low == 0 or not whole > 0.0:
        return share
    came = share * costs.come[arm, low - 1] / whole
    still_open = 1.0 - costs.unpaid[arm, low - 1] - came
    return min((share - came) / still_open, 1.0) if still_open > share - came else 1.0
