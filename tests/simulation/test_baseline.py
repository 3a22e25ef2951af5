"""Doing nothing has an outcome: rewards, regret and the oracle count from there."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.optimize import linprog

import doral
from doral.delays import Fixed, Geometric
from doral.errors import InvalidValue
from doral.problem import Arm, Problem
from doral.simulation.catalogue.stress import SCENARIOS, only_harm
from doral.simulation.results.result import SimulationResult
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.truth import make_truth

MEANS = np.array([[0.9, 0.3], [0.2, 0.8]])
NOTHING = [0.5, 1.0]


def scenario(baseline: object = "observed", *, budget: float = 150.0, nothing: object = None) -> Scenario:
    """Answers come after one round, and for nothing after three."""
    arms = [Arm("a", features=[1, 0]), Arm("b", features=[0, 1], cost=2)]
    problem = Problem(
        arms=arms,
        contexts={"x": 0.5, "y": 0.5},
        budget=budget,
        horizon=400,
        deadline=10,
        baseline=baseline,  # type: ignore[arg-type]
    )
    laws = [Fixed(1), Fixed(1), Fixed(3)][: problem.n_arms]
    return Scenario(name="s", problem=problem, delays=laws, means=MEANS, baseline_means=nothing, noise="none")  # type: ignore[arg-type]


class Alternating:
    """Serves every other arrival with the first arm that can be had, and writes down what it hears."""

    heard: list[doral.Answer]

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        type(self).heard = []

    def decide(self, arrival: doral.Arrival) -> int | None:
        assert self.problem.control not in arrival.available
        return arrival.available[0] if arrival.available and arrival.round % 2 else None

    def observe(self, answer: doral.Answer) -> None:
        type(self).heard.append(answer)


@pytest.mark.parametrize("kind", ["observed", "known"])
def test_what_is_earned_is_what_arms_bring_beyond_doing_nothing(kind: str) -> None:
    place = scenario(nothing=NOTHING) if kind == "observed" else scenario({"x": 0.5, "y": 1.0})
    result = doral.simulate(Alternating, place, runs=1, seed=3, keep_decisions=True)
    outcome, log = result.outcomes[0], result.outcomes[0].log
    assert log is not None
    served = log.arm < 2
    assert outcome.decisions == served.sum() == 150
    assert outcome.spend == 150.0
    last = log.round[served] + 1 <= 400  # answers that come in time for the end
    expected = MEANS[log.context[served], 0][last].sum() - np.array(NOTHING)[log.context[served]].sum()
    assert outcome.rewards[0] == pytest.approx(expected)
    if kind == "known":
        assert served.all()
        assert all(one.arm == 0 for one in Alternating.heard)
    else:  # whoever was skipped is answered, too, and tells what doing nothing brings
        assert log.round.size == 400
        skips = [one for one in Alternating.heard if one.arm == place.problem.control]
        assert len(skips) == 250 - 3  # the last three have no time left
        assert all(one.reward == NOTHING[one.context] and one.delay == 3 for one in skips)


def test_the_oracle_buys_uplifts() -> None:
    place = scenario(nothing=NOTHING, budget=250.0)
    uplift = (MEANS - np.array(NOTHING)[:, None]).ravel()
    costs = np.array([1.0, 2.0, 1.0, 2.0])
    each = np.kron(np.eye(2), np.ones(2))
    rows = np.vstack([0.5 * costs, each])
    found = linprog(-0.5 * uplift, A_ub=rows, b_ub=[250.0 / 400, 1.0, 1.0], bounds=(0, None))
    truth = make_truth(place, seed=0, run=0)
    assert found.fun is not None
    assert truth.oracle == pytest.approx(-400 * found.fun)
    assert truth.counted[0, :, place.problem.control].tolist() == [0.0, 0.0]
    assert truth.counted[0, :, :2].ravel() == pytest.approx(uplift)


def test_a_control_arm_is_what_doing_nothing_is() -> None:
    observed = scenario(nothing=NOTHING)
    arms = [*observed.problem.arms[:2], Arm("usual", features=[0, 0, 1], cost=0)]
    problem = dataclasses.replace(observed.problem, arms=tuple(arms), baseline="usual")
    named = dataclasses.replace(observed, problem=problem)
    policies = ["doral-otf", "d-lints", "doral"]
    assert _told(doral.simulate(policies, named, runs=2)) == _told(doral.simulate(policies, observed, runs=2))


def _told(result: SimulationResult) -> list[object]:
    return [(one.policy, one.run, one.rewards, one.spend, one.oracle) for one in result.outcomes]


def test_where_nothing_is_worth_its_cost_that_is_said() -> None:
    place = dataclasses.replace(scenario(2.0), name="futile")
    result = doral.simulate(["random", "doral-otf"], [place, scenario(nothing=NOTHING)], runs=2)
    assert result.worthless == ("futile",)
    assert result.summary().filter(scenario="futile")["regret_share"].is_null().all()
    assert result.summary().filter(scenario="s")["regret_share"].is_not_null().all()
    texts = result.plot("share", scenario="futile").axes[0].texts
    assert "nothing is worth its cost here" in texts[0].get_text()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"nothing": [0.5]}, "shape of baseline_means"),
        ({"baseline": 0.5, "nothing": NOTHING}, "baseline_means = .*a known one stands there"),
    ],
)
def test_bad_baselines(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidValue, match=expected):
        scenario(**changes)  # type: ignore[arg-type]


def test_drawn_features_leave_alone_what_marks_doing_nothing() -> None:
    place = dataclasses.replace(SCENARIOS["stress/control"], means=None, noise="gaussian", features="drawn")
    one, other = (make_truth(place, seed=1, run=run) for run in (0, 1))
    assert not np.array_equal(one.features, other.features)
    for truth in (one, other):
        assert truth.features[-1].tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        assert not truth.features[:-1, -1].any()
        assert not truth.counted[:, :, -1].any()


def test_shipped_scenarios_are_what_they_say() -> None:
    control = make_truth(SCENARIOS["stress/control"], seed=0, run=0)
    best = control.counted[0, :, :-1].max(axis=1)
    assert ((best > 0.0) == [True, False, True, False, True, False]).all()
    harm = make_truth(SCENARIOS["stress/harm"], seed=0, run=0)
    assert ((harm.counted[0] > 0.0).sum(axis=1) == 4).all()
    assert make_truth(only_harm(), seed=0, run=0).oracle == 0.0


def test_geometric_delays_of_nothing_count_by_its_deadline() -> None:
    place = scenario(nothing=NOTHING)
    late = dataclasses.replace(place, delays=((*place.delays[0][:2], Geometric(20)),))
    truth = make_truth(late, seed=0, run=0)
    by_deadline = 1.0 - (1.0 - 1.0 / 20) ** 10
    assert truth.world.nothing[0] == pytest.approx(by_deadline * np.array(NOTHING))
