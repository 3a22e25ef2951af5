"""Decisions that cost only where something comes of them: what is paid, when it is known, and that budgets hold."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import doral
from doral.compiled import Block
from doral.delays import AnyLaw, ByOutcome, Geometric, Never
from doral.engine.options import policy
from doral.errors import InvalidValue
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import Arm, Problem
from doral.simulation.catalogue.stress import pay_on_success, silent
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.oracle import expected_payments
from doral.simulation.world.players import CompiledPlayer
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

LAWS: tuple[AnyLaw, ...] = (
    Geometric(8),
    Never(Geometric(5), 0.3),
    ByOutcome(above=Geometric(4), below=Geometric(25), threshold=0.4),
    ByOutcome(above=Geometric(30), below=Geometric(3), threshold=-0.2),
)
MEANS = np.array([[0.2, 0.5, 0.7, 0.1], [0.6, 0.05, 0.3, 0.45]])


def make(**changes: Any) -> Scenario:
    problem = Problem(
        arms=[Arm(f"a{i}", features=np.eye(4)[i], cost=1.0 + i) for i in range(4)],
        contexts={"one": 0.4, "two": 0.6},
        budget=400.0,
        horizon=1500,
        deadline=12.0,
        paid="on_answer",
        feedback=changes.pop("feedback", "explicit"),
        reserve=changes.pop("reserve", 1.0),
    )
    given: dict[str, Any] = {"noise": "bernoulli", "paid": "on_success"}
    return Scenario(name="paid", problem=problem, delays=LAWS, means=MEANS, **(given | changes))


TABLE = np.array([[0.1, 0.9, 0.5, 1.0], [0.0, 0.3, 0.7, 0.2]])


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("paid", ["on_success", TABLE], ids=["on success", "by chance"])
@pytest.mark.parametrize("noise", ["bernoulli", "gaussian", "none", "poisson"])
def test_what_is_paid_on_average(noise: str, paid: Any, feedback: str) -> None:
    """The oracle's costs, against what a hundred thousand decisions cost."""
    scenario = make(noise=noise, paid=paid, feedback=feedback, noise_sd=0.5)
    found = expected_payments(scenario, MEANS[None])
    assert found is not None
    rng, n = np.random.default_rng(1), 100_000
    for j in range(2):
        for a, law in enumerate(LAWS):
            mean = MEANS[j, a]
            rewards = np.full(n, mean)
            if noise == "bernoulli":
                rewards = (rng.random(n) < mean).astype(float)
            elif noise == "gaussian":
                rewards = mean + 0.5 * rng.standard_normal(n)
            elif noise == "poisson":
                rewards = rng.poisson(mean, n).astype(float)
            if isinstance(law, ByOutcome):
                high = rewards > law.threshold
                delays = np.where(high, law.above.sample(rng.random(n)), law.below.sample(rng.random(n)))
            else:
                delays = law.sample(rng.random(n))
            is_heard = (np.maximum(1.0, np.ceil(delays)) <= 12.0) & ((rewards != 0.0) | (feedback == "explicit"))
            is_taken = rewards > 0.0 if isinstance(paid, str) else rng.random(n) < TABLE[j, a]
            share = float((is_heard & is_taken).mean())
            assert found[0, j, a] == pytest.approx(share, abs=4.5 * 0.5 / np.sqrt(n))


def most_reserved(scenario: Scenario, outcome: Outcome) -> tuple[float, float]:
    """The most that open and paid decisions could cost together at any time, and what was paid in the end."""
    log, problem = outcome.log, scenario.problem
    assert log is not None
    cost = problem.costs[log.arm]
    in_time = (log.delay <= problem.deadlines[log.context]) & ((log.reward != 0.0) | (problem.feedback == "explicit"))
    is_paid = in_time & (log.reward > 0.0)
    back = log.round + np.where(in_time, log.delay, np.floor(problem.deadlines[log.context]) + 1)
    changes = np.zeros(int(problem.horizon + back.max()) + 2)
    np.add.at(changes, log.round, cost)
    np.add.at(changes, back[~is_paid].astype(int), -cost[~is_paid])
    return float(np.cumsum(changes).max()), float(cost[is_paid].sum())


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("name", ["doral-otf", "d-linucb", "eva"])
def test_a_hard_reserve_is_never_overdrawn(name: str, feedback: str) -> None:
    scenario = make(feedback=feedback)
    for outcome in doral.simulate(name, scenario, runs=5, seed=3, keep_decisions=True).outcomes:
        reserved, paid = most_reserved(scenario, outcome)
        assert reserved <= 400.0
        assert outcome.spend == pytest.approx(paid)


