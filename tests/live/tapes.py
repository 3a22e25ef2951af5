"""Campaigns fed by a tape, next to the simulator on the same tape."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from doral._arrays import leaves
from doral.compiled import Block
from doral.delays import Geometric
from doral.engine.options import POLICY_NAMES, PolicyOptions, make_policy
from doral.engine.state import State
from doral.live.campaign import Campaign
from doral.live.views.decision import Decision
from doral.problem import Arm, Context
from doral.simulation.catalogue.lookup import named_scenario
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.players import CompiledPlayer
from doral.simulation.world.tape import WORLD, Tape, new_tape
from doral.simulation.world.truth import Truth, make_truth
from tests.draws import delay_in, reward_in
from tests.small_worlds import MIXED_LAWS, make_scenario

SEED = 7
RUN = 0


UNIT = make_scenario()
# Everything at once: costs that floats cannot add up exactly, no deadline, learned shares, missing arms, lost answers.
MIXED = make_scenario(
    costs=(0.1, 2.5, 0.7, 1.3, 2.5),
    budget=250.3,
    horizon=400,
    deadline=None,
    delays=MIXED_LAWS,
    shares=None,
    availability=(1.0, 0.6, 0.9, 0.8, 0.5),
    seed=3,
)
POOR = dataclasses.replace(MIXED, problem=dataclasses.replace(MIXED.problem, budget=17.3, deadline=25.0))


def _urgent() -> Scenario:
    """Contexts that differ in weight, deadline and tier, a reserve, and rewards of which only the ones are heard of."""
    contexts = (
        Context("ann", 0.4, weight=3.0, deadline=15.0, tier=1),
        Context("bob", 0.35, weight=0.5),
        Context("cy", 0.25, deadline=60.0),
    )
    problem = dataclasses.replace(
        UNIT.problem, contexts=contexts, feedback="silent", reserves=((1, 0.3),), budget=200.0
    )
    return Scenario(
        name="urgent",
        problem=problem,
        delays=UNIT.delays,
        means=np.random.default_rng(5).uniform(0.2, 0.9, (3, 5)),
        noise="bernoulli",
    )


def _paper() -> Scenario:
    """The paper's scenario, shortened; its features are drawn, so the campaign has to be told what was drawn."""
    whole = named_scenario("paper/diverse-geometric")
    problem = dataclasses.replace(whole.problem, horizon=1500, budget=900.0, deadline=200.0)
    features = make_truth(whole, seed=SEED, run=RUN).features
    arms = tuple(Arm(arm.name, features=row, cost=arm.cost) for arm, row in zip(problem.arms, features, strict=True))
    return dataclasses.replace(whole, problem=dataclasses.replace(problem, arms=arms), features="drawn")


# Those who are skipped are answered, too: to tell what doing nothing brings, or an arm that costs nothing.
WATCHED = Scenario(
    name="watched",
    problem=dataclasses.replace(UNIT.problem, baseline="observed", budget=150.0, horizon=300),
    delays=(*UNIT.delays[0], Geometric(12)),
    theta=UNIT.theta,
    baseline_means=[0.3, 0.9, 0.1],
)
STANDARD = Scenario(
    name="standard",
    problem=dataclasses.replace(
        MIXED.problem,
        arms=tuple(dataclasses.replace(arm, cost=arm.cost * (arm.name != "a2")) for arm in MIXED.problem.arms),
        baseline="a2",
        budget=90.3,
        horizon=200,
    ),
    delays=MIXED.delays,
    theta=MIXED.theta,
    shares=MIXED.shares,
    availability=MIXED.availability,
)
BASELINES = {"watched": WATCHED, "standard": STANDARD}

SCENARIOS = {"unit": UNIT, "mixed": MIXED, "poor": POOR, "urgent": _urgent(), "paper": _paper()}


