"""Exploration: every option has its chance, the budget holds, and the log tells what other policies would bring."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.delays import Geometric
from doral.engine import setup
from doral.engine.decide import SKIPPED_EXPLORING
from doral.engine.options import policy, policy_of
from doral.live.views.decision import code_of, in_words
from doral.simulation.results.outcome import ArrivalLog, Outcome
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.truth import make_truth
from tests.small_worlds import make_scenario

SEED = 2
N_ARMS, N_CONTEXTS = 5, 3


def place(**changes: Any) -> Scenario:
    given: dict[str, Any] = {
        "costs": (1.0, 2.5, 0.7, 1.3, 2.0),
        "budget": 22_000.0,
        "horizon": 25_000,
        "deadline": 60.0,
        "delays": tuple(Geometric(4 + arm) for arm in range(N_ARMS)),
    }
    return make_scenario(**(given | changes))


def play(options: Any, scenario: Scenario, *, runs: int = 1) -> list[tuple[Outcome, ArrivalLog, Floats]]:
    """Outcomes, arrivals, and the reward of each (0 for skips)."""
    found = []
    for one in doral.simulate(options, scenario, runs=runs, seed=SEED, keep_decisions=True).outcomes:
        assert one.arrivals is not None
        assert one.log is not None
        rewards = np.zeros(one.arrivals.arm.size)
        rewards[one.arrivals.arm >= 0] = one.log.reward
        found.append((one, one.arrivals, rewards))
    return found


def while_all_can_be_paid(arrivals: ArrivalLog, scenario: Scenario) -> int:
    """How many arrivals: known before each of them is decided."""
    costs = np.append(scenario.problem.costs, 0.0)[arrivals.arm]
    spent = np.concatenate([[0.0], np.cumsum(costs)[:-1]])
    return int((spent <= scenario.problem.budget - scenario.problem.costs.max()).sum())


@pytest.mark.parametrize("name", ["doral-otf", "d-lints", "doral", "random", "d-linucb"])
def test_inverse_propensities_tell_what_fixed_policies_would_bring(name: str) -> None:
    """Always one arm, an arm by context, and one that skips now and then, in 99% intervals (12 of them)."""
    targets = np.zeros((3, N_CONTEXTS, 1 + N_ARMS))
    targets[0, :, 2] = 1.0
    targets[1, [0, 1, 2], [5, 3, 1]] = 1.0
    targets[2, [0, 1, 1, 2], [0, 0, 4, 2]] = [1.0, 0.4, 0.6, 1.0]
    scenario = place()
    off: list[list[Floats]] = [[], [], []]
    for outcome, arrivals, rewards in play(policy_of(name, {"explore": 0.05}), scenario, runs=4):
        n = while_all_can_be_paid(arrivals, scenario)
        means = make_truth(scenario, seed=SEED, run=outcome.run).world.means[0]
        for k, target in enumerate(targets):
            weight = target[arrivals.context, arrivals.arm + 1] / arrivals.probability
            truth = (target[:, 1:] * means).sum(axis=1)[arrivals.context]
            off[k].append((weight * rewards - truth)[:n])
    for errors in off:
        together = np.concatenate(errors)
        assert abs(together.sum()) < 2.9 * np.sqrt((together**2).sum())


@pytest.mark.parametrize("name", ["doral-otf", "d-lints", "doral", "random"])
def test_the_chances_of_all_options_add_up(name: str) -> None:
    """The sum of 1 / p over arrivals that got an option is the number of arrivals, for every option."""
    scenario = place()
    ((_, arrivals, _),) = play(policy_of(name, {"explore": 0.1}), scenario)
    n = int(0.9 * while_all_can_be_paid(arrivals, scenario))  # at the very end, little budget is left to explore with
    for option in range(-1, N_ARMS):
        weight = np.where(arrivals.arm[:n] == option, 1.0 / arrivals.probability[:n], 0.0)
        assert abs(weight.mean() - 1.0) < 4.0 * weight.std() / np.sqrt(n)
    floor = 0.1 / (1 + N_ARMS)
    if name == "random":  # its rate is one of arrivals: dear arms leave it without budget, and exploring goes with it
        floor = 0.0
    assert arrivals.probability[:n].min() > floor * (1 - 1e-12)
    assert arrivals.probability.max() <= 1.0


@pytest.mark.parametrize("pacing", ["lp", "greedy", "coin"])
def test_the_budget_holds_while_exploring(pacing: str) -> None:
    """With little budget, arms that are often missing, and every arrival explored."""
    scenario = place(budget=41.3, horizon=3_000, availability=(0.9, 0.2, 0.7, 0.5, 0.5))
    for explore in (0.02, 1.0):
        options = policy_of("doral-otf", {"pacing": pacing, "explore": explore})
        for outcome, arrivals, _ in play(options, scenario, runs=3):
            assert outcome.spend <= scenario.problem.budget
            assert outcome.decisions == (arrivals.arm >= 0).sum()
            assert ((arrivals.probability > 0.0) & (arrivals.probability <= 1.0)).all()


def test_little_budget_is_not_spent_on_exploring_alone() -> None:
    """2% of the arrivals would need ten times the budget: no more goes to them than the policy itself may spend."""
    scenario = place(budget=60.0)
    ((outcome, arrivals, _),) = play(policy("doral-otf", explore=0.02), scenario)
    assert np.flatnonzero(arrivals.arm >= 0).max() > 0.7 * scenario.problem.horizon
    assert 0 < outcome.explored < 0.5 * 0.02 * scenario.problem.horizon


def test_arms_that_are_missing_are_no_options() -> None:
    scenario = place(availability=(1.0, 0.5, 1.0, 1.0, 1.0), budget=100_000.0)
    ((_, arrivals, _),) = play(policy("doral-otf", explore=1.0), scenario)
    n = while_all_can_be_paid(arrivals, scenario)
    reported = set(np.round(arrivals.probability[: n - 1], 9))
    assert reported == {round(1 / 6, 9), round(1 / 5, 9)}
    assert set(np.round(arrivals.probability[: n - 1][arrivals.arm[: n - 1] == 1], 9)) == {round(1 / 6, 9)}


def test_without_exploring_decisions_are_as_before() -> None:
    """And says 1 for what was certain."""
    scenario = place(horizon=3_000, budget=2_000.0)
    ((plain, arrivals, _),) = play(policy("doral-otf"), scenario)
    assert (plain.explored, plain.explored_loss) == (0, 0.0)
    assert (arrivals.probability == 1.0).mean() > 0.3
    assert ((arrivals.probability > 0.0) & (arrivals.probability <= 1.0)).all()


def test_what_exploring_costs_is_what_it_costs() -> None:
    """What is reported is near the reward that is lost, over ten runs."""
    scenario = place()
    results = {explore: play(policy("doral-otf", explore=explore), scenario, runs=10) for explore in (0.0, 0.1)}
    rewards = {explore: np.array([one.rewards[0] for one, _, _ in found]) for explore, found in results.items()}
    lost = rewards[0.0] - rewards[0.1]
    reported = np.array([one.explored_loss for one, _, _ in results[0.1]])
    assert reported.mean() == pytest.approx(lost.mean(), rel=0.25)
    explored = np.array([one.explored for one, _, _ in results[0.1]])
    assert explored.mean() == pytest.approx(0.1 * scenario.problem.horizon, rel=0.05)


def test_draws_make_probabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    """One draw is certain of what it does, but for the coin of the budget; several are not, and earn the same."""
    scenario = place(budget=100_000.0, noise_sd=2.0)  # every arrival can be served
    found = []
    for draws in (1, setup.DRAWS):
        monkeypatch.setattr(setup, "DRAWS", draws)
        found.append(play(policy("d-lints", label=f"{draws} draws"), scenario, runs=4))
    few, many = found
    early = slice(0, 500)
    assert np.mean([(arrivals.probability[early] == 1.0).mean() for _, arrivals, _ in few]) == 1.0
    assert np.mean([(arrivals.probability[early] < 1.0).mean() for _, arrivals, _ in many]) > 0.2
    earned = [np.array([one.rewards[0] for one, _, _ in found]) for found in (few, many)]
    assert earned[1].mean() == pytest.approx(earned[0].mean(), rel=0.02)
    for _, arrivals, _ in many:
        eighths = 8.0 * arrivals.probability
        assert np.abs(eighths - np.round(eighths)).max() < 1e-9


def test_decisions_as_a_frame() -> None:
    scenario = place(horizon=500, budget=200.0)
    result = doral.simulate(policy("doral-otf", explore=0.1), scenario, runs=2, seed=SEED, keep_decisions=True)
    frame = result.decisions()
    assert frame.height == 1_000
    assert frame["round"].to_list() == [*range(1, 501)] * 2
    assert frame["arm"].null_count() == frame["reward"].null_count() == frame["delay"].null_count() > 0
    log = result.outcomes[1].log
    assert log is not None
    served = frame.filter(run=1).drop_nulls("arm")
    assert served["round"].to_list() == log.round.tolist()
    assert served["context"].to_list() == [scenario.problem.context_names[one] for one in log.context.tolist()]
    assert served["arm"].to_list() == [scenario.problem.arm_names[one] for one in log.arm.tolist()]
    assert served["reward"].to_list() == log.reward.tolist()
    assert served["delay"].to_list() == log.delay.tolist()
    assert ((frame["probability"] > 0.0) & (frame["probability"] <= 1.0)).all()
    with pytest.raises(doral.InvalidValue, match="keep_decisions=True"):
        doral.simulate("doral", scenario, runs=1).decisions()
    with pytest.raises(doral.InvalidValue, match="keep_decisions = 'yes'"):
        doral.simulate("doral", scenario, runs=1, keep_decisions="yes")  # type: ignore[arg-type]


def test_a_campaign_explores_and_says_so() -> None:
    scenario = place()
    problem = dataclasses.replace(scenario.problem, horizon=2_000, budget=1_500.0)
    campaign = doral.open("memory://").create(
        "trial", problem, policy("doral-otf", explore=0.2), seed=3, clock="rounds"
    )
    made = [campaign.decide(problem.context_names[i % N_CONTEXTS]) for i in range(600)]
    report = campaign.report()
    assert report.explored.arrivals == pytest.approx(120, abs=40)
    assert report.reasons["played: exploring"] + report.reasons["skipped: exploring"] == report.explored.arrivals
    assert "explored  " in str(report)
    for one in made:
        assert one.probability is not None
        assert 0.2 / (1 + N_ARMS) <= one.probability + 1e-12 <= 1.0 + 1e-12


def test_exploring_in_words() -> None:
    said = in_words(code_of(SKIPPED_EXPLORING), value=0.3, price=0.1, probability=0.0033, here=None)
    assert said == "Skipped (probability 0.0033): one of the options at random, to learn from it"


@pytest.mark.parametrize("baseline", ["observed", 0.5])
def test_what_exploring_costs_is_beyond_doing_nothing(baseline: Any) -> None:
    """A random arrival would have brought half a unit anyway, and most arms bring less."""
    arms = [doral.Arm(f"a{i}", features=[1.0, float(i)], cost=1.0) for i in range(3)]
    problem = doral.Problem(
        arms=arms, contexts={"x": 0.5, "y": 0.5}, budget=900.0, horizon=3000, deadline=30.0, baseline=baseline
    )
    means = [[0.2, 0.3, 0.8], [0.4, 0.1, 0.6]]
    known: dict[str, Any] = {"baseline_means": 0.5} if baseline == "observed" else {}
    place = doral.Scenario(
        name="anyway", problem=problem, delays=doral.delays.Geometric(5), means=means, noise_sd=0.1, **known
    )
    result = doral.simulate([doral.policy("doral-otf"), doral.policy("doral-otf", explore=0.1)], place, runs=20)
    plain, explorer = result.policies
    lost = result.expected("anyway", plain) - result.expected("anyway", explorer)
    reported = np.array([one.explored_loss for one in result.outcomes if one.policy == explorer])
    assert reported.mean() > 10.0
    assert reported.mean() == pytest.approx(lost.mean(), rel=0.15)