def test_a_likely_reserve_lends_and_is_not_overdrawn() -> None:
    """In 2,000 runs none was, so one of these would be news."""
    likely, hard = silent(pay_on_success(0.999)), silent(pay_on_success())
    played = doral.simulate("doral-otf", likely, runs=30, seed=3, keep_decisions=True).outcomes
    found = np.array([most_reserved(likely, outcome) for outcome in played]) / likely.problem.budget
    assert (found[:, 0] > 1.2).all()  # list prices exceed the budget ...
    assert (found[:, 1] <= 1.0).all()  # ... and what is paid does not
    assert found[:, 1].mean() > 0.97
    one = doral.simulate("doral-otf", hard, runs=1, seed=3, keep_decisions=True).outcomes[0]
    assert most_reserved(hard, one)[0] <= hard.problem.budget


class Counting:
    """Plays the first arm that it can have, and keeps its own books."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.left: list[float] = []
        self.paid = 0.0
        books.append(self)

    def decide(self, arrival: Arrival) -> int | None:
        self.left.append(arrival.budget_left)
        return arrival.available[-1] if arrival.available else None

    def observe(self, answer: Answer) -> None:
        assert answer.paid == (self.problem.costs[answer.arm] if answer.reward > 0 and answer.delay <= 12 else 0.0)
        self.paid += answer.paid


books: list[Counting] = []


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
def test_policies_in_python_get_their_money_back(feedback: str) -> None:
    scenario = make(feedback=feedback)
    books.clear()
    outcome = doral.simulate(Counting, scenario, runs=1, keep_decisions=True).outcomes[0]
    reserved, paid = most_reserved(scenario, outcome)
    assert reserved <= 400.0
    assert outcome.spend == pytest.approx(paid)
    assert min(books[0].left) == pytest.approx(0.0, abs=5.0)
    assert books[0].paid <= outcome.spend


@pytest.mark.parametrize("change", [lambda scenario: scenario, silent])
def test_shares_are_learned(change: Any) -> None:
    """Where much was tried, the share that is paid is known within its error; and errors are not too wide."""
    scenario = change(pay_on_success(0.999))
    truth = make_truth(scenario, seed=2, run=0)
    player = CompiledPlayer(policy("doral-otf"), scenario, truth, seed=2, run=0, true_returns=None)
    tape = new_tape(truth.world, scenario.problem.horizon)
    WORLD["record"](Block(tape), truth.block, 2, 0, 1)
    player.play(tape, 1)
    costs, true = player.state.tree.costs, expected_payments(scenario, np.array([scenario.means]))
    assert true is not None
    z = (costs.share - true[0]) / costs.error
    tried = costs.passed[:, :, -1] > 100
    assert tried.sum() > 10
    assert np.abs(z[tried]).max() < 4.5
    assert costs.error[tried].max() < 0.05
    expected = np.array(scenario.problem.costs)[None, :] * costs.share
    np.testing.assert_allclose(player.state.tree.hulls.costs, expected)


def test_learning_what_is_paid_is_worth_it() -> None:
    scenario = pay_on_success()
    shorter = dataclasses.replace(scenario, problem=dataclasses.replace(scenario.problem, horizon=8_000, budget=3_600))
    result = doral.simulate(["doral-otf", policy("doral-otf", cost="list", label="list")], shorter, runs=3, seed=2)
    learned, listed = (result.rewards(shorter.name, name) for name in ("doral-otf", "list"))
    assert (learned > 1.5 * listed).all()


@pytest.mark.parametrize("paid", ["never", [[0.5] * 4], np.full((2, 4), 1.5), None])
def test_bad_words(paid: Any) -> None:
    with pytest.raises(InvalidValue, match="paid"):
        make(paid=paid)


def test_a_problem_that_pays_on_answer_needs_to_know_what() -> None:
    with pytest.raises(InvalidValue, match="^paid = 'always': the problem says on_answer"):
        make(paid="always")
