"""Stage 1: which arms are accepted, after how many pulls, and with which cut-off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import doral
from doral.delays import AnyLaw, Fixed, Geometric, Never
from doral.problem import Arm, Problem
from doral.simulation.catalogue import paper
from doral.simulation.results.outcome import Outcome
from doral.simulation.scenario.scenario import Scenario

BUDGET = 4_000.0
ALPHA = 0.5
CENSORINGS = ("returned", "min_age", "kaplan_meier", "instant")


def race(
    delays: Sequence[AnyLaw],
    *,
    budget: float = BUDGET,
    horizon: int = 4_000,
    deadline: float | None = 200.0,
    costs: Sequence[float] | None = None,
    seed: int = 0,
    **options: Any,
) -> Outcome:
    arms = [Arm(f"a{i}", features=[1.0], cost=1.0 if costs is None else costs[i]) for i in range(len(delays))]
    problem = Problem(arms=arms, contexts={"all": 1.0}, budget=budget, horizon=horizon, deadline=deadline)
    scenario = Scenario(name="race", problem=problem, delays=tuple(delays), theta=[[1.0]])
    policy = doral.policy("doral", **options)
    return doral.simulate(policy, scenario, runs=1, seed=seed, keep_decisions=True).outcomes[0]


def width(estimate: float, n: int, *, budget: float = BUDGET) -> float:
    """The width of the bounds as the paper prints it, with the estimate for the unknown mean."""
    return math.sqrt(2 * math.log(16 / (1 - budget**-ALPHA)) / n) + 2 * estimate * n**-ALPHA


def race_pulls(outcome: Outcome) -> list[int]:
    assert outcome.log is not None
    return np.bincount(outcome.log.arm[: outcome.race_rounds], minlength=2).tolist()


# --- the paper's settings ------------------------------------------------------------------------------------------

# Delays known at once, A' = 5. Pulls: closed form for estimates without noise; noise ends half of all races sooner.
# Cut-off m over the accepted arms.
PAPER = {
    "paper/diverse-geometric": (4_900, 203),
    "paper/diverse-pareto": (3_600, 550),
    "paper/similar-geometric": (10_000, 141),
    "paper/similar-pareto": (9_900, 278),
}
LONG_ENOUGH_ROUNDS = 30_000


@pytest.mark.parametrize("name", PAPER)
def test_the_numbers_of_the_paper(name: str) -> None:
    closed_form_pulls, cutoff = PAPER[name]
    scenario = paper.with_horizon(doral.Scenario.named(name), LONG_ENOUGH_ROUNDS)
    policy = doral.policy("doral", accept=5, censoring="instant", min_answers=1)
    outcomes = doral.simulate(policy, scenario, runs=40, seed=3).outcomes
    pulls = float(np.median([one.race_rounds for one in outcomes]))
    assert 0.2 * closed_form_pulls < pulls < closed_form_pulls
    assert float(np.median([one.cutoff for one in outcomes])) == pytest.approx(cutoff, rel=0.04)
    fastest = {f"arm-{number}" for number in range(1, 6)}
    assert np.mean([len(fastest.intersection(one.accepted)) for one in outcomes]) > 4.8


# --- acceptance ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("censoring", CENSORINGS)
@pytest.mark.parametrize("accept", [1, 2, 3])
def test_the_fastest_are_accepted(censoring: str, accept: int) -> None:
    delays = (40, 3, 90, 12, 24)
    outcome = race([Fixed(delay) for delay in delays], accept=accept, censoring=censoring, min_answers=10)
    fastest = sorted(sorted(range(5), key=lambda arm: delays[arm])[:accept])
    assert outcome.accepted == tuple(f"a{arm}" for arm in fastest)
    assert not outcome.race_capped


def test_the_printed_rule_accepts_the_slowest() -> None:
    outcome = race([Fixed(d) for d in (40, 20, 10, 5, 2)], accept=1, printed=["acceptance"], censoring="instant")
    assert outcome.accepted == ("a0",)


@pytest.mark.parametrize(("fast", "slow"), [(10.0, 20.0), (10.0, 12.0), (5.0, 50.0)])
def test_two_arms_race_until_their_bounds_part(fast: float, slow: float) -> None:
    """Without noise the number of pulls and the cut-off follow from the width alone."""
    outcome = race([Fixed(slow), Fixed(fast)], accept=1, censoring="instant", min_answers=1)
    n = next(n for n in range(1, 10**6) if fast + width(fast, n) < slow - width(slow, n))
    assert race_pulls(outcome) == [n, n]
    assert outcome.race_ended == 2 * n + 1  # the round after the last pull of the pass
    assert outcome.accepted == ("a1",)
    assert outcome.cutoff == pytest.approx(fast + width(fast, n))


def test_the_cutoff_over_all_arms() -> None:
    outcome = race([Fixed(20), Fixed(10)], accept=1, censoring="instant", min_answers=1, printed=["cutoff"])
    n = race_pulls(outcome)[0]
    assert outcome.cutoff == pytest.approx(20 + width(20, n))


def test_a_rejected_arm_is_pulled_no_more() -> None:
    outcome = race([Fixed(10), Fixed(11), Fixed(150)], accept=1, censoring="instant", min_answers=1)
    first, second, slow = race_pulls(outcome)
    assert first == second > slow
    assert outcome.accepted == ("a0",)


def test_few_answers_decide_nothing() -> None:
    """min_answers: an arm with fewer answers is neither accepted nor rejected."""
    early = race([Fixed(2), Fixed(90)], accept=1, censoring="instant", min_answers=1)
    late = race([Fixed(2), Fixed(90)], accept=1, censoring="instant", min_answers=200)
    assert early.race_rounds < 200
    assert late.race_rounds == 400


def test_waiting_for_answers_does_not_favour_an_arm_that_answers_rarely() -> None:
    """Of the delays seen so far the short ones are seen first: all ways to treat that find the same arms in the end."""
    for censoring in CENSORINGS:
        outcome = race([Geometric(60), Geometric(6), Geometric(20)], accept=1, censoring=censoring, seed=5)
        assert outcome.accepted == ("a1",), censoring


# --- the cap -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.05, 0.25, 1.0])
def test_the_cap_on_what_the_race_may_spend(share: float) -> None:
    """Arms that are all alike never part: at the cap the smallest estimates win, and the result says so."""
    costs = (1.0, 2.5, 0.7)
    outcome = race([Geometric(9)] * 3, accept=2, race_budget_share=share, budget=500.0, horizon=3_000, costs=costs)
    assert outcome.race_capped
    assert len(outcome.accepted) == 2
    assert outcome.race_spend <= share * 500.0
    assert outcome.race_spend > share * 500.0 - sum(costs)
    assert outcome.spend <= 500.0


def test_at_the_cap_the_smallest_estimates_are_accepted() -> None:
    delays = (Fixed(12), Fixed(10), Fixed(11), Fixed(13))
    outcome = race(delays, accept=2, race_budget_share=0.05, min_answers=1)
    assert outcome.race_capped
    assert outcome.accepted == ("a1", "a2")


def test_arms_that_never_answer_stop_at_the_cap() -> None:
    silent = Never(Fixed(1), 1.0)
    outcome = race([silent, Fixed(5), silent], accept=2, race_budget_share=0.1)
    assert outcome.race_capped
    assert "a1" in outcome.accepted
    unknown = race([silent, silent], accept=1, race_budget_share=0.1)
    assert unknown.cutoff == 200.0  # nothing is known: as long as the deadline


def test_without_a_deadline_decisions_are_watched_for_a_quarter_of_the_time() -> None:
    silent = Never(Fixed(1), 1.0)
    outcome = race([silent, silent], accept=1, race_budget_share=0.1, deadline=None)
    assert outcome.cutoff == 1_000.0


def test_a_given_cutoff_is_kept() -> None:
    outcome = race([Fixed(20), Fixed(10)], accept=1, cutoff=33.0)
    assert outcome.cutoff == 33.0
