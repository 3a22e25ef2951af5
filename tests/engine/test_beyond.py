"""What learning on the fly is for: each of its pieces pays where it should. Small versions of the shipped scenarios."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.compiled import Block
from doral.delays import ByOutcome, Geometric
from doral.engine.engine import Engine, Heard
from doral.engine.options import PolicyOptions, policy, policy_of
from doral.engine.setup import Blueprint
from doral.problem import Arm, Context, Problem
from doral.simulation.catalogue.paper import SCENARIOS as PAPER
from doral.simulation.catalogue.stress import SCENARIOS as STRESS
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.players import CompiledPlayer
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

RUNS = 3
ALL_ARMS = np.zeros((1, 0), dtype=np.uint8)


def shortened(scenario: Scenario, horizon: int) -> Scenario:
    """With a budget for half of the arrivals."""
    problem = dataclasses.replace(scenario.problem, horizon=horizon, budget=horizon / 2)
    return dataclasses.replace(scenario, problem=problem)


def regrets(policies: Sequence[PolicyOptions], scenario: Scenario) -> list[Floats]:
    """To the oracle, of every run, on the same tapes."""
    result = doral.simulate(list(policies), scenario, runs=RUNS, seed=1)
    return [
        np.array([one.oracle - one.rewards[0] for one in result.of(scenario.name, options.name)])
        for options in policies
    ]


@pytest.mark.parametrize("name", sorted(PAPER))
def test_far_less_regret_than_with_two_stages(name: str) -> None:
    one_stage, two_stages = regrets([policy("doral-otf"), policy("doral")], shortened(PAPER[name], 20_000))
    assert (one_stage < 0.3 * two_stages).all()


def test_silent_feedback() -> None:
    scenario = shortened(STRESS["stress/silent"], 20_000)
    learned, blind = regrets([policy("doral-otf"), policy("random")], scenario)
    assert (learned < 0.6 * blind).all()


def test_forgetting_pays_where_the_world_changes() -> None:
    forgets = policy("doral-otf", half_life=2_000, label="forgets")
    remembers = policy("doral-otf", label="remembers")
    with_half_life, without = regrets([forgets, remembers], shortened(STRESS["stress/drift"], 30_000))
    assert with_half_life.sum() < 0.7 * without.sum()


def test_curves_by_context_pay_where_delays_depend_on_it() -> None:
    by_context, by_arm = policy("doral-otf", label="by context"), policy("doral-otf", curves_by="arm", label="by arm")
    fine, coarse = regrets([by_context, by_arm], shortened(STRESS["stress/context-delays"], 20_000))
    assert fine.sum() < 0.6 * coarse.sum()


# --- no run is lost ------------------------------------------------------------------------------------------------

# Few contexts with coins for rewards: what they have in common is uncertain, and must not pass for known.
COINS = Scenario(
    name="coins",
    problem=Problem(
        arms=[Arm(f"arm-{i}", features=np.eye(4)[i]) for i in range(4)],
        contexts={"one": 0.5, "other": 0.5},
        budget=10_000,
        horizon=20_000,
        deadline=500,
    ),
    delays=Geometric(200),
    means=[[0.3, 0.4, 0.35, 0.2], [0.36, 0.48, 0.42, 0.24]],
    noise="bernoulli",
)


@pytest.mark.parametrize(
    ("scenario", "runs", "least"),
    [
        (COINS, 40, 0.8),  # the second-best arm earns 0.86
        (STRESS["stress/never-30"], 20, 0.95),  # answers that never come must not pass for known, either
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_no_run_settles_on_the_wrong_arm(scenario: Scenario, runs: int, least: float) -> None:
    result = doral.simulate("doral-otf", scenario, runs=runs, n_jobs=2)
    shares = np.array([one.rewards[0] / one.oracle for one in result.outcomes])
    assert shares.min() > least
    assert np.median(shares) > 0.97


# --- outcomes that return sooner than others -----------------------------------------------------------------------


def learned_means(options: PolicyOptions, rounds: int) -> Floats:
    """By arm: the mean of what has been learned after so many rounds of a scenario in which positives return first."""
    scenario = dataclasses.replace(
        COINS,
        problem=dataclasses.replace(COINS.problem, horizon=rounds, budget=float(rounds)),
        delays=((ByOutcome(above=Geometric(30), below=Geometric(400), threshold=0.5),) * 4,),
    )
    totals = np.zeros((2, 4))
    for run in range(20):
        truth = make_truth(scenario, seed=0, run=run)
        player = CompiledPlayer(options, scenario, truth, seed=0, run=run, true_returns=None)
        tape = new_tape(truth.world, rounds)
        WORLD["record"](Block(tape), truth.block, 0, run, 1)
        player.play(tape, 1)
        totals += player.state.tree.tally[:2].sum(axis=1)
    return np.asarray(totals[1] / totals[0])


def test_early_answers_mislead_unless_outcomes_are_told_apart() -> None:
    """Both are to know the mean of the answers that come within the deadline."""
    rates = 1.1 * np.array([0.3, 0.4, 0.35, 0.2])
    positive, negative = (law.return_probability(500.0) for law in (Geometric(30), Geometric(400)))
    truth = rates * positive / (rates * positive + (1.0 - rates) * negative)
    # all arms are tried much: the bonus dwarfs what is learned
    plain, told_apart = (
        learned_means(policy("doral-otf", outcome_split=split, exploration=50.0, until_end=False), 700)
        for split in (None, 0.5)
    )
    assert (plain - truth > 0.02).all()  # negatives are still on their way
    assert (np.abs(told_apart - truth) < 0.03).all()


def test_telling_outcomes_apart_pays_where_positives_return_first() -> None:
    told_apart, scenario = policy("doral-otf", outcome_split=0.5, label="told apart"), STRESS["stress/positives-first"]
    result = doral.simulate(["doral-otf", told_apart], scenario, runs=8)
    best = np.array([one.oracle for one in result.of(scenario.name, "doral-otf")])
    plain, corrected = (best - result.expected(scenario.name, name) for name in ("doral-otf", "told apart"))
    assert corrected.sum() < 0.85 * plain.sum()


# --- the scale of rewards ------------------------------------------------------------------------------------------


def scaled(scenario: Scenario, factor: float) -> Scenario:
    """The same world in another currency."""
    theta = (factor * np.array(scenario.theta)).tolist()
    return dataclasses.replace(scenario, theta=theta, noise_sd=factor * scenario.noise_sd)


def decisions(options: PolicyOptions, scenario: Scenario) -> list[list[int]]:
    log = doral.simulate(options, scenario, runs=1, seed=3, keep_decisions=True).outcomes[0].log
    assert log is not None
    return [log.round.tolist(), log.context.tolist(), log.arm.tolist()]


# Where contexts or cells of which nothing is known are tied, rounding decides, and only powers of two are free of it.
@pytest.mark.parametrize(
    ("factor", "changes"),
    [
        (1 / 128, {}),
        (128.0, {}),
        (1 / 128, {"half_life": 1_000.0}),
        (128.0, {"half_life": 1_000.0}),
        (1 / 128, {"features": "none"}),
        (128.0, {"features": "none"}),
        (1 / 128, {"sampling": "thompson"}),
        (128.0, {"sampling": "thompson"}),
    ],
)
def test_decisions_do_not_depend_on_the_currency_of_rewards(factor: float, changes: dict[str, Any]) -> None:
    paper = shortened(PAPER["paper/diverse-geometric"], 5_000)
    rng = np.random.default_rng(2)
    scenario = dataclasses.replace(paper, theta=rng.uniform(0.0, 1.0, (paper.problem.n_contexts, 5)).tolist())
    options = policy_of("doral-otf", changes)
    assert decisions(options, scaled(scenario, factor)) == decisions(options, scenario)


# --- reserves ------------------------------------------------------------------------------------------------------

HORIZON, BUDGET, RESERVE = 1_000, 200.0, 0.5
ORDINARY, URGENT = 0, 1
URGENT_SHARE = 0.5  # as announced; they will all come at the end
LATE = 800


def reserving(reserve: float | None) -> Problem:
    """The urgent are worth less than others: only the reserve speaks for them."""
    return Problem(
        arms=[Arm("a", features=[1.0, 0.2]), Arm("b", features=[0.3, 0.9])],
        contexts=[Context("ordinary", 1.0 - URGENT_SHARE), Context("urgent", URGENT_SHARE, weight=0.2, tier=1)],
        budget=BUDGET,
        horizon=HORIZON,
        deadline=50,
        reserves={} if reserve is None else {1: reserve},
    )


def spending(options: PolicyOptions, problem: Problem) -> Floats:
    """(rounds, contexts) what has been spent on each, where the urgent all come after round `LATE`."""
    engine = Engine(Blueprint(options=options, problem=problem, seed=5))
    rng = np.random.default_rng(6)
    spent = np.zeros((HORIZON, 2))
    open_decisions: list[tuple[int, int, float]] = []
    for round_ in range(1, HORIZON + 1):
        while open_decisions and open_decisions[0][0] <= round_:
            _, decision, reward = open_decisions.pop(0)
            engine.answer([Heard(decision, reward, float(round_))])
        context = URGENT if round_ > LATE else ORDINARY
        decided = engine.decide(context, ALL_ARMS, float(round_))
        if round_ > 1:
            spent[round_ - 1] = spent[round_ - 2]
        if decided.arm >= 0:
            spent[round_ - 1, context] += problem.costs[decided.arm]
            open_decisions.append((round_ + 5, decided.number, float(rng.normal(1.0, 0.1))))
    return spent


RESERVING = (
    policy("doral-otf"),
    policy("eva"),
    policy("doral", min_answers=5, race_budget_share=0.1),
    policy("d-alp", min_answers=5, race_budget_share=0.1),
)


@pytest.mark.parametrize("options", RESERVING, ids=lambda options: str(options.name))
def test_lower_tiers_never_take_the_reserve_while_it_may_be_needed(options: PolicyOptions) -> None:
    spent = spending(options, reserving(RESERVE))
    left = BUDGET - spent.sum(axis=1)
    rounds_left = HORIZON - np.arange(1, HORIZON + 1)
    # needed: what is reserved and not spent yet, but no more than those who are still expected could cost
    needed = np.minimum(RESERVE * BUDGET - spent[:, URGENT], URGENT_SHARE * rounds_left)
    assert (left >= needed - 1.0).all()  # a decision costs 1 and is made whole
    assert spent[LATE - 1, ORDINARY] > 0.8 * (1.0 - RESERVE) * BUDGET  # and what is not reserved is used
    assert spent[-1, URGENT] >= RESERVE * BUDGET - 1.0


def test_without_a_reserve_the_ordinary_leave_less() -> None:
    options = policy("doral-otf")
    with_reserve, without = (spending(options, reserving(reserve)) for reserve in (RESERVE, None))
    assert without[-1, URGENT] < 0.6 * with_reserve[-1, URGENT]


def test_an_urgent_scenario_serves_the_urgent_more() -> None:
    """The shipped scenario, with and without its reserves, where ordinary arrivals are made to look best."""
    scenario = shortened(STRESS["stress/urgent"], 8_000)
    contexts = tuple(
        Context(one.name, one.share, weight=1.0 if one.tier == 0 else 0.5, tier=one.tier)
        for one in scenario.problem.contexts
    )
    problem = dataclasses.replace(scenario.problem, contexts=contexts)
    urgent = np.array([context.tier == 2 for context in contexts])
    served = []
    for reserves in (problem.reserves, ()):
        changed = dataclasses.replace(scenario, problem=dataclasses.replace(problem, reserves=reserves))
        _, who, _ = decisions(policy("doral-otf"), changed)
        served.append(int(urgent[who].sum()))
    assert served[0] > 1.2 * served[1]
    reserved = dict(problem.reserves)[2] * problem.budget
    assert served[0] >= 0.95 * min(reserved, 0.2 * problem.horizon)
