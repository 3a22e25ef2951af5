"""Doing nothing has an outcome: arms are valued beyond it, it is learned by skipping, and harm is left alone."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

import doral
from doral._arrays import Floats
from doral.delays import Geometric
from doral.engine.certificates import certificates
from doral.engine.engine import Engine, Heard
from doral.engine.options import PRESETS, policy
from doral.engine.setup import Blueprint
from doral.problem import Arm, Problem
from doral.simulation.catalogue.stress import SCENARIOS, only_harm
from doral.simulation.scenario.scenario import Scenario
from tests.engine.cases import HOPELESS

ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)
CONTROL = SCENARIOS["stress/control"]


def with_budget(scenario: Scenario, budget: float, horizon: int) -> Scenario:
    return dataclasses.replace(scenario, problem=dataclasses.replace(scenario.problem, budget=budget, horizon=horizon))


def served_share(scenario: Scenario, name: str = "doral-otf") -> Floats:
    """Return the share of arrivals in the second half that are served, by context."""
    result = doral.simulate(name, scenario, runs=1, seed=2, keep_decisions=True)
    log = result.outcomes[0].log
    assert log is not None
    late = log.round > scenario.problem.horizon // 2
    arrivals, served = (
        np.bincount(log.context[chosen], minlength=scenario.problem.n_contexts)
        for chosen in (late, late & (log.arm != scenario.problem.control))
    )
    return np.asarray(served / arrivals)


def test_the_budget_goes_where_arms_are_better_than_nothing() -> None:
    """In every other context nothing is best, and rates of success are highest."""
    share = served_share(CONTROL)
    assert (share[1::2] < 0.1).all()
    assert share[::2].mean() > 0.4  # 5,000 for 10,000 of them


def test_with_budget_for_all_arrivals_without_benefit_are_skipped() -> None:
    """No skip is for want of budget: the control is learned all the same."""
    share = served_share(with_budget(CONTROL, 20_000.0, 20_000))
    assert (share[::2] > 0.8).all()
    assert share[1::2].mean() < 0.5  # the best arm lacks 0.03 to be as good, where a single reward is off by 0.5


@pytest.mark.parametrize("name", PRESETS)
def test_a_known_baseline_of_0_changes_no_decision(name: str) -> None:
    """For every preset: nothing is subtracted, and what is worth something is what was."""
    plain = SCENARIOS["stress/harm"]
    short = dataclasses.replace(plain, problem=dataclasses.replace(plain.problem, horizon=1_500, budget=700.0))
    zero = dataclasses.replace(short, problem=dataclasses.replace(short.problem, baseline=(0.0,) * 6))
    one, other = (doral.simulate(name, place, runs=1, keep_decisions=True).decisions() for place in (short, zero))
    assert one.equals(other)


def test_what_brings_less_than_a_known_baseline_is_not_bought() -> None:
    theta = np.array([[0.9, 0.2], [0.3, 0.7]])
    arms = [Arm("a", features=[1, 0]), Arm("b", features=[0, 1])]
    problem = Problem(arms=arms, contexts={"x": 0.5, "y": 0.5}, budget=1_000, horizon=3_000, deadline=50, baseline=0.5)
    place = Scenario(name="s", problem=problem, delays=Geometric(5), theta=theta, noise_sd=0.1)
    result = doral.simulate("doral-otf", place, runs=1, keep_decisions=True)
    served = result.decisions().drop_nulls("arm")
    # only x with a, and y with b, is worth more than 0.5
    right = served.filter((pl.col("context") == "x") == (pl.col("arm") == "a"))
    assert len(right) / len(served) > 0.95
    for one in result.outcomes[0].certificates:
        assert (one.context, one.arm) in {("x", "b"), ("y", "a")}
        # what the rival brings at least is counted from the baseline, too
        assert one.at_least < 0.5


def test_a_known_baseline_may_be_in_any_unit() -> None:
    """Before the first answer the size of rewards is unknown: a large baseline is no reason not to try."""
    arms = [Arm("a", features=[1, 0]), Arm("b", features=[0, 1])]
    problem = Problem(arms=arms, contexts={"x": 0.5, "y": 0.5}, budget=300, horizon=1_500, deadline=50, baseline=5e3)
    theta = np.array([[6e3, 4e3], [4.5e3, 4e3]])
    place = Scenario(name="s", problem=problem, delays=Geometric(5), theta=theta, noise_sd=500.0)
    result = doral.simulate("doral-otf", place, runs=1, keep_decisions=True)
    served = result.decisions().drop_nulls("arm")
    assert len(served.filter((pl.col("context") == "x") & (pl.col("arm") == "a"))) > 0.8 * len(served) > 200


def engine_of(problem: Problem) -> Engine:
    return Engine(Blueprint(options=policy("doral-otf"), problem=problem, seed=0))


def test_a_skip_has_a_number_and_can_be_answered() -> None:
    arms = [Arm("a", features=[1.0]), Arm("b", features=[0.5])]
    problem = Problem(arms=arms, contexts=["x"], budget=20, horizon=100, deadline=20, baseline="observed")
    engine = engine_of(problem)
    first = engine.decide(0, ALL_ARMS, 1.0)
    later = [engine.decide(0, ALL_ARMS, float(clock)) for clock in range(2, 30)]
    numbers = [one.number for one in (first, *later)]
    assert numbers == list(range(29))  # skips have one, too
    served = sum(one.arm >= 0 for one in (first, *later))
    assert 0 < served < 29
    assert engine.budget_left == 20.0 - served
    skipped = [one for one in later if one.arm < 0][-1]
    assert engine.answer([Heard(number=skipped.number, reward=0.7, clock=31.0)]) == [0]
    assert engine.state.ridge.target[0, 2] == 0.7
    assert engine.state.ridge.weight[0, 2] == 1.0


def test_after_the_end_skips_have_no_number() -> None:
    problem = Problem(
        arms=[Arm("a", features=[1.0])], contexts=["x"], budget=1.0, horizon=3, deadline=20, baseline="observed"
    )
    engine = engine_of(problem)
    numbers = [engine.decide(0, ALL_ARMS, float(clock)).number for clock in range(1, 7)]
    assert numbers == [0, 1, 2, 2, 2, 2]


def test_certificates_are_never_about_doing_nothing() -> None:
    engine_problem = CONTROL.problem
    result = doral.simulate("doral-otf", CONTROL, runs=1)
    for one in result.outcomes[0].certificates:
        assert "nothing" not in (one.arm, one.rival)
    assert "nothing" not in result.outcomes[0].accepted
    assert certificates(engine_of(engine_problem).state, engine_problem) == ()


# --- harm ------------------------------------------------------------------------------------------------------------


def test_what_does_harm_is_soon_left_alone() -> None:
    """Everything does: after a tenth of the horizon nothing is spent any more, where it was 12% of the budget."""
    result = doral.simulate("doral-otf", only_harm(), runs=3, seed=1, keep_decisions=True)
    for one in result.outcomes:
        assert one.log is not None
        assert (one.log.round > 4_000).sum() < 0.02 * 10_000
        assert one.spend < 0.12 * 10_000


def test_what_may_be_learned_is_worth_as_much_as_those_who_are_to_come() -> None:
    """sqrt(log(1 + N / n)) errors: a little beyond the boundary of optimal stopping, found by dynamic programming."""
    for n, boundary in optimal_boundary(1_000, (20, 50, 100, 300, 600)).items():
        width = math.sqrt(math.log1p((1_000 - n) / n))
        assert boundary < width < 1.6 * boundary, n


def optimal_boundary(total: int, at: tuple[int, ...]) -> dict[int, float]:
    """One arm with normal rewards against nothing, flat prior: after n of `total` plays, how many standard errors below
    nothing its mean may be to be played once more.
    """
    means = np.linspace(-2.0, 2.0, 4001)
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    weights = weights / weights.sum()
    worth, found = np.zeros_like(means), {}
    for n in range(total - 1, min(at) - 1, -1):
        moves = math.sqrt(1.0 / n - 1.0 / (n + 1))
        later = sum(
            weight * np.where(means + moves * node > 2.0, (means + moves * node) * (total - n - 1), 0.0)
            + weight * np.where(means + moves * node > 2.0, 0.0, np.interp(means + moves * node, means, worth))
            for node, weight in zip(nodes, weights, strict=True)
        )
        worth = np.maximum(0.0, means + later)
        if n in at:
            found[n] = -float(means[np.argmax(worth > 0.0)]) * math.sqrt(n)
    return found


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
def test_where_skipping_brings_nothing_arms_are_tried(feedback: str) -> None:
    """Without features, and with too little budget for planned tries: skips alone must not tell of the arms."""
    problem = dataclasses.replace(HOPELESS.problem, feedback=feedback)  # type: ignore[arg-type]
    means = [[0.3, 0.6]] * 2
    place = Scenario(name="p", problem=problem, delays=Geometric(3), means=means, baseline_means=0, noise="bernoulli")
    result = doral.simulate("doral-otf", place, runs=10)
    assert min(outcome.decisions for outcome in result.outcomes) > 20
