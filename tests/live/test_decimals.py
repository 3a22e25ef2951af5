"""Budgets and costs are the decimals that people write: 0.3 buys three units of 0.1, in the simulator and live."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import doral
from doral.delays import Fixed
from doral.engine.options import make_policy
from doral.simulation.scenario.scenario import Scenario

GREEDY = make_policy("d-linucb")


def problem_of(budget: float, costs: list[float], horizon: int) -> doral.Problem:
    arms = [doral.Arm(f"a{i}", features=[1.0], cost=cost) for i, cost in enumerate(costs)]
    return doral.Problem(arms=arms, contexts={"c": 1.0}, budget=budget, horizon=horizon, deadline=1000.0)


def affordable(budget: float, cost: float) -> int:
    with localcontext(prec=60):
        return int(Decimal(repr(budget)) // Decimal(repr(cost)))


class Always:
    """A policy in Python that plays whatever it can pay."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        del problem, seed

    def decide(self, arrival: Any) -> int | None:
        return arrival.available[0] if arrival.available else None

    def observe(self, answer: Any) -> None:
        del answer


def bought(budget: float, cost: float, horizon: int) -> dict[str, int]:
    problem = problem_of(budget, [cost], horizon)
    scenario = Scenario(name="one", problem=problem, delays=Fixed(2), means=[[0.5]], noise="none")
    outcomes = doral.simulate([GREEDY, Always], scenario, runs=1).outcomes
    assert all(one.spend <= budget for one in outcomes)
    with doral.open("memory://") as store:
        campaign = store.create("one", problem, policy=GREEDY, seed=1, clock="rounds")
        live = sum(one.arm is not None for one in campaign.decide_many(["c"] * horizon))
        ledger = campaign.report().ledger
    assert ledger.left >= 0
    return {**{one.policy: one.decisions for one in outcomes}, "live": live}


@pytest.mark.parametrize(
    ("budget", "cost", "n"),
    [
        (0.3, 0.1, 3),
        (0.7, 0.1, 7),
        (1.1, 0.11, 10),
        (0.6, 0.2, 3),
        (100.0, 0.1, 1000),
        (2.3, 0.23, 10),
        (1e-3, 1e-4, 10),
    ],
)
def test_a_budget_buys_what_it_can_pay(budget: float, cost: float, n: int) -> None:
    assert set(bought(budget, cost, n + 3).values()) == {n}


def decimals(digits: int, exponents: tuple[int, int]) -> st.SearchStrategy[float]:
    return st.builds(
        lambda whole, exponent: float(f"{whole}e{exponent}"), st.integers(1, 10**digits), st.integers(*exponents)
    )


@settings(max_examples=60, deadline=None)
@given(cost=decimals(6, (-8, 3)), units=st.integers(1, 60), extra=st.sampled_from([0, 0, 1, -1]))
@example(cost=0.3333333333333333, units=3, extra=-1)
@example(cost=0.1, units=3, extra=0)
def test_whatever_the_decimals(cost: float, units: int, extra: int) -> None:
    """A budget of so many units exactly, or of one last digit more or less."""
    with localcontext(prec=60):
        exact = Decimal(repr(cost)) * units + extra * Decimal(1).scaleb(Decimal(repr(cost)).as_tuple().exponent)  # type: ignore[arg-type]
    if exact <= 0:
        return
    budget = float(exact)
    n = affordable(budget, cost)
    assert set(bought(budget, cost, n + 2).values()) == {n}


def test_a_million_units_of_a_tenth() -> None:
    problem = problem_of(1e5, [0.1], 1_000_010)
    scenario = Scenario(name="one", problem=problem, delays=Fixed(2), means=[[0.5]], noise="none")
    [outcome] = doral.simulate(GREEDY, scenario, runs=1).outcomes
    assert outcome.decisions == 1_000_000
    assert outcome.spend <= 1e5


@settings(max_examples=30, deadline=None)
@given(
    costs=st.lists(decimals(3, (-3, 0)), min_size=2, max_size=4),
    budget=decimals(4, (-2, 0)),
    moves=st.lists(st.sampled_from(["decide", "cancel", "cheaper", "top up"]), max_size=40),
)
def test_the_engine_refuses_nothing_that_the_ledger_can_pay(
    costs: list[float], budget: float, moves: list[str]
) -> None:
    """With costs that differ, money that comes back and money that is added."""
    with doral.open("memory://") as store:
        campaign = store.create("one", problem_of(budget, costs, 1_000), policy=GREEDY, seed=1, clock="rounds")
        left, open_ = Decimal(repr(budget)), []
        exact = {f"a{i}": Decimal(repr(cost)) for i, cost in enumerate(costs)}
        for move in moves:
            if move == "decide":
                for name in exact:
                    decision = campaign.decide("c", available=[name])
                    assert (decision.arm is not None) == (exact[name] <= left)
                    if decision.arm is not None:
                        left -= exact[name]
                        open_.append((decision, name))
            elif move == "top up":
                campaign.top_up(0.1)
                left += Decimal("0.1")
            elif open_:
                decision, name = open_.pop()
                if move == "cancel":
                    campaign.cancel(decision.id)
                    left += exact[name]
                else:
                    campaign.feedback(decision.id, 1.0, actual_cost=0.0)
                    left += exact[name]
