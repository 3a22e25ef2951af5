"""Costs that differ by context, costs of nothing, and a floor on what a unit of budget must bring; against HiGHS."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from doral._arrays import Floats
from doral.errors import InvalidValue, UnknownName
from doral.pacing import new_hulls, set_hull, solve, sort_costs
from doral.problem import Arm, Problem
from doral.simulation.world.oracle import availability_dual

CONTEXTS = ("near", "far")


def make(**changes: Any) -> Problem:
    arms = [Arm("taxi", features=[1.0], cost={"far": 20, "near": 8}), Arm("call", features=[2.0], cost=0)]
    given: dict[str, Any] = {"arms": arms, "contexts": CONTEXTS, "budget": 100, "horizon": 50}
    return Problem(**(given | changes))


def test_costs_by_context() -> None:
    problem = make()
    assert problem.costs_by_context.tolist() == [[8.0, 0.0], [20.0, 0.0]]  # in the order of the contexts
    assert problem.costs.tolist() == [20.0, 0.0]
    assert (problem.arms[0].cost_in("near"), problem.arms[0].dearest, problem.arms[1].cost_in("far")) == (8.0, 20.0, 0)
    assert not problem.costs_by_context.flags.writeable
    plain = make(arms=[Arm("call", features=[2.0], cost=3)])
    assert plain.costs_by_context.tolist() == [[3.0]]


def test_costs_are_stored() -> None:
    problem = make(paid="on_answer", return_at_least=0.25, deadline=7, reserve=0.99)
    stored = problem.to_dict()
    assert stored["arms"][0]["cost"] == {"far": 20.0, "near": 8.0}
    assert (stored["paid"], stored["return_at_least"], stored["reserve"]) == ("on_answer", 0.25, 0.99)
    assert Problem.from_dict(stored) == problem
    assert hash(Problem.from_dict(stored)) == hash(problem)
    assert dataclasses.replace(problem, horizon=9).arms == problem.arms


def test_problems_of_old_are_stored_as_they_were() -> None:
    stored = make(arms=[Arm("call", features=[2.0])]).to_dict()
    assert list(stored) == [
        "arms", "contexts", "budget", "horizon", "deadline", "feedback", "reserves", "reward_range",
    ]  # fmt: skip
    assert stored["arms"] == [{"name": "call", "features": [2.0], "cost": 1.0}]


@pytest.mark.parametrize(
    "cost",
    [
        {}, {"near": -1}, {"near": math.nan}, {"near": 1e-13}, {1: 2.0}, "ab", [("near",)], [("near", 1), ("near", 2)],
    ],
)  # fmt: skip
def test_bad_costs(cost: Any) -> None:
    with pytest.raises(InvalidValue, match="^(cost of arm 'a'|context in cost of arm 'a')"):
        Arm("a", features=[1.0], cost=cost)


def test_a_cost_by_context_names_all_contexts_and_nobody_else() -> None:
    with pytest.raises(InvalidValue, match="lacks context 'far'; give one to every context"):
        make(arms=[Arm("a", features=[1.0], cost={"near": 1})])
    with pytest.raises(UnknownName, match="farr"):
        make(arms=[Arm("a", features=[1.0], cost={"near": 1, "far": 1, "farr": 1})])


@pytest.mark.parametrize(
    ("field", "value"),
    [("paid", "never"), ("paid", None), ("paid", "on_answer"), ("return_at_least", -1), ("reserve", 0.2)],
)
def test_bad_words(field: str, value: Any) -> None:
    with pytest.raises(InvalidValue, match=f"^{field} = "):
        make(**{field: value})


# --- LP_m ------------------------------------------------------------------------------------------------------------

COST = st.sampled_from([0.0, 0.5, 1.0, 2.0]) | st.floats(0.1, 5.0)
VALUE = st.integers(-2, 4).map(float) | st.integers(-10_000, 30_000).map(lambda number: number / 10_000)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Floats, Floats, Floats, float, float]:
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    values = np.array([draw(VALUE) for _ in range(shape[0] * shape[1])]).reshape(shape)
    costs = np.array([draw(COST) for _ in range(shape[0] * shape[1])]).reshape(shape)
    weights = np.array([draw(st.floats(0.05, 1.0)) for _ in range(shape[0])])
    rate = draw(st.sampled_from([1e-9, 0.05, 0.5, 1.0, 100.0]))
    return values, costs, weights / weights.sum(), rate, draw(st.sampled_from([0.0, 0.0, 0.3, 1.0, 5.0]))


def by_solver(values: Floats, costs: Floats, shares: Floats, rate: float, floor: float) -> float:
    """What can be gained beyond the floor, which a unit of budget that is kept is worth."""
    n_contexts, n_arms = values.shape
    gain, spend = shares[:, None] * (values - floor * costs), shares[:, None] * costs
    one_arm = np.kron(np.eye(n_contexts), np.ones(n_arms))
    found = linprog(
        -gain.ravel(),
        A_ub=np.vstack([spend.ravel(), one_arm]),
        b_ub=np.append(rate, np.ones(n_contexts)),
        method="highs",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    assert found.fun is not None
    return -float(found.fun)


@settings(max_examples=300)
@given(table=tables())
def test_the_lp_of_costs_by_context(table: tuple[Floats, Floats, Floats, float, float]) -> None:
    values, costs, shares, rate, floor = table
    ours = solve(values=values, costs=costs, shares=shares, rate=rate, floor=floor)
    spend = float((shares[:, None] * ours.play * costs).sum())
    assert (ours.play >= 0.0).all()
    assert (ours.play.sum(axis=1) <= 1.0 + 1e-9).all()
    assert spend <= rate * (1.0 + 1e-9)
    assert floor <= ours.price < math.inf
    net = by_solver(values, costs, shares, rate, floor)
    assert ours.value - floor * spend == pytest.approx(net, abs=1e-8)
    worth = np.maximum(0.0, (values - ours.price * costs).max(axis=1))  # the price proves it
    assert rate * (ours.price - floor) + float(shares @ worth) == pytest.approx(net, abs=1e-8)


@settings(max_examples=40)
@given(table=tables())
def test_who_knows_the_truth_and_has_all_arms_has_the_same_whichever_way_it_is_found(
    table: tuple[Floats, Floats, Floats, float, float],
) -> None:
    values, costs, shares, rate, floor = table
    always = np.ones(values.shape[1])
    given: dict[str, Any] = {"values": values, "costs": costs, "shares": shares, "rate": rate, "floor": floor}
    by_price, by_hull = availability_dual(**given, available=always)[0], solve(**given).value
    ties = floor > 0.0 and np.isclose(values, floor * costs).any()  # what brings just the floor may be had or left
    assert ties or by_price == pytest.approx(by_hull, rel=1e-7, abs=1e-7)


def test_what_costs_nothing_is_had_even_with_no_budget() -> None:
    values, costs = np.array([[1.0, 3.0, 9.0]]), np.array([[0.0, 0.0, 1.0]])
    free = solve(values=values, costs=costs, shares=np.ones(1), rate=0.0)
    assert free.play.tolist() == [[0.0, 1.0, 0.0]]
    half = solve(values=values, costs=costs, shares=np.ones(1), rate=0.5)
    assert half.play.tolist() == [[0.0, 0.5, 0.5]]
    assert half.price == 6.0


@given(costs=st.lists(st.sampled_from([0.0, 1.0, 2.0]) | st.floats(0.0, 3.0), min_size=1, max_size=9))
def test_costs_are_sorted_as_they_change(costs: list[float]) -> None:
    new = np.array(costs)
    hulls = new_hulls(np.ones(new.size), 2, is_learned=True)
    hulls.costs[1] = new
    sort_costs(hulls, 1)
    assert hulls.by_cost[1].tolist() == np.argsort(new, kind="stable").tolist()
    assert hulls.by_cost[0].tolist() == list(range(new.size))
    values = np.arange(1.0, new.size + 1)
    set_hull(hulls, 2, 1, values)
    assert hulls.length[2] >= 1
