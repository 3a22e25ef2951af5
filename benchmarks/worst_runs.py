"""How bad the worst runs are, on small problems with coins for rewards, where bad luck at first is most of all.

    python benchmarks/worst_runs.py [--runs 400] [-p doral-otf -p eva]

Two contexts, three arms and 3,000 arrivals. `dear`: the arm that costs most is right for one of the contexts, and the
cheapest for the other; `alike`: all cost the same; `any`: costs and chances are drawn anew for every run. A mean hides
a policy that settles on a wrong arm in one run of fifty.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import doral
from doral._arrays import Floats

FIXED: dict[str, tuple[Any, Any]] = {
    "dear": ((1.0, 2.0, 3.0), [[0.1, 0.2, 0.5], [0.3, 0.35, 0.2]]),
    "alike": ((1.0, 1.0, 1.0), [[0.1, 0.2, 0.15], [0.3, 0.2, 0.1]]),
}
FAR_BELOW = 0.8  # of the mean


def scenario_of(kind: str, run: int) -> doral.Scenario:
    if kind == "any":
        rng = np.random.default_rng(run)
        costs, means = rng.choice([1.0, 1.5, 2.0, 3.0], 3).tolist(), rng.uniform(0.05, 0.6, (2, 3)).tolist()
    else:
        costs, means = FIXED[kind]
    problem = doral.Problem(
        arms=[doral.Arm(name, cost=cost) for name, cost in zip("abc", costs, strict=True)],
        contexts={"x": 0.4, "y": 0.6},
        budget=1_500,
        horizon=3_000,
        deadline=100,
    )
    return doral.Scenario(
        name=kind, problem=problem, means=means, noise="bernoulli", delays=doral.delays.Geometric(mean=30)
    )


def shares(policy: str, kind: str, runs: int) -> Floats:
    """Of the oracle, in expectation, run by run."""
    if kind != "any":
        result = doral.simulate(policy, scenario_of(kind, 0), runs=runs)
        return np.array(result.expected(kind, policy) / result.of(kind, policy)[0].oracle)
    found = [doral.simulate(policy, scenario_of(kind, run), runs=1, first_run=run) for run in range(runs)]
    return np.array([one.expected(kind, policy)[0] / one.of(kind, policy)[0].oracle for one in found])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("-p", "--policy", action="append")
    arguments = parser.parse_args()
    for policy in arguments.policy or ["doral-otf", "doral", "eva"]:
        for kind in (*FIXED, "any"):
            found = 100 * shares(policy, kind, arguments.runs)
            below = 100 * float((found < FAR_BELOW * found.mean()).mean())
            print(
                f"{policy:10} {kind:6} {found.mean():5.1f}% of the oracle, worst {found.min():5.1f}, "
                f"{below:4.1f}% of {arguments.runs} runs below {FAR_BELOW:g} of the mean",
                flush=True,
            )


if __name__ == "__main__":
    main()
