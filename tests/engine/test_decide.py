"""Decide: whether an arrival is worth its cost today, with which arm, and what is entered of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from doral._arrays import Floats
from doral.engine.decide import (
    PLAYED,
    PLAYED_MARGINAL,
    SKIPPED_BUDGET,
    SKIPPED_OVER,
    SKIPPED_PACED,
    SKIPPED_UNAVAILABLE,
    SKIPPED_WORTHLESS,
    Choice,
    _set_caps,
    spend,
    toss,
)
from doral.engine.state import CAP, SPENT, TIER_PRICE, State
from doral.pacing import NO_ARM
from doral.problem import Context
from tests.engine.interpreted import ALL_ARMS, COSTS, SEED, SHARES, WEIGHTS, decide, small_problem, state_of
from tests.twin import coin

pytestmark = pytest.mark.usefixtures("interpreted")

VALUES = np.array([[0.5, 0.8, 0.1], [0.3, 0.2, 0.4]])  # without the weight of the context


def known(base: str = "doral", values: Floats = VALUES, **options: Any) -> State:
    """Arms are worth exactly this: nothing is uncertain and every answer returns."""
    problem = options.pop("problem", None)
    words: dict[str, Any] = {"screening": "none", "exploration": 0.0}
    state = state_of(base, problem, **{**words, **options})
    state.ridge.estimate[:2, :3], state.tau[:, :3] = values, 1.0
    state.now[0].round = 1
    return state


def at_round(round_: int, left: float, **options: Any) -> State:
    state = known(**options)
    state.now[0].round, state.now[0].budget_left = round_, left
    return state


# --- greedy and coin -------------------------------------------------------------------------------------------------


def test_greedy_plays_the_best_arm() -> None:
    choice = spend(known(pacing="greedy"), 1, False)
    assert choice == Choice(2, 1.0, choice.value, 0.0, PLAYED)
    assert choice.value == pytest.approx(WEIGHTS[1] * 0.4)


@pytest.mark.parametrize("pacing", ["greedy", "coin"])
def test_where_all_arms_are_out_the_arrival_is_skipped(pacing: str) -> None:
    state = known(pacing=pacing)
    state.barrier[:, :3] = -np.inf
    assert spend(state, 0, False) == Choice(NO_ARM, 1.0, 0.0, 0.0, SKIPPED_UNAVAILABLE)


def test_the_coin_plays_the_best_arm_with_the_probability_of_the_rate() -> None:
    """Its draws are a function of seed, run and round."""
    outcomes = []
    for round_ in range(1, 60):
        state = at_round(round_, 0.3 * (101 - round_), pacing="coin")
        choice = spend(state, 0, False)
        is_played = coin(SEED, 0, round_) < 0.3
        assert (choice.arm, choice.reason) == ((1, PLAYED_MARGINAL) if is_played else (NO_ARM, SKIPPED_PACED))
        assert choice.probability == pytest.approx(0.3 if is_played else 0.7)
        assert choice.value == pytest.approx(0.8)
        assert choice.price == 0.0
        outcomes.append(is_played)
    assert 5 < sum(outcomes) < 35


def test_a_certain_coin_is_not_tossed() -> None:
    state = known()
    assert toss(state, 1.0)
    assert not toss(state, 0.0)
    assert spend(at_round(100, 5.0, pacing="coin"), 0, False).probability == 1.0


# --- LP_m ------------------------------------------------------------------------------------------------------------


def lp_share(rho: float, context: int) -> tuple[int, int, float, float]:
    """(upper, lower, probability, price) for VALUES, worked out by hand.

    Hulls as (gain per unit of cost, cost, arm), weights included. Context 0: a at (0.5, 1), then b at (0.3, 1).
    Context 1: c at (1.2, 1); nothing beyond. In order: c of 1 needs 0.4, a of 0 needs 0.6, b of 0 needs 0.6.
    """
    bought = 0.0
    current = NO_ARM
    for slope, cost, arm, owner in ((1.2, 1.0, 2, 1), (0.5, 1.0, 0, 0), (0.3, 1.0, 1, 0)):
        needed = SHARES[owner] * cost
        if owner == context:
            if bought + needed >= rho:
                return arm, current, (rho - bought) / needed, slope
            current = arm
        elif bought + needed >= rho:
            return current, current, 1.0, slope
        bought += needed
    return current, current, 1.0, 0.0


@pytest.mark.parametrize("rho", [0.1, 0.3, 0.5, 0.9, 1.1, 1.5, 3.0])
@pytest.mark.parametrize("context", [0, 1])
def test_contexts_are_served_in_the_order_of_what_a_unit_of_budget_brings(rho: float, context: int) -> None:
    upper, lower, probability, price = lp_share(rho, context)
    seen = set()
    for round_ in range(1, 40):
        choice = spend(at_round(round_, rho * (101 - round_)), context, False)
        tossed = coin(SEED, 0, round_) < probability
        arm = upper if tossed or probability >= 1.0 - 1e-12 else lower
        assert choice.arm == arm
        assert choice.price == pytest.approx(price)
        expected = 1.0 if upper == lower else probability if arm == upper else 1.0 - probability
        assert choice.probability == pytest.approx(expected)
        if arm == NO_ARM:
            assert choice.reason == SKIPPED_PACED
        else:
            assert choice.reason == (PLAYED if expected >= 1.0 - 1e-12 else PLAYED_MARGINAL)
            assert choice.value == pytest.approx(WEIGHTS[context] * VALUES[context, arm])
        seen.add(arm)
    assert seen == ({upper, lower} if 0.0 < probability < 1.0 - 1e-12 else {upper})


def test_the_price_of_the_day_is_remembered() -> None:
    state = at_round(1, 0.5 * 100)
    spend(state, 0, False)
    assert state.tiers[TIER_PRICE, 0] == pytest.approx(0.5)


def test_a_context_worth_nothing_is_skipped() -> None:
    choice = spend(known(values=np.array([[-0.5, -0.8, 0.0], [0.3, 0.2, 0.4]])), 0, False)
    assert choice == Choice(NO_ARM, 1.0, 0.0, choice.price, SKIPPED_WORTHLESS)


def test_where_arms_are_missing_the_context_enters_with_the_others() -> None:
    state = at_round(1, 300.0)
    state.allowed[:] = [0, 0, 1]
    assert spend(state, 0, True).arm == 2
    assert spend(state, 0, False).arm == 1  # for today only


def test_hulls_are_repaired_where_something_has_changed_and_nowhere_else() -> None:
    state = at_round(1, 300.0)
    spend(state, 0, False)
    assert state.now[0].n_stale == 0
    state.ridge.estimate[:2, :3] = VALUES[:, ::-1]
    assert spend(state, 0, False).arm == 1  # not in the list of stale contexts
    state.contexts[0].is_stale, state.stale[0], state.now[0].n_stale = 1, 0, 1
    assert spend(state, 0, False).value == pytest.approx(WEIGHTS[0] * 0.8)
    assert state.hulls.value[1, 0] == pytest.approx(WEIGHTS[1] * 0.4)  # of the other context, as it was


def test_what_is_reserved_for_the_urgent_is_kept_from_others() -> None:
    problem = small_problem(contexts=[Context("x", 0.6), Context("y", 0.4, weight=3.0, tier=1)], reserves={1: 0.5})
    state = known(problem=problem)
    state.now[0].round, state.now[0].budget_left = 21, 40.0
    state.tiers[SPENT] = [4.0, 6.0]  # by depth: the urgent have had 4 of their 25
    _set_caps(state)
    rho = 40.0 / 80
    usable = SHARES[1] * COSTS.max() * 80
    assert state.tiers[CAP].tolist() == pytest.approx([rho, rho * (1.0 - min(21.0, usable) / 40.0)])
    state.now[0].round = 91
    _set_caps(state)
    usable = SHARES[1] * COSTS.max() * 10  # no more than arrivals to come could cost
    assert state.tiers[CAP].tolist() == pytest.approx([4.0, 4.0 * (1.0 - usable / 40.0)])


# --- decide ----------------------------------------------------------------------------------------------------------


def test_a_decision_is_entered_paid_and_counted() -> None:
    state = known(pacing="greedy")
    state.now[0].clock = 7.0
    choice = decide(state, 1, ALL_ARMS)
    assert (choice.arm, state.now[0].round, state.now[0].next) == (2, 2, 1)
    entry = state.ring[0]
    assert (entry.time, entry.context, entry.arm, entry.answer_age) == (7.0, 1, 2, np.inf)
    assert (entry.reward, entry.weight, entry.expected) == (0.0, 0.0, -1.0)  # nothing is known yet
    assert state.now[0].budget_left == 50.0 - COSTS[2]
    assert (state.contexts[0].pulls, state.contexts[1].pulls) == (0.0, 1.0)
    assert state.tiers[SPENT].tolist() == [COSTS[2]]


@pytest.mark.parametrize(
    ("available", "left", "round_", "reason"),
    [
        ([0, 0, 0], 50.0, 1, SKIPPED_UNAVAILABLE),
        ([1, 1, 1], 0.9, 1, SKIPPED_BUDGET),
        ([0, 1, 0], 1.9, 1, SKIPPED_BUDGET),
        ([1, 1, 1], 50.0, 100, SKIPPED_OVER),
    ],
)
def test_reasons_of_skips(available: list[int], left: float, round_: int, reason: int) -> None:
    state = known(pacing="greedy")
    state.now[0].budget_left, state.now[0].round = left, round_
    choice = decide(state, 0, np.array(available, dtype=np.uint8))
    assert choice == Choice(NO_ARM, 1.0, 0.0, 0.0, reason)
    assert (state.now[0].next, state.now[0].budget_left) == (0, left)


def test_an_arm_that_cannot_be_paid_is_not_played() -> None:
    state = known(pacing="greedy")
    state.now[0].budget_left = 1.5
    assert decide(state, 0, ALL_ARMS).arm == 0  # b costs 2


def test_shares_that_are_not_given_are_smoothed_counts() -> None:
    problem = small_problem(contexts=["x", "y"])
    state = known(problem=problem)
    for context in (0, 0, 1, 0):
        decide(state, context, ALL_ARMS)
    assert (state.demand.weight / state.demand.total).tolist() == pytest.approx([4.0 / 6.0, 2.0 / 6.0])