def live_policies(scenario: Scenario) -> dict[str, PolicyOptions]:
    """Every preset in every reading (without knowledge that only a simulation has), and every piece at least once."""
    needed: dict[str, Any] = {} if scenario.problem.deadline is not None else {"cutoff": 50.0}
    found: dict[str, PolicyOptions] = {}
    for name in POLICY_NAMES:
        options: dict[str, Any] = {}
        if make_policy(name).return_probability == "oracle":
            options["return_probability"] = "estimated"
        if make_policy(name).sampling == "oracle":
            continue
        if make_policy(name).screening == "none" and make_policy(name).cutoff is None:
            options |= needed
        found[name] = make_policy(name, **options)
        if make_policy(name).screening == "race":
            found[f"{name}, quick race"] = make_policy(name, **options, min_answers=4)
    found["min_age"] = make_policy("doral", min_answers=4, censoring="min_age", learner="scaled")
    found["kaplan_meier"] = make_policy("doral", min_answers=4, censoring="kaplan_meier", learner="thinned")
    found["window"] = make_policy("doral", min_answers=4, printed=["window"])
    found["no race"] = make_policy("doral", screening="none", **needed)
    return found


class Feed:
    """The rounds of one tape: `step` hands the answers that are due to a campaign, then asks it to decide."""

    def __init__(self, scenario: Scenario) -> None:
        self.problem = scenario.problem
        self.truth: Truth = make_truth(scenario, seed=SEED, run=RUN)
        self.tape: Tape = new_tape(self.truth.world, scenario.problem.horizon)
        WORLD["record"](Block(self.tape), self.truth.block, SEED, RUN, 1)
        self.due: dict[int, list[tuple[str, float]]] = {}
        self.round = 0

    def available(self, round_: int) -> list[str] | None:
        if not self.tape.available.shape[1]:
            return None
        row = self.tape.available[round_ - 1].tolist()
        return [name for name, is_there in zip(self.problem.arm_names, row, strict=True) if is_there]

    def step(self, campaign: Callable[[], Campaign]) -> Decision:
        self.round += 1
        for decision_id, reward in self.due.pop(self.round, ()):
            campaign().feedback(decision_id, reward)
        context = int(self.tape.context[self.round - 1])
        name = self.problem.context_names[context]
        decision = campaign().decide(name, available=self.available(self.round))
        self.note(decision, context)
        return decision

    def note(self, decision: Decision, context: int) -> None:
        arm = self.problem.control if decision.arm is None else self.problem.arm_index(decision.arm)
        if arm is not None:
            world = self.truth.block
            reward = reward_in(world, self.round, context, arm, float(self.tape.noise[self.round - 1]))
            delay = delay_in(world, context, arm, reward, float(self.tape.delay[self.round - 1]))
            if delay < math.inf:
                self.due.setdefault(self.round + int(delay), []).append((decision.id, reward))

    def steps(self, campaign: Callable[[], Campaign], rounds: int) -> Iterator[Decision]:
        for _ in range(rounds):
            yield self.step(campaign)


def simulated(options: PolicyOptions, scenario: Scenario) -> CompiledPlayer:
    """The simulator on the same tape."""
    truth = make_truth(scenario, seed=SEED, run=RUN)
    player = CompiledPlayer(options, scenario, truth, seed=SEED, run=RUN, true_returns=None)
    tape = new_tape(truth.world, scenario.problem.horizon)
    WORLD["record"](Block(tape), truth.block, SEED, RUN, 1)
    player.play(tape, 1)
    return player


# Scratch: written before it is read, and a batch writes it in rounds in which a single decision would not.
SCRATCH = ("allowed",)


def same_bits(one: State, other: State) -> list[str]:
    """The names of the arrays in which two states differ, in any bit."""
    return [
        name
        for (name, a), (_, b) in zip(leaves(one), leaves(other), strict=True)
        if (a.shape != b.shape or a.tobytes() != b.tobytes()) and name not in SCRATCH
    ]
