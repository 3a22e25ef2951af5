"""What a use of an arm costs in the end, learned from what was paid: plans go by that, and not by what is reserved.

Where a problem says `paid="on_answer"`, a decision reserves the list price, and what is paid of it is known when its
answer comes; one that lapses costs nothing. The share of the list price that is paid is learned like a reward that
comes late. A decision is counted at every age of the grid that it passes, whatever has become of it, so over those
that have passed age g, what was paid between g - 1 and g is a plain mean:

    F_a(g) = sum of  paid in the interval / decisions that have passed its end     over intervals up to g
    n_ja   = sum of  decisions past g * (F_a(g) - F_a(g - 1)) / F_a(deadline)      what has passed, as whole decisions

Beyond the oldest decision, payments are thought to go on at their pace so far, but no further than until all are
answered. Shares of a context are beta distributed around those of the arm, these around that of all arms, and that
starts with one decision that was paid in full; how much each level borrows is told by how far counts scatter more than
binomially.

What is not paid of open decisions will come back: the pace counts on it. With `reserve` below 1, what will come back
with that probability is free to be spent again (Bernstein's bound on the sum of what open decisions will cost, with the
errors of the shares as one more variance).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from doral._arrays import Floats, Ints, Record
from doral._kernel import kernel, position, rare
from doral.engine.hooks import kept
from doral.engine.state import FIRST_CAPACITY, State
from doral.pacing import sort_costs

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

MOST_CONCENTRATED = 1e9
ROUNDING = 1e-9
BACK, SPREAD, DOUBT, TRIALS, PAID, BORROWED, BORROWED_BY_ARM = 0, 1, 2, 3, 4, 5, 6  # of `totals`

# What a decision of the ring has to do with money.
CLAIM = np.dtype(
    [
        ("cost", np.float64),  # that is reserved; 0: nothing is, or its fate is known
        ("back", np.float64),  # what is thought to come back of it
        ("spread", np.float64),  # the variance of that
        ("paid", np.float64),  # share of the list price; NaN: it tells nothing of shares
        ("paid_age", np.float64),  # when that was; infinite so far
    ],
    align=True,
)


class CostsMemory(NamedTuple):
    """For J contexts, A arms and G ages of the return curves."""

    share: Floats  # (J, A) of the list price, that is thought to be paid
    error: Floats  # (J, A) its standard error
    passed: Floats  # (J, A, G) decisions that have passed this age, up to the deadline of their context
    paid: Floats  # (J, A, G) shares that were paid in the interval, of those
    answered: Floats  # (A, G) answers in the interval, of those
    come: Floats  # (A, G) F_a: by this age
    unpaid: Floats  # (A, G) answered by this age at no cost
    known: Floats  # (A, 2) whole decisions behind the share of an arm, and that share; scratch of doubts
    claims: Record  # (capacity,) of CLAIM, in step with the ring
    totals: Floats  # (7,)
    deadlines: Floats  # (K,) that there are
    lapsed: Ints  # (K,) the first decision that is not older than this deadline
    deadline_of: Ints  # (J,) its place among those; K: none
    last_age: Ints  # (J,) the grid age that is the deadline, or the last
    certainty: float  # log 1 / (1 - reserve); 0: nothing is free before it has come back
    dearest: float  # of all costs


@dataclass(frozen=True, kw_only=True)
class CostOptions:
    """What plans take a use of an arm to cost."""

    cost: Literal["list", "learned"] = "list"


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.cost == "learned" and problem.paid == "on_answer" and options.return_probability == "estimated"


def memory(blueprint: Blueprint) -> CostsMemory:
    problem, ages = blueprint.problem, blueprint.ages
    shape = problem.n_contexts, problem.n_arms
    deadlines = np.unique(problem.deadlines[np.isfinite(problem.deadlines)])
    return CostsMemory(
        share=np.ones(shape),
        error=np.ones(shape),
        passed=np.zeros((*shape, ages.size)),
        paid=np.zeros((*shape, ages.size)),
        answered=np.zeros((shape[1], ages.size)),
        come=np.zeros((shape[1], ages.size)),
        unpaid=np.zeros((shape[1], ages.size)),
        known=np.zeros((shape[1], 2)),
        claims=np.zeros(FIRST_CAPACITY if is_in(blueprint.options, problem) else 1, dtype=CLAIM),
        totals=np.zeros(7),
        deadlines=deadlines,
        lapsed=np.zeros(deadlines.size, dtype=np.int64),
        deadline_of=np.searchsorted(deadlines, problem.deadlines).astype(np.int64),
        last_age=np.minimum(np.searchsorted(ages, problem.deadlines), ages.size - 1).astype(np.int64),
        certainty=-math.log1p(-problem.reserve) if problem.reserve < 1.0 else 0.0,
        dearest=float(problem.costs.max()),
    )


def grown(memory: CostsMemory, first: int, end: int) -> CostsMemory:
    """With room for twice as many decisions, of which those from `first` to `end` are there."""
    claims = memory.claims
    larger = np.zeros(2 * claims.size, dtype=CLAIM)
    sequence = np.arange(first, end)
    larger[sequence & (larger.size - 1)] = claims[sequence & (claims.size - 1)]
    return memory._replace(claims=larger)


# --- what is open ----------------------------------------------------------------------------------------------------


@kernel
def refunds(state: State) -> float:
    return max(state.costs.totals[BACK], 0.0)


@kernel
def credit(state: State) -> float:
    """What will come back of what is reserved, with the probability that is asked for."""
    costs = state.costs
    if costs.certainty == 0.0:
        return 0.0
    doubt, totals = costs.totals[DOUBT], costs.totals
    spread = max(totals[SPREAD], 0.0) + doubt * doubt
    surely = totals[BACK] - math.sqrt(2.0 * costs.certainty * spread) - costs.certainty * costs.dearest / 3.0
    return max(surely, 0.0)


@kernel
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    context = position(state.ring[slot].context)
    costs, share = state.costs, state.costs.share[context, arm]
    claim = costs.claims[slot]
    claim.cost, claim.back, claim.spread = cost, cost * (1.0 - share), cost * cost * share * (1.0 - share)
    claim.paid, claim.paid_age = 0.0 if cost > 0.0 else math.nan, math.inf
    costs.totals[BACK] += claim.back
    costs.totals[SPREAD] += claim.spread
    costs.totals[DOUBT] += cost * costs.error[context, arm]


@kernel
def _let_go(costs: CostsMemory, slot: int) -> None:
    """The fate of a decision is known: nothing is thought of it any more."""
    claim = costs.claims[slot]
    if claim.cost > 0.0:
        costs.totals[BACK] -= claim.back
        costs.totals[SPREAD] -= claim.spread
        claim.cost, claim.back, claim.spread = 0.0, 0.0, 0.0


@kernel
def on_tick(state: State) -> None:
    """Decisions that are older than their deadline have lapsed: what was reserved for them is free, or will be."""
    costs, now, mask = state.costs, state.now[0], state.ring.size - 1
    for k in range(costs.deadlines.size):
        decision = max(costs.lapsed[k], now.first)
        while decision < now.next and now.clock - state.ring[decision & mask].time > costs.deadlines[k]:
            if costs.deadline_of[state.ring[decision & mask].context] == k:
                _let_go(costs, position(decision & mask))
            decision += 1
        costs.lapsed[k] = decision


@kernel
def on_paid(state: State, number: int, context: int, arm: int, age: float, change: float) -> None:
    costs, curves = state.costs, state.curves
    if number >= state.now[0].first:
        slot = position(number & (state.ring.size - 1))
        _let_go(costs, slot)
        costs.claims[slot].paid += change
        if age < 0.0:
            age = costs.claims[slot].paid_age
        costs.claims[slot].paid_age = age
        if math.isnan(costs.claims[slot].paid):
            return
    if age < 0.0:
        return  # nobody knows any more when that was
    for g in range(costs.last_age[context] + 1):
        if age <= curves.ages[g]:
            if number < curves.cursor[g]:
                costs.paid[context, arm, g] += change
            return


@kernel
def on_passage(state: State, slot: int, g: int, age: float) -> None:
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
def on_recall(state: State, number: int, context: int, arm: int, reward: float, age: float) -> None:
    """Ages that the decision has passed as unanswered were counted so."""
    curves = state.curves
    for g in range(state.costs.last_age[context] + 1):
        if age <= curves.ages[g]:
            if number < curves.cursor[g]:
                state.costs.answered[arm, g] += 1.0
            return


@kernel
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    costs = state.costs
    if number >= state.now[0].first:
        slot = position(number & (state.ring.size - 1))
        _let_go(costs, slot)
        costs.claims[slot].paid = math.nan
    for g in range(costs.last_age[context] + 1):
        if number < state.curves.cursor[g]:
            costs.passed[context, arm, g] = max(0.0, costs.passed[context, arm, g] - 1.0)


# --- stock-taking ----------------------------------------------------------------------------------------------------


@kernel
def fade(state: State) -> None:
    """With a half-life, what was paid counts less, like all else that was learned."""
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
def read_returns(state: State) -> None:
    """Shares follow what was paid, plans follow shares, and open decisions are looked at anew."""
    costs = state.costs
    for a in range(state.allowed.size):
        _read_arm(state, a)
    _pool_arms(costs)
    _set_borrowed(costs)
    for j in range(costs.share.shape[0]):
        for a in range(state.allowed.size):
            _read_cell(costs, j, a)
    _set_costs(state)
    _look_at_open(state)


@rare
def refresh_prior(state: State) -> None:
    """There is a new arm, and hulls were made anew."""
    _set_costs(state)


@kernel
def _set_costs(state: State) -> None:
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
def _trials(costs: CostsMemory, context: int, arm: int) -> tuple[float, float]:
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
def _pool_arms(costs: CostsMemory) -> None:
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
def _set_borrowed(costs: CostsMemory) -> None:
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
def _read_cell(costs: CostsMemory, context: int, arm: int) -> None:
    trials, paid = _trials(costs, context, arm)
    borrowed = costs.totals[BORROWED]
    share = (paid + borrowed * costs.known[arm, 1]) / (trials + borrowed)
    known = min(trials + borrowed, min(costs.known[arm, 0] + costs.totals[BORROWED_BY_ARM], costs.totals[TRIALS])) + 1.0
    costs.share[context, arm] = share
    costs.error[context, arm] = math.sqrt((share * (1.0 - share) + 1.0 / known) / known)


@kernel
def _look_at_open(state: State) -> None:
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
            share = _share_to_come(state, context, arm, now.clock - ring[slot].time)
            claim.back = claim.cost * (1.0 - share)
            claim.spread = claim.cost * claim.cost * share * (1.0 - share)
            costs.totals[BACK] += claim.back
            costs.totals[SPREAD] += claim.spread
            costs.known[arm, 0] += claim.cost * costs.error[context, arm]
    for a in range(state.allowed.size):
        costs.totals[DOUBT] += costs.known[a, 0] * costs.known[a, 0]
    costs.totals[DOUBT] = math.sqrt(costs.totals[DOUBT])


@kernel
def _share_to_come(state: State, context: int, arm: int, age: float) -> float:
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
