"""What decisions cost in the end: always their list price, or only where something comes of them.

A decision is paid when its answer is heard within its deadline: on success if the reward is above 0, by chance with the
probability of its context and arm, or what the observed row says that was drawn for it. What is not paid comes back,
with the answer or when the decision lapses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doral._arrays import Floats
from doral._kernel import kernel, position
from doral.simulation.scenario.row_averages import cost_shares

if TYPE_CHECKING:
    from doral.simulation.scenario.scenario import Scenario

ALWAYS, ON_SUCCESS, BY_CHANCE, BY_ROW = 0, 1, 2, 3

_KINDS = {"always": ALWAYS, "on_success": ON_SUCCESS, "by_row": BY_ROW}


class Payments(NamedTuple):
    """What is true of payments."""

    kind: int
    chance: Floats  # (J, A), or (N, A) of people, where they are by chance
    costs: Floats  # (R, A) list prices, in one row for all contexts or in one per context
    shares: Floats  # of list prices, that go with the `values` of the laws, where rows were observed with costs


class Bills(NamedTuple):
    """What the decisions of a run cost; empty where each costs its list price."""

    share: Floats  # (T,) of its list price, that is paid, by decision
    last_lapse: NDArray[np.int32]  # (T + 1,) 1 + the last decision that lapses in a round; 0: none does
    next_lapse: NDArray[np.int32]  # (T,) those that lapse in the same round are a ring
    spent: Floats  # (1,) by all decisions, as they turn out


def make_payments(scenario: Scenario) -> Payments:
    paid = scenario.paid
    kind = _KINDS[paid] if isinstance(paid, str) else BY_CHANCE
    by_context = kind == BY_CHANCE and scenario.people is None
    chance = np.array(paid if by_context else np.zeros((0, 0)), dtype=np.float64)
    shares = (
        cost_shares(scenario.rows, scenario.problem) if kind == BY_ROW and scenario.rows is not None else np.zeros(0)
    )
    return Payments(kind, chance, scenario.problem.costs_by_context.copy(), shares)


def example_payments() -> Payments:
    """One that stands for all."""
    return Payments(ALWAYS, np.zeros((0, 0)), np.zeros((1, 1)), np.zeros(0))


def new_bills(horizon: int, *, are_due: bool) -> Bills:
    n = horizon if are_due else 0
    return Bills(
        share=np.zeros(n),
        last_lapse=np.zeros(n + 1, dtype=np.int32),
        next_lapse=np.zeros(n, dtype=np.int32),
        spent=np.zeros(1),
    )


@kernel
def cost_in(payments: Payments, context: int, arm: int) -> float:
    return payments.costs[min(context, payments.costs.shape[0] - 1), arm]


@kernel
def is_taken_up(payments: Payments, context: int, arm: int, reward: float, uniform: float) -> bool:
    """Whether an answer that is heard in time is paid for."""
    if payments.kind == ON_SUCCESS:
        return reward > 0.0
    return uniform < payments.chance[context, arm]


@kernel
def bill(bills: Bills, decision: int, lapse: float, is_heard: bool, share: float, cost: float) -> None:
    """Write down what becomes of a decision: its answer is heard in time, or it lapses in a round."""
    bills.share[decision] = share
    if share > 0.0:
        bills.spent[0] += cost * share
    if not is_heard and lapse < bills.last_lapse.size:
        day = position(int(lapse))
        last = bills.last_lapse[day] - 1
        if last < 0:
            bills.next_lapse[decision] = decision
        else:
            bills.next_lapse[decision] = bills.next_lapse[last]
            bills.next_lapse[last] = decision
        bills.last_lapse[day] = decision + 1
