"""What is left of the budget, to the last decimal: 0.3 buys three units of 0.1.

A float is rarely the decimal that people mean, and differences of floats are rounded. `budget_left` is such a float; in
`budget_rest` stands by how much it is wrong, with what each cost lacks (`cost_rest`) taken into account, and in
`budget_dust` what that has lost to rounding in its turn. Together they know more than 32 digits, and decimals of 17 do
not come nearer to each other than that.
"""

from __future__ import annotations

from decimal import Decimal

from doral._kernel import kernel
from doral.engine.hooks import credit
from doral.engine.state import SPENT, State

SLACK = 2.0**-80  # of the budget: more than the rounding of all that is ever spent, less than any decimal that is meant
DRIFTED = 1e-9  # of what is left, if anything is: then the float is set right, for policies divide by it


def decimal_rest(amount: float) -> float:
    """What a float lacks to be the decimal that a person means by it.

    >>> decimal_rest(0.5)
    0.0
    >>> decimal_rest(0.1)
    -5.551115123125783e-18
    """
    return float(Decimal(repr(amount)) - Decimal(amount))


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
