"""How often intervals that need no playing hold the truth: logs of known scenarios.

    python -m benchmarks.posterior_coverage --logs 200

For every kind of scenario of `earnings_coverage`, so many logs of a policy that gives arms at random
are read, in turns of ten scenarios. Columns,
in percent: `cells`, what a decision brings in each context with each arm; `arms`, what a use brings over all contexts;
`best` how often the arm that is truly best is among those that may be, and `alone` how often there is one such arm;
`value`, what the planned budget buys by the plan for the posterior mean; `more`, what a tenth more of it buys; `gain`
and `area`, of the curve of gain against cost, at half of the money; `knee`.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from benchmarks.earnings_coverage import DEADLINE, KINDS, SCENARIOS, scenario
from tests.logs import HOUR, log_of

from doral._arrays import Floats
from doral.inference.intervals import DRAWS
from doral.inference.log_problem import asked_of
from doral.inference.truths import truths_of
from doral.planning.spending import spending
from doral.planning.values import arm_values, cell_values, draws_of
from doral.simulation.world.truth import make_truth

COLUMNS = ("cells", "arms", "best", "alone", "value", "more", "gain", "area", "knee")


def measure(kind: str, logs: int) -> None:
    held: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for run in range(logs):
        place = scenario(kind, run % SCENARIOS)
        truth = make_truth(place, seed=0, run=0)
        n_arms = place.problem.n_arms
        true, shares = truth.counted[0][:, :n_arms], np.array(place.true_shares)
        price = np.array([arm.cost for arm in place.problem.arms], dtype=np.float64)
        arrivals, budget = float(place.problem.expected_rounds), place.problem.budget
        log = log_of(place, "status-quo", run=run, seed=7)
        asked = asked_of(log, deadline=DEADLINE * HOUR, budget=budget)
        drawn = truths_of(log, deadline=DEADLINE * HOUR, n=DRAWS, seed=run)
        # Names of arms and contexts are in the order in which the log used them.
        contexts = [place.problem.context_index(one) for one in log.contexts]
        arms = [place.problem.arm_index(one) for one in log.arms]
        worth, share, cost = true[np.ix_(contexts, arms)], shares[contexts], price[arms]
        found: list[tuple[str, float, float | None, float | None]] = [
            ("cells", worth[log.contexts.index(one.context), log.arms.index(one.arm)], one.low, one.high)
            for one in cell_values(log, drawn)
        ]
        draws = draws_of(log, drawn, asked.problem)
        by_arm = arm_values(log.arms, draws)
        found += [("arms", float(share @ worth[:, log.arms.index(one.arm)]), one.low, one.high) for one in by_arm]
        for name, real, low, high in found:
            if low is not None and high is not None:  # a cell of which nothing is known yet has no interval
                held[name].append(low <= real <= high)
        best = log.arms[int(np.argmax((share @ worth) / cost))]
        held["best"].append(next(one for one in by_arm if one.arm == best).may_be_best)
        held["alone"].append(sum(one.may_be_best for one in by_arm) == 1)
        told = spending(draws.values, draws.costs, draws.shares, arrivals, budget)
        costs: Floats = np.broadcast_to(cost, worth.shape)
        curve = told.in_truth(worth, costs, share)
        at = float(np.interp(budget, told.budgets, told.low)), float(np.interp(budget, told.budgets, told.high))
        held["value"].append(at[0] <= curve.at(budget) <= at[1])
        more = told.more(0.1 * budget)
        held["more"].append(more.low <= curve.at(1.1 * budget) - curve.at(budget) <= more.high)
        gain = told.cost_gain
        half = len(gain.spent) // 2
        held["gain"].append(gain.low[half] <= curve.at(gain.spent[half] * curve.spent[-1]) <= gain.high[half])
        if gain.area_low is not None and gain.area_high is not None:
            held["area"].append(gain.area_low <= curve.area <= gain.area_high)
        ideal = spending(*(np.repeat(one[None], 40, axis=0) for one in (worth, costs, share)), arrivals)
        if told.knee_low is not None and told.knee_high is not None and ideal.knee is not None:
            held["knee"].append(told.knee_low - 1e-9 <= ideal.knee <= told.knee_high + 1e-9)
    print(f"| {kind} | " + " | ".join(f"{100 * np.mean(held[one]):.1f}" for one in COLUMNS) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--kind", action="append", choices=KINDS, help="may be repeated; default: all")
    options = parser.parse_args()
    started = time.process_time()
    print("| log of | " + " | ".join(COLUMNS) + " |\n| --- " + "| ---: " * len(COLUMNS) + "|", flush=True)
    for kind in options.kind or KINDS:
        measure(kind, options.logs)
    print(f"\n{options.logs} logs of each kind, {DRAWS} posterior draws; {time.process_time() - started:.0f} s.")


if __name__ == "__main__":
    main()
