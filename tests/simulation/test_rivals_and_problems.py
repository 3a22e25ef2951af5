"""Rivals know what the problem says: what doing nothing brings, what is paid, and what a unit must bring."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import doral
from doral.delays import Fixed
from doral.prediction.python_policy import Answer
from doral.simulation.rivals.trials import Trials

LEARNERS = ("beta-ts-lp", "explore-then-lp", "a/b")
LP = LEARNERS[:2]


def served(policy: str, scenario: doral.Scenario) -> dict[tuple[str, str | None], int]:
    """How often, by context and arm."""
    arrivals = doral.simulate(policy, scenario, runs=1, seed=1, keep_decisions=True).decisions()
    late = arrivals.filter(pl.col("round") > 1000)
    return {(context, arm): n for context, arm, n in late.group_by("context", "arm").len().iter_rows()}


def make(means: Any, costs: Any = (1.0, 1.0), **words: Any) -> doral.Scenario:
    of_scenario = {word: words.pop(word) for word in ("baseline_means",) if word in words}
    given: dict[str, Any] = {
        "arms": [doral.Arm(name, cost=cost) for name, cost in zip("ab", costs, strict=True)],
        "contexts": {"x": 0.5, "y": 0.5},
        "budget": 1500,
        "horizon": 3000,
        "deadline": 5,
    }
    problem = doral.Problem(**(given | words))
    paid: Any = "on_success" if problem.paid == "on_answer" else "always"
    return doral.Scenario(
        name="s", problem=problem, delays=Fixed(2), means=means, noise="bernoulli", paid=paid, **of_scenario
    )


@pytest.mark.parametrize("policy", LEARNERS)
@pytest.mark.parametrize("known", [True, False])
def test_nobody_is_served_who_would_have_come_anyway(policy: str, known: bool) -> None:
    """Arms bring more in x, and less than nothing does there."""
    baseline = {"baseline": {"x": 0.9, "y": 0.1}} if known else {"baseline": "observed", "baseline_means": [0.9, 0.1]}
    found = served(policy, make([[0.7, 0.8], [0.2, 0.5]], **baseline))
    in_x = sum(found.get(("x", arm), 0) for arm in "ab")
    assert found.get(("y", "b"), 0) > 500
    assert in_x < 60


def test_costs_are_what_is_paid() -> None:
    """One in ten takes the offer up, as far as is known; of the other arm only the list price is."""
    problem = make([[0.1, 0.4], [0.5, 0.4]], costs=(20.0, 40.0), paid="on_answer").problem
    trials = Trials(problem)
    for round_ in range(1, 1001):
        trials.decide(float(round_), 0, 0)
        trials.observe(Answer(round_ + 2, round_, 0, 0, 0.0, 20.0 if round_ % 10 == 0 else 0.0))
    costs = trials.costs(2000.0)
    assert costs[0, 0] == pytest.approx(2.0, rel=0.05)
    assert costs[1, 0] == pytest.approx(2.0, rel=0.05)  # the arm is the same in another context
    always = Trials(make([[0.1, 0.4], [0.5, 0.4]], costs=(20.0, 40.0)).problem)
    assert always.costs(0.0).tolist() == [[20.0, 40.0]] * 2


@pytest.mark.parametrize("policy", LP)
def test_what_is_not_paid_is_spent_again(policy: str) -> None:
    """Delays are long, so that who plans with list prices gets most of his money back when it is too late."""
    result = doral.simulate([policy, "status-quo"], "stress/pay-on-success", runs=1)
    ours, at_list_price = (outcome.spend for outcome in result.outcomes)
    assert ours > 2.0 * at_list_price


@pytest.mark.parametrize("policy", LP)
def test_money_is_kept_back_where_a_unit_brings_too_little(policy: str) -> None:
    found = served(policy, make([[0.2, 0.3], [0.9, 0.3]], return_at_least=0.5))
    assert found.get(("y", "a"), 0) > 500
    assert found.get(("x", "a"), 0) + found.get(("x", "b"), 0) + found.get(("y", "b"), 0) < 60


@pytest.mark.parametrize("policy", [*LEARNERS, "status-quo"])
def test_the_control_is_never_bought(policy: str) -> None:
    scenario = make([[0.2, 0.5], [0.4, 0.1]], costs=(0.0, 1.0), baseline="a")
    arms = doral.simulate(policy, scenario, runs=1, keep_decisions=True).decisions()["arm"].to_list()
    assert set(arms) == {None, "b"}
