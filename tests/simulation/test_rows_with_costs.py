"""Rows that say what was paid: reward, delay and cost are drawn together, and the oracle goes by them."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

import doral
from doral.errors import InvalidValue
from doral.prediction.python_policy import Answer, Arrival
from doral.simulation.world.oracle import expected_payments

# Who comes soon pays half; of those who stay away nothing is paid, nor of those who come too late.
ROWS: dict[str, dict[str, Any]] = {
    "x": {"a": [(1.0, 3.2, 2.0), (0.0, 8.0, 0.0), (1.0, 11.0, 4.0), (0.5, math.inf, 4.0)], "b": [(2.0, 4.0, 1.5)]},
    "y": {"a": [(0.3, 1.0, 4.0), (0.4, 2.0, 1.0)], "b": [(0.0, 2.0, 0.5), (1.0, 2.0, 0.0)]},
}
SHARES = np.array([[0.5 / 4, 0.5], [(1.0 + 0.25) / 2, 0.25 / 2]])  # a costs 4; b costs 3 in x and 2 in y


def make(**changes: Any) -> doral.Scenario:
    given: dict[str, Any] = {
        "arms": [doral.Arm("a", cost=4), doral.Arm("b", cost={"x": 3, "y": 2})],
        "contexts": {"x": 0.5, "y": 0.5},
        "budget": 1500,
        "horizon": 2000,
        "deadline": 10,
        "paid": "on_answer",
    }
    words = {word: changes.pop(word) for word in list(changes) if word in given or word in ("feedback", "until")}
    return doral.Scenario(**{"name": "bills", "problem": doral.Problem(**(given | words)), "rows": ROWS, **changes})


def paid_for(scenario: doral.Scenario, log: Any) -> float:
    """From the log alone: each (reward, delay) of these cells has one cost."""
    total = 0.0
    for context, arm, reward, delay in zip(log.context, log.arm, log.reward, log.delay, strict=True):
        cell = ROWS["xy"[context]]["ab"[arm]]
        row = next(one for one in cell if one[0] == reward and max(1.0, math.ceil(min(one[1], 1e9))) == min(delay, 1e9))
        is_heard = delay <= 10 and (reward != 0.0 or scenario.problem.feedback == "explicit")
        total += row[2] if is_heard else 0.0
    return total


@pytest.mark.parametrize("paid", ["on_answer", "always"])
@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("policy", ["doral-otf", "random", "beta-ts-lp"])
def test_each_decision_costs_what_its_row_says(policy: str, feedback: str, paid: str) -> None:
    scenario = make(feedback=feedback, paid=paid)
    result = doral.simulate(policy, scenario, runs=2, keep_decisions=True)
    for outcome in result.outcomes:
        assert outcome.log is not None
        assert outcome.decisions > 100
        assert outcome.spend == pytest.approx(paid_for(scenario, outcome.log), rel=1e-12)
        assert outcome.spend <= 1500 + 1e-9


def test_the_oracle_knows_what_is_paid_on_average() -> None:
    scenario = make()
    found = expected_payments(scenario, np.array(scenario.means)[None])
    assert found is not None
    assert found[0] == pytest.approx(SHARES)
    silent = expected_payments(make(feedback="silent"), np.array(scenario.means)[None])
    assert silent is not None
    assert silent[0, 1, 1] == 0.0  # a zero is not heard, and not paid
    result = doral.simulate(["oracle", "doral-otf"], make(horizon=8000, budget=6000), runs=10)
    for policy in result.policies:
        luck = result.rewards("bills", policy) - result.expected("bills", policy)
        assert abs(luck.mean()) < 4.0 * stats.sem(luck)
    share = result.summary().filter(policy="doral-otf", metric="within_deadline")["expected_share"][0]
    assert 0.9 < share < 1.02


@pytest.mark.parametrize("paid", ["on_success", [[0.5, 0.1], [1.0, 0.7]]])
def test_rows_without_costs_are_paid_as_the_scenario_says(paid: Any) -> None:
    """On success, or by chance: the oracle counts rows, whatever noise other scenarios have."""
    rows = {j: {a: [one[:2] for one in cell] for a, cell in row.items()} for j, row in ROWS.items()}
    scenario = doral.Scenario(name="rows", problem=make().problem, rows=rows, paid=paid)
    found = expected_payments(scenario, np.array(scenario.means)[None])
    assert found is not None
    in_time, successes = np.array([[0.5, 1.0], [1.0, 1.0]]), np.array([[0.25, 1.0], [1.0, 0.5]])
    assert found[0] == pytest.approx(successes if isinstance(paid, str) else in_time * np.array(paid))


def test_a_policy_in_python_is_told_what_was_paid() -> None:
    seen: set[tuple[int, int, float]] = set()

    class InTurn:
        def __init__(self, problem: doral.Problem, seed: int) -> None:
            del problem, seed

        def decide(self, arrival: Arrival) -> int | None:
            return arrival.available[arrival.round % 2] if len(arrival.available) == 2 else None

        def observe(self, answer: Answer) -> None:
            seen.add((answer.context, answer.arm, answer.paid))

    doral.simulate(InTurn, make(), runs=1)
    assert seen == {(0, 0, 2.0), (0, 0, 0.0), (0, 1, 1.5), (1, 0, 4.0), (1, 0, 1.0), (1, 1, 0.5), (1, 1, 0.0)}


def test_rows_with_costs_are_data_like_any_other() -> None:
    scenario = make()
    assert scenario.paid == "by_row"
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert dataclasses.replace(scenario) == scenario


def with_cell(cell: Any) -> dict[str, Any]:
    return {"x": {"a": cell, "b": ROWS["x"]["b"]}, "y": ROWS["y"]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": with_cell([(1.0, 2.0, 4.5)])}, "cost in rows of 'x', 'a' = 4.5: must be from 0 to .* 4"),
        ({"rows": with_cell([(1.0, 2.0, -1.0)])}, "cost in rows of 'x', 'a' = -1.0"),
        ({"rows": with_cell([(1.0, 2.0, math.nan)])}, "cost in rows of 'x', 'a' = nan"),
        ({"rows": with_cell([(1.0, 2.0)])}, "columns of rows of 'x', 'b' = 3: must be the same for all cells"),
    ],
)
def test_costs_of_rows_that_are_none_say_so(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        make(**changes)


def test_what_is_paid_is_said_once() -> None:
    problem = make().problem
    with pytest.raises(InvalidValue, match="^paid = 'on_success': rows say what is paid"):
        doral.Scenario(name="s", problem=problem, rows=ROWS, paid="on_success")
    with pytest.raises(InvalidValue, match="^paid = 'by_row': needs rows that say what was paid"):
        doral.Scenario(name="s", problem=problem, means=np.ones((2, 2)), delays=doral.delays.Fixed(1), paid="by_row")


def test_what_doing_nothing_brings_must_be_said() -> None:
    problem = dataclasses.replace(make(paid="always").problem, baseline="observed")
    with pytest.raises(InvalidValue, match="^baseline_means = None: the baseline is observed"):
        doral.Scenario(name="s", problem=problem, means=np.ones((2, 2)), delays=doral.delays.Fixed(1))
