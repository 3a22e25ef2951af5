"""Where a problem ends with a date, bills go by the clock: what is paid and what comes back, against a slow ledger."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.compiled import Block
from doral.delays import ByOutcome, Geometric, Never
from doral.engine.options import make_policy
from doral.prediction.python_policy import Answer, Arrival
from doral.simulation.results.outcome import DecisionLog
from doral.simulation.world.oracle import expected_payments
from doral.simulation.world.players import CompiledPlayer
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import Truth, make_truth

UNTIL, DEADLINES, BUDGET = 1200.0, {"x": 30.5, "y": 12.0}, 260.0
COSTS = {"x": [4.0, 3.0], "y": [4.0, 2.0]}
# Each (reward, delay) of a cell has one cost.
ROWS: dict[str, dict[str, Any]] = {
    "x": {"a": [(1.0, 3.2, 2.0), (0.0, 8.0, 0.5), (1.0, 41.0, 4.0), (0.5, math.inf, 4.0)], "b": [(2.0, 4.0, 1.5)]},
    "y": {"a": [(0.3, 1.0, 4.0), (0.4, 12.0, 1.0)], "b": [(0.0, 2.0, 0.5), (1.0, 13.0, 1.0), (2.0, 2.0, 0.0)]},
}
CHANCES = np.array([[0.1, 0.9], [0.4, 0.6]])
# People come in bursts, with nights between them in which deadlines pass.
CROWDED = doral.Arrivals(
    number=900, day=48, hours=(0,) * 12 + (1,) * 12, bursts=doral.Bursts(share=0.5, arrivals=20, length=2)
)


def make(kind: str, feedback: Any = "explicit", *, arrivals: Any = CROWDED, budget: float = BUDGET) -> doral.Scenario:
    problem = doral.Problem(
        arms=[doral.Arm("a", cost=4), doral.Arm("b", cost={"x": 3, "y": 2})],
        contexts=[doral.Context(name, share=0.5, deadline=limit) for name, limit in DEADLINES.items()],
        budget=budget,
        until=UNTIL,
        expected_arrivals=700,
        paid="on_answer",
        feedback=feedback,
    )
    given: dict[str, Any] = {"rows": ROWS}
    if kind != "rows":
        law = ByOutcome(above=Geometric(9), below=Never(Geometric(20), 0.3), threshold=0.5)
        given = {
            "means": [[0.3, 0.6], [0.5, 0.2]],
            "noise": "bernoulli",
            "delays": law,
            "paid": "on_success" if kind == "success" else CHANCES,
        }
    return doral.Scenario(name="bills", problem=problem, arrivals=arrivals, **given)


def shares_paid(scenario: doral.Scenario, log: DecisionLog, seed: int) -> Floats:
    """Of the list price, as each decision turned out."""
    truth = make_truth(scenario, seed=seed, run=0)
    tape = new_tape(truth.world, truth.rounds)
    WORLD["record"](Block(tape), truth.block, seed, 0, 1)
    found = []
    for round_, j, a, reward, delay in zip(log.round, log.context, log.arm, log.reward, log.delay, strict=True):
        is_silent = scenario.problem.feedback == "silent" and reward == 0.0
        share = 0.0
        if delay <= list(DEADLINES.values())[j] and not is_silent:
            if scenario.rows is not None:
                cell = ROWS["xy"[j]]["ab"[a]]
                rows = [one for one in cell if one[0] == reward and max(1.0, np.ceil(one[1])) == delay]
                share = rows[0][2] / COSTS["xy"[j]][a]
            elif scenario.paid == "on_success":
                share = float(reward > 0.0)
            else:
                share = float(tape.payment[round_ - 1] < CHANCES[j, a])
        found.append(share)
    return np.array(found)


def ledger(scenario: doral.Scenario, truth: Truth, log: DecisionLog, seed: int) -> tuple[Floats, float]:
    """What is left when each arrives, before anything is decided, and what is paid in the end."""
    silent, shares = scenario.problem.feedback == "silent", shares_paid(scenario, log, seed)
    left, kept = BUDGET, []
    open_: list[tuple[int, float, float]] = []
    made = {int(round_): number for number, round_ in enumerate(log.round)}
    for round_, clock in enumerate(truth.times.tolist(), start=1):
        still = []
        for number, decided, cost in open_:
            limit, delay = list(DEADLINES.values())[log.context[number]], float(log.delay[number])
            is_heard = delay <= limit and not (silent and log.reward[number] == 0.0)
            if is_heard and clock >= decided + delay:
                left += cost * (1.0 - shares[number])
            elif not is_heard and clock > decided + limit:
                left += cost
            else:
                still.append((number, decided, cost))
        open_ = still
        kept.append(left)
        if round_ in made:
            number = made[round_]
            cost = COSTS["xy"[log.context[number]]][log.arm[number]]
            left -= cost
            assert left >= -1e-9
            open_.append((number, clock, cost))
    listed = np.array([COSTS["xy"[j]][a] for j, a in zip(log.context, log.arm, strict=True)])
    return np.array([*kept, left]), float(listed @ shares)


class Watching:
    """Takes what it can have, in turn, and remembers what was left."""

    left: tuple[float, ...] = ()
    paid = 0.0

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        del problem, seed
        Watching.left, Watching.paid = (), 0.0

    def decide(self, arrival: Arrival) -> int | None:
        Watching.left += (arrival.budget_left,)
        return arrival.available[arrival.round % len(arrival.available)] if arrival.available else None

    def observe(self, answer: Answer) -> None:
        Watching.paid += answer.paid


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("kind", ["success", "chance", "rows"])
def test_a_policy_in_python_has_what_the_ledger_says(kind: str, feedback: str) -> None:
    scenario = make(kind, feedback)
    outcome = doral.simulate(Watching, scenario, runs=1, seed=5, keep_decisions=True).outcomes[0]
    assert outcome.log is not None
    left, paid = ledger(scenario, make_truth(scenario, seed=5, run=0), outcome.log, 5)
    assert Watching.left == pytest.approx(tuple(left[:-1].tolist()), abs=1e-9)
    assert min(Watching.left) < 4.0  # it was short of money
    assert (np.diff(left) > 0.0).sum() > 20  # and money came back
    assert outcome.spend == pytest.approx(paid)
    assert Watching.paid <= outcome.spend + 1e-9  # what comes after the last arrival, nobody hears of


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("kind", ["success", "chance", "rows"])
@pytest.mark.parametrize("name", ["doral-otf", "random"])
def test_a_compiled_policy_has_what_the_ledger_says(name: str, kind: str, feedback: str) -> None:
    scenario = make(kind, feedback)
    truth = make_truth(scenario, seed=2, run=0)
    player = CompiledPlayer(make_policy(name), scenario, truth, seed=2, run=0, true_returns=None)
    tape = new_tape(truth.world, truth.rounds)
    WORLD["record"](Block(tape), truth.block, 2, 0, 1)
    player.play(tape, 1)
    outcome = player.outcome(keep_decisions=True)
    assert outcome.log is not None
    left, paid = ledger(scenario, truth, outcome.log, 2)
    assert outcome.spend == pytest.approx(paid)
    assert outcome.spend <= BUDGET
    # What lapses between the last decision and the end is given back with the next arrival, and nobody comes then.
    assert float(player.state.tree.now[0]["budget_left"]) == pytest.approx(left[-1], abs=1e-9)
    assert outcome.decisions > 60


def test_shares_that_are_paid_are_learned_by_the_clock() -> None:
    """Ages are on the clock: what policies know of payments is what is true, within its error."""
    scenario = make("rows", arrivals=doral.Arrivals(number=6000), budget=6000.0)
    truth = make_truth(scenario, seed=1, run=0)
    player = CompiledPlayer(make_policy("doral-otf"), scenario, truth, seed=1, run=0, true_returns=None)
    tape = new_tape(truth.world, truth.rounds)
    WORLD["record"](Block(tape), truth.block, 1, 0, 1)
    player.play(tape, 1)
    costs, true = player.state.tree.costs, expected_payments(scenario, np.array(scenario.means)[None])
    assert true is not None
    tried = costs.passed[:, :, -1] > 30
    assert tried.any()
    assert np.abs((costs.share - true[0]) / costs.error)[tried].max() < 4.5


def test_people_with_features_are_billed_by_the_clock_too() -> None:
    problem = doral.Problem(
        arms=[doral.Arm("a", cost=2), doral.Arm("b", cost=1)],
        person=["age"],
        budget=100,
        until=500,
        expected_arrivals=400,
        deadline=20,
        paid="on_answer",
    )
    scenario = doral.Scenario(
        name="people",
        problem=problem,
        people={"age": np.linspace(0.0, 1.0, 40)},
        means=np.column_stack([np.linspace(0.1, 0.9, 40), np.linspace(0.6, 0.3, 40)]),
        noise="bernoulli",
        delays=Geometric(8),
        paid="on_success",
        arrivals=doral.Arrivals(number=400),
    )
    for outcome in doral.simulate("doral-otf", scenario, runs=2, keep_decisions=True).outcomes:
        log = outcome.log
        assert log is not None
        is_paid = (log.delay <= 20) & (log.reward > 0)
        assert outcome.spend == pytest.approx(float(np.array([2.0, 1.0])[log.arm][is_paid].sum()))
        assert outcome.decisions > 100 / 2  # more than list prices would buy
        assert outcome.spend <= 100
