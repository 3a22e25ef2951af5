"""How often what a plan says of earnings holds the truth: logs of known scenarios, and what policies really earn there.

    python -m benchmarks.earnings_coverage --logs 200

For every kind, so many logs of a policy that gives arms at random are planned with, in turns of ten scenarios whose
means are drawn anew. The intervals of "what it would have earned" and of the difference to what was done are compared
with what the policies earn in the true scenario (the mean over many runs; the status quo as a sum). `best first` is
how often the best policy that can be had is the one that truly is; `harm` is how often a policy is recommended that
truly earns less than what was done. Below the table: how often two policies that are truly equal are called equal (all
arrivals get one of two arms that bring the same, or the other), and how often one of two that differ is.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

import numpy as np
from tests.logs import HOUR, log_of

import doral
from doral.evaluation.policies import STATUS_QUO
from doral.inference.intervals import DRAWS, Estimate
from doral.inference.log_problem import asked_of
from doral.inference.truths import truths_of
from doral.logs.log import Log
from doral.planning.earnings import Earnings, Played, average_costs, earn, earnings_of, play_by_chance
from doral.planning.recommendation import recommended
from doral.planning.values import chances_of
from doral.simulation.api import MadePolicy, made_policies, policy_name
from doral.simulation.scenario.from_log import world_of
from doral.simulation.world.truth import make_truth

HORIZON, SMALL_HORIZON, DEADLINE, TRUTHS, TRUE_RUNS, SCENARIOS = 2_000, 200, 130, 40, 200, 10
POLICIES = ("doral-otf", "d-linucb", "oracle")


def scenario(kind: str, number: int = 0) -> doral.Scenario:
    """One of the scenarios of a kind: their means are drawn by seeds that were not chosen for their results."""
    rng = np.random.default_rng([5, number])
    n_contexts, n_arms = (12, 6) if kind == "thin cells" else (3, 3)
    horizon = SMALL_HORIZON if kind == "small" else HORIZON
    means = rng.uniform(0.02, 0.3, (n_contexts, n_arms))
    delays: Any = doral.delays.Geometric(mean=50)
    noise: dict[str, Any] = {"noise": "bernoulli"}
    if kind == "rare":
        means = means / 10.0
    if kind == "amounts":
        noise, means = {"noise": "gaussian", "noise_sd": 0.5}, rng.uniform(0.0, 1.0, means.shape)
    if kind == "high rates":
        means = rng.uniform(0.8, 1.0, means.shape)
    if kind == "heavy tails":
        delays = doral.delays.Pareto(minimum=20, shape=1.2)
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{i}", cost=1 + 0.5 * i) for i in range(n_arms)],
        contexts={f"context-{j}": 1.0 / n_contexts for j in range(n_contexts)},
        budget=0.4 * horizon,
        horizon=horizon,
        deadline=DEADLINE,
        feedback="silent" if kind == "silent" else "explicit",
    )
    return doral.Scenario(name=kind, problem=problem, means=means, delays=delays, **noise)


KINDS = ("successes", "high rates", "amounts", "rare", "silent", "heavy tails", "thin cells", "small")


def holds(estimate: Estimate, true: float) -> bool:
    return estimate.low <= true <= estimate.high


def planned(log: Log, place: doral.Scenario, policies: list[MadePolicy], run: int) -> Earnings:
    asked = asked_of(log, deadline=DEADLINE * HOUR, budget=place.problem.budget)
    drawn = truths_of(log, deadline=DEADLINE * HOUR, n=DRAWS, seed=run)
    found, _ = earn(world_of(log, asked, drawn), policies, chances_of(log), truths=TRUTHS, seed=run)
    return earnings_of(
        found,
        arrivals=asked.arrivals,
        budget=place.problem.budget,
        unit="",
        live=frozenset(policy_name(one) for one in policies) - {"oracle"},
        is_never_negative=bool((drawn.cells.worth >= 0.0).all()),
    )


def measure_equals(logs: int) -> None:
    """Arms 0 and 1 bring the same in every context and cost the same; arm 2 brings half as much."""
    means = np.random.default_rng(5).uniform(0.05, 0.3, (3, 1)) * np.array([[1.0, 1.0, 0.5]])
    same = scenario("successes")
    arms = [doral.Arm(arm.name) for arm in same.problem.arms]
    place = dataclasses.replace(same, name="equal", problem=dataclasses.replace(same.problem, arms=arms), means=means)

    equal, other = [], []
    for run in range(logs):
        log = log_of(place, "status-quo", run=run, seed=7)
        asked = asked_of(log, deadline=DEADLINE * HOUR, budget=place.problem.budget)
        drawn = truths_of(log, deadline=DEADLINE * HOUR, n=DRAWS, seed=run)
        world = world_of(log, asked, drawn)
        found: dict[str, list[Played | None]] = {STATUS_QUO: [], "arm 0": [], "arm 1": [], "arm 2": []}
        for number in range(TRUTHS):
            possible = world.possible(number)
            truth = make_truth(possible, seed=run, run=number)
            costs = average_costs(possible, truth)
            chances = {STATUS_QUO: chances_of(log)}
            chances |= {f"arm {arm}": 0.4 * np.tile(np.eye(3)[arm], (3, 1)) for arm in range(3)}
            for name, each in chances.items():
                found[name].append(play_by_chance(possible, truth, costs, each))
        said = earnings_of(found, arrivals=asked.arrivals, budget=place.problem.budget, unit="")
        equal.append(holds(said.difference("arm 0", "arm 1"), 0.0))
        other.append(holds(said.difference("arm 0", "arm 2"), 0.0))
    print(f"\nTwo equal policies are called equal in {100 * np.mean(equal):.1f}% of {logs} logs,", end=" ")
    print(f"two of which one earns half as much in {100 * np.mean(other):.1f}%.", flush=True)


def measure(kind: str, logs: int) -> None:
    policies = made_policies(POLICIES)
    worth: dict[str, list[bool]] = {name: [] for name in (STATUS_QUO, *POLICIES)}
    more: dict[str, list[bool]] = {name: [] for name in POLICIES}
    first, harm = [], []
    for number in range(min(SCENARIOS, logs)):
        place = scenario(kind, number)
        result = doral.simulate(policies, place, runs=TRUE_RUNS)
        true = {name: float(result.expected(kind, name).mean()) for name in POLICIES}
        really_best = max((name for name in POLICIES if name != "oracle"), key=lambda name: true[name])
        truth = make_truth(place, seed=0, run=0)
        for run in range(number, logs, SCENARIOS):
            log = log_of(place, "status-quo", run=run, seed=7)
            chances = chances_of(log)
            said = planned(log, place, policies, run)
            quo = float((truth.arrived[:, None] * chances * truth.counted[0]).sum())
            for one in said.policies:
                real = quo if one.policy == STATUS_QUO else true[one.policy]
                worth[one.policy].append(holds(one.worth, real))
                if one.more is not None:
                    more[one.policy].append(holds(one.more, real - quo))
            best = recommended(said)
            harm.append(best is not None and true[best.policy] < quo)
            able = [one.policy for one in said.policies if one.policy in POLICIES and one.policy != "oracle"]
            first.append(able[0] == really_best)
    shares = " | ".join(f"{100 * np.mean(worth[name]):.1f}" for name in (STATUS_QUO, *POLICIES))
    gains = " | ".join(f"{100 * np.mean(more[name]):.1f}" for name in ("doral-otf", "oracle"))
    print(f"| {kind} | {shares} | {gains} | {100 * np.mean(first):.1f} | {100 * np.mean(harm):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated; default: all")
    options = parser.parse_args()
    started = time.perf_counter()
    heads = ["log of", STATUS_QUO, *POLICIES, "more: doral-otf", "more: oracle", "best first", "harm"]
    print("| " + " | ".join(heads) + " |\n| --- " + "| ---: " * (len(heads) - 1) + "|", flush=True)
    for kind in options.kind or KINDS:
        measure(kind, options.logs)
    measure_equals(options.logs)
    took_s = time.perf_counter() - started
    size = f"{HORIZON:,} arrivals ({SMALL_HORIZON} where small)"
    print(f"\n{options.logs} logs of {size}, {TRUTHS} draws played; {took_s:.0f} s.")


if __name__ == "__main__":
    main()
