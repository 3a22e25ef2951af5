"""Certificates: what one says is true, and no arm is ruled out that the oracle needs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import doral
from doral._arrays import Floats
from doral.compiled import Block
from doral.engine.certificates import Certificate, certificates
from doral.engine.options import PolicyOptions, policy
from doral.pacing import solve
from doral.simulation.catalogue.stress import SCENARIOS as STRESS
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.players import CompiledPlayer
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

SEED = 4
CHUNK_ROUNDS = 500
RUNS = 8


def shortened(name: str, horizon: int) -> Scenario:
    scenario = STRESS[name]
    problem = dataclasses.replace(scenario.problem, horizon=horizon, budget=horizon / 2)
    return dataclasses.replace(scenario, problem=problem)


def values_of(scenario: Scenario, means: Floats) -> Floats:
    """(J, A) what arms are worth: weight, mean and the chance to return in time."""
    problem = scenario.problem
    returned = np.array(
        [
            [law.return_probability(float(deadline)) for law in scenario.delays[min(j, len(scenario.delays) - 1)]]  # type: ignore[union-attr]
            for j, deadline in enumerate(problem.deadlines)
        ]
    )
    return np.asarray(problem.weights[:, None] * means * returned)


def course(options: PolicyOptions, scenario: Scenario, run: int) -> tuple[Floats, list[tuple[int, set[Certificate]]]]:
    """What arms are truly worth in this run, and the certificates that held after every chunk but the last ones.

    Near the end other arms are right: what cannot return any more is worth nothing.
    """
    truth = make_truth(scenario, seed=SEED, run=run)
    player = CompiledPlayer(options, scenario, truth, seed=SEED, run=run, true_returns=None)
    tape = new_tape(truth.world, CHUNK_ROUNDS)
    held = []
    for first_round in range(1, int(0.8 * scenario.problem.horizon), CHUNK_ROUNDS):
        WORLD["record"](Block(tape), truth.block, SEED, run, first_round)
        player.play(tape, first_round)
        held.append((first_round + CHUNK_ROUNDS - 1, set(certificates(player.state.tree, scenario.problem))))
    return values_of(scenario, truth.world.means[0]), held


def scarce() -> Scenario:
    """An arm that costs next to nothing, others that bring more for more; little budget, and shares that are learned.

    What a unit of budget is worth follows from small differences: to take it for known ruled out arms that the
    oracle uses in 6 of 20 runs.
    """
    rng, costs, n_contexts, horizon = np.random.default_rng(4), (0.05, 1.0, 1.0, 2.0, 2.0, 3.0), 8, 20_000
    base = rng.uniform(0.1, 0.5, (n_contexts, 1))
    means = base + np.array([0.0, 0.1, 0.1, 0.2, 0.2, 0.28]) * rng.uniform(0.2, 2.0, (n_contexts, 6))
    arms = [doral.Arm(f"a{i}", features=np.eye(6)[i].tolist(), cost=cost) for i, cost in enumerate(costs)]
    return Scenario(
        name="scarce",
        problem=doral.Problem(
            arms=arms,
            contexts=[f"c{j}" for j in range(n_contexts)],
            budget=0.2 * horizon,
            horizon=horizon,
            deadline=2_000.0,
        ),
        delays=[doral.delays.Geometric(300 + 100 * (i % 3)) for i in range(6)],
        means=means.tolist(),
        noise_sd=0.05,
        shares=tuple(rng.dirichlet(np.full(n_contexts, 3.0)).tolist()),
    )


PLACES = {
    **{name: shortened(name, 20_000) for name in ("stress/never-30", "stress/costs", "stress/context-delays")},
    "scarce": scarce(),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_a_certificate_says_is_true_and_nobody_is_missed(name: str) -> None:
    """At the true price: that of the oracle, which knows what everything is worth and who will come."""
    scenario = PLACES[name]
    problem = scenario.problem
    given, wrong, outside, runs_missed = 0, 0, 0, 0
    for run in range(RUNS):
        values, held = course(policy("doral-otf"), scenario, run)
        truth = solve(values=values, costs=problem.costs, shares=scenario.true_shares, rate=problem.rate)
        ever = set().union(*(certificates for _, certificates in held))
        for one in ever:
            j, a, b = problem.context_index(one.context), problem.arm_index(one.arm), problem.arm_index(one.rival)
            net = values[j] - truth.price * problem.costs
            given += 1
            wrong += net[a] > net[b]
            outside += one.price_low < one.price_high and not one.price_low <= truth.price <= one.price_high
            assert one.at_most < one.at_least
            assert one.price_low <= one.price <= one.price_high
        runs_missed += any(
            truth.play[problem.context_index(one.context), problem.arm_index(one.arm)] > 0.0 for one in ever
        )
    assert given > 10 * RUNS
    assert wrong <= 0.01 * given
    assert outside <= 0.01 * given
    assert runs_missed == 0


def test_nothing_is_certain_of_a_noise_that_drowns_the_arms() -> None:
    scenario = dataclasses.replace(shortened("stress/never-30", 5_000), noise_sd=30.0)
    _, held = course(policy("doral-otf"), scenario, 0)
    assert not any(certificates for _, certificates in held)


def test_who_forgets_examines_again() -> None:
    """In a world that changes, arms that were ruled out rightly come back when what is known of the rival fades."""
    scenario = dataclasses.replace(shortened("stress/drift", 30_000), phases=2)
    _, held = course(policy("doral-otf", half_life=5_000.0), scenario, 1)
    before = next(certificates for round_, certificates in held if round_ >= 14_000)
    after = next(certificates for round_, certificates in held if round_ >= 22_000)
    pairs_before, pairs_after = ({(one.context, one.arm) for one in found} for found in (before, after))
    assert len(pairs_before) > 3
    assert len(pairs_before - pairs_after) > 0.2 * len(pairs_before)


def test_a_certificate_in_words() -> None:
    said = Certificate(
        context="adult",
        arm="b",
        round=1_200,
        at_most=0.104,
        rival="a",
        at_least=0.311,
        price=0.25,
        price_low=0.25,
        price_high=0.25,
    )
    assert str(said) == (
        "b is ruled out for adult as of round 1,200: after its cost it brings at most 0.104, a at least 0.311 "
        "(a unit of budget is worth 0.25)"
    )
    assert str(dataclasses.replace(said, price_low=0.2, price_high=0.3)).endswith(
        "(a unit of budget is worth 0.25, known as 0.2 to 0.3)"
    )
    region = dataclasses.replace(said, price=0.0, price_low=0.0, price_high=np.inf)
    assert str(region) == (
        "b is ruled out for adult: it brings at most 0.104 where a, which costs no more, brings at least 0.311, "
        "and that is the closest case"
    )


def test_a_retired_arm_rules_nobody_out_and_needs_no_ruling() -> None:
    scenario = shortened("stress/never-30", 8_000)
    truth = make_truth(scenario, seed=SEED, run=0)
    player = CompiledPlayer(policy("doral-otf"), scenario, truth, seed=SEED, run=0, true_returns=None)
    tape = new_tape(truth.world, 5_000)
    WORLD["record"](Block(tape), truth.block, SEED, 0, 1)
    player.play(tape, 1)
    problem, state = scenario.problem, player.state.tree
    before = certificates(state, problem)
    rival = max({one.rival for one in before}, key=lambda name: sum(one.rival == name for one in before))
    state.barrier[:, problem.arm_index(rival)] = -np.inf
    after = certificates(state, problem)
    assert after
    assert not any(rival in (one.rival, one.arm) for one in after)
    assert {(one.context, one.arm) for one in after} < {(one.context, one.arm) for one in before}
