"""Whether the intervals of `doral.evaluate` hold the truth as often as they say, on logs of which all is known.

    python -m benchmarks.evaluation_coverage             200 logs of each kind, some minutes; prints a Markdown table
    python -m benchmarks.evaluation_coverage --logs 50 --only drift

A number is the percentage of the logs in which the 95% interval holds the truth: of the value by each estimator, of
the doubly robust difference to what was done, of cost and of value per unit of cost. In brackets, that of the policy
with the lowest. "equal" is how often a policy that does what was done is called equal to it. Truths are those of the
very allocation that was valued, learned ones too. Values that are called not supported are left out; the last column
says how many are not.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from tests.evaluation.worlds import World, mixed, small_world, untold
from tests.logs import HOUR, log_of

import doral
from doral._arrays import Floats
from doral.logs.log import Log
from doral.simulation.world.oracle import law_above, returned_by
from doral.simulation.world.truth import make_truth


class Known(NamedTuple):
    """A log, and what is true of it: what options bring and cost, how often contexts come, what was done."""

    log: Log
    deadline: float
    came: Floats
    paid: Floats
    shares: Floats
    policies: list[Any]
    done: Floats | None  # on average, where that is known


ARRIVALS = 12_000  # of a run of a scenario
Found = defaultdict[str, defaultdict[str, list[bool]]]  # by what, by policy
Make = Callable[[int], Known]


def of_world(world: World, *, n: int, deadline: float, is_told: bool) -> Make:
    def make(seed: int) -> Known:
        log = world.log(n, seed)
        done = world.logged()
        policies = ["uniform", f"always:{log.arms[-1]}", "best", "lp", ("mixed", mixed(world, 1)), ("same", done)]
        return Known(
            log if is_told else untold(log),
            deadline,
            world.came(deadline),
            world.paid(deadline),
            world.shares,
            policies,
            done,
        )

    return make


def of_scenario(name: str, policy: Any, *, deadline_rounds: float, is_told: bool) -> Make:
    whole = doral.scenario(name)
    part = ARRIVALS / whole.problem.horizon
    problem = dataclasses.replace(whole.problem, horizon=ARRIVALS, budget=part * whole.problem.budget)
    scenario = dataclasses.replace(whole, problem=problem)

    def make(seed: int) -> Known:
        log = log_of(scenario, policy, seed=17, run=seed)
        truth = make_truth(scenario, seed=17, run=seed)
        laws = scenario.delays
        within = np.array([[returned_by(law_above(law), deadline_rounds) for law in row] for row in laws])
        nothing = np.zeros((problem.n_contexts, 1))
        costs = np.broadcast_to(problem.costs_by_context, (problem.n_contexts, problem.n_arms))
        log = log if is_told else untold(log)
        return Known(
            log,
            deadline_rounds * HOUR,
            np.hstack([truth.world.means[0] * within, nothing]),
            np.hstack([costs, nothing]),
            np.asarray(scenario.true_shares, dtype=np.float64),
            ["uniform", f"always:{problem.arm_names[1]}", "best", "lp"],
            None,
        )

    return make


def kinds() -> Iterator[tuple[str, Make]]:
    calm = dataclasses.replace(small_world(1), days_after=400.0)
    heavy = dataclasses.replace(small_world(1), days=40.0)
    thin = dataclasses.replace(small_world(2, n_contexts=8, n_arms=6, thin=0.01), days_after=400.0)
    later = small_world(3).done
    drift = dataclasses.replace(heavy, done_later=later)
    for told in (True, False):
        words = "given" if told else "estimated"
        yield f"no censoring, {words}", of_world(calm, n=1_500, deadline=60.0, is_told=told)
        yield f"heavy censoring, {words}", of_world(heavy, n=1_500, deadline=25.0, is_told=told)
        yield f"heavy censoring, the policy drifts, {words}", of_world(drift, n=1_500, deadline=25.0, is_told=told)
        yield f"thin cells, {words}", of_world(thin, n=4_000, deadline=60.0, is_told=told)
    silent = dataclasses.replace(heavy, feedback="silent")
    yield "silent feedback, heavy censoring, given", of_world(silent, n=1_500, deadline=25.0, is_told=True)
    pays = dataclasses.replace(heavy, pays_on_answer=True)
    yield "paid on success, heavy censoring, given", of_world(pays, n=1_500, deadline=25.0, is_told=True)
    few = dataclasses.replace(heavy, days_after=10.0)
    yield "150 arrivals, given", of_world(few, n=150, deadline=25.0, is_told=True)
    otf = doral.policy("doral-otf", explore=0.05)
    yield "doral-otf, explore=0.05, given", of_scenario("stress/costs", otf, deadline_rounds=500.0, is_told=True)


def one_log(known: Known, found: Found) -> None:
    to_units = known.deadline / known.log.clock.size_of(known.log.clock.told)
    result = doral.evaluate(known.log, known.policies, deadline=to_units)
    came, paid = known.came * known.shares[:, None], known.paid * known.shares[:, None]
    for one in result.values:
        if one.policy == "status-quo":
            if known.done is not None:
                truth = float((known.done * came).sum())
                found["status quo"][""].append(one.low <= truth <= one.high)
            continue
        if one.estimator == "dr":
            found["supported"][one.policy].append(one.is_supported)
        if not one.is_supported:
            continue
        table = result.allocations[one.policy].mean(axis=0)
        value, cost = float((table * came).sum()), float((table * paid).sum())
        found[one.estimator][one.policy].append(one.low <= value <= one.high)
        if one.estimator != "dr":
            continue
        found["cost"][one.policy].append(one.cost_low - 1e-9 <= cost <= one.cost_high + 1e-9)
        if one.per_cost_low is not None and one.per_cost_high is not None:
            found["per cost"][one.policy].append(one.per_cost_low - 1e-9 <= value / cost <= one.per_cost_high + 1e-9)
        if one.policy == "same" and known.done is not None:
            found["equal"][one.policy].append(one.is_equal)
        elif known.done is not None:
            gain = value - float((known.done * came).sum())
            found["dr difference"][one.policy].append(one.difference_low <= gain <= one.difference_high)


def _cell(of_policies: list[list[bool]]) -> str:
    """The share over all policies, and that of the lowest of them."""
    if not of_policies:
        return ""
    shares = [100.0 * float(np.mean(one)) for one in of_policies]
    return f"{np.mean(shares):.1f}" + (f" ({min(shares):.1f})" if len(shares) > 1 else "")


COLUMNS = ("status quo", "ips", "snips", "dr", "dr difference", "equal", "cost", "per cost", "supported")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    print("| log | " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * (len(COLUMNS) + 1))
    for name, make in kinds():
        if chosen.only not in name:
            continue
        found: Found = defaultdict(lambda: defaultdict(list))
        for seed in range(chosen.logs):
            one_log(make(seed), found)
        cells = [_cell(list(found[one].values())) for one in COLUMNS]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
